"""Pairs: which fragments of two versions may hold different rows, from their metadata alone.

Files never change, so a fragment with the same files and the same deletions holds the same rows.
A schema change adds files to a fragment and changes which of their columns the table has; the rows
keep their offsets (docs/decisions/0012). So fragments that share a file hold the same rows, and
only the columns that are stored elsewhere may differ. Of fragments that share no file, rows that a
compaction carried over are left out (`storage.carried`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from omnigraph.storage.carried import Fragments, OffsetSet, Remainder, remaining_rows
from omnigraph.storage.forks import Forks, common_version
from omnigraph.storage.tables import Fragment, Table, TableAddress

_Files: TypeAlias = tuple[str, ...]
_Numbers: TypeAlias = Mapping[str, frozenset[int]]
"""By column, the numbers that Lance gave to it and to what is nested in it."""

_DETACHED: Final = 1 << 63
"""Versions that are on no ref have random numbers from here on (`heads.preview`)."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A fragment before and after, by its position in `Table.fragments()`; None where absent.

    Small, and can be sent to any process.

    Attributes:
        columns: The `ColumnPair.name` of columns whose values may differ in rows that both have.
        rows: Where one is absent, the rows of the other that may differ; None for all of them.
    """

    before: int | None
    after: int | None
    columns: tuple[str, ...] = ()
    rows: OffsetSet | None = None


@dataclass(frozen=True, slots=True)
class ColumnPair:
    """A column that is compared, and what it is called in either version.

    Attributes:
        before: The column of the earlier version, and `after` of the later one; None where that
            version has no such column, and all of its rows have one constant instead.
        is_stored_alike: Whether equal stored values are equal: no side is converted or constant.
        is_null: Whether every constant is null.
    """

    name: str
    before: str | None
    after: str | None
    is_stored_alike: bool = True
    is_null: bool = True


@dataclass(frozen=True, slots=True)
class DataSize:
    """An estimate of how much there is to read."""

    row_count: int = 0
    byte_count: int = 0

    def __add__(self, other: DataSize) -> DataSize:
        return DataSize(self.row_count + other.row_count, self.byte_count + other.byte_count)


def unequal_pairs(
    before: Table | None, after: Table | None, columns: Sequence[ColumnPair] | None = None
) -> tuple[Pair, ...]:
    """The fragments that do not hold the same rows in both versions. Reads no data file.

    Args:
        before: The earlier version, or None; so with `after`.
        columns: What is compared. When None, the versions have the same columns, and fragments
            whose files are not all the same are not paired.
    """
    if before is None or after is None:
        olds = [] if before is None else [Pair(at, None) for at in range(len(before.fragments()))]
        news = [] if after is None else [Pair(None, at) for at in range(len(after.fragments()))]
        return (*olds, *news)
    return _unequal_pairs(before, after, columns)


def _unequal_pairs(
    before: Table, after: Table, columns: Sequence[ColumnPair] | None
) -> tuple[Pair, ...]:
    if before.address == after.address:
        return ()
    stored = None if columns is None else _StoredColumns(before, after, columns)
    olds, news = before.fragments(), after.fragments()
    partners = _Partners(olds, by_file=stored is not None)
    gone, new = set(range(len(olds))), []
    pairs: list[Pair] = []
    for place, fragment in enumerate(news):
        was = partners.find(fragment)
        if was is None:
            new.append(place)
            continue
        gone.discard(was)
        names = () if stored is None else stored.differing(olds[was], fragment)
        if names or deletions_of(olds[was]) != deletions_of(fragment):
            pairs.append(Pair(was, place, names))
    unpaired = Fragments(before, sorted(gone)), Fragments(after, new)
    old_rows, new_rows = _remaining(*unpaired, stored)
    return (
        *(Pair(place, None, rows=rows) for place, rows in old_rows.items()),
        *(Pair(None, place, rows=rows) for place, rows in new_rows.items()),
        *pairs,
    )


def _remaining(
    olds: Fragments, news: Fragments, stored: _StoredColumns | None
) -> tuple[Remainder, Remainder]:
    """The rows of fragments that only one version has, without those that were carried over."""
    if olds.places and news.places:
        common = find_common_version(olds.table, news.table)
        keeps_values = (
            _numbers_of(olds.table) == _numbers_of(news.table)
            if stored is None
            else common is not None and stored.keeps_values_since(common)
        )
        if common is not None and keeps_values:
            return remaining_rows(olds, news, common)
    return dict.fromkeys(olds.places), dict.fromkeys(news.places)


def find_common_version(before: Table, after: Table) -> int | None:
    """The newest version that two versions of a table have in common; None if that is unknown.

    Reads a small object for each ref, once, if they are on different refs and no pin has said where
    those started.
    """
    return common_version_of(before.address, after.address, after.owner.forks)


def common_version_of(before: TableAddress, after: TableAddress, forks: Forks) -> int | None:
    """The same of versions that need not be open."""
    if before.location != after.location:
        return None
    if max(before.version, after.version) >= _DETACHED:
        return None
    if before.ref == after.ref:
        return min(before.version, after.version)
    chains = [forks.chain(before.location, address.ref) for address in (before, after)]
    if chains[0] is None or chains[1] is None:
        return None
    return common_version(before=(before.version, chains[0]), after=(after.version, chains[1]))


def files_of(fragment: Fragment) -> _Files:
    """The files of a fragment: they identify its rows permanently, apart from deletions."""
    # Not its `path`: that builds a class at each access (docs/substrate.md, Fragments).
    return tuple(file._path for file in fragment.files)  # noqa: SLF001


def deletions_of(fragment: Fragment) -> tuple[int, int] | None:
    """The identity of a fragment's deletion file, or None."""
    file = fragment.deletion_file
    # Not its path: on a branch, files of the source are relative to another base.
    return None if file is None else (file.read_version, file.id)


