"""Branches, writes and merges against a model of dictionaries with a history of its own.

The model decides what a merge must do by the book (`tests.contract.merge.oracle`); the graph is
crashed at any failpoint and reopened on the way.
"""

import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

import omnigraph
from omnigraph.failpoints import Failpoint, SimulatedCrash, armed
from omnigraph.merge.conflicts import MergeConflictError
from omnigraph.merge.graphs import Outcome
from omnigraph.model.names import MAIN
from tests.contract.merge import oracle
from tests.contract.merge.oracle import Expected, Rows
from tests.contract.merge.worlds import Changes, change, edge, node, rows_of, told, world

NODES = ("a", "b", "c")
EDGES = ("e", "f")
BRANCHES = ("x", "y", "z")
PLACES = st.integers(0, 11)
"""Stands for one of the branches there are."""
VALUES = st.none() | st.integers(0, 1)
CUTS = st.sampled_from(
    [
        point
        for point in Failpoint
        if point.partition(".")[0] in ("write", "claim", "apply", "publish", "recovery")
    ]
)
RESOLVE = st.sampled_from([None, "ours", "theirs"])
ONE_STEP = st.one_of(
    st.tuples(st.just("node"), st.sampled_from(NODES), VALUES, VALUES),
    st.tuples(st.just("gone"), st.sampled_from(NODES)),
    st.tuples(
        st.just("edge"),
        st.sampled_from(EDGES),
        st.sampled_from(NODES),
        st.sampled_from(NODES),
        VALUES,
    ),
    st.tuples(st.just("parted"), st.sampled_from(EDGES)),
)
STEPS = st.lists(ONE_STEP, min_size=1, max_size=3)


@dataclass(frozen=True)
class Known:
    """One commit as the model has it."""

    parents: tuple[str, ...]
    rows: Rows
    version: int
    branch: str
    made_on: int


