"""Scans in other processes: open a table by its address, and stream some of its fragments."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

import pyarrow as pa
from lance import LanceScanner

from omnigraph.storage.index_damage import avoid_damaged_indexes
from omnigraph.storage.meter import Meter
from omnigraph.storage.objects import Objects
from omnigraph.storage.tables import Table, TableAddress, Tables
from omnigraph.storage.translate import translate_errors


def open_address(address: TableAddress) -> Table:
    """Open the table at an address; nothing is shared with other open tables."""
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
    """

    def start(readable: Table) -> tuple[list[pa.RecordBatch], Iterator[pa.RecordBatch]]:
        with translate_errors("reading", str(table.address)):
            batches = _scanner(
                readable,
                columns,
                fragments=fragments,
                filter_text=filter_text,
                batch_bytes=batch_bytes,
            ).to_batches()
            return list(islice(batches, 1)), batches

    # Indexes are read before the first rows are.
    first, rest = start(table) if filter_text is None else avoid_damaged_indexes(table, start)
    yield from first
    with translate_errors("reading", str(table.address)):
        yield from rest


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
        use_scalar_index=not table.ignores_indexes,
        blob_handling="all_binary",
    )
