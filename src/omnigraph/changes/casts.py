"""Casts: values of one property type as values of another one, exactly or not at all.

Two commits may give a property different types. Its values are compared as values of one of them,
so a value that was converted by a schema change equals the value that it was converted from.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from datetime import UTC, date, datetime, time
from typing import Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.changes.digests import digests_of, is_wide
from omnigraph.model.identity import format_member
from omnigraph.model.types import EnumType, PropertyType, Scalar
from omnigraph.relational.numbers import to_exact
from omnigraph.schema.values import Misfit, fit

_Plain: TypeAlias = str | int | float | bool | date | datetime

_INTEGER: Final = re.compile(r"-?[0-9]{1,20}")
_NUMBER: Final = re.compile(r"-?[0-9]{1,400}(\.[0-9]{1,400})?([eE][+-]?[0-9]{1,9})?")
_NOT_FINITE: Final = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
_BOOLS: Final = {"true": True, "false": False}

_WIDER: Final = {
    Scalar.BOOL: {Scalar.I32, Scalar.I64, Scalar.U32, Scalar.U64, Scalar.F32, Scalar.F64},
    Scalar.I32: {Scalar.I64, Scalar.F64},
    Scalar.U32: {Scalar.I64, Scalar.U64, Scalar.F64},
    Scalar.F32: {Scalar.F64},
    Scalar.DATE: {Scalar.DATETIME},
}
"""The types that have every value of a type; texts have every value of each."""


def is_total(source: PropertyType, wanted: PropertyType) -> bool:
    """Whether every value of a type is exactly a value of another type.

    >>> is_total(Scalar.I32, Scalar.I64), is_total(Scalar.I64, Scalar.F64)
    (True, False)
    """
    source, wanted = _stored(source), _stored(wanted)
    if not isinstance(source, Scalar):
        return False
    return wanted is Scalar.STRING or wanted in _WIDER.get(source, ())


def cast_exactly(
    values: pa.ChunkedArray, source: PropertyType, wanted: PropertyType, kind: pa.DataType
) -> pa.ChunkedArray:
    """The values as those of another type; null where the other type has no such value.

    A number is a text in the spelling of keys (`model.identity`), a day is its midnight in UTC, and
    a truth value is 0 or 1; and the other way around. Lists, vectors and blobs of other types have
    no common value.

    Args:
        kind: The Arrow type of the wanted property.
    """
    source, wanted = _stored(source), _stored(wanted)
    if not isinstance(source, Scalar) or not isinstance(wanted, Scalar):
        return pa.chunked_array([pa.nulls(len(values), kind)], kind)
    if (converted := _cast_by_arrow(values, source, wanted, kind)) is not None:
        return converted
    return _by_distinct_values(values, lambda value: _convert(value, source, wanted), kind)


def describe_values(values: pa.ChunkedArray, is_wanted: pa.ChunkedArray) -> pa.ChunkedArray:
    """Texts that are equal for equal values; null where they are not wanted."""
    if is_wide(values.type):
        texts = pa.chunked_array([pa.array(digests_of(values.combine_chunks()), pa.utf8())])
    else:
        texts = pa.chunked_array([pa.array(map(repr, values.to_pylist()), pa.utf8())])
    return pc.if_else(is_wanted, texts, pa.scalar(None, pa.utf8()))


def _stored(type_: PropertyType) -> PropertyType:
    return Scalar.STRING if isinstance(type_, EnumType) else type_


def _cast_by_arrow(
    values: pa.ChunkedArray, source: Scalar, wanted: Scalar, kind: pa.DataType
) -> pa.ChunkedArray | None:
    """All values at once; None if Arrow may convert one of them in another way."""
    is_plain_text = wanted is Scalar.STRING and (source.is_integer or source is Scalar.BOOL)
    is_number = source.is_numeric and wanted.is_numeric
    if not (is_plain_text or is_number or wanted in _WIDER.get(source, ())):
        return None
    try:
        converted = values.cast(kind)
    except pa.ArrowInvalid:
        return None
    if wanted is Scalar.F32 and is_number:
        # Arrow rounds here without a word.
        is_exact = pc.equal(converted.cast(pa.float64()), values.cast(pa.float64()))
        return converted if pc.all(is_exact, min_count=0).as_py() else None
    return converted


def _by_distinct_values(
    values: pa.ChunkedArray, convert: Callable[[_Plain], _Plain | None], kind: pa.DataType
) -> pa.ChunkedArray:
    """Convert each distinct value once."""
    parts = []
    for part in values.chunks:
        encoded = part.dictionary_encode()
        distinct = [convert(value) for value in encoded.dictionary.to_pylist()]
        parts.append(pa.array(distinct, kind).take(encoded.indices))
    return pa.chunked_array(parts, kind)


def _convert(value: _Plain, source: Scalar, wanted: Scalar) -> _Plain | None:
    """A value as the same value of another type, or None if that type has none.

    >>> _convert(0.1, Scalar.F64, Scalar.STRING), _convert("2.50", Scalar.STRING, Scalar.F64)
    ('0.1', 2.5)
    >>> _convert(2.5, Scalar.F64, Scalar.I32), _convert(date(2024, 1, 1), Scalar.DATE, Scalar.I32)
    (None, None)
    """
    match value:
        case _ if wanted is Scalar.STRING:
            return _spell(value, source)
        case str():
            return _parse(value, wanted)
        case datetime():
            midnight = value.timetz().replace(tzinfo=None) == time()
            return value.date() if wanted is Scalar.DATE and midnight else None
        case date():
            is_instant = wanted is Scalar.DATETIME
            return datetime.combine(value, time(), UTC) if is_instant else None
        case _ if wanted is Scalar.BOOL:
            return bool(value) if value in (0, 1) else None
        case _ if wanted.is_numeric:
            return _to_number(value, wanted)
        case _:
            return None


def _to_number(value: int | float, wanted: Scalar) -> int | float | None:
    return to_exact(int(value) if isinstance(value, bool) else value, wanted)


def _spell(value: _Plain, source: Scalar) -> str:
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return format_member(source, value)


def _parse(text: str, wanted: Scalar) -> _Plain | None:
    if wanted is Scalar.BOOL:
        return _BOOLS.get(text)
    if wanted.is_integer:
        return to_exact(int(text), wanted) if _INTEGER.fullmatch(text) else None
    if wanted.is_float:
        if text in _NOT_FINITE:
            return _NOT_FINITE[text]
        number = fit(wanted, float(text)) if _NUMBER.fullmatch(text) else Misfit(text)
    else:
        number = fit(wanted, text)
    return None if isinstance(number, Misfit) else number
