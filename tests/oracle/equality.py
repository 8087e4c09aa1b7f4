"""Equality and order of values in the query language; one definition for all tests."""

from __future__ import annotations

import math
from typing import Any

from omnigraph.query.ir import Value

SortKey = tuple[Any, ...]


def sort_key(value: Value) -> SortKey:
    """The sort key of values of one kind: null, then all others, then NaN.

    Python compares integers with floats exactly, texts by code point, and false before true.

    >>> sorted([2, None, math.nan, 2**53 + 1, float(2**53), -math.inf], key=sort_key)
    [None, -inf, 2, 9007199254740992.0, 9007199254740993, nan]
    """
    if value is None:
        return (0,)
    if isinstance(value, float) and math.isnan(value):
        return (2,)
    if isinstance(value, tuple):
        return (1, tuple(map(sort_key, value)))
    return (1, value)


def are_equal(left: Value, right: Value) -> bool:
    """Whether two values are equal: NaN equals itself, and zero has no sign.

    >>> are_equal(math.nan, math.nan), are_equal(0.0, -0.0), are_equal(2, 2.7)
    (True, True, False)
    """
    return sort_key(left) == sort_key(right)


def unsigned_zero(value: Value) -> Value:
    """The canonical one of equal values: minus zero becomes zero."""
    return 0.0 if isinstance(value, float) and value == 0 else value


def distinct(values: list[Value]) -> list[Value]:
    """Each value once, at its first position.

    >>> distinct([1.0, -0.0, 0.0, 1.0])
    [1.0, 0.0]
    """
    unique_values: list[Value] = []
    for value in values:
        if not any(are_equal(value, other) for other in unique_values):
            unique_values.append(unsigned_zero(value))
    return unique_values
