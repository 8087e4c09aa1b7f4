"""Lineage: walking commits by their parents, reading only as much history as the walk needs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from omnigraph.model.commits import Commit
from omnigraph.model.ids import CommitId

Lookup: TypeAlias = Callable[[CommitId], Commit]
"""Gives a commit by id, or raises CommitNotFoundError."""


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
        theirs: Commits of their side that were not met on ours.
    """

    base: Commit | None
    theirs: tuple[Commit, ...]


def merge_base(ours: CommitId, theirs: CommitId, find: Lookup) -> Commit | None:
    """The common ancestor with the least summed distance; None if the two share no history."""
    return divergence(ours, theirs, find).base


def divergence(ours: CommitId, theirs: CommitId, find: Lookup) -> Divergence:
    """Where the histories of two commits part.

    Ties go to the higher manifest version, then to the younger commit. Both histories are walked a
    level at a time and no deeper than the best sum found, so the cost follows how far the sides
    have drifted apart, not how long the history is.
    """
    ours_levels, theirs_levels = _levels(ours, find), _levels(theirs, find)
    ours_seen: dict[CommitId, int] = {}
    theirs_seen: dict[CommitId, int] = {}
    met: dict[CommitId, Commit] = {}
    best: tuple[int, Commit] | None = None
    depth = 0
    while best is None or depth <= best[0]:
        ours_level = next(ours_levels, None)
        theirs_level = next(theirs_levels, None)
        if ours_level is None and theirs_level is None:
            break
        ours_seen.update((commit.commit_id, depth) for commit in ours_level or ())
        theirs_seen.update((commit.commit_id, depth) for commit in theirs_level or ())
        for commit in (*(ours_level or ()), *(theirs_level or ())):
            met[commit.commit_id] = commit
            if commit.commit_id in ours_seen and commit.commit_id in theirs_seen:
                total = ours_seen[commit.commit_id] + theirs_seen[commit.commit_id]
                best = min(filter(None, [best, (total, commit)]), key=_preference)
        depth += 1
    alone = sorted(theirs_seen.keys() - ours_seen.keys())
    return Divergence(best and best[1], tuple(met[commit_id] for commit_id in alone))


def _preference(candidate: tuple[int, Commit]) -> tuple[int, int, int]:
    total, commit = candidate
    age = -int.from_bytes(commit.commit_id.encode())
    return total, -commit.manifest_version, age


def _levels(head: CommitId, find: Lookup) -> Iterator[tuple[Commit, ...]]:
    seen = {head}
    level: tuple[Commit, ...] = (find(head),)
    while level:
        yield level
        following = [parent for commit in level for parent in commit.parents]
        fresh = [parent for parent in dict.fromkeys(following) if parent not in seen]
        seen.update(fresh)
        level = tuple(find(parent) for parent in fresh)
