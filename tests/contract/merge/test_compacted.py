"""Merges and diffs across compactions: every cell, on all engines, at the cost of the delta."""

from collections.abc import Collection, Mapping
from itertools import permutations
from pathlib import Path
from typing import Final

import pytest

from omnigraph.backends.protocol import Backend
from omnigraph.changes.graphs import moved_types
from omnigraph.graph import Graph
from omnigraph.merge.outcomes import Outcome
from omnigraph.storage.pairs import DataSize
from tests.contract.merge import oracle
from tests.contract.merge.oracle import Rows
from tests.contract.merge.test_engines import CELLS, Worlds
from tests.contract.merge.worlds import change, conflict_keys, edge, node, rows_of, use, world
from tests.support.compaction import compact

Times = Mapping[str, Collection[str]]

TIMES: Final[Mapping[str, Times]] = {
    "source": {"left": ["after"]},
    "target": {"right": ["after"]},
    "both": {"left": ["after"], "right": ["after"]},
    "both at first": {"left": ["before"], "right": ["before"]},
    "both twice": {"left": ["before", "after"], "right": ["before", "after"]},
}


def size_of(graph: Graph, before: str, after: str) -> DataSize:
    """How much there is to read of what differs."""
    sides = graph._side(before), graph._side(after)
    return sum((moved.size for moved in moved_types(graph._catalogs.of, *sides)), DataSize())


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Worlds:
    return Worlds(tmp_path_factory.mktemp("plain") / "graph.omni", list(CELLS))


@pytest.fixture(scope="module", params=TIMES)
def worlds(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Worlds:
    place = tmp_path_factory.mktemp("compacted") / "graph.omni"
    return Worlds(place, list(CELLS), TIMES[request.param])


@pytest.fixture(scope="module")
def twice(tmp_path_factory: pytest.TempPathFactory) -> Worlds:
    place = tmp_path_factory.mktemp("twice") / "graph.omni"
    return Worlds(place, list(CELLS), TIMES["both twice"])


@pytest.mark.parametrize("flipped", [False, True])
def test_every_cell_is_decided_as_without_compactions(
    worlds: Worlds, local: Backend, *, flipped: bool
) -> None:
    expected = worlds.expected(flipped=flipped)
    _, preview = worlds.merge(local, flipped=flipped, dry_run=True)
    assert conflict_keys(preview.conflicts) == expected.conflicts
    for choice in ("ours", "theirs"):
        rows, outcome = worlds.merge(local, flipped=flipped, resolve=choice)
        wanted = worlds.expected(flipped=flipped, resolve=choice)
        assert rows == wanted.rows
        changed = oracle.difference(worlds.target(flipped=flipped), wanted.rows)
        counts = outcome.changes.values()
        assert sum(each.inserted + each.updated + each.deleted for each in counts) == len(changed)


def test_no_more_is_read_than_without_compactions(worlds: Worlds, plain: Worlds) -> None:
    sizes = [size_of(plain.graph, "main", side).row_count for side in ("left", "right")]
    assert [size_of(worlds.graph, "main", side).row_count for side in ("left", "right")] == sizes
    assert size_of(worlds.graph, "left", "right").row_count <= sum(sizes)


def test_diffs_are_those_of_the_rows(worlds: Worlds) -> None:
    points = worlds.sides | {"main": worlds.base}
    for before, after in permutations(points, 2):
        found = {
            (str(each.op), each.type_name, each.id)
            for each in worlds.graph.diff(before, after).rows()
        }
        assert found == oracle.difference(points[before], points[after])


@pytest.mark.parametrize(
    "flipped", [False, pytest.param(True, marks=pytest.mark.soak)], ids=["", "flipped"]
)
def test_spark_decides_every_cell_as_without_compactions(
    twice: Worlds, on_spark: Backend, *, flipped: bool
) -> None:
    rows, outcome = twice.merge(on_spark, flipped=flipped, resolve="theirs")
    wanted = twice.expected(flipped=flipped, resolve="theirs")
    assert rows == wanted.rows
    changed = oracle.difference(twice.target(flipped=flipped), wanted.rows)
    counts = outcome.changes.values()
    assert sum(each.inserted + each.updated + each.deleted for each in counts) == len(changed)


def grown(tmp_path: Path) -> tuple[Graph, Rows]:
    """A draft that got new rows, in files in which a compaction put all that were there."""
    base: Rows = {"P": {f"n{number}": node(f"n{number}") for number in range(20)}, "K": {}}
    graph = world(tmp_path / "graph.omni", base)
    change(graph, {"P": {"o": node("o")}})
    graph.branches.create("draft")
    change(graph, {"P": {"d": node("d")}, "K": {"e": edge("e", "d", "n1")}}, branch="draft")
    compact(graph, branch="draft")
    return graph, rows_of(graph, "draft")


def test_rows_that_only_came_are_taken_out_of_compacted_files(
    tmp_path: Path, engine: Backend
) -> None:
    graph, expected = grown(tmp_path)
    assert size_of(graph, "main", "draft").row_count == 2
    outcome = use(graph, engine).merge("draft")
    assert outcome.outcome is Outcome.FAST_FORWARD
    assert {name: each.inserted for name, each in outcome.changes.items()} == {"P": 1, "K": 1}
    assert rows_of(graph) == expected


def test_spark_counts_and_shows_what_differs_across_a_compaction(
    tmp_path: Path, spark: object
) -> None:
    graph, _ = grown(tmp_path)
    change(graph, {"P": {"n3": node("n3", a=9)}}, branch="draft")
    compact(graph, branch="draft")
    del spark
    found = graph.diff("main", "draft", engine="spark")
    counts = {name: (each.inserted, each.updated) for name, each in found.counts.items()}
    assert counts == {"P": (1, 1), "K": (1, 0)}
    assert {each.id for each in found.rows()} == {"d", "e", "n3"}
    back = graph.diff("draft", "main", engine="spark")
    assert (back.counts["P"].deleted, back.counts["K"].deleted) == (1, 1)


def test_an_optimize_alone_is_nothing_to_merge(tmp_path: Path, local: Backend) -> None:
    base: Rows = {"P": {f"n{number}": node(f"n{number}") for number in range(5)}, "K": {}}
    graph = use(world(tmp_path / "graph.omni", base), local)
    graph.branches.create("draft")
    change(graph, {"P": {"d": node("d")}}, branch="draft")
    graph.merge("draft")
    before = graph.snapshot()
    assert graph.optimize(branch="draft").commit_id is not None
    assert graph.merge("draft").outcome is Outcome.ALREADY_UP_TO_DATE
    assert graph.snapshot() == before

    change(graph, {"P": {"e": node("e")}}, branch="draft")
    assert graph.optimize().commit_id is not None
    outcome = graph.merge("draft")
    assert (outcome.outcome, outcome.changes["P"].inserted) == (Outcome.MERGED, 1)
    assert rows_of(graph) == rows_of(graph, "draft")
