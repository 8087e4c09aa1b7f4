"""Progress: bars on a terminal, lines elsewhere, always on standard error."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Protocol

from omnigraph.cli.render import say
from omnigraph.limits import LOAD_BLOCK_BYTES

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

_BYTES: Final = "bytes"
_PARTS: Final = 10
"""Lines that one stage gets at most, where its end is known."""


class Follower(Protocol):
    """Receives how far each stage of the work is."""

    def __call__(self, stage: str, done: int, total: int | None) -> None:
        """Show it."""
        ...


@contextmanager
def show_progress(*, quiet: bool, unit: str = "") -> Iterator[Follower | None]:
    """Show the progress of what runs in the block; None where none is shown.

    Args:
        unit: `bytes` if the stage `read` counts bytes; other stages count steps.
    """
    if quiet or sys.stderr is None:
        yield None
    elif sys.stderr.isatty():
        with _progress_bars() as progress:
            yield Bars(progress, unit)
    else:
        yield Lines(unit)


@contextmanager
def _progress_bars() -> Iterator[Progress]:
    # Imported here: only bars need rich.
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[amount]}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        yield progress


@dataclass(slots=True)
class Bars:
    """A bar for each stage; the bars disappear when the work is done."""

    progress: Progress
    unit: str
    bars: dict[str, TaskID] = field(default_factory=dict)

    def __call__(self, stage: str, done: int, total: int | None) -> None:
        """Draw it."""
        amount = _amount(stage, done, total, self.unit)
        if stage not in self.bars:
            self.bars[stage] = self.progress.add_task(stage, total=None, amount=amount)
        # One step that has just begun has no length to draw.
        shown = None if (done, total) == (0, 1) else total
        self.progress.update(self.bars[stage], completed=done, total=shown, amount=amount)


@dataclass(slots=True)
class Lines:
    """At most a few lines per stage, and none for a short load."""

    unit: str
    is_long: bool = False
    last: tuple[str, int] = ("", -1)

    def __call__(self, stage: str, done: int, total: int | None) -> None:
        """Print a line, unless the last one says the same."""
        if stage == "read":
            size = max(done, total or 0)
            self.is_long = self.unit != _BYTES or size > LOAD_BLOCK_BYTES
        part = _part(done, total)
        if self.is_long and (stage, part) != self.last:
            self.last = (stage, part)
            say(f"{stage} {_amount(stage, done, total, self.unit)}".rstrip())


def _part(done: int, total: int | None) -> int:
    """The number of the part that this is in; each part gets one line."""
    if total is None:
        return done // (_PARTS * LOAD_BLOCK_BYTES)
    return done * _PARTS // total if total > 1 else 0


def _amount(stage: str, done: int, total: int | None, unit: str) -> str:
    """How far a stage is, as text.

    >>> _amount("read", 1_500_000, 3_000_000, "bytes"), _amount("stage", 1, 3, "bytes")
    ('1.5 MB of 3.0 MB', '1 of 3')
    """
    from rich.filesize import decimal

    if total == 1:
        return ""
    in_bytes = stage == "read" and unit == _BYTES
    format_count = decimal if in_bytes else "{:,}".format
    if total is None:
        return format_count(done)
    return f"{format_count(done)} of {format_count(total)}"
