"""How results are printed: tables for people, JSON for programs."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Final, TextIO

from omnigraph.cli import output
from omnigraph.errors import StorageError
from omnigraph.wording import count_of, describe_hidden, format_instant

if TYPE_CHECKING:
    from omnigraph.embedding.counts import EmbeddingCounts
    from omnigraph.model.followups import FollowUpFailure

_WHOLE_MAX: Final = 26
"""The length of an id, the longest thing that people copy out of a table."""

_FOLDED_MIN: Final = 12
"""The width below which a column of sentences becomes a column of syllables."""

_GAP: Final = 3
"""Spaces that rich puts between two columns."""


@dataclass(slots=True)
class ErrorStyle:
    """How this run prints an error: set while options are parsed, read when it fails.

    Attributes:
        json: Whether as JSON.
        debug: Whether with the stack trace.
        tabulates: Whether violations are a table, one line each: they are in files or in the graph,
            to be fixed there.
    """

    json: bool = False
    debug: bool = False
    tabulates: bool = False


def show_json(value: object) -> None:
    """Print one JSON document on standard output."""
    output.write_text(f"{to_document(value)}\n")


def show_text(text: str) -> None:
    """Print a text on standard output, and end its last line if it does not."""
    output.write_text(text if text.endswith("\n") else f"{text}\n")


def show_table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print rows under their column names on standard output."""
    page = [["" if cell is None else str(cell) for cell in row] for row in rows]
    if page and sys.stdout is not None and sys.stdout.isatty():
        # An empty column takes width from the others.
        filled = [at for at in range(len(columns)) if any(row[at] for row in page)]
        columns = [columns[at] for at in filled]
        page = [[row[at] for at in filled] for row in page]
    show_pages(columns, [page])


def show_pages(columns: Sequence[str], pages: Iterable[Sequence[Sequence[str]]]) -> None:
    """Print rows under their column names on standard output, one page after the other.

    A terminal gets a table for each page, folded to its width. Anywhere else nothing is folded,
    the names are printed once, and the first page decides how wide the columns are.
    """
    with output.standard_output() as stream:
        draw = _draw_page if stream.isatty() else _AlignedPages().draw
        empty = True
        for page in pages:
            draw(columns, page)
            empty = False
        if empty:
            draw(columns, ())


def show_facts(facts: Mapping[str, object]) -> None:
    """Print names and values on standard output, each value beside its name."""
    width = max(map(len, facts))
    for name, value in facts.items():
        if value is not None:
            first, *others = map(printable, str(value).split("\n"))
            output.write_text(f"{name:<{width}}  {first}\n")
            output.write_text("".join(f"{'':<{width}}  {line}".rstrip() + "\n" for line in others))


def say_hidden(names: Sized) -> None:
    """Say how many types were left out, because the actor may not read them."""
    if len(names):
        say(describe_hidden(names))


def say_engine(engine: str, why: str) -> None:
    """Say which engine did the work, and why."""
    say(f"engine: {engine} ({why})")


def say(text: str) -> None:
    """Print a message on standard error; if that cannot be written, the message is lost.

    The work continues: an unwritable standard error must not cancel a load or fail a commit.
    """
    if sys.stderr is None:
        return
    if sys.stdout is not None:
        # Both may go to one file, in their order. What fails here fails again where it is reported.
        with suppress(OSError, ValueError):
            sys.stdout.flush()
    try:
        print(text, file=sys.stderr, flush=True)  # noqa: T201  # the one place that talks
    except OSError:
        output.discard_rest(sys.stderr)


@contextmanager
def report_of(done: str | None) -> Iterator[None]:
    """Print the report of a change, to its last line, in this block.

    Args:
        done: The change in words, for an error that keeps the report from being printed; None if
            nothing changed.
    """
    try:
        yield
        output.finish()
    except StorageError as failure:
        if done is not None:
            failure.add_note(f"{done} all the same")
        raise


def report_of_commit(commit_id: str | None) -> AbstractContextManager[None]:
    """Print the report of a write in this block; None if it made no commit."""
    return report_of(None if commit_id is None else f"commit {commit_id} has landed")


