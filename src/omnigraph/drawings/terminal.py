"""A history in a terminal: lines and corners before each commit's text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from omnigraph.drawings.lanes import Row

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
