"""Identity: the one spelling of a key, which is the id of the row that has it."""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Sequence
from datetime import UTC, date, datetime
from typing import Final

from omnigraph.errors import ErrorCode, InvalidInputError
from omnigraph.model.types import EnumType, Scalar

KeyType = Scalar | EnumType
"""The types that a member of a key may have."""

KeyValue = str | int | float | bool | date | datetime
"""A value of such a type, in its Python type."""

_F32_DIGITS_MAX: Final = 9
"""So many decimal digits tell any two 32-bit floats apart."""


def identity_of(types: Sequence[KeyType], values: Sequence[KeyValue]) -> str:
    """The id of a row whose key has these members, in declared order.

    One member is spelt as `spelling_of` says; several are a JSON array of their spellings, without
    white space and with no character escaped that need not be. Keys of one type that are equal, and
    only those, have the same id.

    >>> identity_of([Scalar.STRING], ["Ada"])
    'Ada'
    >>> identity_of([Scalar.STRING, Scalar.I32, Scalar.BOOL], ["Zoë", 7, True])
    '["Zoë","7","true"]'

    Raises:
        InvalidInputError: a float is infinite or no number.
    """
    assert types, "a key has members"
    spellings = [spelling_of(type_, value) for type_, value in zip(types, values, strict=True)]
    if len(spellings) == 1:
        return spellings[0]
    return json.dumps(spellings, ensure_ascii=False, separators=(",", ":"))


def spelling_of(type_: KeyType, value: KeyValue) -> str:
    """One member of a key as text.

    Texts and enums are verbatim, integers decimal, truth is `true` or `false`. Dates are ISO-8601;
    instants too, in UTC with a `Z`, with microseconds only if there are any. A float has the fewest
    digits that read back as the same float of its width, and no `.0`; minus zero is `0`.

    >>> spelling_of(Scalar.DATETIME, datetime(2024, 1, 1, 12, tzinfo=UTC))
    '2024-01-01T12:00:00Z'
    >>> [spelling_of(Scalar.F64, value) for value in (0.1, -0.0, 3.0, 1e300)]
    ['0.1', '0', '3', '1e+300']
    >>> spelling_of(Scalar.F32, 0.10000000149011612)
    '0.1'

    Raises:
        InvalidInputError: a float is infinite or no number.
    """
    match type_, value:
        case Scalar.BOOL, bool():
            return "true" if value else "false"
        case Scalar.F32 | Scalar.F64, int() | float():
            return _float_spelling(type_, float(value))
        case Scalar.STRING | EnumType(), str():
            return value
        case Scalar.DATETIME, datetime() if value.tzinfo is not None:
            return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
        case Scalar.DATE, date() if not isinstance(value, datetime):
            return value.isoformat()
        case Scalar(), int() if type_.is_integer and not isinstance(value, bool):
            return str(value)
        case _:
            message = f"{value!r} is not of type {type_}"
            raise AssertionError(message)


def _float_spelling(type_: Scalar, value: float) -> str:
    if not math.isfinite(value):
        message = f"{value} cannot be part of a key"
        hint = "a key needs numbers that are finite"
        raise InvalidInputError(message, hint=hint, code=ErrorCode.VALUE_OUT_OF_RANGE)
    shortest = _shortest_of_32_bits(value) if type_ is Scalar.F32 else value
    # Minus zero equals zero, so the two must not be two rows.
    return repr(shortest or 0.0).removesuffix(".0")


def _shortest_of_32_bits(value: float) -> float:
    """The number of fewest decimal digits that lies nearest to this 32-bit float."""
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
