"""Raw values: Arrow columns and texts as the Python values that the exact converter takes."""

from __future__ import annotations

import json
import re
from typing import Any, Final

import pyarrow as pa

from omnigraph.model.types import ListType, PropertyType, Scalar, VectorType

_NUMBER: Final = re.compile(r"-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?|NaN|-?Infinity")

_ZEROS: Final = re.compile(r"\.0+$")

_DIGITS_MAX: Final = 400
"""Longer numbers fit no type, and Python refuses to read them."""


def to_python(values: pa.Array) -> list[Any]:
    """Python values; what Python cannot represent, such as a day of the year 12000, is text."""
    try:
        return values.to_pylist()  # type: ignore[no-any-return]
    except (ValueError, OverflowError, pa.ArrowInvalid):
        return [_to_python_value(value) for value in values]


def _to_python_value(value: pa.Scalar) -> object:
    try:
        return value.as_py()
    except (ValueError, OverflowError, pa.ArrowInvalid):
        return str(value.cast(pa.utf8()).as_py())


def from_text(type_: PropertyType, text: str) -> object:
    """The value of a CSV field; the text itself where it is no value of the type.

    >>> from_text(Scalar.I32, "7"), from_text(Scalar.BOOL, "true"), from_text(Scalar.I32, "x")
    (7, True, 'x')
    """
    match type_:
        case Scalar.BOOL if text in ("true", "false"):
            return text == "true"
        case Scalar() if type_.is_numeric and _NUMBER.fullmatch(text):
            # A float would round a large integer that is written 517.0.
            whole = _ZEROS.sub("", text) if type_.is_integer else text
            if whole.lstrip("-").isdigit():
                return int(whole) if len(whole) <= _DIGITS_MAX else text
            number = float(text)
            return number if abs(number) != float("inf") or "Infinity" in text else text
        case ListType() | VectorType():
            items = _load_json(text)
            return items if isinstance(items, list) else text
        case _:
            return text


def _load_json(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text
