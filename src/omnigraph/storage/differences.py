"""Differences: which rows two versions of one table do not share, determined by row addresses.

Files never change, so a fragment with the same files and the same deletions holds the same rows and
is not read. Nor are rows that a compaction carried over to other fragments. Of a fragment that lost
rows, only the addresses of the remaining rows are read, and then the lost rows, or the whole
fragment where those are many. Of a fragment whose columns are stored in other files, only these
columns are read, and then the rows in which they differ.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Protocol, TypeAlias

import numpy as np
import pyarrow as pa

from omnigraph.limits import KEYS_PER_LOOKUP_MAX, WIDE_BATCH_BYTES
from omnigraph.storage.carried import OffsetSet
from omnigraph.storage.pairs import ColumnPair, Pair, deletions_of, unequal_pairs
from omnigraph.storage.places import offsets_of, to_addresses
from omnigraph.storage.scans import scan_batches
from omnigraph.storage.tables import ROW_ADDRESS, Fragment, Table

PICKED_SHARE_MAX: Final = 1 / 32
"""Share of a large fragment's rows that are read by address; for more, all are read."""


_PlacedFragment: TypeAlias = tuple[int, Fragment]
_NO_OFFSETS: Final = np.array([], np.uint64)


@dataclass(frozen=True, slots=True, eq=False)
class FragmentPart:
    """Rows of one fragment.

    Attributes:
        fragment: The position in `Table.fragments()`.
        offsets: The offsets of the rows in the fragment; None for all of its rows.
    """

    fragment: int
    row_count: int
    offsets: np.ndarray | None = None


@dataclass(frozen=True, slots=True)
class Difference:
    """The parts of either version that may not be in the other.

    A row may be in both: rewritten at another address with unchanged values.
    """

    before: tuple[FragmentPart, ...] = ()
    after: tuple[FragmentPart, ...] = ()


class ColumnComparison(Protocol):
    """How values of two versions are compared; columns are named by `ColumnPair.name`."""

    @property
    def columns(self) -> Sequence[ColumnPair]:
        """All columns that are compared."""
        ...

    def reads(self, names: Sequence[str]) -> tuple[list[str], list[str]]:
        """The columns of the earlier and of the later version that have the values of some."""
        ...

    def unlike(self, names: Sequence[str], before: pa.Table, after: pa.Table) -> np.ndarray:
        """Whether each row may differ in some columns; rows are in the same order.

        Both sides have the columns of `reads`, and `ROW_ADDRESS`.
        """
        ...


def difference(
    before: Table | None,
    after: Table | None,
    pairs: Iterable[Pair] | None = None,
    comparison: ColumnComparison | None = None,
) -> Difference:
    """The parts of two versions to read in order to know how their rows differ.

    Args:
        before: The earlier version, or None; so with `after`.
        pairs: Some of their unequal fragments; all of them when None.
        comparison: Required where pairs have columns. When None, the versions have the same
            columns.
    """
    if pairs is None:
        pairs = unequal_pairs(before, after, None if comparison is None else comparison.columns)
    olds = () if before is None else before.fragments()
    news = () if after is None else after.fragments()
    before_parts: list[FragmentPart] = []
    after_parts: list[FragmentPart] = []
    for pair in pairs:
        old = None if pair.before is None else (pair.before, olds[pair.before])
        new = None if pair.after is None else (pair.after, news[pair.after])
        if before is None or after is None or old is None or new is None:
            before_parts += [_lone_part(old, pair.rows)] if old is not None else []
            after_parts += [_lone_part(new, pair.rows)] if new is not None else []
            continue
        shared = _SharedRows(before, old, after, new)
        unlike = _NO_OFFSETS
        if pair.columns:
            assert comparison is not None, "pairs with columns were made for a comparison"
            unlike = shared.unlike_offsets(pair.columns, comparison)
        gone, come = shared.offsets_to_read(unlike)
        before_parts += _part_at(old, gone)
        after_parts += _part_at(new, come)
    return Difference(_sort_parts(before_parts), _sort_parts(after_parts))


def read_parts(
    table: Table, parts: Sequence[FragmentPart], columns: Sequence[str] | None = None
) -> Iterator[pa.RecordBatch]:
    """Stream the rows of some parts; read a whole fragment only where that is cheaper."""
    whole = [part.fragment for part in parts if part.offsets is None]
    if whole:
        yield from table.scan(columns, fragments=whole)
    fragments = table.fragments()
    for part in parts:
        if part.offsets is None:
            continue
        placed = (part.fragment, fragments[part.fragment])
        picked_max = max(KEYS_PER_LOOKUP_MAX, PICKED_SHARE_MAX * placed[1].num_rows)
        if part.row_count > picked_max:
            yield from _read_and_filter(table, placed, part.offsets, columns)
        else:
            yield from _read_by_address(table, placed, part.offsets, columns)


def _read_by_address(
    table: Table, placed: _PlacedFragment, offsets: np.ndarray, columns: Sequence[str] | None
) -> Iterator[pa.RecordBatch]:
    """Rows of a fragment, read by their addresses."""
    place, fragment = placed
    addresses = to_addresses(fragment.id, offsets=offsets)
    for start in range(0, len(addresses), KEYS_PER_LOOKUP_MAX):
        page = addresses[start : start + KEYS_PER_LOOKUP_MAX].tolist()
        wanted = f"{ROW_ADDRESS} IN ({', '.join(map(str, page))})"
        yield from table.scan(columns, filter_text=wanted, fragments=[place])


