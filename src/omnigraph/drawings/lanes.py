"""Lanes: the position of each commit of a history in a drawing, and the lines that pass it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from omnigraph.model.commits import Commit
from omnigraph.model.ids import CommitId


@dataclass(frozen=True, slots=True)
class Row:
    """One commit and its lanes, counted from the left; lines run down to older commits.

    Attributes:
        lane: The lane of the commit.
        joins: Other lanes that end here, because they lead to this commit.
        passing: Lanes that pass on both sides of the commit, its own excluded.
        starts: The lane that leads to the commit it merged; None if it merged none.
        is_new: Whether that lane begins here.
        continues: Whether its own lane continues to its parent.
    """

    commit: Commit
    lane: int
    joins: tuple[int, ...] = ()
    passing: tuple[int, ...] = ()
    starts: int | None = None
    is_new: bool = False
    continues: bool = True


def lay_out(commits: Iterable[Commit], known: Mapping[CommitId, Commit]) -> list[Row]:
    """Every commit in its row and lane.

    Args:
        commits: Each before its parents.
        known: Every commit that a line may lead to; lines to other commits are not drawn.
    """
    lanes: list[CommitId | None] = []
    rows = []
    for commit in commits:
        here = [place for place, wanted in enumerate(lanes) if wanted == commit.commit_id]
        if not here:
            here = [_free_lane(lanes, after=-1)]
        lane, *joins = here
        for joined_lane in joins:
            lanes[joined_lane] = None
        parent, merged_parent = (
            parent if parent in known else None for parent in (commit.parent, commit.merged_parent)
        )
        lanes[lane] = parent
        passing = tuple(
            other for other, wanted in enumerate(lanes) if wanted is not None and other != lane
        )
        starts, is_new = None, False
        if merged_parent is not None:
            is_new = merged_parent not in lanes
            starts = _free_lane(lanes, after=lane) if is_new else lanes.index(merged_parent)
            lanes[starts] = merged_parent
        rows.append(
            Row(commit, lane, tuple(joins), passing, starts, is_new, continues=parent is not None)
        )
    return rows


def _free_lane(lanes: list[CommitId | None], *, after: int) -> int:
    """The first unused lane to the right of one, if necessary a new one."""
    for place in range(after + 1, len(lanes)):
        if lanes[place] is None:
            return place
    lanes.append(None)
    return len(lanes) - 1