class MergeMachine(RuleBasedStateMachine):
    """Drives one graph, its branches and their model."""

    def __init__(self) -> None:
        super().__init__()
        self.stack = ExitStack()
        folder = self.stack.enter_context(tempfile.TemporaryDirectory())
        self.uri = str(Path(folder) / "graph.omni")
        self.commits: dict[str, Known] = {}
        self.heads: dict[str, str] = {}
        self.parents: dict[str, str] = {}
        self.incarnations: dict[str, int] = {}
        self.graph: omnigraph.Graph

    @initialize()
    def start(self) -> None:
        base: Rows = {"P": {name: node(name) for name in NODES}, "K": {"e": edge("e", "a", "b")}}
        self.graph = world(self.uri, base)
        empty: Rows = {"P": {}, "K": {}}
        self.incarnations[MAIN] = 0
        self._learn(MAIN, empty, base)
        self.branch("x", 0)
        self.branch("y", 0)

    def _learn(self, branch: str, *allowed: Rows) -> None:
        """Take in the commits that came to a branch; each must show one of the allowed states."""
        new = []
        for commit in self.graph.commits.list(branch=branch):
            if commit.commit_id in self.commits:
                break
            new.append(commit)
        for commit in reversed(new):
            rows = rows_of(self.graph, commit=commit.commit_id)
            assert rows in allowed
            self.commits[commit.commit_id] = Known(
                tuple(map(str, commit.parents)),
                rows,
                commit.manifest_version,
                branch,
                self.incarnations[branch],
            )
        self.heads[branch] = str(self.graph.snapshot(branch=branch).head.commit_id)

    def _rows(self, branch: str) -> Rows:
        return self.commits[self.heads[branch]].rows

    def _change(self, step: tuple[object, ...], rows: Rows) -> Changes | None:
        """The step as rows, if it makes sense here."""
        match step:
            case ("node", str(name), a, b):
                return {"P": {name: node(name, a, b)}}  # type: ignore[arg-type]
            case ("gone", str(name)) if name in rows["P"]:
                ends = [k for k, row in rows["K"].items() if name in (row["src"], row["dst"])]
                return {"P": {name: None}, "K": dict.fromkeys(ends)}
            case ("edge", str(name), str(source), str(target), w):
                if (known := rows["K"].get(name)) is not None:
                    source, target = known["src"], known["dst"]
                if {source, target} <= rows["P"].keys():
                    return {"K": {name: edge(name, source, target, w)}}  # type: ignore[arg-type]
            case ("parted", str(name)) if name in rows["K"]:
                return {"K": {name: None}}
        return None

    def _named(self, place: int) -> str:
        return sorted(self.heads)[place % len(self.heads)]

    @rule(at=PLACES, steps=STEPS)
    def write(self, at: int, steps: list[tuple[object, ...]]) -> None:
        self._write(self._named(at), steps)

    def _write(self, branch: str, steps: list[tuple[object, ...]]) -> None:
        for step in steps:
            before = self._rows(branch)
            if (made := self._change(step, before)) is not None:
                change(self.graph, made, branch=branch)
                # A node goes in one commit with its edges, and rows come in another.
                self._learn(branch, before, oracle.changed(before, made))

    @rule(at=PLACES, step=ONE_STEP, point=CUTS)
    def crash_a_write(self, at: int, step: tuple[object, ...], point: Failpoint) -> None:
        branch = self._named(at)
        if (made := self._change(step, self._rows(branch))) is None:
            return
        self._crash(point, lambda: change(self.graph, made, branch=branch))
        before = self._rows(branch)
        self._learn(branch, before, oracle.changed(before, made))

    def _crash(self, point: Failpoint, action: Callable[[], object]) -> None:
        try:
            with armed(point):
                action()
        except SimulatedCrash:
            self.graph = omnigraph.open(self.uri)

    @rule(name=st.sampled_from(BRANCHES), at=PLACES)
    def branch(self, name: str, at: int) -> None:
        if name in self.heads:
            return
        source = self._named(at)
        self.graph.branches.create(name, branch=source)
        self.heads[name], self.parents[name] = self.heads[source], source
        self.incarnations[name] = self.incarnations.get(name, 0) + 1

    @rule(name=st.sampled_from(BRANCHES))
    def delete(self, name: str) -> None:
        if name not in self.heads or name in self.parents.values():
            return
        self.graph.branches.delete(name)
        del self.heads[name], self.parents[name]

    def _distances(self, head: str) -> dict[str, int]:
        found, level = {head: 0}, [head]
        while level:
            below = [parent for each in level for parent in self.commits[each].parents]
            fresh = [each for each in dict.fromkeys(below) if each not in found]
            found.update((each, found[level[0]] + 1) for each in fresh)
            level = fresh
        return found

    def _base(self, ours: str, theirs: str) -> str:
        """The nearest common commit whose branch is still the one it was made on."""
        mine, others = self._distances(ours), self._distances(theirs)

        def is_readable(each: str) -> bool:
            known = self.commits[each]
            there = known.branch in self.heads
            return there and self.incarnations[known.branch] == known.made_on

        return min(
            filter(is_readable, mine.keys() & others.keys()),
            key=lambda each: (
                mine[each] + others[each],
                -self.commits[each].version,
                -int.from_bytes(each.encode()),
            ),
        )

    def _expected(self, source: str, target: str, resolve: str | None) -> tuple[Outcome, Expected]:
        ours, theirs = self.heads[target], self.heads[source]
        base = self._base(ours, theirs)
        if theirs in self._distances(ours):
            return Outcome.ALREADY_UP_TO_DATE, Expected(self._rows(target))
        outcome = Outcome.FAST_FORWARD if base == ours else Outcome.MERGED
        sides = (self.commits[each].rows for each in (base, ours, theirs))
        return outcome, oracle.merge(*sides, resolve=resolve)

    @rule(at=PLACES, into=PLACES, mine=STEPS, others=STEPS, resolve=RESOLVE)
    def diverge_and_merge(
        self,
        at: int,
        into: int,
        mine: list[tuple[object, ...]],
        others: list[tuple[object, ...]],
        resolve: str | None,
    ) -> None:
        """Most merges find nothing to decide unless both sides have just gone on."""
        self._write(self._named(into), mine)
        self._write(self._named(at), others)
        self.merge(at, into, resolve)

    @rule(at=PLACES, into=PLACES, resolve=RESOLVE)
    def merge(self, at: int, into: int, resolve: str | None) -> None:
        source, target = self._named(at), self._named(into)
        if source == target:
            return
        outcome, expected = self._expected(source, target, resolve)
        before = self.graph.snapshot(branch=target)
        previews = [
            self.graph.merge(source, into=target, resolve=resolve, dry_run=True) for _ in range(2)
        ]
        assert previews[0] == previews[1]
        if expected.conflicts:
            with pytest.raises(MergeConflictError) as refused:
                self.graph.merge(source, into=target, resolve=resolve)
            assert told(refused.value.conflicts) == expected.conflicts
            assert self.graph.snapshot(branch=target) == before
            return
        merged = self.graph.merge(source, into=target, resolve=resolve)
        assert merged.outcome is outcome
        assert merged.changes == previews[0].changes
        self._require_of_a_side(expected.rows, source, target)
        self._learn(target, expected.rows)
        again = self.graph.merge(source, into=target)
        assert again.outcome is Outcome.ALREADY_UP_TO_DATE

    def _require_of_a_side(self, rows: Rows, source: str, target: str) -> None:
        ours, theirs = self._rows(target), self._rows(source)
        for name, some in rows.items():
            for id_, row in some.items():
                sides = [side[name][id_] for side in (ours, theirs) if id_ in side[name]]
                assert all(any(value == side[key] for side in sides) for key, value in row.items())

    @rule(at=PLACES, into=PLACES, mine=STEPS, others=STEPS)
    def merge_both_ways(
        self,
        at: int,
        into: int,
        mine: list[tuple[object, ...]],
        others: list[tuple[object, ...]],
    ) -> None:
        """Where nothing conflicts, it is all the same which side is merged into which."""
        one, other = self._named(at), self._named(into)
        self._write(one, mine)
        self._write(other, others)
        if one == other:
            return
        if self._expected(one, other, None)[1].conflicts:
            return
        results = []
        for source, target in ((one, other), (other, one)):
            self.graph.branches.create("aside", branch=target)
            self.graph.merge(source, into="aside")
            results.append(rows_of(self.graph, "aside"))
            self.graph.branches.delete("aside")
        assert results[0] == results[1]

    @rule(at=PLACES, into=PLACES, point=CUTS)
    def crash_a_merge(self, at: int, into: int, point: Failpoint) -> None:
        source, target = self._named(at), self._named(into)
        if source == target:
            return
        _, expected = self._expected(source, target, "theirs")
        merge = self.graph.merge
        self._crash(point, lambda: merge(source, into=target, resolve="theirs"))
        self._learn(target, self._rows(target), expected.rows)

    @rule(before=PLACES, after=PLACES)
    def compare(self, before: int, after: int) -> None:
        one, other = self._named(before), self._named(after)
        changes = self.graph.diff(one, other).rows()
        found = {(str(each.op), each.type_name, each.id) for each in changes}
        assert found == oracle.difference(self._rows(one), self._rows(other))

    @rule()
    def reopen(self) -> None:
        self.graph = omnigraph.open(self.uri)

    @precondition(lambda self: hasattr(self, "graph"))
    @invariant()
    def every_branch_is_what_the_model_says(self) -> None:
        assert set(self.graph.branches.list()) == set(self.heads)
        for branch in self.heads:
            assert rows_of(self.graph, branch) == self._rows(branch)

    def teardown(self) -> None:
        self.stack.close()


TestMerges = MergeMachine.TestCase
TestMerges.settings = settings(max_examples=12, stateful_step_count=15)


@pytest.mark.soak
@pytest.mark.timeout(0)
def test_many_histories() -> None:
    run_state_machine_as_test(
        MergeMachine,
        settings=settings(
            max_examples=2_000,
            stateful_step_count=25,
            derandomize=False,
            deadline=None,
            suppress_health_check=[HealthCheck.too_slow],
        ),
    )
