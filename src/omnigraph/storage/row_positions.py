"""Positions of rows by their row ids: where in a scan of a version the rows of an index are."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from omnigraph.storage.columns import layout_of
from omnigraph.storage.row_ids import RowIds
from omnigraph.storage.tables import Table


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
