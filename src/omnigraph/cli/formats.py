"""Formats of a result, each written a batch at a time: a large answer takes little memory."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import StrEnum
from itertools import chain, islice
from typing import TYPE_CHECKING, Final

from omnigraph.cli import output, render

if TYPE_CHECKING:
    import pyarrow as pa

    from omnigraph.cli.cells import Plain

ROWS_PER_BATCH: Final = 1000
"""Rows that are formatted at a time; also the page by which a table's columns are sized."""


class Format(StrEnum):
    """The formats of a result."""

    TABLE = "table"
    JSON = "json"
    JSONL = "jsonl"
    CSV = "csv"
    ARROW = "arrow"


def write_result(result: pa.Table, wanted: Format) -> None:
    """Write a result to standard output.

    Raises:
        OutputClosedError: the reader has stopped reading.
        StorageError: standard output cannot be written.
    """
    if wanted is Format.TABLE:
        render.show_pages(result.column_names, _pages(result))
    elif wanted is Format.ARROW:
        _write_arrow(result)
    else:
        for piece in _WRITERS[wanted](result):
            output.write_bytes(piece.encode())


def write_objects(objects: Iterable[object], *, is_list: bool) -> None:
    """Write objects to standard output as they arrive: one JSON list, or one JSON text per line."""
    from omnigraph.cli.cells import to_json

    texts = map(to_json, objects)
    batches = iter(lambda: list(islice(texts, ROWS_PER_BATCH)), [])
    for piece in _json_list(batches) if is_list else _lines(batches):
        output.write_bytes(piece.encode())


def _batches(result: pa.Table) -> Iterator[list[tuple[Plain, ...]]]:
    # Imported here: the list of formats is part of --help, and pyarrow is not.
    from omnigraph.cli.cells import plain_rows

    for batch in result.to_batches(max_chunksize=ROWS_PER_BATCH):
        yield list(plain_rows(batch))


def _pages(result: pa.Table) -> Iterator[list[list[str]]]:
    from omnigraph.cli.cells import to_text

    for batch in _batches(result):
        yield [["null" if cell is None else to_text(cell) for cell in row] for row in batch]


def _json(result: pa.Table) -> Iterator[str]:
    return _json_list(_objects(result))


def _jsonl(result: pa.Table) -> Iterator[str]:
    return _lines(_objects(result))


def _json_list(batches: Iterable[list[str]]) -> Iterator[str]:
    opening = "[\n"
    for batch in batches:
        yield opening + ",\n".join(f"  {text}" for text in batch)
        opening = ",\n"
    yield "[]\n" if opening == "[\n" else "\n]\n"


def _lines(batches: Iterable[list[str]]) -> Iterator[str]:
    for batch in batches:
        yield "".join(f"{text}\n" for text in batch)


def _objects(result: pa.Table) -> Iterator[list[str]]:
    from omnigraph.cli.cells import to_json

    names = result.column_names
    for batch in _batches(result):
        if batch:
            yield [to_json(dict(zip(names, row, strict=True))) for row in batch]


def _csv(result: pa.Table) -> Iterator[str]:
    from omnigraph.cli.cells import csv_line

    for batch in chain([[tuple(result.column_names)]], _batches(result)):
        yield "".join(map(csv_line, batch))


_WRITERS: Final[Mapping[Format, Callable[[pa.Table], Iterator[str]]]] = {
    Format.JSON: _json,
    Format.JSONL: _jsonl,
    Format.CSV: _csv,
}


def _write_arrow(result: pa.Table) -> None:
    import pyarrow as pa

    with pa.ipc.new_stream(_Sink(), result.schema) as stream:
        for batch in result.to_batches():
            stream.write_batch(batch)


class _Sink(io.RawIOBase):
    """Standard output as a file object for Arrow to write to."""

    def writable(self) -> bool:
        return True

    def write(self, data: object) -> int:
        content = bytes(memoryview(data))  # type: ignore[arg-type]
        output.write_bytes(content)
        return len(content)
