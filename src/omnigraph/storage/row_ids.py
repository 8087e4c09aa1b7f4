"""The row ids of a version in the order of a scan, as runs. Reads no data file.

Row ids are in the metadata of fragments and never change with them; deletion files say which rows
are left. So of a later version only the fragments that it added, or deleted rows of, are looked at.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from omnigraph.storage.columns import deleted_offsets, layout_of
from omnigraph.storage.pieces import FragmentFiles, RowsKey
from omnigraph.storage.places import sort_distinct
from omnigraph.storage.row_runs import parse_row_ids
from omnigraph.storage.tables import ROW_ID, Table

_Runs: TypeAlias = tuple[np.ndarray, np.ndarray]
"""The first row ids of runs, and how many follow each other."""

_NO_RUNS: _Runs = (np.empty(0, np.uint64), np.empty(0, np.uint64))


@dataclass(frozen=True, slots=True, eq=False)
class RowIds:
    """The row ids of all live rows of a version, in the order of a scan.

    Attributes:
        starts: The first row ids of runs, and `lengths` how many rows each has.
        parts: The runs of each fragment, for the next version.
    """

    starts: np.ndarray
    lengths: np.ndarray
    parts: dict[RowsKey, _Runs] = field(repr=False)

    @property
    def row_count(self) -> int:
        """How many rows there are."""
        return int(self.lengths.sum())

    @property
    def end(self) -> int:
        """A number that is above every row id, and not above it by more than needed."""
        return int((self.starts + self.lengths).max()) if len(self.starts) else 0

    def without(self, others: RowIds) -> np.ndarray:
        """The row ids that others do not have, ascending."""
        # Fragments that both have in common are left out, so the cost follows the difference.
        own = [self.parts[key] for key in self.parts.keys() - others.parts.keys()]
        theirs = [others.parts[key] for key in others.parts.keys() - self.parts.keys()]
        (starts, ends), (other_starts, other_ends) = _to_ranges(own), _to_ranges(theirs)
        cuts = sort_distinct(np.concatenate([starts, ends, other_starts, other_ends]))
        begins = cuts[:-1]
        is_left = _covers(starts, ends, begins) & ~_covers(other_starts, other_ends, begins)
        return spread_runs(begins[is_left], np.diff(cuts)[is_left]).astype(np.uint64)

    def to_array(self) -> np.ndarray:
        """All row ids, one by one."""
        return spread_runs(self.starts, self.lengths)


def read_row_ids(table: Table, before: RowIds | None = None) -> RowIds:
    """The row ids of a version.

    Args:
        before: Those of another version of the table, on any ref: what they share is not read.
    """
    fragments = layout_of(table).fragments
    known: dict[RowsKey, _Runs] = {} if before is None else before.parts
    missing = [fragment for fragment in fragments if fragment.key not in known]
    deleted = deleted_offsets(table, missing)
    added = {
        fragment.key: _read_fragment(table, fragment, deleted.get(fragment.fragment_id))
        for fragment in missing
    }
    parts = {
        fragment.key: known[fragment.key] if fragment.key in known else added[fragment.key]
        for fragment in fragments
    }
    every = [_NO_RUNS, *parts.values()]
    starts = np.concatenate([part[0] for part in every])
    lengths = np.concatenate([part[1] for part in every])
    return RowIds(*_join(starts, lengths), parts)


def _read_fragment(table: Table, fragment: FragmentFiles, deleted: np.ndarray | None) -> _Runs:
    opened = table.handle.get_fragment(fragment.fragment_id)
    assert opened is not None, "the layout is of this same version"
    runs = parse_row_ids(opened.metadata)
    if runs is None:
        # They are in a file of their own.
        rows = table.read([ROW_ID], fragment_ids=[fragment.fragment_id])
        return _to_runs(rows[ROW_ID].to_numpy())
    if deleted is None or not len(deleted):
        return runs
    return _without(*runs, deleted)


def _without(starts: np.ndarray, lengths: np.ndarray, deleted: np.ndarray) -> _Runs:
    """The runs without the rows at some offsets."""
    ends = np.cumsum(lengths)
    firsts = ends - lengths
    # By offset: a deleted row ends what precedes it, and something starts after it. Both lists are
    # of the same length and in the same order; some of the parts are empty.
    begins = np.sort(np.concatenate([firsts, deleted.astype(np.uint64) + np.uint64(1)]))
    stops = np.sort(np.concatenate([ends, deleted.astype(np.uint64)]))
    is_left = begins < stops
    begins, stops = begins[is_left], stops[is_left]
    owner = np.searchsorted(ends, begins, "right")
    return starts[owner] + (begins - firsts[owner]), stops - begins


def _to_ranges(parts: Sequence[_Runs]) -> _Runs:
    """The first row ids of runs and the row ids after their last ones, both ascending."""
    starts = np.sort(np.concatenate([_NO_RUNS[0], *(part[0] for part in parts)]))
    ends = np.sort(np.concatenate([_NO_RUNS[0], *(part[0] + part[1] for part in parts)]))
    return starts, ends


def _covers(starts: np.ndarray, ends: np.ndarray, row_ids: np.ndarray) -> np.ndarray:
    """Whether each row id is in one of the ranges, of which no two have one in common."""
    started = np.searchsorted(starts, row_ids, "right")
    is_in: np.ndarray = started > np.searchsorted(ends, row_ids, "right")
    return is_in


def spread_runs(starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """The row ids of runs, one by one."""
    counts = lengths.astype(np.int64)
    firsts = np.cumsum(counts) - counts
    row_ids: np.ndarray = np.repeat(starts.astype(np.int64) - firsts, counts)
    row_ids += np.arange(len(row_ids))
    return row_ids


def _to_runs(row_ids: np.ndarray) -> _Runs:
    if not len(row_ids):
        return _NO_RUNS
    at = np.flatnonzero(np.append(True, np.diff(row_ids) != 1))
    return row_ids[at], np.diff(np.append(at, len(row_ids))).astype(np.uint64)


def _join(starts: np.ndarray, lengths: np.ndarray) -> _Runs:
    """The same row ids in as few runs as possible."""
    if not len(starts):
        return starts, lengths
    is_first = np.append(True, starts[1:] != starts[:-1] + lengths[:-1])
    at = np.flatnonzero(is_first)
    return starts[at], np.add.reduceat(lengths, at)
