"""Values in a schema: fits defaults and bounds to their property's type."""

from __future__ import annotations

import math
import re
import struct
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Final, assert_never

from omnigraph.lang.diagnostics import did_you_mean
from omnigraph.model.types import (
    INTEGER_BOUNDS,
    BlobType,
    EnumType,
    ListType,
    PropertyType,
    Scalar,
    VectorType,
)
from omnigraph.schema.catalog import Value

_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_DATETIME: Final = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6})?)?"
    r"(Z|[+-][0-9]{2}:[0-9]{2})?"
)


@dataclass(frozen=True, slots=True)
class Misfit:
    """Why a value is not of a type."""

    reason: str
    hint: str = ""


def fit(type_: PropertyType, value: Value) -> Value | Misfit:
    """The value as the type holds it, or why it does not fit.

    Dates may be given as ISO-8601 text. An instant without an offset is UTC, the only zone used
    here. Integers fit where a float is wanted, never the other way round. An F32 is rounded to the
    nearest 32-bit float, so that a bound equals the stored value it was meant for.

    >>> fit(Scalar.DATE, "2024-02-29")
    datetime.date(2024, 2, 29)
    >>> fit(Scalar.I32, 2.5)
    Misfit(reason='2.5 is not of type I32', hint='write a whole number')
    """
    match type_:
        case Scalar():
            return _fit_scalar(type_, value)
        case EnumType(values):
            if isinstance(value, str) and value in values:
                return value
            hint = did_you_mean(str(value), values, otherwise=f"one of {', '.join(values[:20])}")
            return _misfit(type_, value, hint)
        case ListType() | VectorType() | BlobType():
            return Misfit(f"a {type_} has no literal")
        case _:
            assert_never(type_)


def _fit_scalar(type_: Scalar, value: Value) -> Value | Misfit:
    match type_:
        case Scalar.STRING:
            return value if isinstance(value, str) else _misfit(type_, value, "quote it")
        case Scalar.BOOL:
            return value if isinstance(value, bool) else _misfit(type_, value, "true or false")
        case Scalar.I32 | Scalar.I64 | Scalar.U32 | Scalar.U64:
            return _fit_integer(type_, value)
        case Scalar.F32 | Scalar.F64:
            return _fit_float(type_, value)
        case Scalar.DATE:
            return _fit_date(value)
        case Scalar.DATETIME:
            return _fit_datetime(value)
        case _:
            assert_never(type_)


def _fit_integer(type_: Scalar, value: Value) -> Value | Misfit:
    if isinstance(value, bool) or not isinstance(value, int):
        return _misfit(type_, value, "write a whole number")
    low, high = INTEGER_BOUNDS[type_]
    if low <= value <= high:
        return value
    return Misfit(f"the number does not fit in {type_}", f"between {low} and {high}")


def _fit_float(type_: Scalar, value: Value) -> Value | Misfit:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return _misfit(type_, value, "write a number")
    try:
        number = float(value)
        if type_ is Scalar.F32:
            (number,) = struct.unpack("f", struct.pack("f", number))
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        return Misfit(f"the number does not fit in {type_}")
    # Minus zero equals zero, so a schema must have one representation of it.
    return number or 0.0


def _fit_date(value: Value) -> Value | Misfit:
    if isinstance(value, date) and not isinstance(value, datetime):
        return value
    if isinstance(value, str) and _DATE.fullmatch(value):
        try:
            return date.fromisoformat(value)
        except ValueError:
            pass
    return _misfit(Scalar.DATE, value, 'write it as "2024-12-31"')


def _fit_datetime(value: Value) -> Value | Misfit:
    instant = value if isinstance(value, datetime) else None
    if isinstance(value, str) and (_DATETIME.fullmatch(value) or _DATE.fullmatch(value)):
        try:
            instant = datetime.fromisoformat(value)
        except ValueError:
            instant = None
    if instant is not None:
        try:
            zoned = instant if instant.tzinfo else instant.replace(tzinfo=UTC)
            return zoned.astimezone(UTC)
        except OverflowError:
            pass
    return _misfit(Scalar.DATETIME, value, 'write it as "2024-12-31T23:59:59Z"')


def _misfit(type_: PropertyType, value: Value, hint: str) -> Misfit:
    shown = repr(value) if isinstance(value, float) else str(value)
    if isinstance(value, bool):
        shown = shown.lower()
    return Misfit(f"{shown[:100]} is not of type {type_}", hint)


def is_unicode(text: str) -> bool:
    """Whether a text can be encoded as UTF-8: Python's may contain lone surrogates."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
