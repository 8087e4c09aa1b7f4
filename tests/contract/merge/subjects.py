"""Graphs that histories run on: a real one, and one that is only a model."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Protocol, TypeVar

import omnigraph
from omnigraph.backends.protocol import Backend
from omnigraph.errors import CommitNotFoundError
from omnigraph.failpoints import Failpoint, SimulatedCrash, arm
from omnigraph.merge.conflicts import MergeConflictError
from omnigraph.merge.outcomes import Outcome
from omnigraph.model.names import MAIN
from tests.contract.merge import oracle
from tests.contract.merge.history import History, KnownCommit
from tests.contract.merge.oracle import ConflictKey, Expected, Rows
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

START: Rows = {
    "P": {name: node(name) for name in ("a", "b", "c")},
    "K": {"e": edge("e", "a", "b")},
}

Result = TypeVar("Result")
Difference = set[tuple[str, str, str]]
"""Operation, type and id of every change."""


@dataclass(frozen=True)
class MergeResult:
    """What a merge, or its preview, reported.

    Attributes:
        changes: By type, how many rows were inserted, updated and deleted.
    """

    outcome: Outcome | None = None
    conflicts: set[ConflictKey] = field(default_factory=set)
    changes: dict[str, tuple[int, int, int]] = field(default_factory=dict)


class Subject(Protocol):
    """A graph as histories use it. Commits are named by the graph's ids."""

    def reopen(self) -> None: ...

    def branches(self) -> set[str]: ...

    def create(
        self, name: str, *, branch: str | None = None, commit: str | None = None
    ) -> None: ...

    def delete(self, name: str) -> None: ...

    def log(self, branch: str) -> list[tuple[str, tuple[str, ...]]]:
        """The commits of a branch and their parents, newest first, through first parents."""

    def write(self, branch: str, changes: Changes, *, crash: Failpoint | None = None) -> None: ...

    def merge(
        self,
        source: str,
        into: str,
        resolve: str | None,
        *,
        delete: bool = False,
        crash: Failpoint | None = None,
    ) -> MergeResult | None:
        """Merge; None if it crashed."""

    def preview(self, source: str, into: str, resolve: str | None) -> MergeResult: ...

    def optimize(self, branch: str) -> bool:
        """Compact the tables of a branch; whether that made a commit."""

    def rows(self, commit: str) -> Rows: ...

    def branch_rows(self, branch: str) -> Rows: ...

    def diff(self, before: str, after: str) -> Difference: ...


class EngineGraph:
    """The real thing, which may be crashed and is opened again then.

    Args:
        row_version: A wrong row version for rows that are compacted, as a defect.
    """

    def __init__(self, uri: Path, rows: Rows = START, *, row_version: int | None = None) -> None:
        self._graph = world(uri, rows)
        self._row_version = row_version

    def use(self, engine: Backend) -> None:
        """Merge on this engine from now on."""
        use(self._graph, engine)

    def reopen(self) -> None:
        self._graph = omnigraph.open(self._graph.uri)

    def branches(self) -> set[str]:
        return set(self._graph.branches.list())

    def create(self, name: str, *, branch: str | None = None, commit: str | None = None) -> None:
        self._graph.branches.create(name, branch=branch, commit=commit)

    def delete(self, name: str) -> None:
        self._graph.branches.delete(name)

    def log(self, branch: str) -> list[tuple[str, tuple[str, ...]]]:
        commits = self._graph.commits.list(branch=branch)
        return [(str(commit.commit_id), tuple(map(str, commit.parents))) for commit in commits]

    def write(self, branch: str, changes: Changes, *, crash: Failpoint | None = None) -> None:
        self._unless_crashed(crash, partial(change, self._graph, changes, branch=branch))

    def merge(
        self,
        source: str,
        into: str,
        resolve: str | None,
        *,
        delete: bool = False,
        crash: Failpoint | None = None,
    ) -> MergeResult | None:
        merge = partial(self._graph.merge, source, into=into, resolve=resolve, delete_branch=delete)
        try:
            outcome = self._unless_crashed(crash, merge)
        except MergeConflictError as refused:
            return MergeResult(conflicts=conflict_keys(refused.conflicts))
        return None if outcome is None else _result(outcome)

    def preview(self, source: str, into: str, resolve: str | None) -> MergeResult:
        return _result(self._graph.merge(source, into=into, resolve=resolve, dry_run=True))

    def optimize(self, branch: str) -> bool:
        if self._row_version is not None:
            return compact(self._graph, branch=branch, row_version=self._row_version) is not None
        return self._graph.optimize(branch=branch).commit_id is not None

    def _unless_crashed(
        self, crash: Failpoint | None, action: Callable[[], Result]
    ) -> Result | None:
        """The result of an action; None if it crashed, after which the graph was reopened."""
        if crash is None:
            return action()
        try:
            with arm(crash):
                return action()
        except SimulatedCrash:
            self.reopen()
            return None

    def rows(self, commit: str) -> Rows:
        return rows_of(self._graph, commit=commit)

    def branch_rows(self, branch: str) -> Rows:
        return rows_of(self._graph, branch)

    def diff(self, before: str, after: str) -> Difference:
        changes = self._graph.diff(before, after).rows()
        return {(str(each.op), each.type_name, each.id) for each in changes}


