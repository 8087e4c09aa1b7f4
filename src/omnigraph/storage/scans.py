"""Scans in other processes: a table opened by its address, and parts of it streamed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
from lance import LanceScanner

from omnigraph.storage.meter import Meter
from omnigraph.storage.objects import Objects
from omnigraph.storage.tables import Table, TableAddress, Tables
from omnigraph.storage.translate import translating


def open_address(address: TableAddress) -> Table:
    """The table that an address names, opened anew: nothing is shared with other opens.

    Raises:
        NotFoundError: there is no such table.
        StorageError: the version or the ref is gone, or cannot be read.
    """
    meter = Meter()
    tables = Tables(address.root, Objects(address.root, meter), meter)
    return tables.open(address.location, ref=address.ref, version=address.version)


def scan_schema(table: Table, columns: Sequence[str]) -> pa.Schema:
    """The schema of what `scan_batches` streams. Reads nothing."""
    with translating("reading", str(table.address)):
        schema: pa.Schema = _scanner(table, columns, fragments=()).projected_schema
    return schema


def scan_batches(
    table: Table,
    columns: Sequence[str],
    *,
    fragments: Sequence[int],
    filter_text: str | None = None,
    batch_bytes: int,
) -> Iterator[pa.RecordBatch]:
    """Stream the rows of some fragments, blobs as their bytes, about so many bytes at a time.

    Args:
        fragments: Positions in `table.fragments()`.

    Raises:
        StorageError: a file is gone or cannot be read. What was streamed before is whole.
    """
    with translating("reading", str(table.address)):
        scanner = _scanner(
            table, columns, fragments=fragments, filter_text=filter_text, batch_bytes=batch_bytes
        )
        yield from scanner.to_batches()


def _scanner(
    table: Table,
    columns: Sequence[str],
    *,
    fragments: Sequence[int],
    filter_text: str | None = None,
    batch_bytes: int | None = None,
) -> LanceScanner:
    every = table.handle.get_fragments()
    return table.handle.scanner(
        columns=list(columns),
        filter=filter_text,
        fragments=[every[position] for position in fragments],
        batch_size_bytes=batch_bytes,
        blob_handling="all_binary",
    )
