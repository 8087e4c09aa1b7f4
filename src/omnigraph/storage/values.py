"""Values in memory: what small fragments hold in the columns that rows are looked up by."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from lance.fragment import FragmentMetadata

from omnigraph.limits import KEPT_VALUES_BYTES_MAX

# About what Python needs for a text, its place in a column and that in an index, beside the text.
_VALUE_BYTES: Final = 400
_COLUMN_BYTES: Final = 400

ColumnKey: TypeAlias = tuple[str, int]
"""A column of a table and of all its refs: the table's location, the number of the field."""

FilesKey: TypeAlias = tuple[str, tuple[int, int] | None]
"""The live rows of a fragment: its data file, and which deletion file applies to that."""

Places: TypeAlias = tuple[str | None, ...]
"""The values of a column in one fragment, each at its row's offset; None for rows that are gone."""


def files_key(fragment: FragmentMetadata, field_id: int) -> FilesKey | None:
    """What names a fragment's values of a field for good: no file is changed, no name used again.

    None where no file holds the field: a column that was added later, of nulls alone.
    """
    for each in fragment.files:
        if field_id in each.fields:
            gone = fragment.deletion_file
            return str(each.path), None if gone is None else (gone.read_version, gone.id)
    return None


@dataclass(slots=True)
class Shelf:
    """What is known of one column. Only `Values` changes it."""

    columns: dict[FilesKey, Places] = field(default_factory=dict)
    holders: dict[str, set[FilesKey]] = field(default_factory=dict)
    byte_count: int = 0


class Values:
    """The values of small fragments, column by column, the least recently used dropped first.

    Threads may share it. A shelf that was dropped stays good for whoever has it.
    """

    def __init__(self) -> None:
        self._shelves: OrderedDict[ColumnKey, Shelf] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    def shelf(self, column: ColumnKey) -> Shelf:
        """What is known of a column, perhaps nothing yet."""
        with self._lock:
            shelf = self._shelves.setdefault(column, Shelf())
            self._shelves.move_to_end(column)
            return shelf

    def peek(self, column: ColumnKey, key: FilesKey) -> Places | None:
        """The values of a column in one fragment, if they are in memory."""
        with self._lock:
            shelf = self._shelves.get(column)
            return None if shelf is None else shelf.columns.get(key)

    def keep(self, column: ColumnKey, shelf: Shelf, key: FilesKey, places: Places) -> None:
        """Put one fragment's values on the shelf; others are dropped if that becomes too much."""
        with self._lock:
            if key in shelf.columns:
                return
            shelf.columns[key] = places
            added = _COLUMN_BYTES
            for value in places:
                if value is not None:
                    shelf.holders.setdefault(value, set()).add(key)
                    added += _VALUE_BYTES + len(value)
            shelf.byte_count += added
            if self._shelves.get(column) is shelf:
                self._bytes += added
            while self._bytes > KEPT_VALUES_BYTES_MAX:
                _, dropped = self._shelves.popitem(last=False)
                self._bytes -= dropped.byte_count

    def holding(self, shelf: Shelf, wanted: Iterable[str]) -> set[FilesKey]:
        """Of all that is on the shelf, what holds one of the wanted values."""
        with self._lock:
            found = [shelf.holders[value] for value in wanted if value in shelf.holders]
            return set().union(*found)


@dataclass(slots=True)
class Known:
    """Which of one version's fragments are on a column's shelf.

    Attributes:
        keys: By fragment id; None for a fragment of nulls alone.
        fragment_ids: The same the other way round.
        large: Fragments that are not kept in memory.
        row_count: The rows of those that are.
    """

    shelf: Shelf
    keys: dict[int, FilesKey | None] = field(default_factory=dict)
    fragment_ids: dict[FilesKey, int] = field(default_factory=dict)
    large: frozenset[int] = frozenset()
    row_count: int = 0

    def without(self, changed: Iterable[int]) -> Known:
        """What is still known when some fragments were changed or removed."""
        left = Known(
            self.shelf, self.keys.copy(), self.fragment_ids.copy(), self.large, self.row_count
        )
        for fragment_id in changed:
            key = left.keys.pop(fragment_id, None)
            if key is not None:
                left.fragment_ids.pop(key, None)
                left.row_count -= len(self.shelf.columns[key])
            left.large -= {fragment_id}
        return left
