"""Fields: a table's columns as Lance stores them, by the numbers that data files know them by.

Lance has no call that makes a schema with given numbers: a schema made of Arrow's is numbered from
0, and columns would read each other's data (docs/substrate.md, Columns). A pickled `LanceSchema` is
a list of protobuf messages, one for each field, each before its children. Here the numbers, names
and nullability in these messages are replaced; all else in them is kept as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Self

from lance.schema import LanceSchema

from omnigraph.storage.protobuf import Part, parse_message, serialize_part

# The numbers that Lance's protobuf message of a field gives to its parts.
_NAME: Final = 2
_ID: Final = 3
_PARENT: Final = 4
_LOGICAL_TYPE: Final = 5
_NULLABLE: Final = 6
_METADATA: Final = 10

_BLOB_MARKS: Final = (b"lance-encoding:blob", b"lance.blob.v2")
"""A table that is created empty stores blobs in the first way, all others in the second."""

_NO_PARENT: Final = (1 << 64) - 1
"""-1, as protobuf writes it."""


@dataclass(frozen=True, slots=True)
class FieldMessage:
    """One field of a schema: a column, or a part of one, such as the items of a list."""

    parts: tuple[Part, ...]

    @classmethod
    def parse(cls, data: bytes) -> Self:
        """Parse what `serialize` returns.

        >>> FieldMessage.parse(bytes([18, 2, 105, 100, 24, 7])).parts
        ((2, b'id'), (3, 7))
        """
        return cls(tuple(parse_message(data)))

    def serialize(self) -> bytes:
        """The protobuf message.

        >>> FieldMessage(((2, b"id"), (3, 300))).serialize().hex()
        '1202696418ac02'
        """
        return b"".join(map(serialize_part, self.parts))

    @property
    def id(self) -> int:
        """The number that data files know the field by."""
        return self._number(_ID)

    @property
    def parent(self) -> int | None:
        """The number of the field that this one is a part of; None for a column."""
        parent = self._number(_PARENT)
        return None if parent == _NO_PARENT else parent

    @property
    def name(self) -> str:
        """The name of the column, or of the part."""
        return self._text(_NAME)

    @property
    def is_nullable(self) -> bool:
        """Whether it may have nulls."""
        return bool(self._number(_NULLABLE))

    @property
    def storage_type(self) -> str:
        """How values are stored, without the types of a list's items, which are a field too."""
        # Lance writes `list` or `list.struct` for the same column, depending on how it was made.
        return self._text(_LOGICAL_TYPE).partition(".")[0]

    @property
    def is_blob(self) -> bool:
        """Whether its values are blobs, stored in either way."""
        entries = (part for number, part in self.parts if number == _METADATA)
        return any(mark in bytes(entry) for entry in entries for mark in _BLOB_MARKS)

    def renamed(self, name: str, *, nullable: bool) -> FieldMessage:
        """The same field with another name and nullability."""
        return self._with({_NAME: name.encode(), _NULLABLE: int(nullable)})

    def renumbered(self, id_: int, *, parent: int | None) -> FieldMessage:
        """The same field with other numbers."""
        return self._with({_ID: id_, _PARENT: _NO_PARENT if parent is None else parent})

    def _with(self, replaced: dict[int, int | bytes]) -> FieldMessage:
        kept = [part for part in self.parts if part[0] not in replaced]
        return FieldMessage(tuple(sorted([*kept, *replaced.items()], key=lambda part: part[0])))

    def _number(self, wanted: int) -> int:
        # protobuf leaves out zeros.
        [value] = [part for number, part in self.parts if number == wanted] or [0]
        assert isinstance(value, int), "Lance writes numbers here"
        return value

    def _text(self, wanted: int) -> str:
        [value] = [part for number, part in self.parts if number == wanted]
        assert isinstance(value, bytes), "Lance writes texts here"
        return value.decode()


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
    _, _, messages = _take_apart(schema)
    groups: list[list[FieldMessage]] = []
    for message in map(FieldMessage.parse, messages):
        if message.parent is None:
            groups.append([message])
        else:
            groups[-1].append(message)
    columns = (StoredColumn(tuple(group)) for group in groups)
    return {column.name: column for column in columns}


def with_columns(schema: LanceSchema, columns: Iterable[StoredColumn]) -> LanceSchema:
    """A schema with the metadata of another one and exactly these columns, as they are numbered."""
    make, metadata, _ = _take_apart(schema)
    return make(metadata, *(field.serialize() for column in columns for field in column.fields))


def _take_apart(schema: LanceSchema) -> tuple[Callable[..., LanceSchema], str, Sequence[bytes]]:
    """What pickle would store of a schema: how to make it, its metadata, its fields."""
    reduced = schema.__reduce__()
    assert isinstance(reduced, tuple), "Lance says how to make it again"
    make, (metadata, *messages) = reduced
    return make, metadata, messages
