"""After any commit, on any branch, a topology that was kept up is what a dictionary says."""

import tempfile
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

import omnigraph
from omnigraph.engine.local.topology import follow as following
from omnigraph.engine.local.topology import topologies as keeping
from omnigraph.engine.local.topology.adjacency import Adjacency, Patch
from omnigraph.engine.local.topology.topologies import EdgeTables, Topologies
from omnigraph.errors import CommitLetGoError, OmnigraphError
from omnigraph.graph import Graph
from omnigraph.maintenance import topologies as writing
from omnigraph.storage.row_ids import RowIds
from tests.support.clocks import LaterClock
from tests.support.topology import data_of, require_right, tables_of

FIRST = """
node Person { name: String @key  age: I32? }
node City { name: String @key }
edge Knows: Person -> Person { since: I32? }
edge LivesIn: Person -> City
"""
SCHEMAS = (
    FIRST,
    FIRST.replace("age: I32?", "age: I32?  note: String?").replace(
        "since: I32?", "since: I32? @default(3)"
    ),
    FIRST.replace("node Person", 'node Human @rename_from("Person")')
    .replace("edge Knows: Person -> Person", 'edge Likes: Human -> Human @rename_from("Knows")')
    .replace("LivesIn: Person", "LivesIn: Human"),
    FIRST.replace("edge LivesIn: Person -> City\n", ""),
)
NAMES = "abcdefgh"
BRANCHES = ("main", "draft", "other")
name = st.sampled_from(NAMES)
names = st.lists(name, min_size=1, max_size=3)
branch = st.sampled_from(BRANCHES)
step = st.one_of(
    st.tuples(st.just("upsert"), branch, names),
    st.tuples(st.just("update"), branch, name),
    st.tuples(st.just("delete"), branch, name),
    st.tuples(st.just("know"), branch, st.lists(st.tuples(name, name), min_size=1, max_size=4)),
    st.tuples(st.just("live"), branch, name),
    st.tuples(st.just("move"), branch, st.tuples(name, st.sampled_from(["here", "there"]))),
    st.tuples(st.just("forget"), branch, name),
    st.tuples(st.just("age"), branch, name),
    st.tuples(st.just("merge"), branch, branch),
    st.tuples(st.just("renew"), branch, st.just(None)),
    st.tuples(st.just("overwrite"), branch, names),
    st.tuples(st.just("renumber"), branch, st.just(None)),
    st.tuples(st.just("optimize"), branch, st.just(None)),
    st.tuples(st.just("index"), branch, st.just(None)),
    st.tuples(st.just("schema"), branch, st.integers(0, len(SCHEMAS) - 1)),
    st.tuples(st.just("cleanup"), branch, st.just(None)),
)


@pytest.fixture(autouse=True, scope="module")
def _every_table_is_large() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(writing, "STORED_EDGES_MIN", 1)
        patch.setattr(keeping, "STORED_EDGES_MIN", 1)
        yield


def edge_tables(graph: Graph) -> Iterator[EdgeTables]:
    for type_ in graph.schema.show().catalog.edge_types:
        yield tables_of(type_.name, type_.source, type_.target)


def carry_out(graph: Graph, kind: str, place: str, what: Any) -> None:
    """Do a step; a step that the schema or a rule does not allow changes nothing."""
    there = graph.at(branch=place)
    types = {type_.name for type_ in there.schema.show().catalog.types}
    person = "Person" if "Person" in types else "Human"
    knows = "Knows" if "Knows" in types else "Likes"
    match kind:
        case "upsert":
            rows = [{"name": each, "age": 1} for each in sorted(set(what))]
            there.load({person: rows}, mode="merge", index=False)
        case "update":
            there.mutate(
                f"query q($n: String) {{ update {person} set {{ age: 7 }} where name = $n }}",
                {"n": what},
            )
        case "delete":
            there.mutate(f"query q($n: String) {{ delete {person} where name = $n }}", {"n": what})
        case "know":
            rows = [{"from": source, "to": target} for source, target in what]
            there.load({knows: rows}, mode="append", index=False)
        case "live":
            cities = [{"name": "here"}, {"name": "there"}]
            there.load({"City": cities}, mode="merge", index=False)
            there.load({"LivesIn": [{"from": what, "to": "here"}]}, mode="append", index=False)
        case "move":
            there.mutate("query q($n: String) { delete LivesIn where from = $n }", {"n": what[0]})
            rows = [{"from": what[0], "to": what[1]}]
            there.load({"LivesIn": rows}, mode="append", index=False)
        case "forget":
            there.mutate(f"query q($n: String) {{ delete {knows} where from = $n }}", {"n": what})
        case "age":
            there.mutate(
                f"query q($n: String) {{ update {knows} set {{ since: 9 }} where from = $n }}",
                {"n": what},
            )
        case "merge" if what != place:
            graph.merge(what, into=place, resolve="theirs")
        case "renew" if place != "main":
            graph.branches.delete(place)
            graph.branches.create(place)
        case "renumber":
            # Every node gets another number, and no edge is touched.
            rows = [{"name": each, "age": 3} for each in NAMES]
            there.load({person: rows}, mode="overwrite", index=False)
        case "overwrite":
            rows = [{"name": each, "age": 2} for each in sorted(set(what))]
            there.load({person: rows, knows: []}, mode="overwrite", index=False)
        case "optimize":
            there.optimize()
        case "index":
            there.ensure_indices()
        case "schema":
            there.schema.apply(SCHEMAS[what])
        case "cleanup":
            later = omnigraph.open(graph.uri, clock=LaterClock(30 * 86_400.0))
            later.cleanup(keep_commits=1)
        case _:
            pass


