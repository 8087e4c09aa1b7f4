"""Sorting of a pinned table by a text column, in bounded memory: DuckDB spills to disk."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.engine.results import cast_batch
from omnigraph.errors import StorageError
from omnigraph.limits import SORTED_IN_MEMORY_BYTES_MAX
from omnigraph.schema.arrow import is_blob
from omnigraph.storage import filters
from omnigraph.storage.streams import Relay
from omnigraph.storage.tables import ROW_ID, Table

SORTING_BYTES_MAX: Final = 1 << 30
"""Memory that sorting a larger table takes before it spills to disk."""

SORT_BATCH_ROWS_MAX: Final = 1 << 14
SORT_BATCH_BYTES: Final = 8 << 20
"""A batch of sorted rows: the maximum count, and the approximate size if rows are wide."""


_FIRST_BLOBS: int = 4
"""Rows with blobs in the first read, before their size is known."""


def sorted_batches(
    table: Table, schema: pa.Schema, *, by: str, spill_directory: Path | None = None
) -> Iterator[pa.RecordBatch]:
    """Stream the rows in the order of the bytes of `by`, with exactly these columns.

    Args:
        schema: Columns of the table, in any order, as `schema.arrow` types them.
        spill_directory: For rows that do not fit in memory; the system's own when None.
    """
    blobs = [field for field in schema if is_blob(field)]
    if any(pa.types.is_list(field.type) for field in blobs):
        # Lance cannot read some rows of such a list (tests/contract/lance/test_blob_lists.py).
        return _sort_in_memory(table, schema, by, _rows_max(table))
    if blobs:
        return _sort_with_blobs(table, schema, by, spill_directory)
    return _sort_plain(table, schema, by, spill_directory)


def _sort_plain(
    table: Table, schema: pa.Schema, by: str, spill_directory: Path | None
) -> Iterator[pa.RecordBatch]:
    rows_max = _rows_max(table)
    if table.count_bytes() <= SORTED_IN_MEMORY_BYTES_MAX:
        return _sort_in_memory(table, schema, by, rows_max)
    return _sort_on_disk(table, schema, by, rows_max, spill_directory)


def _rows_max(table: Table) -> int:
    bytes_per_row = max(1, table.count_bytes() // max(1, table.count_rows()))
    return max(1, min(SORT_BATCH_ROWS_MAX, SORT_BATCH_BYTES // bytes_per_row))


def _sort_in_memory(
    table: Table, schema: pa.Schema, by: str, rows_max: int
) -> Iterator[pa.RecordBatch]:
    rows = table.read(schema.names).combine_chunks()
    order = pc.sort_indices(rows[by])
    for first in range(0, len(order), rows_max):
        part = rows.take(order.slice(first, rows_max)).combine_chunks()
        for batch in part.to_batches():
            yield cast_batch(batch, schema)


def _sort_on_disk(
    table: Table, schema: pa.Schema, by: str, rows_max: int, spill_directory: Path | None
) -> Iterator[pa.RecordBatch]:
    # DuckDB does not distinguish names by case, so columns are named by their places.
    scan = table.scan(schema.names)
    places = pa.schema([field.with_name(f"c{place}") for place, field in enumerate(scan.schema)])
    rows = pa.RecordBatchReader.from_batches(
        places, (pa.RecordBatch.from_arrays(batch.columns, schema=places) for batch in scan)
    )
    relay = Relay()
    with _connect(spill_directory) as connection, relay.reraise(), _translate_errors():
        connection.register("unsorted", relay.carry(rows))
        text = f"SELECT * FROM unsorted ORDER BY c{schema.names.index(by)}"
        for batch in connection.sql(text).to_arrow_reader(rows_max):
            yield cast_batch(batch, schema)


def _sort_with_blobs(
    table: Table, schema: pa.Schema, by: str, spill_directory: Path | None
) -> Iterator[pa.RecordBatch]:
    """Sort row ids alone, then read a few rows at a time: few blobs are ever in memory."""
    keys = pa.schema([schema.field(by), pa.field(ROW_ID, pa.uint64())])
    rows_max = _FIRST_BLOBS
    for sorted_keys in _sort_plain(table, keys, by, spill_directory):
        row_ids = sorted_keys.column(ROW_ID)
        first = 0
        while first < len(row_ids):
            part_ids = row_ids.slice(first, rows_max)
            first += len(part_ids)
            filter_text = filters.number_in(ROW_ID, part_ids.to_pylist())
            rows = table.read([*schema.names, ROW_ID], filter_text=filter_text)
            part = rows.take(pc.index_in(part_ids, value_set=rows[ROW_ID])).combine_chunks()
            for batch in part.drop_columns([ROW_ID]).to_batches():
                yield cast_batch(batch, schema)
            bytes_per_row = max(1, rows.nbytes // len(part_ids))
            rows_max = max(1, min(SORT_BATCH_ROWS_MAX, SORT_BATCH_BYTES // bytes_per_row))


@contextmanager
def _connect(spill_directory: Path | None) -> Iterator[duckdb.DuckDBPyConnection]:
    with tempfile.TemporaryDirectory(prefix=".sort-", dir=spill_directory) as spill:
        settings: dict[str, str | bool | int | float | list[str]] = {
            "temp_directory": spill,
            "memory_limit": f"{SORTING_BYTES_MAX >> 20}MiB",
            "autoinstall_known_extensions": "false",
            "autoload_known_extensions": "false",
        }
        connection = duckdb.connect(":memory:", config=settings)
        try:
            connection.execute("SET TimeZone = 'UTC'")
            yield connection
        finally:
            connection.close()


@contextmanager
def _translate_errors() -> Iterator[None]:
    try:
        yield
    except duckdb.Error as cause:
        message = f"sorting failed: {str(cause).partition(chr(10))[0][:500]}"
        raise StorageError(message, hint="free some space in the temporary directory") from cause
