"""Sorting a pinned table by a text column, in bounded memory: what does not fit goes to disk."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.engine.results import typed
from omnigraph.errors import StorageError
from omnigraph.limits import (
    SORT_BATCH_BYTES,
    SORT_BATCH_ROWS_MAX,
    SORTED_IN_MEMORY_BYTES_MAX,
    SORTING_BYTES_MAX,
)
from omnigraph.schema.arrow import is_blob
from omnigraph.storage.streams import Relay
from omnigraph.storage.tables import ROW_ID, Table

_FIRST_BLOBS: int = 4
"""Rows with blobs that are read before anything is known of their size."""


def sorted_batches(
    table: Table, schema: pa.Schema, *, by: str, spill_directory: Path | None = None
) -> Iterator[pa.RecordBatch]:
    """Stream the rows in the order of the bytes of `by`, with exactly these columns.

    Args:
        schema: Columns of the table, in any order, as `schema.arrow` types them.
        spill_directory: Where rows wait that do not fit in memory; the system's own when None.

    Raises:
        StorageError: a file cannot be read, or there is no room to sort.
    """
    blobs = [each for each in schema if is_blob(each)]
    if any(pa.types.is_list(each.type) for each in blobs):
        # Lance cannot read some rows of such a list (tests/contract/lance/test_blob_lists.py).
        return _in_memory(table, schema, by, _rows_max(table))
    if blobs:
        return _with_blobs(table, schema, by, spill_directory)
    return _plain(table, schema, by, spill_directory)


def _plain(
    table: Table, schema: pa.Schema, by: str, spill_directory: Path | None
) -> Iterator[pa.RecordBatch]:
    rows_max = _rows_max(table)
    if table.count_bytes() <= SORTED_IN_MEMORY_BYTES_MAX:
        return _in_memory(table, schema, by, rows_max)
    return _spilling(table, schema, by, rows_max, spill_directory)


def _rows_max(table: Table) -> int:
    bytes_per_row = max(1, table.count_bytes() // max(1, table.count_rows()))
    return max(1, min(SORT_BATCH_ROWS_MAX, SORT_BATCH_BYTES // bytes_per_row))


def _in_memory(table: Table, schema: pa.Schema, by: str, rows_max: int) -> Iterator[pa.RecordBatch]:
    rows = table.read(schema.names).combine_chunks()
    order = pc.sort_indices(rows[by])
    for first in range(0, len(order), rows_max):
        part = rows.take(order.slice(first, rows_max)).combine_chunks()
        for batch in part.to_batches():
            yield typed(batch, schema)


def _spilling(
    table: Table, schema: pa.Schema, by: str, rows_max: int, spill_directory: Path | None
) -> Iterator[pa.RecordBatch]:
    # DuckDB takes names that differ only in case for one, so columns go by their places.
    scan = table.scan(schema.names)
    places = pa.schema([each.with_name(f"c{n}") for n, each in enumerate(scan.schema)])
    rows = pa.RecordBatchReader.from_batches(
        places, (pa.RecordBatch.from_arrays(each.columns, schema=places) for each in scan)
    )
    relay = Relay()
    with _connected(spill_directory) as connection, relay.reraise(), _translating():
        connection.register("unsorted", relay.carry(rows))
        text = f"SELECT * FROM unsorted ORDER BY c{schema.names.index(by)}"
        for batch in connection.sql(text).to_arrow_reader(rows_max):
            yield typed(batch, schema)


def _with_blobs(
    table: Table, schema: pa.Schema, by: str, spill_directory: Path | None
) -> Iterator[pa.RecordBatch]:
    """Sort row ids alone, then read a few rows at a time: bytes are never sorted, nor many held."""
    keys = pa.schema([schema.field(by), pa.field(ROW_ID, pa.uint64())])
    rows_max = _FIRST_BLOBS
    for sorted_keys in _plain(table, keys, by, spill_directory):
        row_ids = sorted_keys.column(ROW_ID)
        first = 0
        while first < len(row_ids):
            wanted = row_ids.slice(first, rows_max)
            first += len(wanted)
            filter_text = f"{ROW_ID} IN ({', '.join(map(str, wanted.to_pylist()))})"
            found = table.read([*schema.names, ROW_ID], filter_text=filter_text)
            part = found.take(pc.index_in(wanted, value_set=found[ROW_ID])).combine_chunks()
            for batch in part.drop_columns([ROW_ID]).to_batches():
                yield typed(batch, schema)
            bytes_per_row = max(1, found.nbytes // len(wanted))
            rows_max = max(1, min(SORT_BATCH_ROWS_MAX, SORT_BATCH_BYTES // bytes_per_row))


@contextmanager
def _connected(spill_directory: Path | None) -> Iterator[duckdb.DuckDBPyConnection]:
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
def _translating() -> Iterator[None]:
    try:
        yield
    except duckdb.Error as cause:
        message = f"sorting failed: {str(cause).partition(chr(10))[0][:500]}"
        raise StorageError(message, hint="free some space in the temporary directory") from cause
