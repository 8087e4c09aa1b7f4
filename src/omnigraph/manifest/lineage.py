"""Lineage: walks over commits by their parents that read only as much history as they need."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import IntFlag
from typing import TypeAlias

from omnigraph.errors import CommitNotFoundError
from omnigraph.model.commits import Commit
from omnigraph.model.ids import CommitId

Lookup: TypeAlias = Callable[[CommitId], Commit]
"""Returns a commit by its id, or raises CommitNotFoundError."""


class History:
    """A branch's commits by id; older pages are read only when a walk reaches them."""

    def __init__(self, recent: Sequence[Commit], pages: Iterator[Sequence[Commit]]) -> None:
        self._recent = tuple(recent)
        self._commits = {commit.commit_id: commit for commit in recent}
        self._pages = pages

    def find(self, commit_id: CommitId) -> Commit:
        """The commit with this id."""
        while commit_id not in self._commits:
            if not self.read_on():
                message = f"commit {commit_id} does not exist in this history"
                raise CommitNotFoundError(message, hint="see 'omnigraph commit list'")
        return self._commits[commit_id]

    def peek(self, commit_id: CommitId) -> Commit | None:
        """The commit with this id, if its page was read."""
        return self._commits.get(commit_id)

    def every(self) -> Iterator[Commit]:
        """All commits, possibly repeated; older pages are read when they are reached."""
        yield from self._recent
        own = {commit.commit_id for commit in self._recent}
        yield from [commit for id_, commit in self._commits.items() if id_ not in own]
        for page in self._pages:
            self._commits.update((commit.commit_id, commit) for commit in page)
            yield from page

    def read_on(self) -> bool:
        """Read the next older page; False if there is none."""
        page = next(self._pages, None)
        if page is None:
            return False
        self._commits.update((commit.commit_id, commit) for commit in page)
        return True


class Ancestry:
    """The commits of several histories, each with its generation.

    Histories are read page by page in step, so that none is read to its end for a commit that only
    another one has.
    """

    def __init__(self, *histories: History) -> None:
        self._histories = histories
        self._generations: Mapping[CommitId, int] = {}

    def find(self, commit_id: CommitId) -> Commit:
        """The commit with this id."""
        commit = self._search(commit_id)
        if commit.generation is not None:
            return commit
        if commit_id not in self._generations:
            # An earlier release made it. Numbering it requires reading the whole history, until a
            # write has recorded a generation above it, where the walks of merges stop.
            every = (commit for history in self._histories for commit in history.every())
            self._generations = generations(every)
        return replace(commit, generation=self._generations[commit_id])

    def _search(self, commit_id: CommitId) -> Commit:
        has_more = True
        while has_more:
            for history in self._histories:
                if commit := history.peek(commit_id):
                    return commit
            has_more = sum(history.read_on() for history in self._histories) > 0
        message = f"commit {commit_id} does not exist in these histories"
        raise CommitNotFoundError(message, hint="see 'omnigraph commit list'")

    def divergence(self, ours: Collection[CommitId], theirs: CommitId) -> Divergence:
        """Where the history of some commits and that of another one diverge."""
        return divergence(ours, theirs, self.find)


def generations(commits: Iterable[Commit]) -> Mapping[CommitId, int]:
    """The generation of each commit: the recorded one, or one more than its highest parent's."""
    known = {commit.commit_id: commit for commit in commits}
    numbers: dict[CommitId, int] = {}
    for start in known:
        path = [start]
        while path:
            commit_id = path[-1]
            parents = [parent for parent in known[commit_id].parents if parent in known]
            missing = [parent for parent in parents if parent not in numbers]
            if missing and known[commit_id].generation is None:
                path += missing
                continue
            path.pop()
            recorded = known[commit_id].generation
            above = 1 + max((numbers[id_] for id_ in parents if id_ in numbers), default=0)
            numbers[commit_id] = above if recorded is None else recorded
    return numbers


def first_parents(head: CommitId, find: Lookup) -> Iterator[Commit]:
    """The commits of one branch along first parents, newest first, down to the graph's first."""
    following: CommitId | None = head
    while following is not None:
        commit = find(following)
        yield commit
        following = commit.parent


def newest_first(heads: Iterable[CommitId], find: Lookup) -> Iterator[Commit]:
    """The commits in the history of some, each before its parents, and younger ones first.

    Commits are found as they are reached. A commit's children have higher generations than itself,
    so only commits of at least its generation are visited before it is returned.

    Args:
        find: Returns commits with their generations. What it does not find is left out.
    """
    return _OrderedWalk(find).run(heads)


