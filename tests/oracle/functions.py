"""Functions of the reference: values computed from values, by Python's own numbers and dates."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import date, datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal
from typing import Any, assert_never

from omnigraph.model.types import PropertyType, Scalar
from omnigraph.query.functions import ValueFunction
from omnigraph.query.ir import Value


def call(function: ValueFunction, arguments: Sequence[Value], type_: PropertyType) -> Value:
    """The result of a function; whole numbers have no bound.

    >>> call(ValueFunction.REMAINDER, [-7, 3], Scalar.I64)
    -1
    >>> call(ValueFunction.DIVIDE, [7, 0], Scalar.F64) is None
    True
    """
    if function is ValueFunction.COALESCE:
        first = next((each for each in arguments if each is not None), None)
        return converted(first, type_)
    if None in arguments:
        return None
    result: Value = _call(function, list(arguments), type_)
    return result


def converted(value: Value, type_: PropertyType) -> Value:
    """A whole number as a float, where that is what the result is."""
    is_whole = isinstance(value, int) and not isinstance(value, bool)
    return float(value) if type_ is Scalar.F64 and isinstance(value, int) and is_whole else value


def _call(function: ValueFunction, arguments: list[Any], type_: PropertyType) -> Any:
    numbers: list[Any] = [converted(each, type_) for each in arguments]
    match function:
        case ValueFunction.SUBTRACT if isinstance(arguments[1], datetime):
            return float((arguments[0] - arguments[1]) // timedelta(microseconds=1)) / 86_400e6
        case ValueFunction.ADD | ValueFunction.SUBTRACT if isinstance(arguments[0], date):
            return _days(arguments[0], arguments[1], 1 if function is ValueFunction.ADD else -1)
        case ValueFunction.ADD:
            return numbers[0] + numbers[1]
        case ValueFunction.SUBTRACT:
            return numbers[0] - numbers[1]
        case ValueFunction.MULTIPLY:
            return numbers[0] * numbers[1]
        case ValueFunction.DIVIDE:
            return numbers[0] / numbers[1] if numbers[1] else None
        case ValueFunction.REMAINDER:
            left, right = numbers
            size = abs(left) % abs(right) if right else None
            return size if size is None or left >= 0 else -size
        case ValueFunction.ABS:
            return abs(numbers[0])
        case ValueFunction.ROUND | ValueFunction.FLOOR | ValueFunction.CEIL:
            return _whole(function, numbers[0])
        case ValueFunction.LENGTH:
            return len(arguments[0])
        case ValueFunction.LOWER:
            return "".join(map(_lower, arguments[0]))
        case ValueFunction.UPPER:
            return "".join(map(_upper, arguments[0]))
        case ValueFunction.TRIM:
            return str(arguments[0]).strip(" \t\n\r")
        case ValueFunction.SUBSTRING:
            return _substring(*arguments)
        case ValueFunction.CONCAT:
            return "".join(arguments)
        case ValueFunction.REPLACE:
            text, old, new = arguments
            return str(text).replace(old, new) if old else text
        case ValueFunction.YEAR:
            return arguments[0].year
        case ValueFunction.MONTH:
            return arguments[0].month
        case ValueFunction.DAY:
            return arguments[0].day
        case ValueFunction.COALESCE:
            raise AssertionError(function)
        case _:
            assert_never(function)


def _days(start: date, other: Any, sign: int) -> Value:
    if isinstance(other, date):
        return (start - other).days
    try:
        return start + timedelta(days=sign * other)
    except OverflowError:
        return None


def _whole(function: ValueFunction, number: float) -> float:
    if not math.isfinite(number):
        return number
    match function:
        case ValueFunction.FLOOR:
            return float(math.floor(number))
        case ValueFunction.CEIL:
            return float(math.ceil(number))
        case _ if abs(number) < 2**52:
            return float(Decimal(number).quantize(Decimal(1), ROUND_HALF_UP))
        case _:
            return number


def _lower(letter: str) -> str:
    """The small letter; Python makes two characters of one of them."""
    return "i" if letter == "\u0130" else letter.lower()


def _upper(letter: str) -> str:
    """The capital letter, if there is one that is one character; else the letter itself."""
    if letter == "ß":
        return "\u1e9e"
    capitals = (letter.upper(), letter.title(), letter)
    return next(each for each in capitals if len(each) == 1)


def _substring(text: str, first: int, length: int | None = None) -> str | None:
    if first < 1 or (length is not None and length < 0):
        return None
    start = first - 1
    return text[start:] if length is None else text[start : start + length]
