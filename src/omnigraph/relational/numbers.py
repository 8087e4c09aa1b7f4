"""Converts a number to a column's type without changing the outcome of a comparison with it."""

from __future__ import annotations

import math
import struct
from enum import Enum

from omnigraph.model.types import INTEGER_BOUNDS, Scalar

Number = int | float


class Comparator(Enum):
    """The six comparisons of numbers."""

    EQ = "="
    NE = "!="
    LT = "<"
    LE = "<="
    GT = ">"
    GE = ">="


def rewrite_comparison(
    comparator: Comparator, value: Number, type_: Scalar
) -> tuple[Comparator, Number] | bool:
    """An equivalent of `column comparator value` with a number of the column's type.

    A plain bool if the outcome is the same for every number of the type. NaN is greater than every
    other number.

    >>> rewrite_comparison(Comparator.LT, 2.7, Scalar.I64)
    (<Comparator.LE: '<='>, 2)
    >>> rewrite_comparison(Comparator.EQ, 2.7, Scalar.I64)
    False
    >>> rewrite_comparison(Comparator.NE, 2**40, Scalar.I32)
    True
    """
    exact = to_exact(value, type_)
    if exact is not None:
        return comparator, exact
    if comparator in (Comparator.EQ, Comparator.NE):
        return comparator is Comparator.NE
    wants_less = comparator in (Comparator.LT, Comparator.LE)
    below = _greatest_below(value, type_)
    if below is None:
        return not wants_less
    return Comparator.LE if wants_less else Comparator.GT, below


def to_exact(value: Number, type_: Scalar) -> Number | None:
    """The same number as a value of the type, or None if the type has no such number.

    >>> to_exact(3.0, Scalar.I32), to_exact(2**53 + 1, Scalar.F64), to_exact(0.1, Scalar.F32)
    (3, None, None)
    """
    if type_.is_float:
        rounded = _round(value, type_)
        return rounded if rounded == value or math.isnan(rounded) else None
    if isinstance(value, float):
        if not value.is_integer():
            return None
        value = int(value)
    low, high = INTEGER_BOUNDS[type_]
    return value if low <= value <= high else None


def _greatest_below(value: Number, type_: Scalar) -> Number | None:
    """The greatest number of the type below a value that the type does not have."""
    if type_.is_float:
        rounded = _round(value, type_)
        return rounded if rounded < value else _next_below(rounded, type_)
    low, high = INTEGER_BOUNDS[type_]
    if isinstance(value, float):
        if not math.isfinite(value):
            return None if value == -math.inf else high
        value = math.floor(value)
    return None if value < low else min(value, high)


def _round(value: Number, type_: Scalar) -> float:
    try:
        double = float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf
    if type_ is Scalar.F64:
        return double
    try:
        return float(struct.unpack("<f", struct.pack("<f", double))[0])
    except OverflowError:
        return math.copysign(math.inf, double)


def _next_below(value: float, type_: Scalar) -> float:
    if type_ is Scalar.F64:
        return math.nextafter(value, -math.inf)
    if value == 0:
        return -(2.0**-149)
    (bits,) = struct.unpack("<I", struct.pack("<f", value))
    return float(struct.unpack("<f", struct.pack("<I", bits - 1 if value > 0 else bits + 1))[0])
