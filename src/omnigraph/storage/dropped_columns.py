"""Dropped columns: the files that still hold values of columns that a table has no more.

A drop replaces a table's list of columns; its files stay as they are (docs/decisions/0012). Files
know columns by numbers, so those that hold a number that the table does not have are found without
reading any of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Final

from omnigraph.storage.fields import read_columns
from omnigraph.storage.indexes import read_indexes
from omnigraph.storage.tables import Fragment, Table

_REPLACED: Final = -2
"""Stands in a file for a column whose values another file of the fragment has."""


@dataclass(frozen=True, slots=True)
class StoredValues:
    """The values of one column in one file, as the metadata of a table has them.

    Attributes:
        file: The name of the file without folder and suffix, or that of the folder of an index;
            no other file of the table has it.
        number: The number of the column, or of a part of it; None for an index.
        column: The column's name; None if the table has it no more.
    """

    file: str
    number: int | None
    column: str | None


def stored_values(table: Table) -> Iterator[StoredValues]:
    """Which file of a table holds values of which columns, indexes included."""
    columns = _columns_by_number(table)
    for fragment in table.fragments():
        for file in fragment.files:
            name = PurePosixPath(file.path).stem
            for number in file.fields:
                if number != _REPLACED:
                    yield StoredValues(name, number, columns.get(number))
    for index in read_indexes(table):
        for segment in index.segments:
            # An index is dropped with its column, so the table has the column.
            column = None if index.spec is None else index.spec.column
            yield StoredValues(segment.uuid, None, column)


def find_stale_fragments(table: Table) -> tuple[Fragment, ...]:
    """The fragments with files that hold values of columns which the table has no more."""
    current = {_REPLACED, *_columns_by_number(table)}
    return tuple(
        fragment
        for fragment in table.fragments()
        if any(not current.issuperset(file.fields) for file in fragment.files)
    )


def _columns_by_number(table: Table) -> dict[int, str]:
    columns = read_columns(table.handle.lance_schema)
    return {number: name for name, column in columns.items() for number in column.ids}