def say_warnings(warnings: Iterable[FollowUpFailure]) -> None:
    """Print which steps after a commit failed, and how to repeat them."""
    for warning in warnings:
        say(f"warning: {warning.message}")
        say(f"  hint: {warning.hint}")


def say_unchanged(unchanged: Mapping[str, int]) -> None:
    """Print how many rows a write did not change, if there are any."""
    if unchanged:
        rows = count_of(sum(unchanged.values()), "row")
        say(f"{rows} unchanged: the stored values are the same")


def say_embedding(counts: EmbeddingCounts) -> None:
    """Print how many texts a write embedded, and how many rows wait for it, if there are any."""
    if counts.embedded:
        say(f"embedded {count_of(counts.embedded, 'text')}")
    if counts.waiting:
        verb = "waits" if counts.waiting == 1 else "wait"
        say(f"{count_of(counts.waiting, 'row')} {verb} for a vector: run 'omnigraph embed'")


@contextmanager
def show_notes_on_interrupt() -> Iterator[None]:
    """Print the notes of an interrupt in the block, such as a commit that has landed."""
    try:
        yield
    except KeyboardInterrupt as interrupt:
        for note in getattr(interrupt, "__notes__", ()):
            say(note)
        raise


def say_table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print rows under their column names on standard error."""
    page = [["" if cell is None else str(cell) for cell in row] for row in rows]
    if sys.stderr is not None and sys.stderr.isatty():
        _draw(columns, page, sys.stderr)
    else:
        for line in _AlignedPages().lines(columns, page):
            say(line)


def _draw_page(columns: Sequence[str], page: Sequence[Sequence[str]]) -> None:
    _draw(columns, page, sys.stdout)


def _draw(columns: Sequence[str], page: Sequence[Sequence[str]], stream: TextIO) -> None:
    # Imported here: only commands that draw a table need rich.
    from rich import box
    from rich.cells import cell_len
    from rich.console import Console
    from rich.table import Table

    console = Console(file=stream)
    rows = [[printable(cell) for cell in row] for row in page]
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    narrowest = 0
    for name, *cells in zip(columns, *rows, strict=True):
        whole = all(map(_stays_whole, cells))
        narrowest += _GAP + (max(map(cell_len, [name, *cells])) if whole else _FOLDED_MIN)
        table.add_column(name, overflow="fold", no_wrap=whole)
    for row in rows:
        table.add_row(*row)
    if narrowest <= console.width:
        console.print(table, highlight=False, markup=False, emoji=False)
        return
    # Let the terminal wrap the lines: text that is copied from them stays whole.
    for line in _AlignedPages().lines(columns, rows):
        stream.write(f"{line}\n")


def _stays_whole(cell: str) -> bool:
    """Whether a cell is an id, a time, a number or a word, which are of no use in halves."""
    return len(cell) <= _WHOLE_MAX and (" " not in cell or cell[:1].isdigit())


@dataclass(slots=True)
class _AlignedPages:
    """Draws pages in columns whose widths the first page decides."""

    widths: Sequence[int] = ()

    def draw(self, columns: Sequence[str], page: Sequence[Sequence[str]]) -> None:
        output.write_text("".join(f"{line}\n" for line in self.lines(columns, page)))

    def lines(self, columns: Sequence[str], page: Sequence[Sequence[str]]) -> list[str]:
        from rich.cells import cell_len

        rows = [[printable(cell) for cell in row] for row in page]
        if not self.widths:
            rows.insert(0, list(columns))
            self.widths = [max(map(cell_len, cells)) for cells in zip(*rows, strict=True)]
        return [self._line(row, cell_len) for row in rows]

    def _line(self, row: Sequence[str], cell_len: Callable[[str], int]) -> str:
        padded = (
            cell + " " * (width - cell_len(cell))
            for cell, width in zip(row, self.widths, strict=True)
        )
        return "  ".join(padded).rstrip()


def printable(text: str) -> str:
    """Text that stays in its cell: control characters are escaped."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def to_document(value: object) -> str:
    """One JSON document, for people to read too."""
    return json.dumps(value, indent=2, ensure_ascii=False, default=_plain)


def _plain(value: object) -> str:
    if isinstance(value, datetime):
        return format_instant(value)
    return str(value)
