"""Carried rows: rows that two versions share although no fragment does, by row ids and versions.

A compaction writes rows to new fragments and keeps their row ids and row versions. So fragments
that only one of two versions has may hold the same rows. A row that both versions have under one
row id, with a row version that is not above the newest version that they have in common, has not
been written since (docs/decisions/0013). Row ids and row versions are in a table's metadata.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Self

import numpy as np

from omnigraph.limits import CARRIED_RUNS_MAX
from omnigraph.storage.places import fragment_ids_of, offsets_of
from omnigraph.storage.tables import ROW_ADDRESS, ROW_ID, ROW_VERSION, Table

_ROW_IDS_END: Final = (1 << 64) - 1
"""Lance counts row ids up from 0, and never comes here."""

_BITS_PER_RUN: Final = 64

NOWHERE: Final = np.uint64(_ROW_IDS_END)
"""No row has this address."""


@dataclass(frozen=True, slots=True, eq=False)
class OffsetSet:
    """Offsets of rows in a fragment, at most a bit for each row; can be sent to any process.

    Attributes:
        starts: The first offsets of runs, and `lengths` how many follow each other; None if `bits`
            are smaller.
        bits: For each offset, whether it is one of them.
    """

    row_count: int
    starts: np.ndarray | None
    lengths: np.ndarray | None
    bits: np.ndarray | None

    @classmethod
    def of_runs(cls, starts: np.ndarray, lengths: np.ndarray, *, physical_rows: int) -> Self:
        """The offsets of runs in a fragment with so many rows, deleted ones included.

        >>> OffsetSet.of_runs(np.array([1, 5]), np.array([2, 1]), physical_rows=8).to_offsets()
        array([1, 2, 5], dtype=uint64)
        """
        row_count = int(lengths.sum())
        if len(starts) * _BITS_PER_RUN <= physical_rows:
            return cls(row_count, starts.astype(np.uint32), lengths.astype(np.uint32), None)
        mask = np.zeros(physical_rows, np.bool_)
        mask[_spread(starts, lengths)] = True
        return cls(row_count, None, None, np.packbits(mask))

    def to_offsets(self) -> np.ndarray:
        """All of the offsets, in their order."""
        if self.starts is not None and self.lengths is not None:
            return _spread(self.starts, self.lengths)
        assert self.bits is not None, "one of them is there"
        return np.flatnonzero(np.unpackbits(self.bits)).astype(np.uint64)


@dataclass(frozen=True, slots=True)
class Fragments:
    """Fragments of one version, by their positions in `Table.fragments()`."""

    table: Table
    places: Sequence[int]


Remainder = Mapping[int, OffsetSet | None]
"""By the position of a fragment, its rows that were not carried over; None for all of its rows."""


def remaining_rows(before: Fragments, after: Fragments, common: int) -> tuple[Remainder, Remainder]:
    """The rows of fragments of two versions that are not surely the same in both.

    Reads deletion files, and no data file.

    Args:
        before: Fragments that the other version does not have, and so with `after`.
        common: The newest version that both have in common.
    """
    sides: tuple[list[_Runs], list[_Runs]] = ([], [])
    pending = [(0, _ROW_IDS_END)]
    while pending:
        first, end = pending.pop()
        scanned = [_scan(side, common, first, end) for side in (before, after)]
        excess = [rows.middle for rows in scanned if rows.middle is not None]
        if excess:
            pending += [(first, excess[0]), (excess[0], end)]
            continue
        old, new = scanned
        sides[0].extend((old.written, old.kept.without(new.kept)))
        sides[1].extend((new.written, new.kept.without(old.kept)))
    return _group(before, sides[0]), _group(after, sides[1])


def find_carried(fragments: Fragments, row_ids: np.ndarray, common: int) -> np.ndarray:
    """Where fragments have rows of another version that were carried over to them.

    Reads deletion files, and no data file.

    Args:
        row_ids: Row ids that the other version has; in any order, none twice.
        common: The newest version that both have in common. Later rows of the same row ids may be
            others.

    Returns:
        For each row id, the address of its row; `NOWHERE` if it was not carried over.
    """
    addresses = np.full(len(row_ids), NOWHERE)
    order = np.argsort(row_ids)
    wanted = row_ids[order]
    columns = [ROW_ID, ROW_ADDRESS, ROW_VERSION]
    for batch in fragments.table.scan(columns, fragments=fragments.places):
        own, places, versions = (batch.column(name).to_numpy() for name in columns)
        at = np.searchsorted(wanted, own)
        at[at == len(wanted)] = 0
        is_wanted = (versions <= common) & (wanted[at] == own)
        addresses[order[at[is_wanted]]] = places[is_wanted]
    return addresses


@dataclass(frozen=True, slots=True)
class _Runs:
    """Runs of rows: consecutive row ids at consecutive addresses."""

    row_ids: np.ndarray
    addresses: np.ndarray
    lengths: np.ndarray

    @staticmethod
    def of_rows(row_ids: np.ndarray, addresses: np.ndarray) -> _Runs:
        return _Runs(row_ids, addresses, np.ones(len(row_ids), np.uint64)).joined()

    @staticmethod
    def of_parts(parts: Iterable[_Runs]) -> _Runs:
        every = [_Runs.of_rows(*np.empty((2, 0), np.uint64)), *parts]
        arrays = [[part.row_ids, part.addresses, part.lengths] for part in every]
        return _Runs(*map(np.concatenate, zip(*arrays, strict=True)))

    def __len__(self) -> int:
        return len(self.row_ids)

    def sorted(self) -> _Runs:
        """The runs in the order of their row ids, of which none is twice."""
        order = np.argsort(self.row_ids)
        runs = _Runs(self.row_ids[order], self.addresses[order], self.lengths[order]).joined()
        ends = runs.row_ids + runs.lengths
        assert np.all(ends[:-1] <= runs.row_ids[1:]), "a version has each row id once"
        return runs

    def joined(self) -> _Runs:
        """Runs that continue each other as one."""
        if not len(self):
            return self
        continues = (self.row_ids[1:] == self.row_ids[:-1] + self.lengths[:-1]) & (
            self.addresses[1:] == self.addresses[:-1] + self.lengths[:-1]
        )
        starts = np.flatnonzero(np.append(True, ~continues))
        lengths = np.add.reduceat(self.lengths, starts)
        return _Runs(self.row_ids[starts], self.addresses[starts], lengths)

    def without(self, others: _Runs) -> _Runs:
        """The runs of row ids that others do not have; both are sorted."""
        ends, other_ends = self.row_ids + self.lengths, others.row_ids + others.lengths
        cuts = np.unique(np.concatenate([self.row_ids, ends, others.row_ids, other_ends]))
        starts, lengths = cuts[:-1], np.diff(cuts)
        is_wanted = _covers(self.row_ids, ends, starts) & ~_covers(
            others.row_ids, other_ends, starts
        )
        starts, lengths = starts[is_wanted], lengths[is_wanted]
        owner = np.searchsorted(self.row_ids, starts, "right") - 1
        addresses = self.addresses[owner] + (starts - self.row_ids[owner])
        return _Runs(starts, addresses, lengths)


@dataclass(frozen=True, slots=True)
class _ScannedRows:
    """The live rows of some fragments, by when they were written.

    Attributes:
        kept: Those with a row version that is not above the common one, sorted.
        written: The others.
        middle: A row id in the middle, if they are too many to hold. The runs are then not all.
    """

    kept: _Runs
    written: _Runs
    middle: int | None = None


def _scan(side: Fragments, common: int, first: int, end: int) -> _ScannedRows:
    """The rows of fragments with row ids from `first` to below `end`."""
    kept: list[_Runs] = []
    written: list[_Runs] = []
    run_count = 0
    columns = [ROW_ID, ROW_ADDRESS, ROW_VERSION]
    for batch in side.table.scan(columns, fragments=side.places):
        row_ids, addresses, versions = (batch.column(name).to_numpy() for name in columns)
        is_wanted = (row_ids >= first) & (row_ids < end)
        is_kept = versions <= common
        for runs, chosen in ((kept, is_wanted & is_kept), (written, is_wanted & ~is_kept)):
            runs.append(_Runs.of_rows(row_ids[chosen], addresses[chosen]))
        run_count += len(kept[-1]) + len(written[-1])
        if run_count > CARRIED_RUNS_MAX:
            row_ids = np.concatenate([runs.row_ids for runs in (*kept, *written)])
            middle = int(np.partition(row_ids, len(row_ids) // 2)[len(row_ids) // 2])
            assert first < middle < end, "a version has each row id once"
            return _ScannedRows(_Runs.of_parts(kept), _Runs.of_parts(written), middle)
    return _ScannedRows(_Runs.of_parts(kept).sorted(), _Runs.of_parts(written))


def _covers(starts: np.ndarray, ends: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Whether each point is in one of the intervals, which are sorted and do not overlap."""
    is_in: np.ndarray = np.searchsorted(starts, points, "right") > np.searchsorted(
        ends, points, "right"
    )
    return is_in


