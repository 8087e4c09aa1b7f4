"""Formats of a result, each written a batch at a time: a large answer takes little memory."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import StrEnum
from itertools import islice
from typing import TYPE_CHECKING, Final

from omnigraph.cli import output, render
from omnigraph.formats.row_texts import (
    ROWS_PER_BATCH,
    csv_texts,
    json_list,
    json_texts,
    line_texts,
    lines,
    row_batches,
)

if TYPE_CHECKING:
    import pyarrow as pa


class Format(StrEnum):
    """The formats of a result."""

    TABLE = "table"
    JSON = "json"
    JSONL = "jsonl"
    CSV = "csv"
    ARROW = "arrow"


def write_result(result: pa.Table, wanted: Format) -> None:
    """Write a result to standard output."""
    if wanted is Format.TABLE:
        render.show_pages(result.column_names, _pages(result))
    elif wanted is Format.ARROW:
        _write_arrow(result)
    else:
        for piece in _WRITERS[wanted](result):
            output.write_bytes(piece.encode())


def write_objects(objects: Iterable[object], *, is_list: bool) -> None:
    """Write objects to standard output as they arrive: one JSON list, or one JSON text per line."""
    from omnigraph.formats.cells import to_json

    texts = map(to_json, objects)
    batches = iter(lambda: list(islice(texts, ROWS_PER_BATCH)), [])
    for piece in json_list(batches) if is_list else lines(batches):
        output.write_bytes(piece.encode())


def _pages(result: pa.Table) -> Iterator[list[list[str]]]:
    from omnigraph.formats.cells import to_text

    for batch in row_batches(result):
        yield [["null" if cell is None else to_text(cell) for cell in row] for row in batch]


_WRITERS: Final[Mapping[Format, Callable[[pa.Table], Iterator[str]]]] = {
    Format.JSON: json_texts,
    Format.JSONL: line_texts,
    Format.CSV: csv_texts,
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
