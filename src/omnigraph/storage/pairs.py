"""Pairs: which fragments of two versions may hold different rows, by their metadata alone.

Files never change, so a fragment of the same files and the same deletions holds the same rows.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

from omnigraph.storage.tables import Fragment, Table

_Files: TypeAlias = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Pair:
    """A fragment before and after, by its position in `Table.fragments()`; None where it is not.

    Small, and can be shipped to any process.
    """

    before: int | None
    after: int | None


@dataclass(frozen=True, slots=True)
class Size:
    """About how much there is to read."""

    row_count: int = 0
    byte_count: int = 0

    def __add__(self, other: Size) -> Size:
        return Size(self.row_count + other.row_count, self.byte_count + other.byte_count)


def unequal_pairs(before: Table, after: Table) -> tuple[Pair, ...]:
    """The fragments that do not hold the same rows in both versions. Reads nothing."""
    if before.address == after.address:
        return ()
    old, new = places_by_files(before), places_by_files(after)
    olds, news = before.fragments(), after.fragments()
    found = [Pair(place, None) for files, place in old.items() if files not in new]
    for files, place in new.items():
        was = old.get(files)
        if was is None or deletions_of(olds[was]) != deletions_of(news[place]):
            found.append(Pair(was, place))
    return tuple(found)


def places_by_files(table: Table) -> dict[_Files, int]:
    """The position of each fragment, by the files that it is made of."""
    return {files_of(each): place for place, each in enumerate(table.fragments())}


def files_of(fragment: Fragment) -> _Files:
    """What names a fragment's rows for good, but for those that were deleted since."""
    return tuple(file.path for file in fragment.files)


def deletions_of(fragment: Fragment) -> tuple[int, int] | None:
    """What names the rows that a fragment has lost."""
    found = fragment.deletion_file
    # Not its path: a branch knows the files of its source by another base.
    return None if found is None else (found.read_version, found.id)


def size_of(before: Table, after: Table, pairs: Iterable[Pair]) -> Size:
    """About how much the pairs differ by: what one version has and the other not. Reads nothing."""
    olds, news = before.fragments(), after.fragments()
    total = Size()
    for pair in pairs:
        if pair.before is None or pair.after is None:
            alone = olds[pair.before] if pair.before is not None else news[pair.after or 0]
            total += _part(alone, alone.num_rows)
        else:
            old, new = olds[pair.before], news[pair.after]
            total += _part(old, abs(old.num_rows - new.num_rows))
    return total


def _part(fragment: Fragment, row_count: int) -> Size:
    written = sum(each.file_size_bytes or 0 for each in fragment.files)
    return Size(row_count, written * row_count // max(1, fragment.physical_rows))
