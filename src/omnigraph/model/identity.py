"""Identity: the canonical text of a key, which is the id of its row."""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Sequence
from datetime import date, datetime
from typing import Final

from omnigraph.errors import ErrorCode, InvalidInputError
from omnigraph.model.types import EnumType, Scalar
from omnigraph.wording import format_instant

KeyType = Scalar | EnumType
"""The types that a member of a key may have."""

KeyValue = str | int | float | bool | date | datetime
"""A value of such a type, in its Python type."""

_F32_DIGITS_MAX: Final = 9
"""Decimal digits that distinguish any two 32-bit floats."""


def identity_of(types: Sequence[KeyType], values: Sequence[KeyValue]) -> str:
    """The id of a row whose key has these members, in declared order.

    One member is formatted by `format_member`; several are a JSON array of these texts, without
    white space and with no character escaped unnecessarily. Keys of one type have the same id if
    and only if they are equal.

    >>> identity_of([Scalar.STRING], ["Ada"])
    'Ada'
    >>> identity_of([Scalar.STRING, Scalar.I32, Scalar.BOOL], ["Zoë", 7, True])
    '["Zoë","7","true"]'
    """
    assert types, "a key has members"
    members = [format_member(type_, value) for type_, value in zip(types, values, strict=True)]
    if len(members) == 1:
        return members[0]
    return json.dumps(members, ensure_ascii=False, separators=(",", ":"))


def format_member(type_: KeyType, value: KeyValue) -> str:
    """One member of a key as text.

    Texts and enums are verbatim, integers decimal, booleans `true` or `false`. Dates are ISO-8601;
    instants too, in UTC with a `Z`, with microseconds only if they are not zero. A float has the
    fewest digits that parse to the same float of its width, and no `.0`; minus zero is `0`.

    >>> from datetime import UTC
    >>> format_member(Scalar.DATETIME, datetime(2024, 1, 1, 12, tzinfo=UTC))
    '2024-01-01T12:00:00Z'
    >>> [format_member(Scalar.F64, value) for value in (0.1, -0.0, 3.0, 1e300)]
    ['0.1', '0', '3', '1e+300']
    >>> format_member(Scalar.F32, 0.10000000149011612)
    '0.1'
    """
    match type_, value:
        case Scalar.BOOL, bool():
            return "true" if value else "false"
        case Scalar.F32 | Scalar.F64, int() | float():
            return _format_float(type_, float(value))
        case Scalar.STRING | EnumType(), str():
            return value
        case Scalar.DATETIME, datetime() if value.tzinfo is not None:
            return format_instant(value)
        case Scalar.DATE, date() if not isinstance(value, datetime):
            return value.isoformat()
        case Scalar(), int() if type_.is_integer and not isinstance(value, bool):
            return str(value)
        case _:
            message = f"{value!r} is not of type {type_}"
            raise AssertionError(message)


def _format_float(type_: Scalar, value: float) -> str:
    if not math.isfinite(value):
        message = f"{value} cannot be part of a key"
        hint = "a key needs numbers that are finite"
        raise InvalidInputError(message, hint=hint, code=ErrorCode.VALUE_OUT_OF_RANGE)
    shortest = _shortest_of_32_bits(value) if type_ is Scalar.F32 else value
    # Minus zero equals zero, so both must be the same row.
    return repr(shortest or 0.0).removesuffix(".0")


def _shortest_of_32_bits(value: float) -> float:
    """The number with the fewest decimal digits that rounds to this 32-bit float."""
    for digits in range(1, _F32_DIGITS_MAX):
        candidate = float(f"{value:.{digits}g}")
        if _as_32_bits(candidate) == value:
            return candidate
    return float(f"{value:.{_F32_DIGITS_MAX}g}")


def _as_32_bits(value: float) -> float | None:
    try:
        (narrow,) = struct.unpack("f", struct.pack("f", value))
    except OverflowError:
        return None
    return float(narrow)