def size_of(before: Table | None, after: Table | None, pairs: Iterable[Pair]) -> DataSize:
    """Estimate how much the pairs differ. Reads nothing.

    These are the rows that only one version has, where it has them. Where columns are stored in
    other files, all rows that both versions have are among them, since any of them may differ.
    """
    olds = () if before is None else before.fragments()
    news = () if after is None else after.fragments()
    total = DataSize()
    for pair in pairs:
        if pair.before is None or pair.after is None:
            alone = olds[pair.before] if pair.before is not None else news[pair.after or 0]
            total += _part(alone, alone.num_rows if pair.rows is None else pair.rows.row_count)
        else:
            old, new = olds[pair.before], news[pair.after]
            total += _part(old, abs(old.num_rows - new.num_rows))
            if pair.columns:
                total += DataSize(min(old.num_rows, new.num_rows), _bytes_apart(old, new))
    return total


def _part(fragment: Fragment, row_count: int) -> DataSize:
    file_bytes = sum(file.file_size_bytes or 0 for file in fragment.files)
    return DataSize(row_count, file_bytes * row_count // max(1, fragment.physical_rows))


def _bytes_apart(old: Fragment, new: Fragment) -> int:
    """The size of the files that only one of two fragments has."""
    shared = set(files_of(old)) & set(files_of(new))
    files = [file for file in (*old.files, *new.files) if file.path not in shared]
    return sum(file.file_size_bytes or 0 for file in files)


class _Partners:
    """Finds the fragment of the earlier version that holds the same rows.

    Attributes:
        by_file: Whether one common file is enough.
    """

    def __init__(self, olds: Sequence[Fragment], *, by_file: bool) -> None:
        self._by_file = by_file
        self._places = {
            key: place for place, fragment in enumerate(olds) for key in self._keys(fragment)
        }

    def find(self, fragment: Fragment) -> int | None:
        places = {self._places.get(key) for key in self._keys(fragment)} - {None}
        assert len(places) <= 1, "files of one fragment are never in several"
        return next(iter(places), None)

    def _keys(self, fragment: Fragment) -> Iterator[_Files]:
        files = files_of(fragment)
        if self._by_file:
            yield from ((path,) for path in files)
        else:
            yield files


class _StoredColumns:
    """Where the compared columns of two versions are stored."""

    def __init__(self, before: Table, after: Table, columns: Sequence[ColumnPair]) -> None:
        self._columns = columns
        self._versions = before.version, after.version
        self._before, self._after = _numbers_of(before), _numbers_of(after)
        self._keeps_numbers = all(map(self._has_same_numbers, columns))

    def differing(self, old: Fragment, new: Fragment) -> tuple[str, ...]:
        """The columns that two fragments of the same rows do not store as the same data."""
        if self._keeps_numbers and files_of(old) == files_of(new):
            return ()
        olds, news = _paths_by_number(old), _paths_by_number(new)
        names = []
        for column in self._columns:
            was = _places_of(olds, self._before, column.before)
            now = _places_of(news, self._after, column.after)
            # A column without any file is null in every row.
            is_null = column.is_null and not was and not now
            if not is_null and not (column.is_stored_alike and was == now):
                names.append(column.name)
        return tuple(names)

    def keeps_values_since(self, common: int) -> bool:
        """Whether rows that were not written since a version have equal values in both versions.

        A schema change that writes values gives their column another number, and counts as a write
        of each row (docs/substrate.md, Other columns).
        """
        return all(
            self._has_same_numbers(column) or self._is_null_since(common, column)
            for column in self._columns
        )

    def _has_same_numbers(self, column: ColumnPair) -> bool:
        return (
            column.is_stored_alike
            and self._before[str(column.before)] == self._after[str(column.after)]
        )

    def _is_null_since(self, common: int, column: ColumnPair) -> bool:
        """Whether one version is the common one, and lacks a column that the other one was given.

        Rows that were not written since then are null there.
        """
        if not column.is_null:
            return False
        old, new = self._versions
        if column.before is None and column.after is not None and old == common:
            return _are_new(self._after[column.after], self._before)
        if column.after is None and column.before is not None and new == common:
            return _are_new(self._before[column.before], self._after)
        return False


def _are_new(numbers: Collection[int], columns: _Numbers) -> bool:
    """Whether none of the columns has one of these numbers."""
    return all(own.isdisjoint(numbers) for own in columns.values())


def _numbers_of(table: Table) -> _Numbers:
    numbers = {}
    for field in table.handle.lance_schema.fields():
        pending, own = [field], set()
        while pending:
            nested = pending.pop()
            own.add(nested.id())
            pending.extend(nested.children())
        numbers[field.name()] = frozenset(own)
    return numbers


def _paths_by_number(fragment: Fragment) -> dict[int, str]:
    return {number: file.path for file in fragment.files for number in file.fields}


def _places_of(
    paths: Mapping[int, str], numbers: _Numbers, column: str | None
) -> Collection[tuple[int, str]]:
    """The files with the data of a column, and its numbers in them."""
    if column is None:
        return frozenset()
    return frozenset((number, paths[number]) for number in numbers[column] if number in paths)
