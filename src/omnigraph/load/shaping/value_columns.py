"""Columns of Python values: dictionaries as Arrow columns, where each clearly has one type."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime
from itertools import chain
from typing import Any, Final

import pyarrow as pa

from omnigraph.conversion.typed_columns import Doubt

_NOTHING: Final = type(None)
_KINDS: Final[dict[type, pa.DataType]] = {
    bool: pa.bool_(),
    int: pa.int64(),
    float: pa.float64(),
    str: pa.utf8(),
    bytes: pa.large_binary(),
    date: pa.date32(),
}
_EXACT: Final = 2**24
"""Below it every whole number is exact in a float of either width."""


def columns_of(rows: Sequence[Mapping[str, Any]]) -> dict[str, pa.Array]:
    """The rows as columns of the same values."""
    names = rows[0].keys()
    if not all(row.keys() == names for row in rows):
        raise Doubt
    try:
        return {name: _column([row[name] for row in rows]) for name in names}
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError, UnicodeEncodeError) as cause:
        raise Doubt from cause


def _column(values: list[Any]) -> pa.Array:
    kinds = _kinds(values)
    if kinds <= {list, tuple} and kinds:
        items = list(chain.from_iterable(filter(None, values)))
        return pa.array(values, pa.list_(_type(_kinds(items), items)))
    return pa.array(values, _type(kinds, values))


def _kinds(values: Iterable[Any]) -> set[type]:
    return set(map(type, values)) - {_NOTHING}


def _type(kinds: set[type], values: list[Any]) -> pa.DataType:
    if not kinds:
        return pa.null()
    if kinds == {datetime}:
        return _instants(values)
    if kinds == {int, float}:
        if any(type(value) is int and not -_EXACT < value < _EXACT for value in values):
            raise Doubt
        return pa.float64()
    if len(kinds) > 1 or not kinds <= _KINDS.keys():
        raise Doubt
    [kind] = kinds
    is_large = kind is int and max(value for value in values if value is not None) >= 2**63
    return pa.uint64() if is_large else _KINDS[kind]


def _instants(values: list[Any]) -> pa.DataType:
    zoned = {value.tzinfo is not None for value in values if value is not None}
    if len(zoned) > 1:
        raise Doubt
    return pa.timestamp("us", tz="UTC" if zoned == {True} else None)
