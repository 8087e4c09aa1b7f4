"""Every pair of things that two branches can do to one graph, merged in both directions."""

from itertools import product
from typing import Final

import pytest

from omnigraph.backends.local import LocalBackend
from omnigraph.backends.protocol import Backend
from omnigraph.graph import Graph
from omnigraph.merge.conflicts import ConflictKind, MergeConflictError
from omnigraph.merge.outcomes import Outcome
from tests.contract.merge import oracle
from tests.contract.merge.oracle import Rows
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

BASE: Final[Rows] = {
    "P": {name: node(name) for name in ("x", "y", "z")},
    "K": {"e": edge("e", "y", "z")},
}


def _steps(value: int) -> dict[str, tuple[Changes, ...]]:
    """What a side can do, commit by commit; the sides write different values."""
    return {
        "nothing": (),
        "insert": ({"P": {"n": node("n", a=value)}},),
        "update a": ({"P": {"x": node("x", a=value)}},),
        "update b": ({"P": {"x": node("x", b=value)}},),
        "update same value": ({"P": {"x": node("x", a=99)}},),
        "delete": ({"P": {"x": None}},),
        "delete + re-insert": ({"P": {"x": None}}, {"P": {"x": node("x", a=value)}}),
        "edge insert": ({"K": {"f": edge("f", "x", "y", w=7)}},),
        "edge delete": ({"K": {"e": None}},),
        "node delete with cascade": ({"P": {"y": None}, "K": {"e": None}},),
    }


SIDES: Final = {"left": _steps(10), "right": _steps(20)}
ACTIONS: Final = tuple(SIDES["left"])
LOCAL: Final = LocalBackend()
CELLS: Final = list(product(ACTIONS, ACTIONS))


def after(side: str, action: str) -> Rows:
    rows = BASE
    for step in SIDES[side][action]:
        rows = oracle.apply_changes(rows, step)
    return rows


class Table:
    """One graph with a branch for every action of either side, all from one commit."""

    def __init__(self, uri: str) -> None:
        self.graph: Graph = world(uri, BASE)
        self._merges = 0
        for side, actions in SIDES.items():
            for action, steps in actions.items():
                name = self.name(side, action)
                self.graph.branches.create(name)
                for step in steps:
                    change(self.graph, step, branch=name)
                assert rows_of(self.graph, name) == after(side, action)

    @staticmethod
    def name(side: str, action: str) -> str:
        return f"{side}/{ACTIONS.index(action)}"

    def check(self, engine: Backend, cell: tuple[str, str], *, flipped: bool) -> None:
        """Merge the left of a cell into its right, or the other way."""
        graph = use(self.graph, engine)
        source, target = ("right", "left") if flipped else ("left", "right")
        theirs_action, ours_action = cell[::-1] if flipped else cell
        base, ours, theirs = BASE, after(target, ours_action), after(source, theirs_action)
        self._merges += 1
        branch = f"merged/{self._merges}"
        graph.branches.create(branch, branch=self.name(target, ours_action))
        before = graph.snapshot(branch=branch)
        merged_from = self.name(source, theirs_action)
        expected = oracle.merge(base, ours, theirs)

        if expected.conflicts:
            preview = graph.merge(merged_from, into=branch, dry_run=True)
            assert conflict_keys(preview.conflicts) == expected.conflicts
            with pytest.raises(MergeConflictError) as refused:
                graph.merge(merged_from, into=branch)
            assert conflict_keys(refused.value.conflicts) == expected.conflicts
            assert graph.snapshot(branch=branch) == before
            self._resolve(branch, merged_from, base, ours, theirs)
        else:
            outcome = graph.merge(merged_from, into=branch)
            assert outcome.outcome == _outcome(theirs_action, ours_action)
            assert rows_of(graph, branch) == expected.rows
            changes = oracle.difference(ours, expected.rows)
            counted = sum(c.inserted + c.updated + c.deleted for c in outcome.changes.values())
            assert counted == len(changes)
            self._check_history(branch, merged_from, outcome.commit_id)

    def _check_history(self, branch: str, merged_from: str, commit_id: str | None) -> None:
        graph = self.graph
        head = graph.snapshot(branch=branch).head
        theirs = graph.snapshot(branch=merged_from).head
        if commit_id is None:
            assert head.merged_parent is None
        else:
            assert (head.commit_id, head.merged_parent) == (commit_id, theirs.commit_id)
        again = graph.merge(merged_from, into=branch)
        assert (again.outcome, again.commit_id) == (Outcome.ALREADY_UP_TO_DATE, None)

    def _resolve(self, branch: str, merged_from: str, base: Rows, ours: Rows, theirs: Rows) -> None:
        for choice in ("ours", "theirs"):
            self._merges += 1
            graph, target = self.graph, f"merged/{self._merges}"
            graph.branches.create(target, branch=branch)
            outcome = graph.merge(merged_from, into=target, resolve=choice)
            wanted = oracle.merge(base, ours, theirs, resolve=choice)
            assert wanted.conflicts == set()
            assert rows_of(graph, target) == wanted.rows, choice
            self._check_history(target, merged_from, outcome.commit_id)


