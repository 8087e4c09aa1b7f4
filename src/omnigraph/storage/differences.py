"""Differences: which rows two versions of one table do not have in common, found by their places.

Files never change, so a fragment of the same files and the same deletions holds the same rows and
is not read. Of one that lost rows, only the list of what is left is read, and then those rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from omnigraph.limits import KEYS_PER_LOOKUP_MAX
from omnigraph.storage.tables import ROW_ADDRESS, Fragment, Table

_Files: TypeAlias = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Part:
    """Rows of one fragment.

    Attributes:
        fragment: The position in `Table.fragments()`.
        addresses: Where the rows are; None for all that the fragment has.
    """

    fragment: int
    row_count: int
    addresses: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class Difference:
    """The parts of either version that may not be in the other.

    A row may be in both: written anew, in another place, with the values it had.
    """

    before: tuple[Part, ...] = ()
    after: tuple[Part, ...] = ()


def difference(before: Table, after: Table) -> Difference:
    """What to read of two versions to know how their rows differ."""
    if before.address == after.address:
        return Difference()
    old, new = _by_files(before), _by_files(after)
    gone = [_whole(old[files]) for files in old.keys() - new.keys()]
    come = [_whole(new[files]) for files in new.keys() - old.keys()]
    for files in old.keys() & new.keys():
        if _deletions(old[files]) == _deletions(new[files]):
            continue
        kept_before, kept_after = _kept(before, old[files]), _kept(after, new[files])
        gone += _lost(old[files], kept_before, kept_after)
        come += _lost(new[files], kept_after, kept_before)
    return Difference(_ordered(gone), _ordered(come))


def read_parts(
    table: Table, parts: Sequence[Part], columns: Sequence[str] | None = None
) -> Iterator[pa.RecordBatch]:
    """Stream the rows of some parts; each is read where it lies, and nothing else."""
    whole = [each.fragment for each in parts if each.addresses is None]
    if whole:
        yield from table.scan(columns, fragments=whole)
    for each in parts:
        for start in range(0, len(each.addresses or ()), KEYS_PER_LOOKUP_MAX):
            assert each.addresses is not None, "the range would be empty"
            some = each.addresses[start : start + KEYS_PER_LOOKUP_MAX]
            wanted = f"{ROW_ADDRESS} IN ({', '.join(map(str, some))})"
            yield from table.scan(columns, filter_text=wanted, fragments=[each.fragment])


def count_rows(parts: Sequence[Part]) -> int:
    """How many rows the parts have."""
    return sum(each.row_count for each in parts)


_Placed: TypeAlias = tuple[int, Fragment]


def _by_files(table: Table) -> dict[_Files, _Placed]:
    return {
        tuple(file.path for file in each.files): (place, each)
        for place, each in enumerate(table.fragments())
    }


def _deletions(placed: _Placed) -> tuple[int, int] | None:
    _, fragment = placed
    found = fragment.deletion_file
    # Not its path: a branch knows the files of its source by another base.
    return None if found is None else (found.read_version, found.id)


def _whole(placed: _Placed) -> Part:
    place, fragment = placed
    return Part(place, fragment.num_rows)


def _kept(table: Table, placed: _Placed) -> np.ndarray:
    """The offsets of the rows that a version still has of a fragment. Reads no data."""
    place, _ = placed
    addresses = table.read([ROW_ADDRESS], fragments=[place])[ROW_ADDRESS]
    offsets: np.ndarray = addresses.to_numpy() & np.uint64(0xFFFF_FFFF)
    return offsets


def _lost(placed: _Placed, kept: np.ndarray, kept_by_other: np.ndarray) -> list[Part]:
    place, fragment = placed
    offsets = np.setdiff1d(kept, kept_by_other, assume_unique=True)
    if not len(offsets):
        return []
    addresses = (np.uint64(fragment.id) << np.uint64(32)) | offsets
    return [Part(place, len(offsets), tuple(addresses.tolist()))]


def _ordered(parts: list[Part]) -> tuple[Part, ...]:
    return tuple(sorted(parts, key=lambda each: each.fragment))