def _result(outcome: omnigraph.MergeOutcome) -> MergeResult:
    counts = outcome.changes.items()
    changes = {name: (each.inserted, each.updated, each.deleted) for name, each in counts if each}
    return MergeResult(outcome.outcome, conflict_keys(outcome.conflicts), changes)


class ModelGraph:
    """A model of a history and the heads of its branches, on which the checks are tested.

    Args:
        history: One that merges wrongly makes a graph with a defect.
        keeps_deleted: Whether commits outlive the branch that they were made on.
    """

    def __init__(
        self,
        history: History | None = None,
        *,
        rows: Rows = START,
        keeps_deleted: bool = True,
    ) -> None:
        self._history = History() if history is None else history
        self._keeps_deleted = keeps_deleted
        self._heads: dict[str, int] = {}
        self._made_on: dict[int, str] = {}
        self._lost: set[int] = set()
        self._add(MAIN, KnownCommit((), {"P": {}, "K": {}}))
        self._add(MAIN, KnownCommit((0,), rows))

    def _add(self, branch: str, commit: KnownCommit) -> None:
        number = self._history.add(f"{len(self._history.commits):04}", commit)
        self._heads[branch], self._made_on[number] = number, branch

    def reopen(self) -> None:
        pass

    def branches(self) -> set[str]:
        return set(self._heads)

    def create(self, name: str, *, branch: str | None = None, commit: str | None = None) -> None:
        self._heads[name] = self._heads[branch] if branch is not None else int(commit or "")

    def delete(self, name: str) -> None:
        del self._heads[name]
        own = {number for number, branch in self._made_on.items() if branch == name}
        self._made_on = {k: v for k, v in self._made_on.items() if k not in own}
        if not self._keeps_deleted:
            self._lost |= own

    def log(self, branch: str) -> list[tuple[str, tuple[str, ...]]]:
        entries = []
        parents: tuple[int, ...] = (self._heads[branch],)
        while parents:
            number = parents[0]
            parents = self._history.commits[number].parents
            ids = tuple(map(self._history.commit_id, parents))
            entries.append((self._history.commit_id(number), ids))
        return entries

    def write(
        self,
        branch: str,
        changes: Changes,
        *,
        crash: Failpoint | None = None,  # noqa: ARG002  # it never crashes
    ) -> None:
        before = self.branch_rows(branch)
        rows = oracle.apply_changes(before, changes)
        if rows != before:
            self._add(branch, KnownCommit((self._heads[branch],), rows))

    def merge(
        self,
        source: str,
        into: str,
        resolve: str | None,
        *,
        delete: bool = False,
        crash: Failpoint | None = None,  # noqa: ARG002
    ) -> MergeResult:
        _, expected = self._merge(source, into, resolve)
        result = self.preview(source, into, resolve)
        if result.conflicts:
            return MergeResult(conflicts=result.conflicts)
        if result.outcome is not Outcome.ALREADY_UP_TO_DATE:
            self._add(into, KnownCommit((self._heads[into], self._heads[source]), expected.rows))
        if delete:
            self.delete(source)
        return result

    def preview(self, source: str, into: str, resolve: str | None) -> MergeResult:
        outcome, expected = self._merge(source, into, resolve)
        if expected.conflicts:
            return MergeResult(Outcome.CONFLICTED, expected.conflicts)
        return MergeResult(outcome, changes=counts(self.branch_rows(into), expected.rows))

    def _merge(self, source: str, into: str, resolve: str | None) -> tuple[Outcome, Expected]:
        return self._history.merge(self._heads[source], self._heads[into], resolve=resolve)

    def optimize(self, branch: str) -> bool:
        rows = self.branch_rows(branch)
        self._add(branch, KnownCommit((self._heads[branch],), rows, is_maintenance=True))
        return True

    def rows(self, commit: str) -> Rows:
        if int(commit) in self._lost:
            message = f"{commit} went with its branch"
            raise CommitNotFoundError(message)
        return self._history.rows(int(commit))

    def branch_rows(self, branch: str) -> Rows:
        return self._history.rows(self._heads[branch])

    def diff(self, before: str, after: str) -> Difference:
        return oracle.difference(self.rows(before), self.rows(after))


def counts(before: Rows, after: Rows) -> dict[str, tuple[int, int, int]]:
    """By type, how many rows were inserted, updated and deleted, where any were."""
    changes = oracle.difference(before, after)
    by_type = {name: [op for op, of, _ in changes if of == name] for name in before}
    return {
        name: (ops.count("insert"), ops.count("update"), ops.count("delete"))
        for name, ops in by_type.items()
        if ops
    }