def _group(side: Fragments, parts: Sequence[_Runs]) -> Remainder:
    """Runs of rows by the position of their fragment."""
    fragments = side.table.fragments()
    places = {fragments[place].id: place for place in side.places}
    remainder: dict[int, OffsetSet | None] = {}
    for fragment_id, starts, lengths in _split(_Runs.of_parts(parts)):
        fragment = fragments[places[fragment_id]]
        is_whole = int(lengths.sum()) == fragment.num_rows
        remainder[places[fragment_id]] = (
            None
            if is_whole
            else OffsetSet.of_runs(starts, lengths, physical_rows=fragment.physical_rows)
        )
    return remainder


def _split(runs: _Runs) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
    """By fragment, the first offsets of runs, and their lengths."""
    if not len(runs):
        return
    order = np.argsort(runs.addresses)
    addresses, lengths = runs.addresses[order], runs.lengths[order]
    # Only addresses matter from here on.
    runs = _Runs(addresses, addresses, lengths).joined()
    fragment_ids, firsts = np.unique(fragment_ids_of(runs.addresses), return_index=True)
    ends = np.append(firsts[1:], len(runs))
    for fragment_id, first, end in zip(fragment_ids.tolist(), firsts, ends, strict=True):
        yield fragment_id, offsets_of(runs.addresses[first:end]), runs.lengths[first:end]


def _spread(starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """The numbers of runs, one by one."""
    starts, lengths = starts.astype(np.uint64), lengths.astype(np.uint64)
    firsts = np.cumsum(lengths) - lengths
    total = int(lengths.sum())
    # Differences below zero wrap around, and back again.
    numbers: np.ndarray = np.repeat(starts - firsts, lengths.astype(np.int64))
    return numbers + np.arange(total, dtype=np.uint64)
