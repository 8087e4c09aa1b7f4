"""Protobuf messages of Lance, as far as we read and write them: numbers, and bytes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, TypeAlias

from omnigraph.errors import InternalError

Part: TypeAlias = tuple[int, int | bytes]
"""One part of a message: the number that Lance gives to it, and its value."""

_VARINT: Final = 0
_BYTES: Final = 2


def parse_message(data: bytes) -> Iterator[Part]:
    """The parts of a message, in order.

    >>> list(parse_message(bytes([18, 2, 105, 100, 24, 7])))
    [(2, b'id'), (3, 7)]

    Raises:
        InternalError: a part is neither a number nor bytes, so this is not the Lance we know.
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
                raise InternalError(message, hint="use the release of Lance that is pinned")


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
