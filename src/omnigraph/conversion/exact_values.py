"""The exact converter: one value of JSON or Python as a row has it, or why it does not convert.

A value converts exactly or is a misfit: nothing becomes null, is truncated or rounded.
(F32 and F64 are the nearest to a decimal fraction: few fractions have an exact one.)
"""

from __future__ import annotations

import binascii
import math
from base64 import b64decode
from datetime import datetime
from decimal import Decimal
from typing import Final

from omnigraph.model.types import BlobType, PropertyType, Scalar
from omnigraph.relational.numbers import to_exact
from omnigraph.schema.catalog import Value as PlainValue
from omnigraph.schema.conversion import (
    ConvertedValue,
    Reading,
    convert,
    convert_scalar,
    misfit_of_kind,
)
from omnigraph.schema.values import Misfit, fit

_BASE64: Final = "base64:"
_BUILTIN_NUMBERS: Final = frozenset({bool, int, float})


def convert_value(type_: PropertyType, value: object) -> ConvertedValue | Misfit:
    """One value, which is not null, as a row of that type has it, or why it does not convert."""
    return convert(type_, value, _READING)


def _read_scalar(type_: Scalar, value: object) -> PlainValue | Misfit:
    if isinstance(value, Decimal) and type_.is_numeric:
        is_whole = value.is_finite() and value == value.to_integral_value()
        value = int(value) if is_whole else float(value)
    if isinstance(value, float) and type_.is_integer and value.is_integer():
        # JSON has one kind of number, and many writers format whole ones as 3.0.
        value = int(value)
    if isinstance(value, float) and type_.is_float and not math.isfinite(value):
        return value
    nanoseconds: object = getattr(value, "nanosecond", None)
    if isinstance(value, datetime) and nanoseconds:
        return Misfit(f"{value} has nanoseconds", "round it to microseconds")
    try:
        # Builtin numbers need no check for those of other libraries.
        if isinstance(value, int | float) and type(value) in _BUILTIN_NUMBERS:
            converted = fit(type_, value)
        else:
            converted = convert_scalar(type_, value)
    except TypeError:
        # An array of another library claims to be an integer, and then has too many items.
        return misfit_of_kind(type_, value)
    if isinstance(converted, Misfit) or not (type_.is_float and isinstance(value, int)):
        return converted
    if to_exact(value, type_) is None:
        return Misfit(f"{value} is not exactly a number of type {type_}")
    return converted


def _read_blob(value: object) -> bytes | Misfit:
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value)
    if isinstance(value, str):
        if not value.startswith(_BASE64):
            return Misfit("the text is not a blob", f"write {_BASE64} and the bytes in base64")
        try:
            return b64decode(value.removeprefix(_BASE64), validate=True)
        except (binascii.Error, ValueError):
            return Misfit(f"what follows {_BASE64} is not base64")
    return misfit_of_kind(BlobType(), value)


_READING: Final = Reading(scalar=_read_scalar, blob=_read_blob, keeps_null_items=True)