class _OrderedWalk:
    """A walk from heads to the first commit, in the order of `newest_first`."""

    def __init__(self, find: Lookup) -> None:
        self._find = find
        self._commits: dict[CommitId, Commit | None] = {}
        self._children: dict[CommitId, int] = {}
        self._unvisited: list[tuple[int, CommitId]] = []
        self._candidates: list[tuple[float, int, CommitId]] = []

    def run(self, heads: Iterable[CommitId]) -> Iterator[Commit]:
        for head in heads:
            self._meet(head)
            self._propose(head)
        returned: set[CommitId] = set()
        while self._candidates:
            *_, commit_id = heapq.heappop(self._candidates)
            commit = self._commits[commit_id]
            assert commit is not None, "only commits that were found are proposed"
            self._visit_from(_generation(commit))
            if commit_id in returned or self._children[commit_id]:
                # A child that was visited just now proposes it again, after itself.
                continue
            returned.add(commit_id)
            yield commit
            for parent in commit.parents:
                self._children[parent] -= 1
                if not self._children[parent]:
                    self._propose(parent)

    def _visit_from(self, generation: int) -> None:
        """Visit the commits of this generation and above, which counts children of those below."""
        while self._unvisited and -self._unvisited[0][0] >= generation:
            commit = self._commits[heapq.heappop(self._unvisited)[1]]
            assert commit is not None, "only commits that were found are visited"
            for parent in commit.parents:
                self._meet(parent)
                self._children[parent] += 1

    def _meet(self, commit_id: CommitId) -> None:
        if commit_id in self._commits:
            return
        commit = self._commits[commit_id] = _find_or_none(commit_id, self._find)
        self._children[commit_id] = 0
        if commit is not None:
            heapq.heappush(self._unvisited, (-_generation(commit), commit_id))

    def _propose(self, commit_id: CommitId) -> None:
        if (commit := self._commits[commit_id]) is not None:
            heapq.heappush(self._candidates, _age(commit))


def _age(commit: Commit) -> tuple[float, int, CommitId]:
    """A key that sorts younger commits first; of two with one time, the one with the later id."""
    return -commit.created_at.timestamp(), -int(commit.commit_id, 36), commit.commit_id


def _generation(commit: Commit) -> int:
    assert commit.generation is not None, "walks take numbered commits"
    return commit.generation


@dataclass(frozen=True, slots=True)
class Divergence:
    """Where two histories diverge.

    Attributes:
        bases: Every common ancestor that is not an ancestor of another one, by id; none if the two
            share no history. Criss-cross merges have several.
        theirs: The commits that only their history has, parents before children.
    """

    bases: tuple[Commit, ...]
    theirs: tuple[Commit, ...]


def divergence(ours: Collection[CommitId], theirs: CommitId, find: Lookup) -> Divergence:
    """Where the history of some commits and that of another one diverge.

    Both are walked from high to low generations until every open commit of theirs is also in ours.
    So the cost depends on how far the sides have diverged, not on the length of the history.

    Args:
        find: Returns commits with their generations.
    """
    return _Walk(find).run(ours, theirs)


class _Reach(IntFlag):
    """Which sides reach a commit, and whether a base does."""

    OURS = 1
    THEIRS = 2
    BASE = 4


class _Walk:
    """A walk over two histories.

    A commit is visited after all of its descendants, since those have higher generations: which
    sides reach it is known by then.
    """

    def __init__(self, find: Lookup) -> None:
        self._find = find
        self._reach: dict[CommitId, _Reach] = {}
        self._commits: dict[CommitId, Commit | None] = {}
        self._queue: list[tuple[int, CommitId]] = []
        self._open: set[CommitId] = set()

    def run(self, ours: Collection[CommitId], theirs: CommitId) -> Divergence:
        for commit_id in ours:
            self._meet(commit_id, _Reach.OURS)
        self._meet(theirs, _Reach.THEIRS)
        bases: list[Commit] = []
        alone: list[Commit] = []
        while self._open:
            _, commit_id = heapq.heappop(self._queue)
            self._open.discard(commit_id)
            reach, commit = self._reach[commit_id], self._commits[commit_id]
            if reach == _Reach.OURS | _Reach.THEIRS:
                # It must be readable, or the merge would silently use an older base.
                bases.append(self._find(commit_id) if commit is None else commit)
                reach |= _Reach.BASE
            elif reach == _Reach.THEIRS and commit is not None:
                alone.append(commit)
            for parent in () if commit is None else commit.parents:
                self._meet(parent, reach)
        bases.sort(key=lambda commit: commit.commit_id)
        return Divergence(tuple(bases), tuple(reversed(alone)))

    def _meet(self, commit_id: CommitId, reach: _Reach) -> None:
        if commit_id not in self._reach:
            commit = self._commits[commit_id] = _find_or_none(commit_id, self._find)
            generation = 0 if commit is None else _generation(commit)
            heapq.heappush(self._queue, (-generation, commit_id))
        reach |= self._reach.get(commit_id, _Reach(0))
        self._reach[commit_id] = reach
        # Only commits that theirs reaches and no base reaches can be a base or only in theirs.
        if _Reach.THEIRS in reach and _Reach.BASE not in reach:
            self._open.add(commit_id)
        else:
            self._open.discard(commit_id)


def _find_or_none(commit_id: CommitId, find: Lookup) -> Commit | None:
    """The commit; None if it was deleted with its branch before merges copied lineage."""
    try:
        return find(commit_id)
    except CommitNotFoundError:
        return None
