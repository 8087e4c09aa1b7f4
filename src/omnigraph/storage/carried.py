"""Carried rows: rows that two versions share although no fragment does, by row ids and versions.

A compaction writes rows to new fragments and keeps their row ids and row versions. So fragments
that only one of two versions has may hold the same rows. A row that both versions have under one
row id, with a row version that is not above the newest version that they have in common, has not
been written since (docs/decisions/0013). Row ids and row versions are in a table's metadata.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Self

import numpy as np

from omnigraph.storage.places import fragment_ids_of, offsets_of, sort_distinct
from omnigraph.storage.row_runs import RowRuns, read_runs
from omnigraph.storage.tables import Table

CARRIED_RUNS_MAX: Final = 1 << 20
"""Runs of row ids of a table that are held while the rows that a compaction moved are found."""


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
    sides: tuple[list[RowRuns], list[RowRuns]] = ([], [])
    pending = [(0, _ROW_IDS_END)]
    while pending:
        first, end = pending.pop()
        old, new = (_read(side, common, first, end) for side in (before, after))
        if (middle := old.middle or new.middle) is not None:
            pending += [(first, middle), (middle, end)]
            continue
        sides[0].extend((old.written, _without(old.kept, new.kept)))
        sides[1].extend((new.written, _without(new.kept, old.kept)))
    return _group(before, sides[0]), _group(after, sides[1])


def find_carried(fragments: Fragments, row_ids: np.ndarray, common: int) -> np.ndarray:
    """Where fragments have rows of another version that were carried over to them.

    Reads deletion files, and no data file.

    Args:
        row_ids: Row ids that the other version has, in any order.
        common: The newest version that both have in common. Later rows of the same row ids may be
            others.

    Returns:
        For each row id, the address of its row; `NOWHERE` if it was not carried over.
    """
    addresses = np.full(len(row_ids), NOWHERE)
    for read, versions in read_runs(fragments.table, fragments.places):
        runs = read.take(versions <= common)
        if not len(runs):
            continue
        runs = runs.sort()
        at = np.maximum(np.searchsorted(runs.row_ids, row_ids, "right"), 1) - 1
        is_there = (row_ids >= runs.row_ids[at]) & (row_ids < runs.ends[at])
        found = runs.addresses[at] + (row_ids - runs.row_ids[at])
        addresses[is_there] = found[is_there]
    return addresses


@dataclass(frozen=True, slots=True)
class _SideRows:
    """The live rows of some fragments, by when they were written.

    Attributes:
        kept: Those with a row version that is not above the common one, sorted.
        written: The others.
        middle: A row id in the middle, if they are too many to hold. The runs are then not all.
    """

    kept: RowRuns
    written: RowRuns
    middle: int | None = None


def _read(side: Fragments, common: int, first: int, end: int) -> _SideRows:
    """The rows of fragments with row ids from `first` to below `end`."""
    kept: list[RowRuns] = []
    written: list[RowRuns] = []
    run_count = 0
    for runs, versions in read_runs(side.table, side.places):
        wanted = runs.between(first, end)
        is_wanted, is_kept = wanted.lengths > 0, versions <= common
        kept.append(wanted.take(is_wanted & is_kept).join())
        written.append(wanted.take(is_wanted & ~is_kept).join())
        run_count += len(kept[-1]) + len(written[-1])
        if run_count > CARRIED_RUNS_MAX:
            row_ids = np.concatenate([part.row_ids for part in (*kept, *written)])
            middle = int(np.partition(row_ids, len(row_ids) // 2)[len(row_ids) // 2])
            assert first < middle < end, "a version has each row id once"
            return _SideRows(RowRuns.joined(kept), RowRuns.joined(written), middle)
    return _SideRows(RowRuns.joined(kept).sort(), RowRuns.joined(written))


def _without(runs: RowRuns, others: RowRuns) -> RowRuns:
    """The rows with row ids that others do not have; both are sorted."""
    cuts = sort_distinct(np.concatenate([runs.row_ids, runs.ends, others.row_ids, others.ends]))
    starts, lengths = cuts[:-1], np.diff(cuts)
    is_wanted = _covers(runs, starts) & ~_covers(others, starts)
    starts, lengths = starts[is_wanted], lengths[is_wanted]
    owner = np.searchsorted(runs.row_ids, starts, "right") - 1
    addresses = runs.addresses[owner] + (starts - runs.row_ids[owner])
    return RowRuns(starts, addresses, lengths)


def _covers(runs: RowRuns, row_ids: np.ndarray) -> np.ndarray:
    """Whether each row id is in one of the runs, which are sorted."""
    started = np.searchsorted(runs.row_ids, row_ids, "right")
    is_in: np.ndarray = started > np.searchsorted(runs.ends, row_ids, "right")
    return is_in


def _group(side: Fragments, parts: Sequence[RowRuns]) -> Remainder:
    """Runs of rows by the position of their fragment."""
    fragments = side.table.fragments()
    places = {fragments[place].id: place for place in side.places}
    remainder: dict[int, OffsetSet | None] = {}
    for fragment_id, starts, lengths in _split(RowRuns.joined(parts)):
        fragment = fragments[places[fragment_id]]
        is_whole = int(lengths.sum()) == fragment.num_rows
        remainder[places[fragment_id]] = (
            None
            if is_whole
            else OffsetSet.of_runs(starts, lengths, physical_rows=fragment.physical_rows)
        )
    return remainder


def _split(runs: RowRuns) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
    """By fragment, the first offsets of runs, and their lengths."""
    if not len(runs):
        return
    order = np.argsort(runs.addresses)
    addresses, lengths = runs.addresses[order], runs.lengths[order]
    # Only addresses matter from here on.
    runs = RowRuns(addresses, addresses, lengths).join()
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