def _read_and_filter(
    table: Table, placed: _PlacedFragment, offsets: np.ndarray, columns: Sequence[str] | None
) -> Iterator[pa.RecordBatch]:
    """Rows of a fragment, filtered from a scan of all of them."""
    place, fragment = placed
    wanted = _mask(fragment, offsets)
    names = table.schema.names if columns is None else list(columns)
    for batch in table.scan(list(dict.fromkeys([*names, ROW_ADDRESS])), fragments=[place]):
        is_wanted = wanted[offsets_of(batch.column(ROW_ADDRESS).to_numpy())]
        yield batch.select(names).filter(pa.array(is_wanted))


def count_rows(parts: Sequence[FragmentPart]) -> int:
    """How many rows the parts have."""
    return sum(part.row_count for part in parts)


def _lone_part(placed: _PlacedFragment, rows: OffsetSet | None) -> FragmentPart:
    """Some rows of a fragment that only one version has; all of them when None."""
    place, fragment = placed
    if rows is None:
        return FragmentPart(place, fragment.num_rows)
    return FragmentPart(place, rows.row_count, rows.to_offsets())


def _part_at(placed: _PlacedFragment, offsets: np.ndarray) -> list[FragmentPart]:
    """The part of a fragment at these offsets; otherwise empty."""
    return [FragmentPart(placed[0], len(offsets), offsets)] if len(offsets) else []


@dataclass(frozen=True, slots=True)
class _SharedRows:
    """One fragment in two versions: the same rows at the same offsets, apart from deletions."""

    before: Table
    old: _PlacedFragment
    after: Table
    new: _PlacedFragment

    def offsets_to_read(self, unlike: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The offsets of rows of either version that the other one lacks or has with other values.

        Args:
            unlike: Offsets of rows with other values; of rows that only one version has, too.
        """
        if deletions_of(self.old[1]) == deletions_of(self.new[1]):
            return unlike, unlike
        is_old, is_new = _live_mask(self.before, self.old), _live_mask(self.after, self.new)
        is_wanted = _mask(self.old[1], unlike) | (is_old != is_new)
        gone, come = np.flatnonzero(is_old & is_wanted), np.flatnonzero(is_new & is_wanted)
        return gone.astype(np.uint64), come.astype(np.uint64)

    def unlike_offsets(self, names: Sequence[str], comparison: ColumnComparison) -> np.ndarray:
        """The offsets of rows in which some columns differ, in their order."""
        parts = [_NO_OFFSETS]
        for old, new in self._read_both(*comparison.reads(names)):
            is_unlike = comparison.unlike(names, old, new)
            parts.append(offsets_of(old[ROW_ADDRESS].to_numpy())[is_unlike])
        return np.concatenate(parts)

    def _read_both(
        self, olds: Sequence[str], news: Sequence[str]
    ) -> Iterator[tuple[pa.Table, pa.Table]]:
        """Columns of the rows, a few at a time; a version of which none is wanted is not read."""
        if olds and news:
            yield from _align(
                _scan(self.before, self.old[0], olds), _scan(self.after, self.new[0], news)
            )
        elif olds:
            for rows in _scan(self.before, self.old[0], olds):
                yield rows, rows.select([ROW_ADDRESS])
        else:
            for rows in _scan(self.after, self.new[0], news):
                yield rows.select([ROW_ADDRESS]), rows


def _scan(table: Table, place: int, names: Sequence[str]) -> Iterator[pa.Table]:
    """Columns of one fragment with the addresses of its rows, in their order."""
    columns = [*names, ROW_ADDRESS]
    for batch in scan_batches(table, columns, fragments=[place], batch_bytes=WIDE_BATCH_BYTES):
        if batch.num_rows:
            yield pa.Table.from_batches([batch])


def _align(
    olds: Iterator[pa.Table], news: Iterator[pa.Table]
) -> Iterator[tuple[pa.Table, pa.Table]]:
    """The rows that both streams have, by their offsets."""
    old, new = next(olds, None), next(news, None)
    while old is not None and new is not None:
        was, now = (offsets_of(rows[ROW_ADDRESS].to_numpy()) for rows in (old, new))
        last = min(was[-1], now[-1])
        old_count, new_count = (int(np.searchsorted(some, last, "right")) for some in (was, now))
        _, old_at, new_at = np.intersect1d(
            was[:old_count], now[:new_count], assume_unique=True, return_indices=True
        )
        if len(old_at):
            yield _take(old, old_at), _take(new, new_at)
        old = old.slice(old_count) if old_count < len(was) else next(olds, None)
        new = new.slice(new_count) if new_count < len(now) else next(news, None)


def _take(rows: pa.Table, places: np.ndarray) -> pa.Table:
    is_leading = int(places[-1]) == len(places) - 1
    return rows.slice(0, len(places)) if is_leading else rows.take(pa.array(places))


def _live_mask(table: Table, placed: _PlacedFragment) -> np.ndarray:
    """For each physical row of a fragment, whether this version has it. Reads no data."""
    place, fragment = placed
    if fragment.deletion_file is None:
        return np.ones(fragment.physical_rows, np.bool_)
    addresses = table.read([ROW_ADDRESS], fragments=[place])[ROW_ADDRESS].to_numpy()
    return _mask(fragment, offsets_of(addresses))


def _mask(fragment: Fragment, offsets: np.ndarray) -> np.ndarray:
    """For each physical row of a fragment, whether its offset is among `offsets`."""
    mask = np.zeros(fragment.physical_rows, np.bool_)
    mask[offsets] = True
    return mask


def _sort_parts(parts: list[FragmentPart]) -> tuple[FragmentPart, ...]:
    return tuple(sorted(parts, key=lambda part: part.fragment))
