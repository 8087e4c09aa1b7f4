"""Plots: the ratios of RESULTS.md as bars, a picture for each of its sections.

python -m benchmarks.plots
"""

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks import report, svg

FOLDER: Final = report.RESULTS.parent / "plots"

_BAR: Final = 14
_ROW: Final = 20
_SPAN: Final = 420
_MARGIN: Final = 16
_DECADES_MAX: Final = 3.0
"""A bar ends at a thousand times or a thousandth; its number tells the rest."""

_RATIO: Final = re.compile(r"\d+(\.\d+)?")


@dataclass(frozen=True, slots=True)
class Bar:
    """One ratio; `over` says of what to what."""

    label: str
    over: str
    ratio: float


@dataclass(frozen=True, slots=True)
class Group:
    """The ratios of one table, under its heading."""

    title: str
    bars: tuple[Bar, ...]


def main() -> None:
    """Draw every section, and say which."""
    for name, text in sections(report.RESULTS.read_text()):
        if found := tuple(groups(text)):
            path = write(name, found)
            print(f"{path.relative_to(report.RESULTS.parent)}: {sum(len(x.bars) for x in found)}")


def write(name: str, found: Sequence[Group], folder: Path = FOLDER) -> Path:
    """Draw one section."""
    folder.mkdir(exist_ok=True)
    path = folder / f"{name.lower()}.svg"
    path.write_text(draw(name, found))
    return path


def sections(text: str) -> Iterator[tuple[str, str]]:
    r"""The names and texts of all sections.

    >>> list(sections("# All\n\n## One\nfirst\n\n## Two\nsecond"))
    [('One', 'first\n'), ('Two', 'second')]
    """
    parts = re.split(r"^## (.+)\n", text, flags=re.MULTILINE)
    yield from zip(parts[1::2], (each.removesuffix("\n") for each in parts[2::2]), strict=True)


def groups(text: str) -> Iterator[Group]:
    r"""Every table of a section that has columns of ratios, which are named "this / that".

    >>> text = "### Inserts\n\n| | / Lance | p50 |\n|-|-:|-:|\n| ours | 7.0 | 14 ms |"
    >>> list(groups(text))
    [Group(title='Inserts', bars=(Bar(label='ours', over='/ Lance', ratio=7.0),))]
    """
    title = ""
    for block in re.split(r"\n\n+", text):
        if block.startswith("### "):
            title = block.removeprefix("### ").partition("\n")[0]
        rows = [_cells(line) for line in block.splitlines() if line.startswith("|")]
        # The second line marks the columns.
        if len(rows) > 2 and (bars := tuple(_bars(rows[0], rows[2:]))):
            yield Group(title, bars)


def _bars(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[Bar]:
    for row in rows:
        for over, cell in zip(head[1:], row[1:], strict=True):
            if "/" in over and _RATIO.fullmatch(cell):
                yield Bar(row[0], over, float(cell))


def draw(name: str, found: Sequence[Group]) -> str:
    """The picture: bars to the right of 1 took longer than what they are divided by."""
    labels = [f"{bar.label}: {bar.over}" for group in found for bar in group.bars]
    left = _MARGIN + max(map(svg.text_width, labels)) + _MARGIN
    ratios = [bar.ratio for group in found for bar in group.bars]
    decades = min(_DECADES_MAX, max(0.5, *(abs(math.log10(each or 1e-9)) for each in ratios)))
    middle, scale = left + _SPAN / 2, _SPAN / 2 / decades
    elements, at = [], float(_MARGIN)
    for group in found:
        at += _ROW
        title = group.title or name
        elements.append(svg.element("text", title, x=_MARGIN, y=at, class_="strong"))
        at += _ROW / 2
        for bar in group.bars:
            length = max(-decades, min(decades, math.log10(bar.ratio or 1e-9))) * scale
            colour = svg.COLOURS[1] if bar.ratio > 1 else svg.COLOURS[2]
            start = min(middle, middle + length)
            label = f"{bar.label}: {bar.over}"
            elements += [
                svg.element("text", label, x=_MARGIN, y=at + _BAR - 3, class_="dim"),
                svg.element(
                    "rect", x=start, y=at, width=max(1.0, abs(length)), height=_BAR, fill=colour
                ),
                svg.element("text", f"{bar.ratio:g}", x=left + _SPAN + 8, y=at + _BAR - 3),
            ]
            at += _ROW
    line = f"M{middle:.1f} {_MARGIN}V{at:.1f}"
    elements.append(svg.element("path", d=line, class_="line", stroke=svg.COLOURS[-1]))
    note = "1 is the same time; to the right it took longer, on a scale of powers of ten"
    elements.append(svg.element("text", note, x=_MARGIN, y=at + _ROW, class_="dim"))
    width = left + _SPAN + _MARGIN + svg.text_width("1000.00")
    return svg.document(width, at + _ROW + _MARGIN, elements, title=f"{name}: ratios of medians")


def _cells(line: str) -> list[str]:
    return [each.strip() for each in line.strip().strip("|").split("|")]


if __name__ == "__main__":
    main()
