"""Selections: the columns and the rows that a frame declares, so that nothing else is read for it.

Spark tells a source written in Python no columns, and applies the filters of one use of a frame to
all its uses (docs/decisions/0026). What is declared when the frame is made holds for every use.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime
from typing import Any, Final

from sqlglot import exp, parse_one
from sqlglot.errors import ParseError

from omnigraph.connector.pushdown import Condition, filter_text
from omnigraph.errors import InvalidParameterError
from omnigraph.model.types import PropertyType, Scalar
from omnigraph.schema.arrow import table_schema
from omnigraph.schema.catalog import SchemaType

_COMPARISONS: Final[Mapping[type[exp.Expr], str]] = {
    exp.EQ: "EqualTo",
    exp.GT: "GreaterThan",
    exp.GTE: "GreaterThanOrEqual",
    exp.LT: "LessThan",
    exp.LTE: "LessThanOrEqual",
}

# Python reads more forms of dates than Spark, such as 20200101 and weeks. Without an offset, what
# Spark takes a time for depends on the session.
_DATE: Final = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_DATETIME: Final = re.compile(
    r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(\.\d{1,6})?(Z|[+-]\d\d:\d\d)", re.ASCII
)

_HINT: Final = "compare columns with constants, and leave the rest to the where of the frame"


class _NotExactError(Exception):
    """Lance does not evaluate this as Spark does."""


def select_columns(type_: SchemaType, names: tuple[str, ...]) -> tuple[str, ...]:
    """The names, each of which is a column of the type, and stands once."""
    every = table_schema(type_).names
    for place, name in enumerate(names):
        if name not in every:
            message = f"{type_.name} has no column {name!r}"
            hint = f"its columns are {', '.join(every)}"
            raise InvalidParameterError(message, hint=hint, name="columns")
        if name in names[:place]:
            message = f"the column {name} is named twice"
            raise InvalidParameterError(message, hint="name it once", name="columns")
    return names


def select_rows(type_: SchemaType, text: str) -> tuple[str, ...]:
    """The conditions of a filter in Spark's SQL, joined by AND, in Lance's syntax."""
    try:
        tree = parse_one(text, dialect="spark")
    except ParseError as cause:
        message = f"the filter {text!r} is not SQL: {str(cause).splitlines()[0]}"
        raise InvalidParameterError(message, hint=_HINT, name="where") from cause
    types: dict[str, PropertyType] = dict.fromkeys(table_schema(type_).names, Scalar.STRING)
    types |= {property_.name: property_.type for property_ in type_.properties}
    return tuple(_in_lance(condition, types, type_.name) for condition in _conditions(tree))


def _conditions(tree: exp.Expr) -> Iterator[exp.Expr]:
    tree = tree.unnest()
    if isinstance(tree, exp.And):
        for side in (tree.left, tree.right):
            yield from _conditions(side)
    elif isinstance(tree, exp.Between):
        yield exp.GTE(this=tree.this, expression=tree.args["low"])
        yield exp.LTE(this=tree.this, expression=tree.args["high"])
    else:
        yield tree


def _in_lance(condition: exp.Expr, types: Mapping[str, PropertyType], type_name: str) -> str:
    for column in condition.find_all(exp.Column):
        if column.table or column.name not in types:
            message = f"{type_name} has no column {column.sql(dialect='spark')}"
            hint = f"its columns are {', '.join(types)}"
            raise InvalidParameterError(message, hint=hint, name="where")
    try:
        text = filter_text(_to_condition(condition, types), types)
    # The others are for days that no calendar has.
    except (_NotExactError, ValueError, OverflowError):
        text = None
    if text is None:
        shown = condition.sql(dialect="spark")
        message = f"a frame cannot declare the filter {shown!r}: Lance may select other rows"
        raise InvalidParameterError(message, hint=_HINT, name="where")
    return text


def _to_condition(condition: exp.Expr, types: Mapping[str, PropertyType]) -> Condition:
    condition = condition.unnest()
    if isinstance(condition, exp.Not):
        return Condition("Not", negated=_to_condition(condition.this, types))
    if isinstance(condition, exp.NEQ):
        equal = exp.EQ(this=condition.this, expression=condition.expression)
        return Condition("Not", negated=_to_condition(equal, types))
    column = condition.this
    if not isinstance(column, exp.Column):
        raise _NotExactError
    path, type_ = (column.name,), types[column.name]
    if isinstance(condition, exp.Is) and isinstance(condition.expression, exp.Null):
        return Condition("IsNull", path)
    if isinstance(condition, exp.In) and condition.expressions:
        return Condition("In", path, tuple(_value(each, type_) for each in condition.expressions))
    comparison = _COMPARISONS.get(type(condition))
    if comparison is None:
        raise _NotExactError
    return Condition(comparison, path, _value(condition.expression, type_))


def _value(node: exp.Expr, type_: PropertyType) -> Any:
    """The constant as a value of the column's type."""
    node = node.unnest()
    if isinstance(node, exp.Cast):
        # DATE'2020-01-01' of such a column. Of a text, Spark would compare the dates.
        if type_ not in (Scalar.DATE, Scalar.DATETIME):
            raise _NotExactError
        node = node.this
    if isinstance(node, exp.Boolean):
        return bool(node.this)
    is_negative = isinstance(node, exp.Neg)
    literal = node.this if is_negative else node
    if not isinstance(literal, exp.Literal):
        raise _NotExactError
    text = str(literal.this)
    if not literal.is_string:
        if not text.isdecimal():
            raise _NotExactError
        return -int(text) if is_negative else int(text)
    match type_:
        case Scalar.DATE:
            return date.fromisoformat(_require_form(_DATE, text))
        case Scalar.DATETIME:
            return datetime.fromisoformat(_require_form(_DATETIME, text)).astimezone(UTC)
        case _:
            return text


def _require_form(form: re.Pattern[str], text: str) -> str:
    if form.fullmatch(text) is None:
        raise _NotExactError
    return text
