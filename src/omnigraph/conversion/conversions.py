"""Conversions: a column of one type as a column of another, every value exactly or not at all.

A value converts if the target has the same number, truth or instant. Texts are canonical, and
are read as in a CSV file: the float nearest to a decimal fraction, an instant without an offset in
UTC. A date is midnight in UTC. Nothing becomes null but null.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.conversion.exact_values import convert_value
from omnigraph.conversion.readings import NONE_REFUSED, TypedColumn, explain_value, read_column
from omnigraph.conversion.texts import format_values
from omnigraph.conversion.typed_columns import Notation
from omnigraph.model.types import INTEGER_BOUNDS, Scalar
from omnigraph.schema.arrow import value_field
from omnigraph.schema.retyping import CONVERSIONS
from omnigraph.schema.values import Misfit

_Truths = npt.NDArray[np.bool_]

_DAY_MICROSECONDS: Final = 86_400_000_000
_MANTISSA_BITS: Final = {Scalar.F32: 24, Scalar.F64: 53}
_BITS: Final[Mapping[Scalar, Callable[[np.ndarray], np.ndarray]]] = {
    Scalar.F32: lambda values: values.astype(np.float32),
    Scalar.F64: lambda values: values.astype(np.float64),
}


def convert_values(source: Scalar, target: Scalar, values: pa.Array) -> TypedColumn:
    """The values of a type as those of another, which is among its `CONVERSIONS`."""
    assert target in CONVERSIONS[source], f"{source} does not become {target}"
    if target is Scalar.STRING:
        return TypedColumn(format_values(source, values), NONE_REFUSED)
    if source is Scalar.STRING:
        return read_column(target, values, Notation.TEXT)
    exact = _find_exact(source, target, values)
    refused = NONE_REFUSED if exact.all() else np.flatnonzero(~exact)
    if len(refused):
        values = pc.if_else(pa.array(exact), values, pa.scalar(None, values.type))
    return TypedColumn(_cast(target, values), refused)


def explain_conversion(source: Scalar, target: Scalar, value: object) -> Misfit:
    """Why a value does not convert, in the words of a load where a load refuses it, too."""
    if source is Scalar.STRING:
        return explain_value(target, value, Notation.TEXT)
    if isinstance(value, datetime):
        return Misfit(f"{value} is not of type {target}", "only midnight in UTC is a date")
    misfit = convert_value(target, value)
    if isinstance(misfit, Misfit):
        return misfit
    return Misfit(f"{value} is not exactly a number of type {target}")


def _cast(target: Scalar, values: pa.Array) -> pa.Array:
    kind = value_field("", target, nullable=True).type
    if target is Scalar.DATETIME:
        return values.cast(pa.timestamp("us")).view(kind)
    if target is Scalar.DATE:
        return values.view(pa.timestamp("us")).cast(kind)
    typed = values.cast(kind, safe=False)
    # Minus zero becomes zero, as in loads.
    return pc.add(typed, pa.scalar(0.0, kind)) if target.is_float else typed


def _find_exact(source: Scalar, target: Scalar, values: pa.Array) -> _Truths:
    """The values that the target has, nulls included."""
    if source in (Scalar.BOOL, Scalar.DATE):
        return np.ones(len(values), np.bool_)
    if source is Scalar.DATETIME:
        microseconds = values.view(pa.int64()).fill_null(0).to_numpy()
        return _truths(microseconds % _DAY_MICROSECONDS == 0)
    numbers = values.fill_null(0).to_numpy()
    if target is Scalar.BOOL:
        return _truths((numbers == 0) | (numbers == 1))
    if source.is_float:
        return _exact_floats(numbers, target)
    if target.is_float:
        return _exact_in_float(numbers, target)
    return _in_bounds(numbers, source, target)


def _exact_floats(numbers: np.ndarray, target: Scalar) -> _Truths:
    if target.is_float:
        with np.errstate(over="ignore"):
            rounded = _BITS[target](numbers)
        return _truths((rounded == numbers) | np.isnan(numbers))
    low, high = INTEGER_BOUNDS[target]
    # The bound above is excluded: it is a power of two, and so a float of either width.
    wide = numbers.astype(np.float64)
    return _truths((wide == np.floor(wide)) & (wide >= float(low)) & (wide < float(high + 1)))


def _exact_in_float(numbers: np.ndarray, target: Scalar) -> _Truths:
    """Integers whose significant bits fit in the mantissa of a float."""
    sizes = numbers.astype(np.uint64)
    # The negation of an unsigned number is its size if it stands for a negative one.
    sizes = np.where(numbers < 0, np.negative(sizes), sizes)
    lowest_bit = sizes & np.negative(sizes)
    significant = sizes // np.maximum(lowest_bit, np.uint64(1))
    return _truths(significant < np.uint64(1 << _MANTISSA_BITS[target]))


def _in_bounds(numbers: np.ndarray, source: Scalar, target: Scalar) -> _Truths:
    source_low, source_high = INTEGER_BOUNDS[source]
    low, high = INTEGER_BOUNDS[target]
    inside = np.ones(len(numbers), np.bool_)
    # A bound that the source cannot reach is not compared with: numpy would round both.
    if low > source_low:
        inside &= numbers >= numbers.dtype.type(low)
    if high < source_high:
        inside &= numbers <= numbers.dtype.type(high)
    return inside


def _truths(values: np.ndarray) -> _Truths:
    return np.asarray(values, np.bool_)
