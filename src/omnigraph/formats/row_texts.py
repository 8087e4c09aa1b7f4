"""Rows as texts: JSON, JSON lines and CSV, each in pieces: a large answer takes little memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import pyarrow as pa

    from omnigraph.formats.cells import Plain

ROWS_PER_BATCH: Final = 1000
"""Rows that are formatted at a time; also the page by which a table's columns are sized."""


def row_batches(result: pa.Table) -> Iterator[list[tuple[Plain, ...]]]:
    """The rows of a result, some at a time, each value one that JSON has."""
    # Imported here: the list of formats is part of --help, and pyarrow is not.
    from omnigraph.formats.cells import plain_rows

    for batch in result.to_batches(max_chunksize=ROWS_PER_BATCH):
        yield list(plain_rows(batch))


def json_texts(result: pa.Table) -> Iterator[str]:
    """One JSON list of objects, in pieces."""
    return json_list(_objects(result))


def line_texts(result: pa.Table) -> Iterator[str]:
    """One JSON object in each line, in pieces."""
    return lines(_objects(result))


def csv_texts(result: pa.Table) -> Iterator[str]:
    """CSV with the names of the columns first, in pieces."""
    from omnigraph.formats.cells import csv_line

    for batch in chain([[tuple(result.column_names)]], row_batches(result)):
        yield "".join(map(csv_line, batch))


def json_list(batches: Iterable[list[str]]) -> Iterator[str]:
    """One JSON list of the texts in the batches, in pieces."""
    opening = "[\n"
    for batch in batches:
        yield opening + ",\n".join(f"  {text}" for text in batch)
        opening = ",\n"
    yield "[]\n" if opening == "[\n" else "\n]\n"


def lines(batches: Iterable[list[str]]) -> Iterator[str]:
    """The texts in the batches, one in each line, in pieces."""
    for batch in batches:
        yield "".join(f"{text}\n" for text in batch)


def _objects(result: pa.Table) -> Iterator[list[str]]:
    from omnigraph.formats.cells import to_json

    names = result.column_names
    for batch in row_batches(result):
        if batch:
            yield [to_json(dict(zip(names, row, strict=True))) for row in batch]
