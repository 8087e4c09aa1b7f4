"""Differences: which rows two versions of one table do not share, determined by row addresses.

Files never change, so a fragment with the same files and the same deletions holds the same rows and
is not read. Of a fragment that lost rows, only the addresses of the remaining rows are read, and
then the lost rows, or the whole fragment where those are many.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from omnigraph.limits import KEYS_PER_LOOKUP_MAX, PICKED_SHARE_MAX
from omnigraph.storage.pairs import Pair, unequal_pairs
from omnigraph.storage.places import offsets_of, to_addresses
from omnigraph.storage.tables import ROW_ADDRESS, Fragment, Table

_PlacedFragment: TypeAlias = tuple[int, Fragment]


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


def difference(before: Table, after: Table, pairs: Iterable[Pair] | None = None) -> Difference:
    """The parts of two versions to read in order to know how their rows differ.

    Args:
        pairs: Some of their unequal fragments; all of them when None.
    """
    if pairs is None:
        pairs = unequal_pairs(before, after)
    olds, news = before.fragments(), after.fragments()
    before_parts: list[FragmentPart] = []
    after_parts: list[FragmentPart] = []
    for pair in pairs:
        old = None if pair.before is None else (pair.before, olds[pair.before])
        new = None if pair.after is None else (pair.after, news[pair.after])
        if old is None or new is None:
            before_parts += [_whole_part(old)] if old is not None else []
            after_parts += [_whole_part(new)] if new is not None else []
            continue
        live_before, live_after = _live_offsets(before, old), _live_offsets(after, new)
        before_parts += _lost_rows(old, live_before, live_after)
        after_parts += _lost_rows(new, live_after, live_before)
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


def _whole_part(placed: _PlacedFragment) -> FragmentPart:
    place, fragment = placed
    return FragmentPart(place, fragment.num_rows)


def _live_offsets(table: Table, placed: _PlacedFragment) -> np.ndarray:
    """The offsets of a fragment's rows that are not deleted in this version. Reads no data."""
    place, fragment = placed
    if fragment.deletion_file is None:
        return np.arange(fragment.physical_rows, dtype=np.uint64)
    return offsets_of(table.read([ROW_ADDRESS], fragments=[place])[ROW_ADDRESS].to_numpy())


def _lost_rows(
    placed: _PlacedFragment, live: np.ndarray, live_in_other: np.ndarray
) -> list[FragmentPart]:
    place, fragment = placed
    is_lost = _mask(fragment, live)
    is_lost[live_in_other] = False
    offsets = np.flatnonzero(is_lost).astype(np.uint64)
    return [FragmentPart(place, len(offsets), offsets)] if len(offsets) else []


def _mask(fragment: Fragment, offsets: np.ndarray) -> np.ndarray:
    """For each physical row of a fragment, whether its offset is among `offsets`."""
    mask = np.zeros(fragment.physical_rows, np.bool_)
    mask[offsets] = True
    return mask


def _sort_parts(parts: list[FragmentPart]) -> tuple[FragmentPart, ...]:
    return tuple(sorted(parts, key=lambda part: part.fragment))
