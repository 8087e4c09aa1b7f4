"""Row runs: row ids, addresses and row versions of fragments, as runs of rows.

Lance has row ids and row versions in the metadata of fragments. A scan of them reads this metadata
and deletion files, but no data file (docs/substrate.md, Row versions).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from lance.fragment import RowIdSequence

from omnigraph.storage.tables import ROW_ADDRESS, ROW_ID, ROW_VERSION, Fragment, Table

_INLINE: Final = '"Inline"'


@dataclass(frozen=True, slots=True)
class RowRuns:
    """Runs of live rows: consecutive row ids at consecutive addresses."""

    row_ids: np.ndarray
    addresses: np.ndarray
    lengths: np.ndarray

    @staticmethod
    def joined(parts: Iterable[RowRuns]) -> RowRuns:
        """The runs of several parts, in their order; those that continue each other as one."""
        nothing = np.empty(0, np.uint64)
        every = [RowRuns(nothing, nothing, nothing), *parts]
        arrays = [[part.row_ids, part.addresses, part.lengths] for part in every]
        return RowRuns(*map(np.concatenate, zip(*arrays, strict=True))).join()

    def __len__(self) -> int:
        return len(self.row_ids)

    @property
    def ends(self) -> np.ndarray:
        """For each run, the row id after its last one."""
        ends: np.ndarray = self.row_ids + self.lengths
        return ends

    def take(self, places: np.ndarray) -> RowRuns:
        """Some of the runs, by their places or by a mask."""
        return RowRuns(self.row_ids[places], self.addresses[places], self.lengths[places])

    def between(self, first: int, end: int) -> RowRuns:
        """The rows with row ids from `first` to below `end`; a run may become empty."""
        row_ids = np.maximum(self.row_ids, np.uint64(first))
        ends = np.maximum(np.minimum(self.ends, np.uint64(end)), row_ids)
        return RowRuns(row_ids, self.addresses + (row_ids - self.row_ids), ends - row_ids)

    def join(self) -> RowRuns:
        """Runs that continue the one before as one with it."""
        if not len(self):
            return self
        is_next = np.append(np.False_, self.row_ids[1:] == self.ends[:-1])
        is_next[1:] &= self.addresses[1:] == self.addresses[:-1] + self.lengths[:-1]
        starts = np.flatnonzero(~is_next)
        lengths = np.add.reduceat(self.lengths, starts)
        return RowRuns(self.row_ids[starts], self.addresses[starts], lengths)

    def sort(self) -> RowRuns:
        """The runs in the order of their row ids, of which a version has each once."""
        runs = self.take(np.argsort(self.row_ids)).join()
        assert np.all(runs.ends[:-1] <= runs.row_ids[1:]), "a version has each row id once"
        return runs


def read_runs(table: Table, places: Sequence[int]) -> Iterator[tuple[RowRuns, np.ndarray]]:
    """The live rows of some fragments, and the row version of each run. Reads no data file.

    Args:
        places: Positions in `table.fragments()`.
    """
    columns = [ROW_ID, ROW_ADDRESS, ROW_VERSION]
    for batch in table.scan(columns, fragments=places):
        row_ids, addresses, versions = (batch.column(name).to_numpy() for name in columns)
        is_next = (np.diff(row_ids) == 1) & (np.diff(addresses) == 1) & (np.diff(versions) == 0)
        starts = np.flatnonzero(np.append(True, ~is_next)[: len(row_ids)])
        lengths = np.diff(np.append(starts, len(row_ids))).astype(np.uint64)
        yield RowRuns(row_ids[starts], addresses[starts], lengths), versions[starts]


def parse_row_ids(fragment: Fragment) -> tuple[np.ndarray, np.ndarray] | None:
    """The first row ids of runs in a fragment, and how many rows each has, deleted ones included.

    Reads nothing. None if they are in a file of their own.
    """
    meta = fragment.row_id_meta
    if meta is None or _INLINE not in meta.json():
        return None
    row_ids = RowIdSequence.from_inline_metadata(meta).to_pyarrow().to_numpy()
    starts = np.flatnonzero(np.append(True, np.diff(row_ids) != 1)[: len(row_ids)])
    lengths = np.diff(np.append(starts, len(row_ids)))
    return row_ids[starts], lengths.astype(np.uint64)
