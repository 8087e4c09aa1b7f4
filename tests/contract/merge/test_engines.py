"""Every cell of the truth table in one merge, and rows that only come; on all engines."""

import json
from collections.abc import Collection, Mapping
from itertools import product
from pathlib import Path
from typing import Any, Final

import pytest

from omnigraph.backends.protocol import Backend
from omnigraph.choices import EngineName
from omnigraph.graph import Graph
from omnigraph.merge.conflicts import MergeConflictError
from omnigraph.merge.outcomes import Outcome
from tests.contract.merge import oracle
from tests.contract.merge.oracle import Row, Rows
from tests.contract.merge.test_truth_table import ACTIONS, BASE, SIDES
from tests.contract.merge.test_truth_table import after as cell_after
from tests.contract.merge.worlds import (
    Changes,
    change,
    conflict_keys,
    edge,
    node,
    rows_of,
    use,
    world,
)
from tests.support.compaction import compact

CELLS: Final = tuple(product(ACTIONS, ACTIONS))
BOTH_WAYS: Final = [
    pytest.param(False, id="left into right"),
    pytest.param(True, id="right into left", marks=pytest.mark.soak),
]


def of_cell(number: int, row: Row) -> Row:
    """A row as one of the cell's own."""
    ids = {name: f"{row[name]}.{number:02}" for name in ("id", "name", "src", "dst") if name in row}
    return row | ids


def spread(cells: dict[int, Rows]) -> Rows:
    """The rows of many cells in one graph."""
    return {
        name: {
            f"{id_}.{number:02}": of_cell(number, row)
            for number, rows in cells.items()
            for id_, row in rows[name].items()
        }
        for name in ("P", "K")
    }


def steps(side: str, actions: dict[int, str]) -> list[Changes]:
    """What a side does in all cells, commit by commit."""
    found: list[dict[str, dict[str, Row | None]]] = []
    for number, action in actions.items():
        for place, step in enumerate(SIDES[side][action]):
            while len(found) <= place:
                found.append({"P": {}, "K": {}})
            for name, rows in step.items():
                for id_, row in rows.items():
                    made = None if row is None else of_cell(number, row)
                    found[place][name][f"{id_}.{number:02}"] = made
    return list(found)


def is_clean(cell: tuple[str, str]) -> bool:
    left, right = cell
    sides = (cell_after("left", left), cell_after("right", right))
    return not any(oracle.merge(BASE, *pair).conflicts for pair in (sides, sides[::-1]))


class Worlds:
    """A graph whose branches `left` and `right` did what every cell says; and what is expected.

    Args:
        compacted: By side, when its tables are compacted: `before` what it does, `after` it.
    """

    def __init__(
        self,
        uri: Path,
        cells: list[tuple[str, str]],
        compacted: Mapping[str, Collection[str]] | None = None,
    ) -> None:
        times = compacted or {}
        numbered = dict(enumerate(cells))
        self.base = spread(dict.fromkeys(numbered, BASE))
        self.sides: dict[str, Rows] = {}
        self.graph: Graph = world(uri, self.base)
        self.count = 0
        for place, side in enumerate(SIDES):
            self.graph.branches.create(side)
            if "before" in times.get(side, ()):
                compact(self.graph, branch=side)
            actions = {number: cell[place] for number, cell in numbered.items()}
            for step in steps(side, actions):
                change(self.graph, step, branch=side)
            if "after" in times.get(side, ()):
                compact(self.graph, branch=side)
            rows = {number: cell_after(side, action) for number, action in actions.items()}
            self.sides[side] = spread(rows)
            assert rows_of(self.graph, side) == self.sides[side]

    def merge(self, engine: Backend, *, flipped: bool, **how: Any) -> tuple[Rows, Any]:
        """Merge the one side into a copy of the other; its rows afterwards, and the outcome."""
        source, target = ("right", "left") if flipped else ("left", "right")
        self.count += 1
        branch = f"merged/{self.count}"
        self.graph.branches.create(branch, branch=target)
        outcome = use(self.graph, engine).merge(source, into=branch, **how)
        return rows_of(self.graph, branch), outcome

    def expected(self, *, flipped: bool, **how: Any) -> oracle.Expected:
        ours, theirs = (self.sides[side] for side in ("left", "right"))
        sides = (ours, theirs) if flipped else (theirs, ours)
        return oracle.merge(self.base, *sides, **how)

    def target(self, *, flipped: bool) -> Rows:
        return self.sides["left" if flipped else "right"]


@pytest.fixture(scope="module")
def every(tmp_path_factory: pytest.TempPathFactory) -> Worlds:
    return Worlds(tmp_path_factory.mktemp("every") / "graph.omni", list(CELLS))


@pytest.mark.parametrize("flipped", BOTH_WAYS)
def test_every_cell_conflicts_as_it_should(
    every: Worlds, engine_in_turn: Backend, *, flipped: bool
) -> None:
    expected = every.expected(flipped=flipped)
    rows, preview = every.merge(engine_in_turn, flipped=flipped, dry_run=True)
    assert conflict_keys(preview.conflicts) == expected.conflicts
    assert preview.conflict_count == len(expected.conflicts)
    assert rows == every.target(flipped=flipped)
    with pytest.raises(MergeConflictError) as refused:
        every.merge(engine_in_turn, flipped=flipped)
    assert refused.value.conflicts == preview.conflicts
    places = [(each.type_name, each.id or "", each.property or "") for each in preview.conflicts]
    assert places == sorted(places)


