"""Aggregates of the reference: exact, with a tolerance for engines that add floats."""

from __future__ import annotations

import math
import sys
from fractions import Fraction
from typing import Self, assert_never, cast

from omnigraph.model.types import (
    INTEGER_BOUNDS,
    ListType,
    PropertyType,
    ResultType,
    Scalar,
    StructType,
)
from omnigraph.query.functions import AggregateFunction
from omnigraph.query.ir import Value
from tests.oracle.equality import sort_key, unsigned_zero


class SumTooLargeError(ArithmeticError):
    """The sum of integers does not fit the type that a sum of them has."""


class RoundedFloat(float):
    """A number that depends on how, and in which order, floats were added.

    Attributes:
        slack: The tolerance for an engine's number; infinite if adding may have overflowed.
    """

    __slots__ = ("slack",)
    slack: float

    def __new__(cls, value: float, slack: float) -> Self:
        """Attach the slack to the exact result."""
        number = super().__new__(cls, value)
        number.slack = slack
        return number


def aggregate(function: AggregateFunction, values: list[Value], type_: PropertyType) -> Value:
    """The function's result for values without nulls; a sum may be too large for `type_`.

    Args:
        type_: Of the result.

    >>> aggregate(AggregateFunction.AVG, [1, 2], Scalar.F64)
    1.5
    >>> aggregate(AggregateFunction.SUM, [], Scalar.I64) is None
    True
    """
    if function is AggregateFunction.COUNT:
        return len(values)
    if function is AggregateFunction.COLLECT:
        ascending = sorted(map(unsigned_zero, values), key=sort_key)
        return tuple(ascending)  # type: ignore[arg-type]  # no list is collected, and no null
    if not values:
        return None
    match function:
        case AggregateFunction.SUM:
            return _sum(_numbers(values), type_)
        case AggregateFunction.AVG:
            return _average(_numbers(values))
        case AggregateFunction.MIN:
            return unsigned_zero(min(values, key=sort_key))
        case AggregateFunction.MAX:
            return unsigned_zero(max(values, key=sort_key))
        case _:
            assert_never(function)


def require_fit(total: Value, type_: ResultType) -> Value:
    """The same value, if it fits the type of its column.

    Raises:
        SumTooLargeError: it is an integer out of the range of `type_`.
    """
    if isinstance(type_, StructType) and total is not None:
        values = cast("dict[str, Value]", total)
        for each in type_.fields:
            require_fit(values[each.name], each.type)
    if isinstance(total, tuple) and isinstance(type_, ListType):
        for item in total:
            require_fit(item, type_.item)
    if isinstance(total, int) and isinstance(type_, Scalar) and type_ in INTEGER_BOUNDS:
        low, high = INTEGER_BOUNDS[type_]
        if not low <= total <= high:
            message = f"{total} does not fit in {type_}"
            raise SumTooLargeError(message)
    return total


def _numbers(values: list[Value]) -> list[int | float]:
    return [value for value in values if isinstance(value, int | float)]


def _sum(numbers: list[int | float], type_: PropertyType) -> int | float:
    if type_ is Scalar.F64:
        return RoundedFloat(_exact_sum(numbers), _slack(numbers))
    return sum(number for number in numbers if isinstance(number, int))


def _average(numbers: list[int | float]) -> float:
    return RoundedFloat(_exact_sum(numbers) / len(numbers), _slack(numbers) / len(numbers))


def _exact_sum(numbers: list[int | float]) -> float:
    """The float nearest to the sum, whatever the order."""
    infinite = {number for number in numbers if math.isinf(number)}
    if any(map(math.isnan, numbers)) or len(infinite) == 2:
        return math.nan
    if infinite:
        return float(infinite.pop())
    return _to_float(sum(map(Fraction, numbers)))


def _slack(numbers: list[int | float]) -> float:
    """Each addition rounds by less than one part in 2**52 of what has been added so far."""
    size = _to_float(sum(Fraction(abs(number)) for number in numbers if math.isfinite(number)))
    return size * len(numbers) * sys.float_info.epsilon


def _to_float(number: Fraction | int) -> float:
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf
