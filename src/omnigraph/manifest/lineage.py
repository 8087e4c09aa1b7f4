"""Lineage: walking commits by their parents, reading only as much history as the walk needs."""

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
        self._known = {commit.commit_id: commit for commit in recent}
        self._pages = pages

    def find(self, commit_id: CommitId) -> Commit:
        """The commit of this id.

        Raises:
            CommitNotFoundError: the branch's history has no such commit.
        """
        while commit_id not in self._known:
            if not self.read_on():
                message = f"there is no commit {commit_id} in this history"
                raise CommitNotFoundError(message, hint="see 'omnigraph commit list'")
        return self._known[commit_id]

    def peek(self, commit_id: CommitId) -> Commit | None:
        """The commit of this id, if it is on a page that was read."""
        return self._known.get(commit_id)

    def every(self) -> Iterator[Commit]:
        """All commits, as many times as the history has them; older pages are read as they come."""
        yield from tuple(self._known.values())
        for page in self._pages:
            self._known.update((commit.commit_id, commit) for commit in page)
            yield from page

    def read_on(self) -> bool:
        """Read the next older page; False if there is none."""
        page = next(self._pages, None)
        if page is None:
            return False
        self._known.update((commit.commit_id, commit) for commit in page)
        return True


class Ancestry:
    """The commits of several histories, each with its generation.

    No history is read to its end for a commit that only another one has.
    """

    def __init__(self, *histories: History) -> None:
        self._histories = histories
        self._generations: Mapping[CommitId, int] = {}

    def find(self, commit_id: CommitId) -> Commit:
        """The commit of this id.

        Raises:
            CommitNotFoundError: none of the histories has it.
        """
        commit = self._found(commit_id)
        if commit.generation is not None:
            return commit
        if commit_id not in self._generations:
            # An earlier release made it. All of history has to be read to number it, until a
            # write, which records its generation, lies between it and the walks of merges.
            every = (commit for history in self._histories for commit in history.every())
            self._generations = generations(every)
        return replace(commit, generation=self._generations[commit_id])

    def _found(self, commit_id: CommitId) -> Commit:
        reading = True
        while reading:
            for history in self._histories:
                if known := history.peek(commit_id):
                    return known
            reading = sum(history.read_on() for history in self._histories) > 0
        message = f"there is no commit {commit_id} in these histories"
        raise CommitNotFoundError(message, hint="see 'omnigraph commit list'")

    def divergence(self, ours: Collection[CommitId], theirs: CommitId) -> Divergence:
        """Where the history of some commits and that of another one part."""
        return divergence(ours, theirs, self.find)


def generations(commits: Iterable[Commit]) -> Mapping[CommitId, int]:
    """The generation of each commit: as it was recorded, or one more than its highest parent's."""
    known = {each.commit_id: each for each in commits}
    numbers: dict[CommitId, int] = {}
    for start in known:
        path = [start]
        while path:
            commit_id = path[-1]
            parents = [each for each in known[commit_id].parents if each in known]
            missing = [each for each in parents if each not in numbers]
            if missing and known[commit_id].generation is None:
                path += missing
                continue
            path.pop()
            recorded = known[commit_id].generation
            above = 1 + max((numbers[each] for each in parents if each in numbers), default=0)
            numbers[commit_id] = above if recorded is None else recorded
    return numbers


def first_parents(head: CommitId, find: Lookup) -> Iterator[Commit]:
    """The commits of one branch, newest first, through first parents down to the graph's first."""
    following: CommitId | None = head
    while following is not None:
        commit = find(following)
        yield commit
        following = commit.parent


@dataclass(frozen=True, slots=True)
class Divergence:
    """Where two histories part.

    Attributes:
        bases: Every common ancestor that is an ancestor of no other one, by id; none if the two
            share no history. Histories that crossed have several.
        theirs: The commits that only their history has, parents before children.
    """

    bases: tuple[Commit, ...]
    theirs: tuple[Commit, ...]


def divergence(ours: Collection[CommitId], theirs: CommitId, find: Lookup) -> Divergence:
    """Where the history of some commits and that of another one part.

    Both are walked from high generations to low ones until all of theirs has been met in ours. So
    the cost follows how far the sides have drifted apart, not how long the history is.

    Args:
        find: Returns commits with their generations.

    Raises:
        CommitNotFoundError: both sides have a commit that cannot be found, and no base that has it
            in its history.
    """
    return _Walk(find).run(ours, theirs)


class _Reach(IntFlag):
    """Which sides reach a commit, and whether a base does."""

    OURS = 1
    THEIRS = 2
    BASE = 4


class _Walk:
    """Two histories, as far as they were walked.

    A commit is visited after all of its descendants, since those have higher generations: what
    reaches it is known by then.
    """

    def __init__(self, find: Lookup) -> None:
        self._find = find
        self._reach: dict[CommitId, _Reach] = {}
        self._met: dict[CommitId, Commit | None] = {}
        self._queue: list[tuple[int, CommitId]] = []
        self._open: set[CommitId] = set()

    def run(self, ours: Collection[CommitId], theirs: CommitId) -> Divergence:
        for each in ours:
            self._meet(each, _Reach.OURS)
        self._meet(theirs, _Reach.THEIRS)
        bases: list[Commit] = []
        alone: list[Commit] = []
        while self._open:
            _, commit_id = heapq.heappop(self._queue)
            self._open.discard(commit_id)
            reach, commit = self._reach[commit_id], self._met[commit_id]
            if reach == _Reach.OURS | _Reach.THEIRS:
                # It must be readable, or the merge would silently go by an older one.
                bases.append(self._find(commit_id) if commit is None else commit)
                reach |= _Reach.BASE
            elif reach == _Reach.THEIRS and commit is not None:
                alone.append(commit)
            for parent in () if commit is None else commit.parents:
                self._meet(parent, reach)
        bases.sort(key=lambda each: each.commit_id)
        return Divergence(tuple(bases), tuple(reversed(alone)))

    def _meet(self, commit_id: CommitId, reach: _Reach) -> None:
        if commit_id not in self._reach:
            commit = self._met[commit_id] = _found(commit_id, self._find)
            generation = 0 if commit is None else commit.generation
            assert generation is not None, "walks take numbered commits"
            heapq.heappush(self._queue, (-generation, commit_id))
        reach |= self._reach.get(commit_id, _Reach(0))
        self._reach[commit_id] = reach
        # Only what theirs reaches, and no base, can still be a base or be theirs alone.
        if _Reach.THEIRS in reach and _Reach.BASE not in reach:
            self._open.add(commit_id)
        else:
            self._open.discard(commit_id)


def _found(commit_id: CommitId, find: Lookup) -> Commit | None:
    """The commit; None if it went with the branch it was merged from, before it was carried on."""
    try:
        return find(commit_id)
    except CommitNotFoundError:
        return None