def check_everywhere(warm: Graph, topologies: Topologies, *, whole: bool) -> None:
    for place in warm.branches.list():
        there = warm.at(branch=place)
        for tables in edge_tables(there):
            require_right(topologies, data_of(there), tables, whole=whole)


def walk(steps: list[tuple[str, str, Any]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        warm = omnigraph.init(f"{folder}/graph.omni", FIRST)
        warm.settings.set("maintenance.optimize", "off")
        people = [{"name": each, "age": 0} for each in NAMES[:5]]
        knows = [{"from": "a", "to": "b"}, {"from": "a", "to": "b"}, {"from": "c", "to": "c"}]
        warm.load({"Person": people, "Knows": knows}, index=False)
        for place in BRANCHES[1:]:
            warm.branches.create(place)
        topologies = Topologies()
        check_everywhere(warm, topologies, whole=True)
        for number, (kind, place, what) in enumerate(steps):
            # What the rules or the schema of the branch do not allow is part of any history.
            with suppress(OmnigraphError):
                carry_out(warm, kind, place, what)
            check_everywhere(warm, topologies, whole=number % 3 == 2)
            if number % 3 == 2:
                # One that has read nothing follows from files, where there are any.
                check_everywhere(omnigraph.open(warm.uri), Topologies(), whole=False)
        for commit in warm.commits.every():
            with suppress(CommitLetGoError):
                there = warm.at(commit=commit.commit_id)
                for tables in edge_tables(there):
                    require_right(topologies, data_of(there), tables)


HISTORIES = settings(
    deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow], print_blob=False
)


@settings(HISTORIES, max_examples=6)
@given(steps=st.lists(step, min_size=6, max_size=14))
def test_a_topology_that_is_kept_up_is_right_after_every_commit(
    steps: list[tuple[str, str, Any]],
) -> None:
    walk(steps)


@pytest.mark.soak
@pytest.mark.timeout(3_600)
@settings(HISTORIES, max_examples=300)
@given(steps=st.lists(step, min_size=6, max_size=30))
def test_a_topology_that_is_kept_up_is_right_after_every_commit_of_long_histories(
    steps: list[tuple[str, str, Any]],
) -> None:
    walk(steps)


PLANTED: dict[str, tuple[tuple[Any, str, Any], list[tuple[str, str, Any]]]] = {
    "earlier changes are forgotten": (
        (Patch, "over", lambda patch, _: patch),
        [("know", "main", [("b", "c")]), ("know", "main", [("d", "e")])],
    ),
    "deleted edges stay": (
        (following, "_sum_up", lambda _, come: following._add_up(come, np.ones(len(come), int))),
        [("know", "main", [("b", "c")]), ("forget", "main", "b")],
    ),
    "numbers of two branches are mixed up": (
        (keeping, "are_in_line", lambda *_: True),
        [
            ("renumber", "main", None),
            ("renew", "other", None),
            ("upsert", "draft", ["f", "g", "h"]),
        ],
    ),
    "nodes that were inserted again keep edges": (
        (RowIds, "without", lambda *_: np.empty(0, np.uint64)),
        [("know", "main", [("b", "c")]), ("renumber", "main", None)],
    ),
    "pairs with several edges count once": (
        (Adjacency, "count_edges", lambda _, nodes, __: np.ones(len(nodes), np.int64)),
        [("know", "main", [("a", "b")])],
    ),
}


@pytest.mark.parametrize("fault", PLANTED)
def test_a_planted_fault_is_found(monkeypatch: pytest.MonkeyPatch, fault: str) -> None:
    (owner, attribute, broken), steps = PLANTED[fault]
    walk(steps)
    monkeypatch.setattr(owner, attribute, broken)
    with pytest.raises((AssertionError, KeyError)):
        walk(steps)
