"""Fields: a table's columns as Lance stores them, by the numbers that data files know them by.

Lance has no call that makes a schema with given numbers: a schema made of Arrow's is numbered from
0, and columns would read each other's data (docs/substrate.md, Columns). Here the numbers, names
and nullability of fields are replaced; all else in them is kept as it is.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from lance.schema import LanceSchema

from omnigraph.storage.lance_messages import FieldMessage, read_fields, with_fields


@dataclass(frozen=True, slots=True)
class StoredColumn:
    """One column: its own field, then the fields it consists of, each before its parts."""

    fields: tuple[FieldMessage, ...]

    @property
    def name(self) -> str:
        """The column's name."""
        return self.fields[0].name

    @property
    def is_nullable(self) -> bool:
        """Whether a row may have no value."""
        return self.fields[0].is_nullable

    @property
    def ids(self) -> tuple[int, ...]:
        """The numbers of its fields, in their order."""
        return tuple(field.id for field in self.fields)

    @property
    def storage_types(self) -> tuple[str, ...]:
        """The types of its fields, in their order; equal for columns of equal values."""
        blobs = {field.id for field in self.fields if field.is_blob}
        return tuple(
            "blob" if field.is_blob else field.storage_type
            for field in self.fields
            if field.parent not in blobs
        )

    def renamed(self, name: str, *, nullable: bool) -> StoredColumn:
        """The same stored values under another name."""
        return StoredColumn((self.fields[0].renamed(name, nullable=nullable), *self.fields[1:]))

    def renumbered(self, first: int) -> StoredColumn:
        """The same column, its fields numbered from `first` on."""
        ids = {id_: first + place for place, id_ in enumerate(self.ids)}
        return StoredColumn(
            tuple(
                field.renumbered(
                    ids[field.id], parent=None if field.parent is None else ids[field.parent]
                )
                for field in self.fields
            )
        )


def read_columns(schema: LanceSchema) -> dict[str, StoredColumn]:
    """The columns of a schema by their names, in order."""
    groups: list[list[FieldMessage]] = []
    for message in read_fields(schema):
        if message.parent is None:
            groups.append([message])
        else:
            groups[-1].append(message)
    columns = (StoredColumn(tuple(group)) for group in groups)
    return {column.name: column for column in columns}


def with_columns(schema: LanceSchema, columns: Iterable[StoredColumn]) -> LanceSchema:
    """A schema with the metadata of another one and exactly these columns, as they are numbered."""
    return with_fields(schema, (field for column in columns for field in column.fields))
