"""Conversion of values from JSON, Python and other libraries to values of a property's type.

Parameters of queries and rows of data are converted alike, except for what `Reading` configures.
"""

from __future__ import annotations

import json
import math
import re
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any, Final, SupportsIndex, assert_never

from omnigraph.model.types import BlobType, EnumType, ListType, PropertyType, Scalar, VectorType
from omnigraph.schema.catalog import Value as PlainValue
from omnigraph.schema.values import Misfit, fit, is_unicode

Item = PlainValue | bytes
"""An item of a list."""

ConvertedValue = Item | tuple[Item | None, ...]
"""A value as its property holds it: a list or a vector is a tuple."""

_DECIMAL: Final = re.compile(r"-?[0-9]{1,20}")
_NUMBER: Final = re.compile(r"-?[0-9]{1,400}(\.[0-9]{1,400})?([eE][+-]?[0-9]{1,9})?")
_DAY: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_NOT_FINITE: Final = frozenset({"NaN", "Infinity", "-Infinity"})
_UNQUOTED: Final = "leave the quotes out"


@dataclass(frozen=True, slots=True)
class Reading:
    """The parts of conversion that depend on the source of values.

    Attributes:
        scalar: Reads a value of a plain type.
        blob: Reads bytes.
        keeps_null_items: Whether a list may contain nulls; a later check refuses them.
    """

    scalar: Callable[[Scalar, object], PlainValue | Misfit]
    blob: Callable[[object], bytes | Misfit]
    keeps_null_items: bool = False


def convert(type_: PropertyType, value: object, reading: Reading) -> ConvertedValue | Misfit:
    """The value as the type holds it, or why it does not fit. The value is not null.

    A list is any sequence but text; a vector has its exact length. NaN and the infinities are
    numbers of F32 and F64. Whether a text is one of an enum's values, and whether the numbers of a
    vector are finite, is not checked here.
    """
    if type(value).__module__ == "numpy":
        value = _without_numpy(value)
    match type_:
        case Scalar():
            return _convert_scalar(type_, value, reading)
        case EnumType():
            return reading.scalar(Scalar.STRING, value)
        case ListType(item):
            return _convert_items(item, value, type_, reading)
        case VectorType(dimension):
            items = _round_floats(value) or _convert_items(Scalar.F32, value, type_, reading)
            if isinstance(items, tuple) and len(items) != dimension:
                return Misfit(f"{len(items)} numbers are no {type_}")
            return items
        case BlobType():
            return reading.blob(value)
        case _:
            assert_never(type_)


def is_null(value: object) -> bool:
    """Whether a value is null, also as the libraries of data frames have it: `NA` and `NaT`."""
    if value is None:
        return True
    kind = type(value)
    if kind.__module__.startswith("pandas."):
        return kind.__name__ in ("NAType", "NaTType")
    # Of the scalars of NumPy, only a time without a value has a name for that.
    return kind.__module__ == "numpy" and kind.__name__ == "datetime64" and str(value) == "NaT"


def _without_numpy(value: Any) -> object:
    """A scalar of NumPy as Python's own value; an array stays what it is."""
    if getattr(value, "ndim", 1):
        return value
    if value.dtype.kind == "M":
        is_day = value.dtype.str[4:] in ("D]", "W]", "M]", "Y]")
        exact = value.astype("datetime64[D]" if is_day else "datetime64[us]")
        # Python has no nanoseconds.
        return exact.item() if exact == value else value
    return value.item()


def _convert_scalar(type_: Scalar, value: object, reading: Reading) -> PlainValue | Misfit:
    if type_.is_float:
        # JSON has no such numbers, so they are texts there, in our own output too.
        if isinstance(value, str) and value in _NOT_FINITE:
            return float(value)
        if isinstance(value, float) and not math.isfinite(value):
            return float(value)
    return reading.scalar(type_, value)


