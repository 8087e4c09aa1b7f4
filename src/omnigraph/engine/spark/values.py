"""Bound values: each placeholder of a plan as an argument of Spark, exact and typed.

Spark guesses the type of an argument from its Python class, shifts dates before 1582 into another
calendar, and needs milliseconds for every item of a list. So a placeholder becomes an expression
that makes the value of the right type from an argument that Spark passes unchanged
(tests/contract/spark/test_values.py).
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, Final, assert_never

from sqlglot import exp

from omnigraph.engine.spark.types import spark_type
from omnigraph.model.types import (
    BlobType,
    EnumType,
    ListType,
    PropertyType,
    Scalar,
    VectorType,
)
from omnigraph.relational.plans import BoundValue

Argument = str | int | float | bool | bytes | Decimal | None

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_ROWS_MAX: Final = 2**31 - 1
"""The greatest LIMIT of Spark; no result has as many rows."""


def bind(
    tree: exp.Query, values: Mapping[str, BoundValue]
) -> tuple[exp.Query, dict[str, Argument]]:
    """A copy of the tree over Spark's arguments, and the arguments."""
    arguments: dict[str, Argument] = {}
    places: dict[str, str] = {}

    def replace_node(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Literal) and isinstance(node.parent, exp.Limit | exp.Offset):
            return exp.Literal.number(min(int(node.name), _ROWS_MAX))
        if not isinstance(node, exp.Placeholder):
            return node
        bound = values[node.name]
        # Spark accepts only names of letters and digits, so placeholders are renamed to numbers.
        place = places.setdefault(node.name, f"v{len(places)}")
        if isinstance(node.parent, exp.Limit):
            arguments[f"{place}n"] = min(bound.value, _ROWS_MAX)
            return exp.Placeholder(this=f"{place}n")
        arguments[place] = argument(bound)
        return value_expression(exp.Placeholder(this=place), bound.type)

    bound_tree = tree.transform(replace_node)
    assert isinstance(bound_tree, exp.Query), "only placeholders were replaced"
    return bound_tree, arguments


def argument(bound: BoundValue) -> Argument:
    """The argument of Spark for a value."""
    if bound.value is None:
        return None
    match bound.type:
        case Scalar() | EnumType() | BlobType():
            return _plain(bound.value, bound.type)
        case ListType(item):
            return json.dumps([_in_json(value, item) for value in bound.value])
        case VectorType():
            return json.dumps([_in_json(value, Scalar.F32) for value in bound.value])
        case _:
            assert_never(bound.type)


def value_expression(place: exp.Expr, type_: PropertyType) -> exp.Expr:
    """The expression that makes a value of the type from its argument; null from null."""
    match type_:
        case Scalar() | EnumType() | BlobType():
            return _make_value(_cast(place, _argument_type(type_)), type_)
        case ListType(item):
            return _make_list(place, item)
        case VectorType():
            return _make_list(place, Scalar.F32)
        case _:
            assert_never(type_)


def _plain(value: Any, type_: Scalar | EnumType | BlobType) -> Argument:
    match type_:
        case Scalar.U64:
            return Decimal(value)
        case Scalar.F32 | Scalar.F64:
            return float(value)
        case Scalar.DATE:
            days: int = (value - _EPOCH.date()).days
            return days
        case Scalar.DATETIME:
            return _microseconds(value)
        case Scalar() | EnumType() | BlobType():
            plain: Argument = value
            return plain
        case _:
            assert_never(type_)


def _microseconds(value: datetime) -> int:
    instant = value if value.tzinfo else value.replace(tzinfo=UTC)
    return (instant - _EPOCH) // timedelta(microseconds=1)


def _in_json(value: Any, item: Scalar | BlobType) -> Any:
    if isinstance(item, BlobType):
        return base64.b64encode(value).decode()
    if item.is_float and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    plain = _plain(value, item)
    return int(plain) if isinstance(plain, Decimal) else plain


def _argument_type(type_: Scalar | EnumType | BlobType) -> str:
    match type_:
        case Scalar.DATE:
            return "INT"
        case Scalar.DATETIME:
            return "BIGINT"
        case _:
            return spark_type(type_).simpleString()


def _make_value(argument: exp.Expr, type_: Scalar | EnumType | BlobType) -> exp.Expr:
    match type_:
        case Scalar.DATE:
            return exp.Anonymous(this="DATE_FROM_UNIX_DATE", expressions=[argument])
        case Scalar.DATETIME:
            return exp.Anonymous(this="TIMESTAMP_MICROS", expressions=[argument])
        case _:
            return argument


def _make_list(place: exp.Expr, item: Scalar | BlobType) -> exp.Expr:
    kind = exp.Literal.string(f"array<{_argument_type(item)}>")
    # Without it, anything unreadable would silently become null.
    mode = exp.Anonymous(
        this="MAP", expressions=list(map(exp.Literal.string, ["mode", "FAILFAST"]))
    )
    items = exp.Anonymous(this="FROM_JSON", expressions=[_cast(place, "STRING"), kind, mode])
    if item not in (Scalar.DATE, Scalar.DATETIME):
        return items
    name = exp.to_identifier("each")
    convert = exp.Lambda(this=_make_value(exp.column("each"), item), expressions=[name])
    return exp.Anonymous(this="TRANSFORM", expressions=[items, convert])


def _cast(tree: exp.Expr, type_: str) -> exp.Cast:
    return exp.Cast(this=tree, to=exp.DataType.build(type_, dialect="spark"))
