"""Columns: values of one property made into its type all at once, where they are not in doubt.

The exact converter (`conversion.exact_values`) decides what a value means and what is wrong with
it. This is a faster way to its answer for values that plainly have one. A value that might be
refused, rounded or read differently is in doubt and becomes null, and is left to the converter. A
column whose values cannot be told apart raises `Doubt`. `conversion.readings` deals with both.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable
from enum import Enum
from typing import Any, Final, assert_never

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from omnigraph.model.types import (
    INTEGER_BOUNDS,
    BlobType,
    EnumType,
    ListType,
    PropertyType,
    Scalar,
    VectorType,
)

_DATE: Final = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"
_INSTANT: Final = (
    r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?"
    r"(Z|[+-][01][0-9]:[0-5][0-9])$"
)
_LOCAL_INSTANT: Final = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?$"
_WHOLE: Final = r"^-?[0-9]{1,18}(\.0+)?$"
_NATURAL: Final = r"^[0-9]{1,19}(\.0+)?$"
_FRACTION: Final = r"\.0+$"
_DECIMAL: Final = r"^-?[0-9]{1,15}(\.[0-9]{1,30})?([eE][+-]?[0-9]{1,2})?$"
_PLAIN_LIST: Final = r"^\[[^{}]*\]$"

_DAYS: Final = (-719_162, 2_932_896)
"""The first and last day that Python has, in the years 1 and 9999, counted as in Arrow."""

_MICROSECONDS: Final = (_DAYS[0] * 86_400_000_000, (_DAYS[1] + 1) * 86_400_000_000 - 1)

_EXACT_F64: Final = float(2**53)
_EXACT_F32: Final = float(2**24)
"""Below these every whole number is a float: one that was rounded is not below them."""


class Doubt(Exception):
    """Some values of a column are not clearly of its type."""


class Notation(Enum):
    """How the values of a column are written, which determines their possible meanings."""

    VALUES = "typed values, as Arrow and Parquet have them"
    JSON = "read from JSON, where a float may have been a whole number"
    TEXT = "text for everything, as CSV has it"


def json_type(type_: PropertyType, *, has_fractions: bool = False) -> pa.DataType:
    """The Arrow type that a JSON value of a property is read as, without loss.

    Args:
        has_fractions: Whether integers may be written `3.0`. Large ones are in doubt then.
    """
    match type_:
        case Scalar.BOOL:
            return pa.bool_()
        case Scalar.F32 | Scalar.F64:
            return pa.float64()
        case Scalar() if type_.is_integer and has_fractions:
            return pa.float64()
        case Scalar.I32 | Scalar.I64 | Scalar.U32 | Scalar.U64:
            return _INTEGERS[type_]
        case Scalar() | EnumType() | BlobType():
            return pa.utf8()
        case ListType(item):
            return pa.list_(json_type(item, has_fractions=has_fractions))
        case VectorType():
            return pa.list_(pa.float64())
        case _:
            assert_never(type_)


def convert_column(
    type_: PropertyType, values: pa.Array, kind: pa.DataType, notation: Notation
) -> pa.Array:
    """The values as their property holds them, as an array of the Arrow type `kind`.

    A value that only the exact converter can convert becomes null.
    """
    values = _to_plain(values)
    if values.null_count == len(values):
        return pa.nulls(len(values), kind)
    try:
        match type_:
            case Scalar():
                return _SCALARS[type_](values, type_, notation)
            case EnumType():
                return _text(values, type_, notation)
            case BlobType():
                return _bytes(values, kind)
            case ListType(item):
                return _list(item, _to_lists(values, type_, notation), kind, notation)
            case VectorType(dimension):
                return _vector(dimension, _to_lists(values, type_, notation), kind, notation)
            case _:
                assert_never(type_)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as cause:
        raise Doubt from cause


def find_doubtful(values: pa.Array, typed: pa.Array) -> npt.NDArray[np.int64]:
    """The places of values that `convert_column` left to the exact converter."""
    if typed.null_count == values.null_count:
        return np.empty(0, np.int64)
    is_doubtful = pc.and_(values.is_valid(), typed.is_null())
    return np.flatnonzero(is_doubtful.to_numpy(zero_copy_only=False))


def _to_plain(values: pa.Array) -> pa.Array:
    """The same values in the one Arrow type that this module uses for them."""
    kind = values.type
    if isinstance(kind, pa.BaseExtensionType):
        raise Doubt
    if pa.types.is_dictionary(kind):
        return _to_plain(values.dictionary_decode())
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return values.cast(pa.utf8())
    if _is_list(kind) and not pa.types.is_list(kind):
        return values.cast(pa.list_(kind.value_type))
    return values


def _is_list(kind: pa.DataType) -> bool:
    return any(
        test(kind)
        for test in (
            pa.types.is_list,
            pa.types.is_large_list,
            pa.types.is_fixed_size_list,
            pa.types.is_list_view,
            pa.types.is_large_list_view,
        )
    )


def _require(truth: object) -> None:
    if not truth:
        raise Doubt


def _only(values: pa.Array, truths: pa.Array) -> pa.Array:
    """The values for which a truth holds; the others are in doubt."""
    if pc.all(truths, min_count=0).as_py():
        return values
    return pc.if_else(truths, values, pa.scalar(None, values.type))


def _only_like(values: pa.Array, pattern: str) -> pa.Array:
    return _only(values, pc.match_substring_regex(values, pattern))


def _only_within(values: pa.Array, numbers: pa.Array, low: int, high: int) -> pa.Array:
    """The values whose numbers are within bounds, both included."""
    kind = numbers.type
    is_within = pc.and_(
        pc.greater_equal(numbers, pa.scalar(low, kind)),
        pc.less_equal(numbers, pa.scalar(high, kind)),
    )
    return _only(values, is_within)


def _text(values: pa.Array, type_: PropertyType, notation: Notation) -> pa.Array:  # noqa: ARG001
    _require(pa.types.is_string(values.type))
    return values


def _truth(values: pa.Array, type_: Scalar, notation: Notation) -> pa.Array:  # noqa: ARG001
    if notation is Notation.TEXT:
        values = _only(values, pc.is_in(values, value_set=pa.array(["true", "false", None])))
        return pc.equal(values, "true")
    _require(pa.types.is_boolean(values.type))
    return values


def _integer(values: pa.Array, type_: Scalar, notation: Notation) -> pa.Array:
    if notation is Notation.TEXT:
        values = _read_integers(values)
    kind = values.type
    low, high = INTEGER_BOUNDS[type_]
    if pa.types.is_floating(kind):
        values = values.cast(pa.float64())
        values = _only(values, pc.equal(values, pc.floor(values)))
        # A greater one may have been rounded when it was read, and the greatest are out of bounds.
        exact = int(_EXACT_F64) - 1
        values = _only_within(values, values, max(low, -exact), min(high, exact))
    else:
        _require(pa.types.is_integer(kind))
        own_low, own_high = _bounds(kind)
        values = _only_within(values, values, max(low, own_low), min(high, own_high))
    return values.cast(_INTEGERS[type_])


def _read_integers(texts: pa.Array) -> pa.Array:
    """The texts as 64-bit integers: unsigned, unless one is negative."""
    is_signed = pc.any(pc.starts_with(texts, "-"), min_count=0).as_py()
    texts = _only_like(texts, _WHOLE if is_signed else _NATURAL)
    if pc.any(pc.match_substring(texts, "."), min_count=0).as_py():
        # What pandas writes for a column of integers that has nulls.
        texts = pc.replace_substring_regex(texts, _FRACTION, "")
    return texts.cast(pa.int64() if is_signed else pa.uint64())


def _bounds(kind: pa.DataType) -> tuple[int, int]:
    bits = kind.bit_width
    if pa.types.is_signed_integer(kind):
        return -(1 << (bits - 1)), (1 << (bits - 1)) - 1
    return 0, (1 << bits) - 1


def _float(values: pa.Array, type_: Scalar, notation: Notation) -> pa.Array:
    exact = _EXACT_F32 if type_ is Scalar.F32 else _EXACT_F64
    if notation is Notation.TEXT:
        values = _only_like(values, _DECIMAL).cast(pa.float64())
    if pa.types.is_integer(values.type):
        low, high = _bounds(values.type)
        values = _only_within(values, values, max(low, -int(exact)), min(high, int(exact)))
        values = values.cast(pa.float64())
    _require(pa.types.is_floating(values.type))
    values = values.cast(pa.float64())
    if notation is not Notation.VALUES:
        # A whole number that the type cannot represent was rounded to `exact` or above.
        values = _only(values, pc.less(pc.abs(values), exact))
    floats = values
    if type_ is Scalar.F32:
        floats = values.cast(pa.float32(), safe=False)
        floats = _only(floats, pc.or_(pc.is_finite(floats), pc.invert(pc.is_finite(values))))
    # Minus zero becomes zero, as in the converter.
    return pc.add(floats, pa.scalar(0.0, floats.type))


def _date(values: pa.Array, type_: Scalar, notation: Notation) -> pa.Array:  # noqa: ARG001
    if pa.types.is_string(values.type):
        values = _only_like(values, _DATE).cast(pa.date32())
    _require(pa.types.is_date32(values.type))
    return _only_within(values, values.view(pa.int32()), *_DAYS)


def _instant(values: pa.Array, type_: Scalar, notation: Notation) -> pa.Array:  # noqa: ARG001
    if pa.types.is_string(values.type):
        if pc.all(pc.match_substring_regex(values, _INSTANT), min_count=0).as_py():
            values = values.cast(pa.timestamp("us", tz="UTC"))
        else:
            # Without an offset it is UTC; those with one among them are left to the converter.
            values = _only_like(values, _LOCAL_INSTANT).cast(pa.timestamp("us"))
    _require(pa.types.is_timestamp(values.type))
    instants = values.cast(pa.timestamp("us", tz=values.type.tz), safe=True)
    instants = _only_within(instants, instants.view(pa.int64()), *_MICROSECONDS)
    return instants.view(pa.timestamp("us", tz="UTC"))


def _bytes(values: pa.Array, kind: pa.DataType) -> pa.Array:
    if pa.types.is_string(values.type):
        values = _only(values, pc.starts_with(values, "base64:"))
        try:
            contents = [
                None if text is None else b64decode(text[7:], validate=True)
                for text in values.to_pylist()
            ]
        except ValueError as cause:
            raise Doubt from cause
        return pa.array(contents, kind)
    is_binary = pa.types.is_binary(values.type) or pa.types.is_large_binary(values.type)
    _require(is_binary or pa.types.is_fixed_size_binary(values.type))
    return values.cast(kind)


def _to_lists(values: pa.Array, type_: ListType | VectorType, notation: Notation) -> pa.Array:
    if notation is Notation.TEXT:
        # Without braces in it, no text can end the object that it is put into.
        values = _only_like(values, _PLAIN_LIST)
        lines = pc.binary_join_element_wise(
            '{"v":', values, "}\n", "", null_handling="replace", null_replacement="null"
        )
        values = read_objects(lines, pa.schema([("v", json_type(type_))]))["v"].combine_chunks()
    _require(pa.types.is_list(values.type))
    return values


def _list(
    item: Scalar | BlobType, values: pa.Array, kind: pa.DataType, notation: Notation
) -> pa.Array:
    inside = _convert_items(item, values.flatten(), kind.value_type, notation)
    return pa.ListArray.from_arrays(_offsets(values), inside, type=kind, mask=values.is_null())


def _vector(dimension: int, values: pa.Array, kind: pa.DataType, notation: Notation) -> pa.Array:
    values = _only(values, pc.equal(pc.list_value_length(values), dimension))
    flat = values.flatten()
    _require(flat.null_count == 0)
    inside = _convert_items(Scalar.F32, flat, pa.float32(), notation)
    if values.null_count:
        there = values.is_valid().to_numpy(zero_copy_only=False)
        whole = np.zeros((len(values), dimension), dtype=np.float32)
        whole[there] = inside.to_numpy().reshape(-1, dimension)
        inside = pa.array(whole.reshape(-1))
    return pa.FixedSizeListArray.from_arrays(inside, type=kind, mask=values.is_null())


def _convert_items(
    type_: Scalar | BlobType, items: pa.Array, kind: pa.DataType, notation: Notation
) -> pa.Array:
    item_notation = Notation.JSON if notation is Notation.TEXT else notation
    typed = convert_column(type_, items, kind, item_notation)
    # A null item says nothing of the list that it is in.
    _require(typed.null_count == items.null_count)
    return typed


def _offsets(values: pa.Array) -> pa.Array:
    lengths = pc.fill_null(pc.list_value_length(values), 0).to_numpy()
    return pa.array(np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32))


def read_objects(lines: pa.Array, schema: pa.Schema, *, ignores_unknown: bool = False) -> pa.Table:
    """One row for each of some lines of JSON, each with its newline.

    Each line must begin with a brace and hold one object, or Arrow might not survive it.
    """
    _, offsets, data = lines.buffers()
    span = np.frombuffer(offsets, np.int32)[lines.offset : lines.offset + len(lines) + 1]
    text = data.slice(int(span[0]), int(span[-1] - span[0]))
    try:
        table = pj.read_json(
            pa.BufferReader(text),
            read_options=pj.ReadOptions(use_threads=True, block_size=_JSON_BLOCK_BYTES),
            parse_options=pj.ParseOptions(
                explicit_schema=schema,
                newlines_in_values=False,
                unexpected_field_behavior="ignore" if ignores_unknown else "error",
            ),
        )
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as cause:
        raise Doubt from cause
    _require(table.num_rows == len(lines))
    return table


_JSON_BLOCK_BYTES: Final = 1 << 20

_INTEGERS: Final[dict[Scalar, pa.DataType]] = {
    Scalar.I32: pa.int32(),
    Scalar.I64: pa.int64(),
    Scalar.U32: pa.uint32(),
    Scalar.U64: pa.uint64(),
}

_SCALARS: Final[dict[Scalar, Callable[[Any, Scalar, Notation], Any]]] = {
    Scalar.STRING: _text,
    Scalar.BOOL: _truth,
    **dict.fromkeys(_INTEGERS, _integer),
    Scalar.F32: _float,
    Scalar.F64: _float,
    Scalar.DATE: _date,
    Scalar.DATETIME: _instant,
}
