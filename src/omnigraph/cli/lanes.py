"""A history as lines of text: each commit in its lane, with lines to its parents."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from omnigraph.model.commits import Commit
from omnigraph.model.ids import CommitId

_UP, _DOWN, _LEFT, _RIGHT = 1, 2, 4, 8
_LINES: Final = {
    0: " ",
    _UP | _DOWN: "│",
    _LEFT | _RIGHT: "─",
    _UP | _DOWN | _RIGHT: "├",
    _UP | _DOWN | _LEFT: "┤",
    _UP | _DOWN | _LEFT | _RIGHT: "┼",
    _UP | _LEFT: "╯",
    _UP | _RIGHT: "╰",
    _DOWN | _LEFT: "╮",
    _DOWN | _RIGHT: "╭",
    _UP | _LEFT | _RIGHT: "┴",
    _DOWN | _LEFT | _RIGHT: "┬",
}
_PLAIN: Final = str.maketrans("│─├┤┼╯╰╮╭┴┬●", "|-|||/\\\\/++*")


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


def to_ascii(line: str) -> str:
    r"""A line in ASCII, for terminals without Unicode.

    >>> to_ascii("│ ●"), to_ascii("├─╮")
    ('| *', '|-\\')
    """
    return line.translate(_PLAIN)


def draw_lines(rows: Iterable[Row]) -> Iterator[tuple[str, Row | None]]:
    """The lines of a picture; a line that has a commit is returned with its row."""
    for row in rows:
        if row.joins:
            yield _joining_line(row), None
        width = 1 + max([row.lane, *row.passing])
        marks = ["│" if place in row.passing else " " for place in range(width)]
        marks[row.lane] = "●"
        yield " ".join(marks), row
        if row.starts is not None:
            yield _starting_line(row, row.starts), None


def _joining_line(row: Row) -> str:
    """The line above a commit on which other lanes that lead to it end."""
    sides = dict.fromkeys((*row.passing, row.lane), _UP | _DOWN)
    sides |= dict.fromkeys(row.joins, _UP)
    return _crossing_line(sides, row.lane, row.joins)


def _starting_line(row: Row, lane: int) -> str:
    """The line below a merge on which the lane of the merged commit begins, or is joined."""
    sides = dict.fromkeys(row.passing, _UP | _DOWN)
    sides[row.lane] = _UP | (_DOWN if row.continues else 0)
    if row.is_new:
        sides[lane] = _DOWN
    return _crossing_line(sides, row.lane, (lane,))


def _crossing_line(sides: dict[int, int], lane: int, others: Iterable[int]) -> str:
    """Lanes with a line across them, from one of them to others."""
    ends = [lane, *others]
    first, last = min(ends), max(ends)
    cells = []
    for place in range(1 + max(*sides, last)):
        mark = sides.get(place, 0)
        if first < place <= last:
            mark |= _LEFT
        if first <= place < last:
            mark |= _RIGHT
        cells.append(_LINES[mark])
        cells.append("─" if first <= place < last else " ")
    return "".join(cells).rstrip()
