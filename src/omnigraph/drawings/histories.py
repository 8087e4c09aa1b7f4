"""A history as SVG: commits in rows, branches as lanes, merges as lines between them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Final

from omnigraph.drawings import svg
from omnigraph.drawings.lanes import Row
from omnigraph.model.ids import CommitId

_ROW: Final = 26
_LANE: Final = 18
_MARGIN: Final = 20
_RADIUS: Final = 5
_MESSAGE_MAX: Final = 72
"""Characters of a message that a picture shows."""


def history_svg(rows: Sequence[Row], names: Mapping[CommitId, Sequence[str]], *, title: str) -> str:
    """The picture of a history.

    Args:
        names: The branches that end at a commit, and its tags, by its id.
    """
    lanes = 1 + max((max([row.lane, *row.passing, row.starts or 0]) for row in rows), default=0)
    left = _MARGIN + lanes * _LANE
    words = [_words(row, names.get(row.commit.commit_id, ())) for row in rows]
    widest = max((svg.text_width(" ".join(texts)) for texts in words), default=0)
    elements = [*_lines(rows)]
    for place, (row, texts) in enumerate(zip(rows, words, strict=True)):
        elements += _commit(row, place, texts, left)
    height = 2 * _MARGIN + _ROW * max(len(rows), 1)
    return svg.document(left + widest + 2 * _MARGIN, height, elements, title=title)


def _words(row: Row, names: Sequence[str]) -> tuple[str, str, str]:
    commit = row.commit
    when = f"{commit.created_at:%Y-%m-%d %H:%M}"
    message = (commit.message or "").partition("\n")[0][:_MESSAGE_MAX]
    marks = " ".join(f"[{name}]" for name in names)
    who = f"by {commit.actor}" if commit.actor else ""
    rest = [when, str(commit.operation), who, message]
    return commit.commit_id, marks, " ".join(word for word in rest if word)


def _commit(row: Row, place: int, words: tuple[str, str, str], left: float) -> list[str]:
    x, y = _x(row.lane), _y(place)
    fill = "#ffffff" if row.commit.merged_parent else _colour(row.lane)
    elements = [
        svg.element(
            "circle", cx=x, cy=y, r=_RADIUS, fill=fill, stroke=_colour(row.lane), stroke_width=2
        )
    ]
    at = float(left)
    for text, style in zip(words, ("dim", "strong", ""), strict=True):
        if text:
            elements.append(svg.element("text", text, x=at, y=y + 4, class_=style))
            at += svg.text_width(text) + svg.GLYPH_WIDTH
    return elements


def _lines(rows: Sequence[Row]) -> list[str]:
    """Every line from a commit to a parent, in its lane."""
    open_: dict[int, list[tuple[int, int]]] = defaultdict(list)
    paths = []
    for place, row in enumerate(rows):
        for lane in (row.lane, *row.joins):
            paths += [_line(start, lane, (place, row.lane)) for start in open_.pop(lane, [])]
        if row.continues:
            open_[row.lane].append((place, row.lane))
        if row.starts is not None:
            open_[row.starts].append((place, row.lane))
    # The lines that remain open lead to commits below the picture.
    for lane, starts in sorted(open_.items()):
        paths += [_line(start, lane, (len(rows), lane)) for start in starts]
    return paths


def _line(start: tuple[int, int], lane: int, end: tuple[int, int]) -> str:
    (top, from_lane), (bottom, to_lane) = start, end
    x, y, low = _x(lane), _y(top), _y(bottom)
    half = _ROW / 2
    parts = [f"M{_x(from_lane)} {y}"]
    if from_lane != lane:
        parts.append(f"C{_x(from_lane)} {y + half} {x} {y + half} {x} {y + _ROW}")
    if to_lane != lane:
        parts.append(f"L{x} {low - _ROW}")
        parts.append(f"C{x} {low - half} {_x(to_lane)} {low - half} {_x(to_lane)} {low}")
    else:
        parts.append(f"L{x} {low}")
    return svg.element("path", d=" ".join(parts), class_="line", stroke=_colour(lane))


def _x(lane: int) -> int:
    return _MARGIN + lane * _LANE


def _y(place: int) -> int:
    return _MARGIN + place * _ROW + _ROW // 2


def _colour(lane: int) -> str:
    return svg.COLOURS[lane % len(svg.COLOURS)]
