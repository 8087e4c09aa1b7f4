"""Compares an engine's rows with the reference's: exactly, except where floats were added."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from omnigraph.model.types import Scalar
from omnigraph.query.functions import AggregateFunction
from omnigraph.query.ir import Aggregate, Expression, ReadQuery, Value
from tests.oracle.aggregates import RoundedFloat
from tests.oracle.equality import are_equal, sort_key

ResultRow = Mapping[str, Value]


def assert_same_rows(
    query: ReadQuery, expected: Sequence[ResultRow], actual: Sequence[ResultRow]
) -> None:
    """Assert that an engine returned the reference's rows for the same query.

    Columns have the same names in the same order, values the same Python type. The order of rows is
    exact unless it depends on a number that was rounded; then rows may be in any order, and if a
    limit applies to such an order, only their number is compared.
    """
    names = [column.name for column in query.columns]
    for row in actual:
        assert list(row) == names, f"columns {list(row)}, not {names}"
    assert len(actual) == len(expected), f"{_format_rows(actual)}\nis not\n{_format_rows(expected)}"
    if is_left_to_rounding(query):
        return
    if _has_rounded_order(query):
        expected, actual = _by_exact_columns(query, expected), _by_exact_columns(query, actual)
    for expected_row, row in zip(expected, actual, strict=True):
        for column in query.columns:
            message = (
                f"{column.name} is {row[column.name]!r}, not {expected_row[column.name]!r}, in\n"
                f"{_format_rows(actual)}\nwhich should be\n{_format_rows(expected)}"
            )
            is_aggregate = isinstance(column.expression, Aggregate)
            same = _are_same(
                expected_row[column.name], row[column.name], signed_zero=not is_aggregate
            )
            assert same, message


def is_left_to_rounding(query: ReadQuery) -> bool:
    """Whether a limit applies to an order by a rounded number: any rows may then be returned."""
    is_cut = query.limit is not None or query.skip is not None
    return is_cut and _has_rounded_order(query)


def _has_rounded_order(query: ReadQuery) -> bool:
    return any(_is_rounded(key.expression) for key in query.order)


def _are_same(expected: Any, actual: Any, *, signed_zero: bool) -> bool:
    if isinstance(expected, RoundedFloat):
        return isinstance(actual, float) and _is_within(expected, actual)
    if isinstance(expected, dict) and isinstance(actual, dict):
        return list(expected) == list(actual) and all(
            _are_same(value, actual[name], signed_zero=signed_zero)
            for name, value in expected.items()
        )
    if isinstance(expected, tuple) and isinstance(actual, tuple):
        pairs = zip(expected, actual, strict=False)
        return len(expected) == len(actual) and all(
            _are_same(*pair, signed_zero=signed_zero) for pair in pairs
        )
    if type(expected) is not type(actual) or not are_equal(expected, actual):
        return False
    if isinstance(expected, datetime) and isinstance(actual, datetime):
        return expected.utcoffset() == actual.utcoffset()
    if isinstance(expected, float) and isinstance(actual, float) and signed_zero and expected == 0:
        return math.copysign(1, expected) == math.copysign(1, actual)
    return True


def _is_within(expected: RoundedFloat, actual: float) -> bool:
    if math.isinf(expected.slack) or are_equal(expected, actual):
        return True
    return abs(expected - actual) <= expected.slack


def _is_rounded(expression: Expression) -> bool:
    return isinstance(expression, Aggregate) and (
        expression.function is AggregateFunction.AVG
        or (expression.function is AggregateFunction.SUM and expression.type is Scalar.F64)
    )


def _by_exact_columns(query: ReadQuery, rows: Sequence[ResultRow]) -> list[ResultRow]:
    exact = [column.name for column in query.columns if not _is_rounded(column.expression)]
    return sorted(rows, key=lambda row: [sort_key(row[name]) for name in exact])


def _format_rows(rows: Sequence[ResultRow]) -> str:
    return "\n".join(map(repr, rows)) or "no rows"
