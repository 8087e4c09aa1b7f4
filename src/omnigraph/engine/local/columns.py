"""A cache of the columns of small tables in memory, for joins that know their sizes.

When it orders joins, DuckDB assumes one row for every Lance dataset, and knows the size of an Arrow
table. So the tables of a plan with joins are read into Arrow where they are small. A version of
main never changes: its columns are valid for the next query, up to a bound on the bytes kept.
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
        self._columns: OrderedDict[_Key, pa.ChunkedArray] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    def read(self, table: Table, columns: tuple[str, ...]) -> pa.Table | None:
        """The columns in memory, or None if the table is too large for that."""
        if table.count_bytes() > KEPT_TABLE_BYTES_MAX:
            return None
        cached = self._cached_columns(table.address, columns)
        missing = [name for name in columns if name not in cached]
        if missing:
            # A scan keeps the order of rows, so columns of one version can be read separately.
            rows = table.read(missing)
            new = dict(zip(missing, rows.columns, strict=True))
            if table.address.ref is None:
                self._keep(table.address, new)
            cached |= new
        return pa.table({name: cached[name] for name in columns})

    def _cached_columns(
        self, address: TableAddress, columns: tuple[str, ...]
    ) -> dict[str, pa.ChunkedArray]:
        with self._lock:
            cached = {
                name: self._columns[address, name]
                for name in columns
                if (address, name) in self._columns
            }
            for name in cached:
                self._columns.move_to_end((address, name))
            return cached

    def _keep(self, address: TableAddress, new: dict[str, pa.ChunkedArray]) -> None:
        with self._lock:
            for name, column in new.items():
                if (address, name) not in self._columns:
                    self._bytes += column.nbytes
                self._columns[address, name] = column
            while self._bytes > KEPT_COLUMNS_BYTES_MAX:
                _, dropped = self._columns.popitem(last=False)
                self._bytes -= dropped.nbytes