def _outcome(theirs: str, ours: str) -> Outcome:
    if theirs == "nothing":
        return Outcome.ALREADY_UP_TO_DATE
    return Outcome.FAST_FORWARD if ours == "nothing" else Outcome.MERGED


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Table:
    return Table(str(tmp_path_factory.mktemp("truth") / "graph.omni"))


# Of two cells that mirror each other, each is the other one flipped, but for the values.
@pytest.mark.parametrize("left", ACTIONS)
def test_the_truth_table(table: Table, left: str) -> None:
    for right in ACTIONS:
        table.check(LOCAL, (left, right), flipped=False)


@pytest.mark.soak
@pytest.mark.parametrize("left", ACTIONS)
def test_the_truth_table_flipped(table: Table, left: str) -> None:
    for right in ACTIONS:
        table.check(LOCAL, (left, right), flipped=True)


def test_the_table_has_every_conflict_that_two_sides_can_have() -> None:
    found = {
        kind
        for left, right in CELLS
        for kind, *_ in oracle.merge(BASE, after("right", right), after("left", left)).conflicts
    }
    assert found == {
        ConflictKind.DIVERGENT_INSERT,
        ConflictKind.DIVERGENT_UPDATE,
        ConflictKind.DELETE_VS_UPDATE,
        ConflictKind.ORPHAN_EDGE,
    }


@pytest.fixture
def on_spark(request: pytest.FixtureRequest) -> Backend:
    from omnigraph.backends.spark import SparkBackend
    from omnigraph.engine.spark.execute import SparkEngine

    return SparkBackend(SparkEngine(request.getfixturevalue("spark")))


# All cells in one merge are in `test_engines`; here each is a merge of its own.
@pytest.mark.soak
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("flipped", [False, True])
@pytest.mark.parametrize("left", ACTIONS)
def test_the_truth_table_on_spark(
    table: Table, on_spark: Backend, left: str, *, flipped: bool
) -> None:
    for right in ACTIONS:
        table.check(on_spark, (left, right), flipped=flipped)


@pytest.mark.parametrize(
    ("ours", "theirs", "conflicts"),
    [
        (node("x", a=2), node("x", b=3), {"a", "b"}),
        (node("x", a=2, b=3), node("x", a=2), {"b"}),
        (node("x", a=2), node("x", a=2), set()),
        (node("x", a=2), node("x", a=3, b=3), {"a", "b"}),
    ],
)
@pytest.mark.parametrize("flipped", [False, True])
def test_strict_rows_conflict_as_soon_as_both_sides_changed_them(
    tmp_path, ours, theirs, conflicts, flipped
):
    if flipped:
        ours, theirs = theirs, ours
    graph = world(tmp_path / "graph", BASE)
    graph.branches.create("draft")
    change(graph, {"P": {"x": theirs}}, branch="draft")
    change(graph, {"P": {"x": ours}})
    change(graph, {"P": {"y": None}, "K": {"e": None}})
    wanted = oracle.merge(BASE, rows_of(graph), rows_of(graph, "draft"), strict=True)
    assert {property_ for *_, property_ in wanted.conflicts} == conflicts

    preview = graph.merge("draft", dry_run=True, strict_rows=True)
    assert conflict_keys(preview.conflicts) == wanted.conflicts
    if conflicts:
        with pytest.raises(MergeConflictError):
            graph.merge("draft", strict_rows=True)
    graph.merge("draft", strict_rows=True, resolve="theirs")
    kept = {name: row for name, row in rows_of(graph)["P"].items() if name == "x"}
    assert kept == {"x": theirs if conflicts else ours}
