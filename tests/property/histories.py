"""Runs histories step by step on a graph and on its model; after each step both must agree."""

from dataclasses import dataclass
from itertools import takewhile

from omnigraph.errors import NotAllowedError
from omnigraph.failpoints import Failpoint
from omnigraph.merge.outcomes import Outcome
from omnigraph.model.names import MAIN
from tests.contract.merge import oracle
from tests.contract.merge.history import History, KnownCommit
from tests.contract.merge.oracle import Expected, Rows
from tests.contract.merge.subjects import START, MergeResult, Subject, counts
from tests.contract.merge.worlds import Changes


@dataclass(frozen=True)
class Write:
    """Rows to upsert, or rows to delete: one commit."""

    branch: str
    changes: Changes
    crash: Failpoint | None = None


@dataclass(frozen=True)
class Merge:
    """A merge; `preview` first runs it as a dry run, in both directions."""

    source: str
    into: str
    resolve: str | None = None
    crash: Failpoint | None = None
    preview: bool = False
    delete: bool = False


@dataclass(frozen=True)
class Create:
    """A branch that starts at another, or at a commit."""

    name: str
    branch: str | None = None
    commit: int | None = None


@dataclass(frozen=True)
class Delete:
    """The deletion of a branch, refused if others build on it."""

    name: str


@dataclass(frozen=True)
class Read:
    """All rows of one commit, and how another differs from it."""

    commit: int
    other: int


@dataclass(frozen=True)
class Optimize:
    """The compaction of all tables of a branch: one commit, or none if there is nothing to do."""

    branch: str


@dataclass(frozen=True)
class Reopen:
    """The graph is reopened."""


SchemaStep = Write | Merge | Create | Delete | Read | Optimize | Reopen


