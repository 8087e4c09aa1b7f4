"""Lineage: walking commits by their parents, reading only as much history as the walk needs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from omnigraph.errors import CommitNotFoundError
from omnigraph.model.commits import Commit
from omnigraph.model.ids import CommitId

Lookup: TypeAlias = Callable[[CommitId], Commit]
"""Gives a commit by id, or raises CommitNotFoundError."""

_Levels: TypeAlias = Iterator[tuple[Commit, ...]]


def first_parents(head: CommitId, find: Lookup) -> Iterator[Commit]:
    """The commits of one branch, newest first, through first parents down to the graph's first."""
    following: CommitId | None = head
    while following is not None:
        commit = find(following)
        yield commit
        following = commit.parent


def ancestors(head: CommitId, find: Lookup) -> Iterator[tuple[Commit, int]]:
    """Every commit reachable through both parent links, `head` included, with its distance.

    Nearest first; at one distance, in the order the links are met.
    """
    for distance, level in enumerate(_levels(head, find)):
        for commit in level:
            yield commit, distance


def is_ancestor(candidate: CommitId, head: CommitId, find: Lookup) -> bool:
    """Whether `candidate` is `head` or lies in its history."""
    return any(commit.commit_id == candidate for commit, _ in ancestors(head, find))


@dataclass(frozen=True, slots=True)
class Divergence:
    """Where two histories part.

    Attributes:
        base: The common ancestor with the least summed distance; None if they share no history.
        theirs: The commits that only their history has, by id.
    """

    base: Commit | None
    theirs: tuple[Commit, ...]


def merge_base(ours: CommitId, theirs: CommitId, find: Lookup) -> Commit | None:
    """The common ancestor with the least summed distance; None if the two share no history."""
    return divergence(ours, theirs, find).base


def divergence(
    ours: CommitId,
    theirs: CommitId,
    find: Lookup,
    *,
    is_readable: Callable[[Commit], bool] = lambda _: True,
) -> Divergence:
    """Where the histories of two commits part.

    Ties go to the higher manifest version, then to the younger commit. Both histories are walked a
    level at a time: until no better base can come, and all that only theirs has was met. So the
    cost follows how far the sides have drifted apart, not how long the history is.

    Args:
        is_readable: Whether a commit will do as the base; of a branch that is gone, none is left.
    """
    return _Walk(_levels(ours, find), _levels(theirs, find), is_readable).end()


class _Walk:
    """Both histories, as far as they were walked."""

    def __init__(
        self, ours: _Levels, theirs: _Levels, is_readable: Callable[[Commit], bool]
    ) -> None:
        self._ours, self._theirs = ours, theirs
        self._is_readable = is_readable
        self._ours_seen: dict[CommitId, int] = {}
        self._theirs_seen: dict[CommitId, int] = {}
        self._met: dict[CommitId, Commit] = {}
        self._shared: set[CommitId] = set()
        self._best: tuple[int, Commit] | None = None

    def end(self) -> Divergence:
        depth = 0
        ours: tuple[Commit, ...] | None = ()
        theirs: tuple[Commit, ...] | None = ()
        while ours is not None or theirs is not None:
            if self._best is not None and depth > self._best[0] and self._has_all(theirs):
                break
            ours, theirs = next(self._ours, None), next(self._theirs, None)
            self._meet(ours or (), theirs or (), depth)
            depth += 1
        alone = sorted(self._theirs_seen.keys() - self._shared)
        base = None if self._best is None else self._best[1]
        return Divergence(base, tuple(self._met[each] for each in alone))

    def _meet(self, ours: Iterable[Commit], theirs: Iterable[Commit], depth: int) -> None:
        self._ours_seen.update((each.commit_id, depth) for each in ours)
        self._theirs_seen.update((each.commit_id, depth) for each in theirs)
        for commit in (*ours, *theirs):
            self._met[commit.commit_id] = commit
            if commit.commit_id in self._ours_seen or commit.commit_id in self._shared:
                self._share(commit)
            if commit.commit_id in self._ours_seen and commit.commit_id in self._theirs_seen:
                self._propose(commit)

    def _propose(self, commit: Commit) -> None:
        total = self._ours_seen[commit.commit_id] + self._theirs_seen[commit.commit_id]
        candidate = (total, commit)
        best = candidate if self._best is None else min(self._best, candidate, key=_preference)
        if best is not self._best and self._is_readable(commit):
            self._best = best

    def _share(self, commit: Commit) -> None:
        """Whatever lies before one of our commits is ours, too."""
        self._shared.add(commit.commit_id)
        following = list(commit.parents)
        while following:
            commit_id = following.pop()
            if commit_id not in self._shared:
                self._shared.add(commit_id)
                if commit_id in self._met:
                    following += self._met[commit_id].parents

    def _has_all(self, theirs: Iterable[Commit] | None) -> bool:
        """Whether every way down from theirs has come to ours."""
        if theirs is not None:
            return all(each.commit_id in self._shared for each in theirs)
        # They have been walked to their end: it was not met on ours yet, if it ever will.
        ends = (each for each in self._theirs_seen if not self._met[each].parents)
        return self._shared.issuperset(ends)


def _preference(candidate: tuple[int, Commit]) -> tuple[int, int, int]:
    total, commit = candidate
    age = -int.from_bytes(commit.commit_id.encode())
    return total, -commit.manifest_version, age


def _levels(head: CommitId, find: Lookup) -> _Levels:
    seen = {head}
    level: tuple[Commit, ...] = (find(head),)
    while level:
        yield level
        following = [parent for commit in level for parent in commit.parents]
        fresh = [parent for parent in dict.fromkeys(following) if parent not in seen]
        seen.update(fresh)
        level = tuple(filter(None, (_found(parent, find) for parent in fresh)))


def _found(commit_id: CommitId, find: Lookup) -> Commit | None:
    """The commit; None if it went with the branch it was merged from, before it was carried on."""
    try:
        return find(commit_id)
    except CommitNotFoundError:
        return None