@pytest.mark.soak
@pytest.mark.parametrize("flipped", [False, True])
def test_every_cell_conflicts_as_it_should_where_rows_are_strict(
    every: Worlds, engine: Backend, *, flipped: bool
) -> None:
    expected = every.expected(flipped=flipped, strict=True)
    _, preview = every.merge(engine, flipped=flipped, dry_run=True, strict_rows=True)
    assert conflict_keys(preview.conflicts) == expected.conflicts


@pytest.mark.parametrize("flipped", BOTH_WAYS)
@pytest.mark.parametrize("choice", [pytest.param("ours", marks=pytest.mark.soak), "theirs"])
def test_every_cell_is_resolved_as_it_should(
    every: Worlds, engine: Backend, *, flipped: bool, choice: str
) -> None:
    expected = every.expected(flipped=flipped, resolve=choice)
    assert expected.conflicts == set()
    rows, outcome = every.merge(engine, flipped=flipped, resolve=choice)
    assert rows == expected.rows
    assert outcome.engine is EngineName.LOCAL or engine.name is EngineName.SPARK
    changed = oracle.difference(every.target(flipped=flipped), expected.rows)
    counted = [(c.inserted, c.updated, c.deleted) for c in outcome.changes.values()]
    ops = [op for op, *_ in changed]
    assert [sum(each) for each in zip(*counted, strict=True)] == [
        ops.count(op) for op in ("insert", "update", "delete")
    ]


@pytest.mark.soak
@pytest.mark.parametrize("flipped", [False, True])
def test_every_cell_is_resolved_one_by_one(
    every: Worlds, engine: Backend, *, flipped: bool
) -> None:
    _, preview = every.merge(engine, flipped=flipped, dry_run=True)
    decisions = [
        {"type": each.type_name, "id": each.id, "take": "theirs"}
        | ({"property": each.property} if each.property else {})
        for each in preview.conflicts
    ]
    rows, _ = every.merge(engine, flipped=flipped, resolve=json.dumps(decisions))
    assert rows == every.expected(flipped=flipped, resolve="theirs").rows


@pytest.mark.soak
@pytest.mark.parametrize("flipped", [False, True])
def test_cells_without_conflicts_merge(tmp_path: Path, engine: Backend, *, flipped: bool) -> None:
    made = Worlds(tmp_path / "graph.omni", [cell for cell in CELLS if is_clean(cell)])
    expected = made.expected(flipped=flipped)
    assert expected.conflicts == set()
    rows, outcome = made.merge(engine, flipped=flipped)
    assert rows == expected.rows
    assert outcome.outcome is Outcome.MERGED


def test_all_that_one_side_did_is_taken_over(tmp_path: Path, engine_in_turn: Backend) -> None:
    made = Worlds(tmp_path / "graph.omni", [(action, "nothing") for action in ACTIONS])
    rows, outcome = made.merge(engine_in_turn, flipped=False)
    assert rows == made.sides["left"]
    assert outcome.outcome is Outcome.FAST_FORWARD


def lonely(tmp_path: Path) -> Graph:
    """Ours deleted a node without edges, to which theirs adds two: no row of K is compared."""
    base: Rows = {"P": {name: node(name) for name in ("x", "y", "q")}, "K": {}}
    graph = world(tmp_path / "graph.omni", base)
    graph.branches.create("draft")
    edges = {name: edge(name, "x", end) for name, end in (("f", "q"), ("g", "q"), ("h", "y"))}
    change(graph, {"K": edges}, branch="draft")
    change(graph, {"P": {"q": None, "o": node("o")}})
    return graph


def test_rows_that_only_came_conflict_and_are_left_out(tmp_path: Path, engine: Backend) -> None:
    graph = use(lonely(tmp_path), engine)
    orphans = {("orphan_edge", "K", name, "dst") for name in ("f", "g")}
    assert conflict_keys(graph.merge("draft", dry_run=True).conflicts) == orphans
    outcome = graph.merge("draft", resolve="ours")
    assert rows_of(graph)["K"].keys() == {"h"}
    assert outcome.changes["K"].inserted == 1


def test_a_node_comes_back_once_however_many_edges_need_it(
    tmp_path: Path, engine_in_turn: Backend
) -> None:
    graph = use(lonely(tmp_path), engine_in_turn)
    outcome = graph.merge("draft", resolve="theirs")
    rows = rows_of(graph)
    assert rows["K"].keys() == {"f", "g", "h"}
    assert rows["P"].keys() == {"x", "y", "q", "o"}
    assert outcome.changes["P"].inserted == 1


@pytest.mark.soak
def test_spark_names_the_first_conflicts_and_counts_all(
    every: Worlds, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    from omnigraph.backends.spark import SparkBackend
    from omnigraph.engine.spark.execute import SparkEngine

    monkeypatch.setattr("omnigraph.merge.spark.tables.MERGE_CONFLICTS_MAX", 3)
    spark = SparkBackend(SparkEngine(request.getfixturevalue("spark")))
    expected = every.expected(flipped=False).conflicts
    with pytest.raises(MergeConflictError, match=f"has {len(expected)} conflicts") as refused:
        every.merge(spark, flipped=False)
    assert refused.value.conflict_count == len(expected)
    first = sorted((name, id_, where or "", kind) for kind, name, id_, where in expected)[:3]
    assert [
        (each.type_name, each.id, each.property or "", each.kind)
        for each in refused.value.conflicts
    ] == first
