"""Differences: which rows two versions of one table do not have in common, found by their places.

Files never change, so a fragment of the same files and the same deletions holds the same rows and
is not read. Of one that lost rows, only the list of what is left is read, and then those rows, or
all that it has where they are many.
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

_Placed: TypeAlias = tuple[int, Fragment]


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """Rows of one fragment.

    Attributes:
        fragment: The position in `Table.fragments()`.
        offsets: Where in the fragment the rows are; None for all that it has.
    """

    fragment: int
    row_count: int
    offsets: np.ndarray | None = None


@dataclass(frozen=True, slots=True)
class Difference:
    """The parts of either version that may not be in the other.

    A row may be in both: written anew, in another place, with the values it had.
    """

    before: tuple[Part, ...] = ()
    after: tuple[Part, ...] = ()


def difference(before: Table, after: Table, pairs: Iterable[Pair] | None = None) -> Difference:
    """What to read of two versions to know how their rows differ.

    Args:
        pairs: Some of their unequal fragments; all of them when None.
    """
    if pairs is None:
        pairs = unequal_pairs(before, after)
    olds, news = before.fragments(), after.fragments()
    gone: list[Part] = []
    come: list[Part] = []
    for each in pairs:
        old = None if each.before is None else (each.before, olds[each.before])
        new = None if each.after is None else (each.after, news[each.after])
        if old is None or new is None:
            gone += [_whole(old)] if old is not None else []
            come += [_whole(new)] if new is not None else []
            continue
        kept_before, kept_after = _kept(before, old), _kept(after, new)
        gone += _lost(old, kept_before, kept_after)
        come += _lost(new, kept_after, kept_before)
    return Difference(_ordered(gone), _ordered(come))


def read_parts(
    table: Table, parts: Sequence[Part], columns: Sequence[str] | None = None
) -> Iterator[pa.RecordBatch]:
    """Stream the rows of some parts; of what lies around them is read as little as pays."""
    whole = [each.fragment for each in parts if each.offsets is None]
    if whole:
        yield from table.scan(columns, fragments=whole)
    every = table.fragments()
    for each in parts:
        if each.offsets is None:
            continue
        fragment = every[each.fragment]
        picked_max = max(KEYS_PER_LOOKUP_MAX, PICKED_SHARE_MAX * fragment.num_rows)
        if each.row_count > picked_max:
            yield from _sifted(table, (each.fragment, fragment), each.offsets, columns)
        else:
            yield from _picked(table, (each.fragment, fragment), each.offsets, columns)


def _picked(
    table: Table, placed: _Placed, offsets: np.ndarray, columns: Sequence[str] | None
) -> Iterator[pa.RecordBatch]:
    """Rows of a fragment, looked up by their addresses."""
    place, fragment = placed
    addresses = to_addresses(fragment.id, offsets=offsets)
    for start in range(0, len(addresses), KEYS_PER_LOOKUP_MAX):
        some = addresses[start : start + KEYS_PER_LOOKUP_MAX].tolist()
        wanted = f"{ROW_ADDRESS} IN ({', '.join(map(str, some))})"
        yield from table.scan(columns, filter_text=wanted, fragments=[place])


def _sifted(
    table: Table, placed: _Placed, offsets: np.ndarray, columns: Sequence[str] | None
) -> Iterator[pa.RecordBatch]:
    """Rows of a fragment, out of all that it has."""
    place, fragment = placed
    wanted = _marked(fragment, offsets)
    named = table.schema.names if columns is None else list(columns)
    for batch in table.scan(list(dict.fromkeys([*named, ROW_ADDRESS])), fragments=[place]):
        kept = wanted[offsets_of(batch.column(ROW_ADDRESS).to_numpy())]
        yield batch.select(named).filter(pa.array(kept))


def count_rows(parts: Sequence[Part]) -> int:
    """How many rows the parts have."""
    return sum(each.row_count for each in parts)


def _whole(placed: _Placed) -> Part:
    place, fragment = placed
    return Part(place, fragment.num_rows)


def _kept(table: Table, placed: _Placed) -> np.ndarray:
    """The offsets of the rows that a version still has of a fragment. Reads no data."""
    place, fragment = placed
    if fragment.deletion_file is None:
        return np.arange(fragment.physical_rows, dtype=np.uint64)
    return offsets_of(table.read([ROW_ADDRESS], fragments=[place])[ROW_ADDRESS].to_numpy())


def _lost(placed: _Placed, kept: np.ndarray, kept_by_other: np.ndarray) -> list[Part]:
    place, fragment = placed
    is_lost = _marked(fragment, kept)
    is_lost[kept_by_other] = False
    offsets = np.flatnonzero(is_lost).astype(np.uint64)
    return [Part(place, len(offsets), offsets)] if len(offsets) else []


def _marked(fragment: Fragment, offsets: np.ndarray) -> np.ndarray:
    """Of each row that a fragment was written with, whether it is among these."""
    marked = np.zeros(fragment.physical_rows, np.bool_)
    marked[offsets] = True
    return marked


def _ordered(parts: list[Part]) -> tuple[Part, ...]:
    return tuple(sorted(parts, key=lambda each: each.fragment))
