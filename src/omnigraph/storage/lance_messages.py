"""Messages of Lance that no public interface reads or writes: the only module that knows them.

Three tasks need them (docs/decisions/0040): schemas with given field numbers, versions of graphs
that were moved, and staged compactions. `tests/contract/lance/test_messages.py` compares each with
what Lance does.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Self, TypeAlias

import numpy as np
from lance import LanceDataset
from lance.schema import LanceSchema

from omnigraph.errors import InternalError

Part: TypeAlias = tuple[int, int | bytes]
"""One part of a message: the number that Lance gives to it, and its value."""

_VARINT: Final = 0
_BYTES: Final = 2

_PICKLED_MANIFEST: Final = 3
"""The position of the serialized manifest among what pickle would store of a handle."""

# The numbers that the message of a manifest gives to its parts, and that of a base path to its own.
_HIGHEST_FRAGMENT_ID: Final = 11
_BASE_PATHS: Final = 18
_PATH: Final = 4

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


def serialized_manifest(handle: LanceDataset) -> bytes:
    """The message of the manifest of a handle's version. Reads nothing."""
    _, arguments = handle.__reduce__()  # type: ignore[no-untyped-call]
    manifest: bytes = arguments[_PICKLED_MANIFEST]
    return manifest


def fragment_id_max(manifest: bytes) -> int:
    """The highest id that a fragment of a table ever had; -1 if it never had one."""
    parts = parse_message(manifest)
    highest = next((value for number, value in parts if number == _HIGHEST_FRAGMENT_ID), -1)
    assert isinstance(highest, int), "Lance writes a number here"
    return highest


def with_base_paths(manifest: bytes, move: Callable[[str], str]) -> bytes:
    """A manifest whose base paths are replaced."""

    def moved(part: Part) -> Part:
        number, value = part
        if number != _BASE_PATHS or isinstance(value, int):
            return part
        parts = (
            (each, move(text.decode()).encode())
            if each == _PATH and isinstance(text, bytes)
            else (each, text)
            for each, text in parse_message(value)
        )
        return number, b"".join(map(serialize_part, parts))

    return b"".join(serialize_part(moved(part)) for part in parse_message(manifest))


def encode_row_id_ranges(starts: np.ndarray, ends: np.ndarray) -> str:
    """Row ids as the metadata of a fragment: ranges from a start to below an end."""
    ranges = zip(starts.tolist(), ends.tolist(), strict=True)
    encoded = b"".join(_encode_range(first, end) for first, end in ranges)
    return json.dumps({"Inline": list(encoded)})


def encode_row_versions(runs: Iterable[tuple[int, int]]) -> dict[str, list[int]]:
    """Runs of (row count, row version) as the metadata of a fragment."""
    encoded = b"".join(
        serialize_part((1, _encode_span(row_count) + serialize_part((2, version))))
        for row_count, version in runs
    )
    return {"inline": list(encoded)}


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


def read_fields(schema: LanceSchema) -> list[FieldMessage]:
    """The fields of a schema, each before its children."""
    _, _, messages = _take_apart(schema)
    return [FieldMessage.parse(message) for message in messages]


def with_fields(schema: LanceSchema, fields: Iterable[FieldMessage]) -> LanceSchema:
    """A schema with the metadata of another one and exactly these fields, as they are numbered."""
    make, metadata, _ = _take_apart(schema)
    return make(metadata, *(field.serialize() for field in fields))


def parse_message(data: bytes) -> Iterator[Part]:
    """The parts of a message, in order.

    >>> list(parse_message(bytes([18, 2, 105, 100, 24, 7])))
    [(2, b'id'), (3, 7)]
    """
    place = 0
    while place < len(data):
        tag, place = _read_varint(data, place)
        value, place = _read_varint(data, place)
        match tag & 0b111:
            case 0:
                yield tag >> 3, value
            case 2:
                yield tag >> 3, data[place : place + value]
                place += value
            case wire_type:
                message = f"a message of Lance has a part of protobuf type {wire_type}"
                raise InternalError(message, hint="install a supported release of pylance")


def serialize_part(part: Part) -> bytes:
    """The bytes of one part of a message.

    >>> serialize_part((3, 300)).hex()
    '18ac02'
    """
    number, value = part
    if isinstance(value, int):
        return _write_varint(number << 3 | _VARINT) + _write_varint(value)
    return _write_varint(number << 3 | _BYTES) + _write_varint(len(value)) + value


def _read_varint(data: bytes, place: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[place]
        value |= (byte & 0x7F) << shift
        shift += 7
        place += 1
        if byte < 0x80:
            return value, place


def _write_varint(value: int) -> bytes:
    groups = bytearray()
    while value > 0x7F:
        groups.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*groups, value])


def _encode_range(first: int, end: int) -> bytes:
    bounds = serialize_part((1, first)) + serialize_part((2, end))
    return serialize_part((1, serialize_part((1, bounds))))


def _encode_span(row_count: int) -> bytes:
    rows = serialize_part((1, serialize_part((2, row_count))))
    return serialize_part((1, rows))


def _take_apart(schema: LanceSchema) -> tuple[Callable[..., LanceSchema], str, Sequence[bytes]]:
    """What pickle would store of a schema: how to make it, its metadata, its fields."""
    reduced = schema.__reduce__()
    assert isinstance(reduced, tuple), "Lance says how to make it again"
    make, (metadata, *messages) = reduced
    return make, metadata, messages
