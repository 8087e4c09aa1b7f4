"""Pairs: which fragments of two versions may hold different rows, from their metadata alone.

Files never change, so a fragment with the same files and the same deletions holds the same rows.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

from omnigraph.storage.tables import Fragment, Table

_Files: TypeAlias = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Pair:
    """A fragment before and after, by its position in `Table.fragments()`; None where absent.

    Small, and can be sent to any process.
    """

    before: int | None
    after: int | None


@dataclass(frozen=True, slots=True)
class DataSize:
    """An estimate of how much there is to read."""

    row_count: int = 0
    byte_count: int = 0

    def __add__(self, other: DataSize) -> DataSize:
        return DataSize(self.row_count + other.row_count, self.byte_count + other.byte_count)


def unequal_pairs(before: Table, after: Table) -> tuple[Pair, ...]:
    """The fragments that do not hold the same rows in both versions. Reads nothing."""
    if before.address == after.address:
        return ()
    old, new = places_by_files(before), places_by_files(after)
    olds, news = before.fragments(), after.fragments()
    pairs = [Pair(place, None) for files, place in old.items() if files not in new]
    for files, place in new.items():
        was = old.get(files)
        if was is None or deletions_of(olds[was]) != deletions_of(news[place]):
            pairs.append(Pair(was, place))
    return tuple(pairs)


def places_by_files(table: Table) -> dict[_Files, int]:
    """The position of each fragment, by the fragment's files."""
    return {files_of(fragment): place for place, fragment in enumerate(table.fragments())}


def files_of(fragment: Fragment) -> _Files:
    """The files of a fragment: they identify its rows permanently, apart from deletions."""
    return tuple(file.path for file in fragment.files)


def deletions_of(fragment: Fragment) -> tuple[int, int] | None:
    """The identity of a fragment's deletion file, or None."""
    file = fragment.deletion_file
    # Not its path: on a branch, files of the source are relative to another base.
    return None if file is None else (file.read_version, file.id)


def size_of(before: Table, after: Table, pairs: Iterable[Pair]) -> DataSize:
    """Estimate how much the pairs differ: the rows only one version has. Reads nothing."""
    olds, news = before.fragments(), after.fragments()
    total = DataSize()
    for pair in pairs:
        if pair.before is None or pair.after is None:
            alone = olds[pair.before] if pair.before is not None else news[pair.after or 0]
            total += _part(alone, alone.num_rows)
        else:
            old, new = olds[pair.before], news[pair.after]
            total += _part(old, abs(old.num_rows - new.num_rows))
    return total


def _part(fragment: Fragment, row_count: int) -> DataSize:
    file_bytes = sum(file.file_size_bytes or 0 for file in fragment.files)
    return DataSize(row_count, file_bytes * row_count // max(1, fragment.physical_rows))
