"""Lanes: where each commit of a history stands when it is drawn, and which lines pass it by."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from omnigraph.model.commits import Commit
from omnigraph.model.ids import CommitId


@dataclass(frozen=True, slots=True)
class Row:
    """One commit in its place. Lanes are counted from the left; lines run down to older commits.

    Attributes:
        lane: Where the commit stands.
        joins: Lanes that end here, for they all lead to this commit.
        passing: Lanes that pass by on both sides of the commit, its own left out.
        starts: The lane that leads to the commit it merged; None where there is none.
        is_new: Whether that lane begins here.
        goes_on: Whether its own lane goes on to its parent.
    """

    commit: Commit
    lane: int
    joins: tuple[int, ...] = ()
    passing: tuple[int, ...] = ()
    starts: int | None = None
    is_new: bool = False
    goes_on: bool = True


def ordered(commits: Iterable[Commit]) -> list[Commit]:
    """The commits of a history, each before its parents, and younger ones first."""
    known = {each.commit_id: each for each in commits}
    children = dict.fromkeys(known, 0)
    for commit in known.values():
        for parent in commit.parents:
            if parent in known:
                children[parent] += 1
    ready = [_age(known[each]) for each, count in children.items() if not count]
    heapq.heapify(ready)
    found = []
    while ready:
        commit = known[heapq.heappop(ready)[2]]
        found.append(commit)
        for parent in commit.parents:
            if parent in known:
                children[parent] -= 1
                if not children[parent]:
                    heapq.heappush(ready, _age(known[parent]))
    return found


def _age(commit: Commit) -> tuple[float, int, CommitId]:
    """What sorts younger commits first; of two made at once, the one with the later id."""
    return -commit.created_at.timestamp(), -int(commit.commit_id, 36), commit.commit_id


def laid_out(commits: Iterable[Commit], known: Mapping[CommitId, Commit]) -> list[Row]:
    """Every commit in its row and lane.

    Args:
        commits: Each before its parents.
        known: Every commit that a line may lead to; one to a commit that is gone is not drawn.
    """
    lanes: list[CommitId | None] = []
    rows = []
    for commit in commits:
        here = [place for place, wanted in enumerate(lanes) if wanted == commit.commit_id]
        if not here:
            here = [_free(lanes, after=-1)]
        lane, *joins = here
        for each in joins:
            lanes[each] = None
        parent, merged = (
            each if each in known else None for each in (commit.parent, commit.merged_parent)
        )
        lanes[lane] = parent
        passing = tuple(
            each for each, wanted in enumerate(lanes) if wanted is not None and each != lane
        )
        starts, is_new = None, False
        if merged is not None:
            is_new = merged not in lanes
            starts = _free(lanes, after=lane) if is_new else lanes.index(merged)
            lanes[starts] = merged
        rows.append(
            Row(commit, lane, tuple(joins), passing, starts, is_new, goes_on=parent is not None)
        )
    return rows


def _free(lanes: list[CommitId | None], *, after: int) -> int:
    """The first lane to the right of one that leads nowhere, if need be a new one."""
    for place in range(after + 1, len(lanes)):
        if lanes[place] is None:
            return place
    lanes.append(None)
    return len(lanes) - 1
