"""Values in memory: the columns of small fragments that rows are looked up by."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from omnigraph.storage.pieces import ColumnKey, FragmentFiles, RowsKey

KEPT_VALUES_BYTES_MAX: Final = 64 << 20
"""Memory that a graph handle spends on looking rows up without an index."""


# About what Python needs for a text, beside its characters, in a column and in an index.
_VALUE_BYTES: Final = 400
_COLUMN_BYTES: Final = 400

Places: TypeAlias = tuple[str | None, ...]
"""The values of a column in one fragment, each at its row's offset; None for deleted rows."""


def files_key(fragment: FragmentFiles, field_id: int) -> RowsKey | None:
    """A permanent key of a fragment's values of a field: files never change, names are not reused.

    None where no file holds the field: an all-null column that was added later.
    """
    for path, fields in fragment.files:
        if field_id in fields:
            return path, fragment.deletions
    return None


@dataclass(slots=True)
class Shelf:
    """The values in memory of one column. Only `Values` changes it.

    Attributes:
        row_count: The rows of all fragments, those that no version has any more included.
    """

    columns: dict[RowsKey, Places] = field(default_factory=dict)
    holders: dict[str, set[RowsKey]] = field(default_factory=dict)
    byte_count: int = 0
    row_count: int = 0

    def add(self, key: RowsKey, places: Places) -> int:
        """Add the values of one fragment, and return how many bytes they take."""
        self.columns[key] = places
        added = _COLUMN_BYTES
        for value in places:
            if value is not None:
                self.holders.setdefault(value, set()).add(key)
                added += _VALUE_BYTES + len(value)
        self.byte_count += added
        self.row_count += len(places)
        return added


class Values:
    """The values of small fragments by column; the least recently used column is dropped first.

    Threads may share it. A dropped shelf stays valid for its holders.
    """

    def __init__(self) -> None:
        self._shelves: OrderedDict[ColumnKey, Shelf] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    def shelf(self, column: ColumnKey) -> Shelf:
        """The shelf of a column, perhaps empty."""
        with self._lock:
            shelf = self._shelves.setdefault(column, Shelf())
            self._shelves.move_to_end(column)
            return shelf

    def peek(self, column: ColumnKey, key: RowsKey) -> Places | None:
        """The values of a column in one fragment, if they are in memory."""
        with self._lock:
            shelf = self._shelves.get(column)
            return None if shelf is None else shelf.columns.get(key)

    def keep(self, column: ColumnKey, shelf: Shelf, key: RowsKey, places: Places) -> None:
        """Put one fragment's values on the shelf, and drop other shelves beyond the limit."""
        with self._lock:
            if key in shelf.columns:
                return
            added = shelf.add(key, places)
            if self._shelves.get(column) is shelf:
                self._bytes += added
            while self._bytes > KEPT_VALUES_BYTES_MAX:
                _, dropped = self._shelves.popitem(last=False)
                self._bytes -= dropped.byte_count

    def renew(self, column: ColumnKey, shelf: Shelf, keys: Iterable[RowsKey]) -> Shelf:
        """A shelf with these fragments only, in place of one that is mostly of files of the past.

        Who holds the old one may go on with it, and then reads other fragments again.
        """
        fresh = Shelf()
        with self._lock:
            for key in keys:
                fresh.add(key, shelf.columns[key])
            if self._shelves.get(column) is shelf:
                self._shelves[column] = fresh
                self._bytes += fresh.byte_count - shelf.byte_count
        return fresh

    def find_holders(
        self, shelf: Shelf, wanted: Iterable[str], *, among: Mapping[RowsKey, object]
    ) -> set[RowsKey]:
        """Those of some keys whose values include a wanted one.

        A row that was updated often has been in many files, of which a version has one: the cost is
        that of the fewer.
        """
        with self._lock:
            holders = [shelf.holders[value] for value in wanted if value in shelf.holders]
            return set().union(*(among.keys() & keys for keys in holders))


@dataclass(slots=True)
class KnownFragments:
    """Which of one version's fragments are on a column's shelf.

    Attributes:
        keys: By fragment id; None for an all-null fragment.
        fragment_ids: The inverse of `keys`.
        large: Fragments that are not kept in memory.
        row_count: The rows of the fragments that are.
    """

    shelf: Shelf
    keys: dict[int, RowsKey | None] = field(default_factory=dict)
    fragment_ids: dict[RowsKey, int] = field(default_factory=dict)
    large: frozenset[int] = frozenset()
    row_count: int = 0

    def without(self, changed: Iterable[int]) -> KnownFragments:
        """The fragments still known after some were changed or removed."""
        remaining = KnownFragments(
            self.shelf, self.keys.copy(), self.fragment_ids.copy(), self.large, self.row_count
        )
        for fragment_id in changed:
            key = remaining.keys.pop(fragment_id, None)
            if key is not None:
                remaining.fragment_ids.pop(key, None)
                remaining.row_count -= len(self.shelf.columns[key])
            remaining.large -= {fragment_id}
        return remaining
