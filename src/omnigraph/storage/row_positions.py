"""Positions of rows by their row ids: where in a scan of a version the rows of an index are."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from omnigraph.storage.columns import layout_of
from omnigraph.storage.row_ids import RowIds, read_row_ids, spread_runs
from omnigraph.storage.tables import Table, TableAddress

_VERSIONS_MAX: Final = 16
"""Versions of tables whose positions stay known."""


@dataclass(frozen=True, slots=True, eq=False)
class RowPositions:
    """The live rows of a version as runs, in the order of their row ids.

    Attributes:
        starts: The first row id of each run, and `ends`, one more than its last.
        positions: The position of its first row in a scan.
        fragments: The fragment that it is in.
    """

    starts: np.ndarray
    ends: np.ndarray
    positions: np.ndarray
    fragments: np.ndarray

    def find(self, row_ids: np.ndarray, fragment_ids: Iterable[int]) -> np.ndarray:
        """The positions of those rows that are in one of these fragments; -1 for the others."""
        found = np.full(len(row_ids), -1, np.int64)
        if not len(self.starts):
            return found
        run = np.searchsorted(self.starts, row_ids, "right") - 1
        is_covered = np.isin(self.fragments, np.fromiter(fragment_ids, np.int64))
        is_live = (run >= 0) & (row_ids < self.ends[run]) & is_covered[run]
        live = run[is_live]
        found[is_live] = self.positions[live] + (row_ids[is_live] - self.starts[live]).astype(
            np.int64
        )
        return found

    def of_fragments(self, fragment_ids: Iterable[int]) -> np.ndarray:
        """The positions of all rows of some fragments, ascending."""
        is_wanted = np.isin(self.fragments, np.fromiter(fragment_ids, np.int64))
        starts, lengths = self.positions[is_wanted], (self.ends - self.starts)[is_wanted]
        order = np.argsort(starts)
        return spread_runs(starts[order], lengths[order])


class PositionShelf:
    """Positions of rows of versions that were looked at; threads may share it."""

    def __init__(self) -> None:
        self._positions: OrderedDict[TableAddress, RowPositions] = OrderedDict()
        self._row_ids: OrderedDict[str, RowIds] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, table: Table) -> RowPositions:
        """The positions of the rows of a version. Reads what no version before it had.

        Raises:
            StorageError: a deletion file could not be read.
        """
        key, location = table.address, table.address.location
        with self._lock:
            if key in self._positions:
                self._positions.move_to_end(key)
                return self._positions[key]
            before = self._row_ids.get(location)
        row_ids = read_row_ids(table, before)
        positions = position_rows(table, row_ids)
        with self._lock:
            self._row_ids[location], self._positions[key] = row_ids, positions
            for kept in (self._row_ids, self._positions):
                while len(kept) > _VERSIONS_MAX:
                    kept.popitem(last=False)
        return positions


def position_rows(table: Table, row_ids: RowIds) -> RowPositions:
    """The positions of the rows of a version, whose row ids these are. Reads nothing."""
    parts = [
        (fragment.fragment_id, *row_ids.parts[fragment.key])
        for fragment in layout_of(table).fragments
    ]
    none = np.zeros(0, np.uint64)
    starts = np.concatenate([none, *(part[1] for part in parts)])
    lengths = np.concatenate([none, *(part[2] for part in parts)])
    fragments = np.repeat([part[0] for part in parts], [len(part[1]) for part in parts])
    positions = (np.cumsum(lengths) - lengths).astype(np.int64)
    order = np.argsort(starts, kind="stable")
    return RowPositions(
        starts[order],
        (starts + lengths)[order],
        positions[order],
        np.asarray(fragments, np.int64)[order],
    )


def take_rows(table: Table, positions: np.ndarray, names: Sequence[str]) -> pa.Table:
    """Rows by their positions in a scan, in the order of these.

    Raises:
        StorageError: the table could not be read.
    """
    if np.all(positions[:-1] <= positions[1:]):
        return table.take(positions.tolist(), names)
    order = np.argsort(positions)
    rows = table.take(positions[order].tolist(), names)
    return rows.take(pa.array(np.argsort(order)))
