"""Row runs: row ids, addresses and row versions of fragments, as runs of rows.

Lance stores ids that follow each other as a range, and equal row versions as a run, in the metadata
of a fragment. So a fragment without deletions is described by a few numbers, however many rows it
has. Row by row, Lance reads the same metadata, and deletion files, but no data file
(docs/substrate.md, Row versions).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from lance.fragment import RowIdSequence

from omnigraph.limits import DESCRIBED_BYTES_MAX
from omnigraph.storage.places import sort_distinct, to_addresses
from omnigraph.storage.protobuf import parse_message
from omnigraph.storage.tables import ROW_ADDRESS, ROW_ID, ROW_VERSION, Fragment, Table

# The numbers that Lance's protobuf messages give to their parts.
_RANGE: Final = 1
_START: Final = 1
_END: Final = 2
_SPAN: Final = 1
_VERSION: Final = 2

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

    Raises:
        StorageError: a deletion file could not be read.
    """
    fragments = table.fragments()
    others = []
    for place in places:
        described = describe_rows(fragments[place])
        if described is None:
            others.append(place)
        else:
            yield described
    if not others:
        return
    columns = [ROW_ID, ROW_ADDRESS, ROW_VERSION]
    for batch in table.scan(columns, fragments=others):
        row_ids, addresses, versions = (batch.column(name).to_numpy() for name in columns)
        yield RowRuns(row_ids, addresses, np.ones(len(row_ids), np.uint64)), versions


def describe_rows(fragment: Fragment) -> tuple[RowRuns, np.ndarray] | None:
    """The rows of a fragment as its metadata describes them. Reads nothing.

    None if rows were deleted, or if the metadata is in a file of its own.
    """
    if fragment.deletion_file is not None:
        return None
    ids = parse_row_ids(fragment)
    versions = _parse_version_runs(fragment.last_updated_at_version_meta)
    if ids is None or versions is None:
        return None
    (row_ids, id_lengths), (numbers, version_lengths) = ids, versions
    id_ends, version_ends = np.cumsum(id_lengths), np.cumsum(version_lengths)
    if not fragment.physical_rows == id_ends[-1] == version_ends[-1]:
        return None
    # Both are lists of lengths over the same rows: cut by either.
    ends = sort_distinct(np.concatenate([id_ends, version_ends]))
    starts = np.append(np.uint64(0), ends[:-1])
    owner = np.searchsorted(id_ends, starts, "right")
    offsets_in_range = starts - (id_ends - id_lengths)[owner]
    runs = RowRuns(
        row_ids[owner] + offsets_in_range,
        to_addresses(fragment.id, offsets=starts),
        ends - starts,
    )
    return runs, numbers[np.searchsorted(version_ends, starts, "right")]


def parse_row_ids(fragment: Fragment) -> tuple[np.ndarray, np.ndarray] | None:
    """The first row ids of runs in a fragment, and how many rows each has, deleted ones included.

    Reads nothing. None if they are in a file of their own.
    """
    return _parse_ranges(fragment.row_id_meta) or _expand_ranges(fragment.row_id_meta)


def _parse_ranges(meta: Any) -> tuple[np.ndarray, np.ndarray] | None:
    """The first row ids of ranges, and how many rows each has."""
    data = _inline_bytes(meta)
    if data is None:
        return None
    ranges = [_parse_range(segment) for _, segment in parse_message(data)]
    return _to_arrays(ranges)


def _expand_ranges(meta: Any) -> tuple[np.ndarray, np.ndarray] | None:
    """The same of row ids in any form, one by one."""
    if meta is None or _INLINE not in meta.json():
        return None
    row_ids = RowIdSequence.from_inline_metadata(meta).to_pyarrow().to_numpy()
    starts = np.flatnonzero(np.append(True, np.diff(row_ids) != 1))
    lengths = np.diff(np.append(starts, len(row_ids)))
    return row_ids[starts], lengths.astype(np.uint64)


def _parse_version_runs(meta: Any) -> tuple[np.ndarray, np.ndarray] | None:
    """The versions of runs, and how many rows each has."""
    data = _inline_bytes(meta)
    if data is None:
        return None
    runs: list[tuple[int, int] | None] = []
    for _, message in parse_message(data):
        assert isinstance(message, bytes), "Lance writes messages here"
        parts = dict(parse_message(message))
        span = _parse_range(parts[_SPAN])
        version = parts.get(_VERSION, 0)
        assert isinstance(version, int), "Lance writes a number here"
        runs.append(None if span is None else (version, span[1]))
    return _to_arrays(runs)


def _parse_range(segment: int | bytes) -> tuple[int, int] | None:
    """The first number of a range and its length; None for numbers that are no range."""
    assert isinstance(segment, bytes), "Lance writes a message here"
    (number, content), *_ = parse_message(segment)
    if number != _RANGE:
        return None
    assert isinstance(content, bytes), "Lance writes a message here"
    # protobuf leaves out zeros.
    bounds = {_START: 0, _END: 0, **dict(parse_message(content))}
    start, end = bounds[_START], bounds[_END]
    assert isinstance(start, int), "Lance writes numbers here"
    assert isinstance(end, int), "Lance writes numbers here"
    return start, end - start


def _inline_bytes(meta: Any) -> bytes | None:
    """The message in the metadata of a fragment; None if it is absent, elsewhere or long."""
    if meta is None:
        return None
    text: str = meta.json()
    if len(text) > DESCRIBED_BYTES_MAX:
        return None
    (content,) = json.loads(text).values()
    return bytes(content) if isinstance(content, list) else None


def _to_arrays(
    pairs: Sequence[tuple[int, int] | None],
) -> tuple[np.ndarray, np.ndarray] | None:
    known = [pair for pair in pairs if pair is not None]
    if not known or len(known) < len(pairs):
        return None
    firsts, lengths = zip(*known, strict=True)
    return np.array(firsts, np.uint64), np.array(lengths, np.uint64)
