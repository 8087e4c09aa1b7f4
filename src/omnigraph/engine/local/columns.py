"""Columns in memory: small tables are read once and kept, for joins that know their sizes.

DuckDB takes every Lance dataset for one row when it orders joins, and an Arrow table for what it
is. So the tables of a plan that joins are read into Arrow where they are small. A version of main
never changes: its columns stay good for the next query, up to a bound on the bytes kept.
"""

from __future__ import annotations

import threading
from collections import OrderedDict

import pyarrow as pa

from omnigraph.limits import KEPT_COLUMNS_BYTES_MAX, KEPT_TABLE_BYTES_MAX
from omnigraph.storage.tables import Table, TableAddress

_Key = tuple[TableAddress, str]


class Columns:
    """The columns of small tables, least recently used first. Threads may share it."""

    def __init__(self) -> None:
        self._kept: OrderedDict[_Key, pa.ChunkedArray] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    def read(self, table: Table, columns: tuple[str, ...]) -> pa.Table | None:
        """The columns in memory, or None if the table is too large for that."""
        if table.count_bytes() > KEPT_TABLE_BYTES_MAX:
            return None
        known = self._known(table.address, columns)
        missing = [name for name in columns if name not in known]
        if missing:
            # A scan keeps the order of rows, so columns of one version fit each other.
            found = table.read(missing)
            read = dict(zip(missing, found.columns, strict=True))
            if table.address.ref is None:
                self._keep(table.address, read)
            known |= read
        return pa.table({name: known[name] for name in columns})

    def _known(self, address: TableAddress, columns: tuple[str, ...]) -> dict[str, pa.ChunkedArray]:
        with self._lock:
            found = {
                name: self._kept[address, name] for name in columns if (address, name) in self._kept
            }
            for name in found:
                self._kept.move_to_end((address, name))
            return found

    def _keep(self, address: TableAddress, read: dict[str, pa.ChunkedArray]) -> None:
        with self._lock:
            for name, column in read.items():
                if (address, name) not in self._kept:
                    self._bytes += column.nbytes
                self._kept[address, name] = column
            while self._bytes > KEPT_COLUMNS_BYTES_MAX:
                _, dropped = self._kept.popitem(last=False)
                self._bytes -= dropped.nbytes
