"""What keeping a topology up costs: it follows the commits, not the graph."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import omnigraph
from omnigraph.engine.local.topology import topologies as keeping
from omnigraph.engine.local.topology.topologies import Topologies
from omnigraph.engine.local.topology.topology import Topology
from omnigraph.graph import Graph
from omnigraph.maintenance import topologies as writing
from tests.support.counting import Counted, requests_of
from tests.support.topology import data_of, require_arrays, tables_of

SCHEMA = """
node Person { name: String @key  age: I32? }
edge Knows: Person -> Person { since: I32? }
"""
KNOWS = tables_of("Knows", "Person")
PEOPLE, EDGES = 20_000, 60_000
COMMIT_BYTES_MAX = 128 << 10


def make(path: Path) -> Graph:
    graph = omnigraph.init(path / "graph.omni", SCHEMA)
    chosen = np.random.default_rng(7).integers(0, PEOPLE, (2, EDGES))
    names = pa.array([f"person {number}" for number in range(PEOPLE)])
    people = pa.table({"name": names, "age": pa.array(np.arange(PEOPLE), pa.int32())})
    knows = pa.table({"from": names.take(chosen[0]), "to": names.take(chosen[1])})
    graph.load({"Person": people, "Knows": knows})
    return graph


def change(graph: Graph, number: int) -> None:
    """One small commit, of one kind after the other."""
    one, other = f"person {number * 37 % PEOPLE}", f"person {number * 101 % PEOPLE}"
    match number % 5:
        case 0 | 1:
            text = "query q($a: String, $b: String) { insert Knows { from: $a, to: $b } }"
            graph.mutate(text, {"a": one, "b": other})
        case 2:
            text = "query q($a: String) { update Person set { age: 1 } where name = $a }"
            graph.mutate(text, {"a": one})
        case 3:
            text = "query q($a: String) { delete Knows where from = $a }"
            graph.mutate(text, {"a": one})
        case _:
            text = "query q($a: String) { insert Person { name: $a } }"
            graph.mutate(text, {"a": f"new {number}"})


def keep_up(graph: Graph, monkeypatch: pytest.MonkeyPatch, commits: int) -> list[int]:
    """Bytes read for the topology after each commit; all edges are read for the first one only."""
    builds = []
    build = keeping._build

    def count_and_build(*given: Any) -> Topology | None:
        builds.append(given)
        return build(*given)

    monkeypatch.setattr(keeping, "_build", count_and_build)
    topologies = Topologies()
    bytes_read = []
    for number in range(1, commits + 2):
        data = data_of(graph)
        edges = data.table(KNOWS.edges)
        graph._store.meter.take()
        topology = topologies.of(data, KNOWS)
        assert topology is not None
        bytes_read.append(graph._store.meter.take().bytes_read)
        name = f"person {(number - 1) * 37 % PEOPLE}"
        _, found = topology.out.gather(topology.sources.find([name]))
        rows = edges.read(["dst"], filter_text=f"src = '{name}'")
        assert found.tolist() == sorted(set(topology.targets.find(rows["dst"]).tolist()))
        graph._store.meter.take()
        change(graph, number)
    assert len(builds) == 1
    return bytes_read


def test_after_small_commits_only_what_they_changed_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, *later = keep_up(make(tmp_path), monkeypatch, 100)
    assert first > 6 * COMMIT_BYTES_MAX
    assert max(later) < COMMIT_BYTES_MAX
    assert sum(later[50:]) < 2 * sum(later[:50])


@pytest.mark.soak
def test_after_a_thousand_small_commits_only_what_they_changed_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, *later = keep_up(make(tmp_path), monkeypatch, 1000)
    assert first > 6 * COMMIT_BYTES_MAX
    # A fold makes upper bounds of row versions (docs/decisions/0013): some rows that it moved count
    # as written, and are read once.
    assert sorted(later)[-5] < COMMIT_BYTES_MAX
    assert max(later) < first
    assert sum(later[500:]) < 2 * sum(later[:500])


def test_a_commit_of_properties_reads_no_edge(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph, topologies = make(tmp_path), Topologies()
    before = topologies.of(data_of(graph), KNOWS)
    change(graph, 2)
    cost = topologies.cost(data_of(graph), KNOWS)
    assert cost is not None
    assert cost.edge_count == 0
    monkeypatch.setattr(keeping, "_build", None)
    after = topologies.of(data_of(graph), KNOWS)
    assert before is not None
    assert after is not None
    assert after.out.base is before.out.base
    require_arrays(after)


def test_a_fresh_handle_reads_a_stored_topology_from_s3_in_two_requests(
    asked: Counted, root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writing, "STORED_EDGES_MIN", 1)
    monkeypatch.setattr(keeping, "STORED_EDGES_MIN", 1)
    people = [{"name": f"p{number}"} for number in range(50)]
    knows = [{"from": f"p{number}", "to": f"p{number * 7 % 50}"} for number in range(50)]
    omnigraph.init(root, SCHEMA).load({"Person": people, "Knows": knows})
    data, topologies = data_of(omnigraph.open(root, read_only=True)), Topologies()
    for key in (KNOWS.edges, KNOWS.source):
        data.table(key).count_rows()
    monkeypatch.setattr(keeping, "_build", None)
    requests = requests_of(asked, lambda: topologies.of(data, KNOWS))
    assert len(requests) == 2, requests
    assert requests_of(asked, lambda: topologies.of(data, KNOWS)) == []
    topology = topologies.of(data, KNOWS)
    assert topology is not None
    require_arrays(topology)
