"""Scans in other processes: open a table by its address, and stream some of its fragments."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
from lance import LanceScanner

from omnigraph.storage.meter import Meter
from omnigraph.storage.objects import Objects
from omnigraph.storage.tables import Table, TableAddress, Tables
from omnigraph.storage.translate import translate_errors


def open_address(address: TableAddress) -> Table:
    """Open the table at an address; nothing is shared with other open tables.

    Raises:
        NotFoundError: there is no such table.
        StorageError: the version or the ref is gone, or cannot be read.
    """
    meter = Meter()
    tables = Tables(address.root, Objects(address.root, meter), meter)
    return tables.open(address.location, ref=address.ref, version=address.version)


def scan_schema(table: Table, columns: Sequence[str]) -> pa.Schema:
    """The schema of the batches of `scan_batches`. Reads nothing."""
    with translate_errors("reading", str(table.address)):
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
    """Stream the rows of some fragments, blobs as their bytes, in batches of about `batch_bytes`.

    Args:
        fragments: Positions in `table.fragments()`.

    Raises:
        StorageError: a file is gone or cannot be read. Batches streamed before are complete.
    """
    with translate_errors("reading", str(table.address)):
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
    available = table.handle.get_fragments()
    return table.handle.scanner(
        columns=list(columns),
        filter=filter_text,
        fragments=[available[position] for position in fragments],
        batch_size_bytes=batch_bytes,
        blob_handling="all_binary",
    )
