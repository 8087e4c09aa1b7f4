"""Algorithms of either engine against their definitions, on random graphs of awkward shapes."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.algorithms import kernels
from omnigraph.algorithms.kernels import EdgeArrays
from omnigraph.algorithms.results import AlgorithmResult, Rounds
from omnigraph.engine.local.topology.topologies import Topologies
from omnigraph.errors import InvalidInputError, NotFoundError, TypeNotFoundError
from tests.contract.algorithms import definitions
from tests.contract.algorithms.definitions import Node, PlainGraph, name

SCHEMA = """
node City { name: String @key }
node Person { name: String @key  rank: F64? }
node Ghost { name: String @key }
edge Knows: Person -> Person
edge LivesIn: Person -> City
edge Haunts: Ghost -> City
"""


def draw(path: Path, seed: int, size: int = 14) -> tuple[Graph, PlainGraph]:
    """A graph with loops, parallels, isolated nodes, gaps among row ids, and rows that moved."""
    random = Random(seed)
    people = [f"p{number}" for number in random.sample(range(100), size)]
    cities = [f"c{number}" for number in random.sample(range(100), 4)]
    graph = omnigraph.init(path, schema=SCHEMA)
    gone = [f"gone{number}" for number in range(3)]
    graph.load({"Person": [{"name": each} for each in [gone[0], *people[:5], gone[1]]]})
    graph.load({"Person": [{"name": each} for each in [*people[5:], gone[2]]]})
    graph.load({"City": [{"name": each} for each in cities]})
    for each in gone:
        graph.mutate("query q($n: String) { delete Person where name = $n }", {"n": each})
    update = "query q($n: String) { update Person set { rank: 0.5 } where name = $n }"
    graph.mutate(update, {"n": people[1]})
    knows = [
        (random.choice(people), random.choice(people)) for _ in range(size + random.randrange(9))
    ]
    knows += [knows[0], (people[2], people[2])]
    lives = [(random.choice(people[:7]), random.choice(cities[:3])) for _ in range(4)]
    graph.load(
        {
            "Knows": [{"from": source, "to": target} for source, target in knows],
            "LivesIn": [{"from": source, "to": target} for source, target in lives],
        }
    )
    nodes: list[Node] = [("City", each) for each in cities] + [("Person", each) for each in people]
    edges = [(("Person", source), ("Person", target)) for source, target in knows]
    edges += [(("Person", source), ("City", target)) for source, target in lives]
    return graph, PlainGraph(nodes, edges)


BOTH = ("Knows", "LivesIn")


def values(result: AlgorithmResult) -> dict[Node, Any]:
    """By node, its value, or its values if there are several."""
    rows = [tuple(row.values()) for row in result.to_arrow().to_pylist()]
    return {row[:2]: row[2] if len(row) == 3 else row[2:] for row in rows}


def assert_defined(graph: Graph, plain: PlainGraph, engine: str, tolerance: float = 1e-12) -> None:
    """All algorithms compute what their definitions say."""
    run = graph.algorithms
    assert values(run.degrees(edges=BOTH, engine=engine)) == definitions.degrees(plain)
    rounds = 200
    ranked = run.pagerank(edges=BOTH, tolerance=tolerance, rounds=rounds, engine=engine)
    assert ranked.rounds is not None
    assert ranked.rounds.converged
    ranks = values(ranked)
    assert ranks == pytest.approx(definitions.page_rank(plain, 0.85), abs=10 * tolerance)
    assert sum(ranks.values()) == pytest.approx(1)
    assert values(run.components(edges=BOTH, engine=engine)) == {
        node: name(group) for node, group in definitions.components(plain).items()
    }
    labels = values(run.label_propagation(edges=BOTH, rounds=3, engine=engine))
    assert labels == {
        node: name(group) for node, group in definitions.label_propagation(plain, 3).items()
    }
    sources = [plain.nodes[-1], plain.nodes[-2], plain.nodes[5]]
    starts = {"Person": [id_ for _, id_ in sources]}
    paths = values(run.shortest_paths(starts, edges=BOTH, engine=engine))
    assert paths == _named(definitions.shortest_paths(plain, sources))
    near = run.shortest_paths(starts, edges=BOTH, direction="both", max_hops=2, engine=engine)
    assert values(near) == _named(definitions.shortest_paths(plain.both_ways(), sources, 2))
    assert values(run.triangles(edges=BOTH, engine=engine)) == definitions.triangles(plain)


def _named(found: dict[Node, tuple[int | None, Node | None]]) -> dict[Node, Any]:
    return {node: (length, name(source)) for node, (length, source) in found.items()}


@pytest.mark.parametrize("seed", range(3))
def test_algorithms_compute_what_they_are_defined_as(tmp_path, seed):
    graph, plain = draw(tmp_path / "graph.omni", seed)
    assert_defined(graph, plain, "local")
    undirected = values(graph.algorithms.pagerank(edges=BOTH, undirected=True, tolerance=1e-12))
    expected = definitions.page_rank(plain.both_ways(), 0.85)
    assert undirected == pytest.approx(expected, abs=1e-9)
    start = "/".join(plain.nodes[0])
    back = values(graph.algorithms.shortest_paths(start, edges=BOTH, direction="in"))
    reverse = PlainGraph(plain.nodes, [(target, source) for source, target in plain.edges])
    assert back == _named(definitions.shortest_paths(reverse, [plain.nodes[0]]))


def test_spark_computes_the_same(tmp_path):
    graph, plain = draw(tmp_path / "graph.omni", 7)
    # One round is some jobs, and reads all that other algorithms read; soak has those.
    ranked = graph.algorithms.pagerank(edges=BOTH, rounds=1, engine="spark")
    assert ranked.rounds == Rounds(1, converged=False)
    assert values(ranked) == pytest.approx(definitions.ranks_after(plain, 0.85, 1))


@pytest.mark.soak
@pytest.mark.timeout(1_800)
@pytest.mark.parametrize("seed", range(20, 26))
def test_spark_computes_the_same_on_more_graphs(tmp_path, seed):
    graph, plain = draw(tmp_path / "graph.omni", seed, size=30)
    assert_defined(graph, plain, "spark", tolerance=1e-9)


def test_tables_without_arrays_give_the_same(tmp_path, monkeypatch):
    graph, plain = draw(tmp_path / "graph.omni", 3)
    monkeypatch.setattr(Topologies, "of", lambda *_, **__: None)
    assert_defined(graph, plain, "local")


def test_branches_and_commits_are_seen_as_they_are(tmp_path):
    graph, plain = draw(tmp_path / "graph.omni", 5)
    before = graph.snapshot().head.commit_id
    graph.branches.create("draft")
    draft = graph.at(branch="draft")
    first, second = plain.nodes[4], plain.nodes[5]
    draft.load({"Knows": [{"from": first[1], "to": second[1]}]})
    more = PlainGraph(plain.nodes, [*plain.edges, (first, second)])
    assert values(draft.algorithms.degrees(edges=BOTH)) == definitions.degrees(more)
    assert values(graph.algorithms.degrees(edges=BOTH)) == definitions.degrees(plain)
    graph.merge("draft")
    assert values(graph.algorithms.degrees(edges=BOTH)) == definitions.degrees(more)
    past = graph.at(commit=str(before))
    assert values(past.algorithms.degrees(edges=BOTH)) == definitions.degrees(plain)


@pytest.mark.parametrize("engine", ["local", pytest.param("spark", marks=pytest.mark.soak)])
def test_types_without_rows_and_nodes_without_edges(tmp_path, engine):
    graph = omnigraph.init(tmp_path / "graph.omni", schema=SCHEMA)
    run = graph.algorithms
    assert run.degrees(engine=engine).to_arrow().num_rows == 0
    assert run.pagerank(engine=engine).to_arrow().num_rows == 0
    assert run.triangles(engine=engine).to_arrow().num_rows == 0
    graph.load({"Ghost": [{"name": "g1"}, {"name": "g2"}]})
    ghosts = run.pagerank(edges="Haunts", engine=engine)
    assert values(ghosts) == {("Ghost", "g1"): 0.5, ("Ghost", "g2"): 0.5}
    assert set(values(run.components(edges="Haunts", engine=engine)).values()) == {
        "Ghost/g1",
        "Ghost/g2",
    }
    alone = run.shortest_paths({"Ghost": ["g1"]}, edges="Haunts", engine=engine)
    assert values(alone)["Ghost", "g2"] == (None, None)
    assert values(run.label_propagation(edges="Haunts", engine=engine))["Ghost", "g1"] == "Ghost/g1"


def test_a_long_path_is_one_component_in_few_rounds():
    size = 100_000
    order = np.random.default_rng(1).permutation(size)
    edges = EdgeArrays(size, order[:-1], order[1:], np.ones(size - 1, np.uint32))
    assert not kernels.components(edges).any()


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda run: run.pagerank(damping=1.0), "damping must be from 0 to below 1, not 1.0"),
        (lambda run: run.pagerank(damping="much"), "damping must be a number"),
        (lambda run: run.pagerank(tolerance=0), "tolerance must be above 0, not 0"),
        (lambda run: run.pagerank(tolerance=float("nan")), "tolerance must be above 0, not nan"),
        (lambda run: run.label_propagation(rounds=0), "rounds must be from 1 to 10,000, not 0"),
        (lambda run: run.degrees(edges="Person"), "Person is a node type"),
        (lambda run: run.shortest_paths({}), "at least one node"),
        (lambda run: run.shortest_paths({"Person": []}), "at least one node"),
        (lambda run: run.shortest_paths({"Ghost": ["x"]}, edges="Knows"), "type 'Ghost'"),
        (lambda run: run.shortest_paths({"Person": ["p"]}, direction="up"), "up"),
        (
            lambda run: run.shortest_paths({"Person": ["p"]}, max_hops=-1),
            "max_hops must be 0 or more, not -1",
        ),
    ],
)
def test_bad_requests_are_refused_by_name(tmp_path, call, words):
    graph = omnigraph.init(tmp_path / "graph.omni", schema=SCHEMA)
    with pytest.raises(InvalidInputError, match=words):
        call(graph.algorithms)


def test_what_does_not_exist_is_named(tmp_path):
    graph = omnigraph.init(tmp_path / "graph.omni", schema=SCHEMA)
    with pytest.raises(TypeNotFoundError):
        graph.algorithms.degrees(edges="Likes")
    with pytest.raises(NotFoundError, match="Person/nobody"):
        graph.algorithms.shortest_paths({"Person": ["nobody"]})
    with pytest.raises(TypeNotFoundError, match="Ghost"):
        graph.algorithms.degrees(edges="Knows").of("Ghost")


@pytest.mark.parametrize("fault", ["loops count", "parallels count once", "a component is split"])
def test_the_definitions_notice_faults(tmp_path, monkeypatch, fault):
    graph, plain = draw(tmp_path / "graph.omni", 2)
    match fault:
        case "loops count":
            monkeypatch.setattr(EdgeArrays, "without_loops", lambda edges: edges)
        case "parallels count once":
            degrees = kernels.degrees
            single = lambda edges: EdgeArrays(  # noqa: E731
                edges.size, edges.sources, edges.targets, np.minimum(edges.counts, 1)
            )
            monkeypatch.setattr(kernels, "degrees", lambda edges: degrees(single(edges)))
        case _:
            monkeypatch.setattr(kernels, "components", lambda edges: np.arange(edges.size))
    with pytest.raises(AssertionError):
        assert_defined(graph, plain, "local")
