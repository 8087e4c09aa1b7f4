"""Comparing an engine's rows with the reference's: exact, save where floats were added."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import datetime

from omnigraph.model.types import Scalar
from omnigraph.query.ir import Aggregate, AggregateFunction, Expression, ReadQuery, Value
from omnigraph.testing.aggregates import Rounded
from omnigraph.testing.equality import are_equal, sort_key

ResultRow = Mapping[str, Value]


def assert_same_rows(
    query: ReadQuery, expected: Sequence[ResultRow], found: Sequence[ResultRow]
) -> None:
    """Hold an engine to what the reference returned for the same query.

    Columns have the same names in the same order, values the same Python type. The order of rows is
    exact unless it depends on a number that was rounded; then rows may stand in any order, and if
    a limit cuts such an order, only their number counts.
    """
    names = [each.name for each in query.columns]
    for row in found:
        assert list(row) == names, f"columns {list(row)}, not {names}"
    assert len(found) == len(expected), f"{_shown(found)}\nis not\n{_shown(expected)}"
    if is_left_to_rounding(query):
        return
    if _has_rounded_order(query):
        expected, found = _by_exact_columns(query, expected), _by_exact_columns(query, found)
    for wanted, row in zip(expected, found, strict=True):
        for column in query.columns:
            message = (
                f"{column.name} is {row[column.name]!r}, not {wanted[column.name]!r}, in\n"
                f"{_shown(found)}\nwhich should be\n{_shown(expected)}"
            )
            summed = isinstance(column.expression, Aggregate)
            same = _are_same(wanted[column.name], row[column.name], signed_zero=not summed)
            assert same, message


def is_left_to_rounding(query: ReadQuery) -> bool:
    """Whether a limit cuts an order that depends on a rounded number: any rows may then be left."""
    return query.limit is not None and _has_rounded_order(query)


def _has_rounded_order(query: ReadQuery) -> bool:
    return any(_is_rounded(each.expression) for each in query.order)


def _are_same(wanted: Value, found: Value, *, signed_zero: bool) -> bool:
    if isinstance(wanted, Rounded):
        return isinstance(found, float) and _is_within(wanted, found)
    if isinstance(wanted, tuple) and isinstance(found, tuple):
        pairs = zip(wanted, found, strict=False)
        return len(wanted) == len(found) and all(
            _are_same(*pair, signed_zero=signed_zero) for pair in pairs
        )
    if type(wanted) is not type(found) or not are_equal(wanted, found):
        return False
    if isinstance(wanted, datetime) and isinstance(found, datetime):
        return wanted.utcoffset() == found.utcoffset()
    if isinstance(wanted, float) and isinstance(found, float) and signed_zero and wanted == 0:
        return math.copysign(1, wanted) == math.copysign(1, found)
    return True


def _is_within(wanted: Rounded, found: float) -> bool:
    if math.isinf(wanted.slack) or are_equal(wanted, found):
        return True
    return abs(wanted - found) <= wanted.slack


def _is_rounded(expression: Expression) -> bool:
    return isinstance(expression, Aggregate) and (
        expression.function is AggregateFunction.AVG
        or (expression.function is AggregateFunction.SUM and expression.type is Scalar.F64)
    )


def _by_exact_columns(query: ReadQuery, rows: Sequence[ResultRow]) -> list[ResultRow]:
    exact = [each.name for each in query.columns if not _is_rounded(each.expression)]
    return sorted(rows, key=lambda row: [sort_key(row[name]) for name in exact])


def _shown(rows: Sequence[ResultRow]) -> str:
    return "\n".join(map(repr, rows)) or "no rows"