def convert_scalar(type_: Scalar, value: object) -> PlainValue | Misfit:
    """Like `values.fit`, but accept also integers of other libraries, and I64 and U64 as text."""
    if type_ in (Scalar.I64, Scalar.U64) and isinstance(value, str) and _DECIMAL.fullmatch(value):
        value = int(value)
    # An int is tested first: the other test takes longer than all of the conversion.
    elif (
        type(value) is not int
        and type_.is_numeric
        and not isinstance(value, bool)
        and isinstance(value, SupportsIndex)
    ):
        value = value.__index__()
    if isinstance(value, str) and not is_unicode(value):
        return Misfit("the text has half of a surrogate pair")
    if isinstance(value, str | int | float | date):
        fitted = fit(type_, value)
        if isinstance(fitted, Misfit) and isinstance(value, str):
            return _misfit_of_text(type_, value, fitted)
        return fitted
    return misfit_of_kind(type_, value)


def _misfit_of_text(type_: Scalar, text: str, misfit: Misfit) -> Misfit:
    """A more precise misfit for a text that looks like a value of the type."""
    if type_ is Scalar.BOOL and text in ("true", "false"):
        return Misfit(f"the text {text} is not of type {type_}", _UNQUOTED)
    if type_.is_numeric and _NUMBER.fullmatch(text):
        number = int(text) if text.lstrip("-").isdigit() else float(text)
        if number in (math.inf, -math.inf):
            return Misfit(f"{text[:100]} is too large for {type_}")
        closer = fit(type_, number)
        if isinstance(closer, Misfit):
            return closer
        return Misfit(f"the text {text[:100]} is not of type {type_}", _UNQUOTED)
    if type_ in (Scalar.DATE, Scalar.DATETIME) and (day := _DAY.match(text)):
        try:
            date.fromisoformat(day[0])
        except ValueError:
            return Misfit(misfit.reason, f"the day {day[0]} does not exist")
    return misfit


def misfit_of_kind(type_: PropertyType, value: object) -> Misfit:
    """The misfit of a value of an entirely different kind."""
    match value:
        case bool() | int() | float():
            kind = json.dumps(value)
        case Mapping():
            kind = "an object"
        case list() | tuple():
            kind = "a list"
        case _:
            kind = f"a value of Python's {type(value).__name__}"
    return Misfit(f"{kind} is not of type {type_}")


def _convert_items(
    item: Scalar | BlobType, value: object, type_: ListType | VectorType, reading: Reading
) -> tuple[Item | None, ...] | Misfit:
    items = _sequence(value)
    if items is None:
        return _not_a_list(type_, value)
    converted: list[Item | None] = []
    for place, element in enumerate(items):
        if element is None and reading.keeps_null_items:
            converted.append(None)
            continue
        converted_item = (
            reading.blob(element)
            if isinstance(item, BlobType)
            else _convert_scalar(item, element, reading)
        )
        if isinstance(converted_item, Misfit):
            return Misfit(f"item {place}: {converted_item.reason}", converted_item.hint)
        converted.append(converted_item)
    return tuple(converted)


def _round_floats(value: object) -> tuple[float, ...] | None:
    """A list of Python's floats as 32-bit floats, at once; None for any other value.

    >>> _round_floats([0.1, -0.0])
    (0.10000000149011612, 0.0)
    """
    if not isinstance(value, list) or any(type(item) is not float for item in value):
        return None
    form = f"{len(value)}f"
    try:
        numbers = struct.unpack(form, struct.pack(form, *value))
    except OverflowError:
        return None
    # Minus zero equals zero, and has no representation of its own (`values.fit`).
    return tuple(number or 0.0 for number in numbers)


def _not_a_list(type_: ListType | VectorType, value: object) -> Misfit:
    if not isinstance(value, str | int | float):
        return misfit_of_kind(type_, value)
    shown = json.dumps(value, ensure_ascii=False)[:100]
    hint = f"write [{shown}]" if isinstance(type_, ListType) else ""
    return Misfit(f"{shown} is not a list, and the type is {type_}", hint)


def _sequence(value: object) -> Sequence[object] | None:
    if isinstance(value, Sequence) and not isinstance(value, str | bytes | bytearray):
        return value
    # An array of another library becomes a list of Python's own numbers.
    if callable(to_list := getattr(value, "tolist", None)):
        listed = to_list()
        return listed if isinstance(listed, list) else None
    return None