class Walk:
    """One history: the graph under test, and the model of it.

    Attributes:
        heads: By branch, its newest commit.
        builds_on: By branch, those that may not be deleted before it.
    """

    def __init__(self, subject: Subject) -> None:
        self.subject = subject
        self.history = History()
        self.heads: dict[str, int] = {}
        self.builds_on: dict[str, set[str]] = {MAIN: set()}
        (newest, parents), (oldest, none) = subject.log(MAIN)
        assert (parents, none) == ((oldest,), ())
        first = self.history.add(oldest, KnownCommit((), {"P": {}, "K": {}}))
        self.heads[MAIN] = self.history.add(newest, KnownCommit((first,), START))

    def rows(self, branch: str) -> Rows:
        return self.history.rows(self.heads[branch])

    def reachable(self) -> list[int]:
        """The commits in the history of any branch."""
        return sorted(self.history.ancestors(self.heads.values()))

    def is_needed(self, branch: str) -> bool:
        """Whether others may build on a branch."""
        return any(branch in others for others in self.builds_on.values())

    def take(self, step: SchemaStep) -> None:
        """Do a step, and compare the branches and commits that it touched."""
        match step:
            case Write():
                self._write(step)
            case Merge(_, into):
                self._merge(step)
                self._check_branch(into)
            case Create(name):
                self._create(step)
                self._check_branch(name)
            case Delete(name):
                self._delete(name)
            case Read(commit, other):
                self._check_commit(commit)
                self._check_difference(commit, other)
            case Optimize(branch):
                self._optimize(branch)
            case Reopen():
                self.subject.reopen()

    def _write(self, step: Write) -> None:
        head, before = self.heads[step.branch], self.rows(step.branch)
        after = oracle.apply_changes(before, step.changes)
        self.subject.write(step.branch, step.changes, crash=step.crash)
        if after == before and step.crash is None:
            assert not self._new_commits(step.branch)
            return
        self._learn(step.branch, KnownCommit((head,), after), is_certain=step.crash is None)

    def _optimize(self, branch: str) -> None:
        head = self.heads[branch]
        if self.subject.optimize(branch):
            commit = KnownCommit((head,), self.rows(branch), is_maintenance=True)
            self._learn(branch, commit, is_certain=True)
            self._check_difference(head, self.heads[branch])

    def _merge(self, step: Merge) -> None:
        if step.preview:
            self._preview(step.source, step.into, step.resolve)
            self._preview(step.into, step.source, step.resolve)
        outcome, expected = self.expected(step.source, step.into, step.resolve)
        result = self.subject.merge(
            step.source, step.into, step.resolve, delete=step.delete, crash=step.crash
        )
        commit = KnownCommit((self.heads[step.into], self.heads[step.source]), expected.rows)
        if result is None:
            assert step.crash is not None
        else:
            self._check_result(step.into, result, outcome, expected)
        if not expected.conflicts and outcome is not Outcome.ALREADY_UP_TO_DATE:
            self._learn(step.into, commit, is_certain=result is not None)
        if not expected.conflicts and step.delete:
            self._forget(step.source)

    def _check_result(
        self, into: str, result: MergeResult, outcome: Outcome, expected: Expected
    ) -> None:
        assert result.conflicts == expected.conflicts
        if not expected.conflicts:
            assert result.outcome is outcome
            assert result.changes == counts(self.rows(into), expected.rows)

    def _preview(self, source: str, into: str, resolve: str | None) -> None:
        outcome, expected = self.expected(source, into, resolve)
        result = self.subject.preview(source, into, resolve)
        assert result.outcome is (Outcome.CONFLICTED if expected.conflicts else outcome)
        self._check_result(into, result, outcome, expected)

    def expected(self, source: str, into: str, resolve: str | None) -> tuple[Outcome, Expected]:
        return self.history.merge(self.heads[source], self.heads[into], resolve=resolve)

    def _create(self, step: Create) -> None:
        if step.commit is None:
            assert step.branch is not None
            head, below = self.heads[step.branch], {step.branch}
        else:
            head, below = step.commit, self._holders(step.commit)
        commit = None if step.commit is None else self.history.commit_id(step.commit)
        self.subject.create(step.name, branch=step.branch, commit=commit)
        self.heads[step.name], self.builds_on[step.name] = head, below

    def _holders(self, commit: int) -> set[str]:
        """The branches whose history has a commit: a branch made there may build on any of them."""
        heads = self.heads.items()
        return {name for name, head in heads if commit in self.history.ancestors([head])}

    def _delete(self, name: str) -> None:
        try:
            self.subject.delete(name)
        except NotAllowedError:
            assert self.is_needed(name)
        else:
            self._forget(name)
        assert self.subject.branches() == set(self.heads)

    def _forget(self, name: str) -> None:
        del self.heads[name], self.builds_on[name]
        for others in self.builds_on.values():
            others.discard(name)

    def _learn(self, branch: str, commit: KnownCommit, *, is_certain: bool) -> None:
        """Add the commit of a step; after a crash there may be none, or others.

        The others are recovery's: they change nothing, so there is nothing of them to merge, and
        they fence an interrupted writer.
        """
        new = self._new_commits(branch)
        assert len(new) == 1 or not is_certain
        for commit_id, parents in new.items():
            actual = (parents, self.subject.rows(commit_id))
            expected = commit
            if not is_certain and actual != self._seen(commit):
                head = self.heads[branch]
                expected = KnownCommit((head,), self.rows(branch), is_maintenance=True)
            assert actual == self._seen(expected)
            self.heads[branch] = self.history.add(commit_id, expected)

    def _seen(self, commit: KnownCommit) -> tuple[tuple[str, ...], Rows]:
        """A commit as the graph shows it."""
        return tuple(map(self.history.commit_id, commit.parents)), commit.rows

    def _new_commits(self, branch: str) -> dict[str, tuple[str, ...]]:
        """The commits that the model does not know yet and their parents, oldest first."""
        log = self.subject.log(branch)
        new = list(takewhile(lambda each: not self.history.has(each[0]), log))
        assert log[len(new)][0] == self.history.commit_id(self.heads[branch])
        return dict(reversed(new))

    def _check_branch(self, branch: str) -> None:
        assert self.subject.branch_rows(branch) == self.rows(branch)

    def _check_commit(self, commit: int) -> None:
        assert self.subject.rows(self.history.commit_id(commit)) == self.history.rows(commit)

    def _check_difference(self, before: int, after: int) -> None:
        actual = self.subject.diff(*map(self.history.commit_id, (before, after)))
        assert actual == oracle.difference(self.history.rows(before), self.history.rows(after))

    def check_all(self) -> None:
        """Every branch, and every commit that a branch can reach."""
        assert self.subject.branches() == set(self.heads)
        for branch in self.heads:
            self._check_branch(branch)
        for commit in self.reachable():
            self._check_commit(commit)
