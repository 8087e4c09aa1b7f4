"""Rows of an engine are held to the reference's: exactly, save for the rounding of sums."""

from datetime import UTC, datetime, timedelta, timezone
from functools import reduce
from math import inf, nan
from operator import add

import pytest

from omnigraph.model.types import Scalar
from omnigraph.query.functions import AggregateFunction
from tests.oracle.aggregates import RoundedFloat, aggregate
from tests.oracle.comparisons import assert_same_rows
from tests.support.query_cases.case import answer, ask
from tests.support.query_cases.graphs import values

NOON = datetime(2024, 1, 1, 12, tzinfo=UTC)

ROWS = ask(
    "", values(), "match { $v: Value } return { $v.name $v.f64 as x }", answer("n x")
).compile()
GROUPS = ask(
    "",
    values(),
    "match { $v: Value } return { $v.name max($v.f64) as x }",
    answer("n x"),
).compile()
RANKED = ask(
    "",
    values(),
    "match { $v: Value } return { $v.name sum($v.f64) as x } order { x }",
    answer("n x"),
).compile()


def rows(*pairs):
    return [{"v.name": name, "x": value} for name, value in pairs]


# fmt: off
SAME = [
    (1.5, 1.5), (nan, nan), (inf, inf), (None, None), ("a", "a"), (2, 2), (-0.0, -0.0),
    ((1.0, nan), (1.0, nan)), (NOON, NOON), (RoundedFloat(nan, 0.0), nan),
    (RoundedFloat(1.0, 1e-15), 1.0 + 2e-16), (RoundedFloat(1e308, inf), inf),
    (RoundedFloat(0.0, 0.0), -0.0),
]
DIFFERENT = [
    (1.5, 1.6), (nan, None), (None, nan), (nan, inf), (1, 1.0), (1.0, 1), (1, True), (0.0, -0.0),
    ("a", "A"), ((1, 2), (1,)), ((1, 2), (2, 1)), ((), None), ((1,), [1]),
    (NOON, NOON.replace(tzinfo=None)), (NOON, NOON.astimezone(timezone(timedelta(hours=1)))),
    (RoundedFloat(1.0, 1e-15), 1.1), (RoundedFloat(1.0, 1e-15), 1), (RoundedFloat(1.0, 1e-15), nan),
    (RoundedFloat(1.0, 0.0), None),
]
# fmt: on


@pytest.mark.parametrize(("expected", "found"), SAME)
def test_values_that_are_the_same(expected, found):
    assert_same_rows(ROWS, rows(("a", expected)), rows(("a", found)))


@pytest.mark.parametrize(("expected", "found"), DIFFERENT)
def test_values_that_are_not(expected, found):
    with pytest.raises(AssertionError):
        assert_same_rows(ROWS, rows(("a", expected)), rows(("a", found)))


def test_an_aggregate_of_zero_has_no_sign():
    assert_same_rows(GROUPS, rows(("a", 0.0)), rows(("a", -0.0)))


def test_the_order_of_rows_counts():
    with pytest.raises(AssertionError, match=r"v\.name is 'b', not 'a'"):
        assert_same_rows(ROWS, rows(("a", 1.0), ("b", 2.0)), rows(("b", 2.0), ("a", 1.0)))


def test_the_number_of_rows_counts():
    with pytest.raises(AssertionError):
        assert_same_rows(ROWS, rows(("a", 1.0)), rows(("a", 1.0), ("a", 1.0)))


def test_the_names_of_columns_count():
    with pytest.raises(AssertionError, match="columns"):
        assert_same_rows(ROWS, rows(("a", 1.0)), [{"x": 1.0, "v.name": "a"}])


def test_an_order_by_a_rounded_sum_may_differ():
    expected = rows(("a", RoundedFloat(1.0, 1e-9)), ("b", RoundedFloat(1.0 + 1e-10, 1e-9)))

    assert_same_rows(RANKED, expected, rows(("b", 1.0), ("a", 1.0 + 1e-10)))
    with pytest.raises(AssertionError):
        assert_same_rows(RANKED, expected, rows(("b", 2.0), ("a", 1.0)))


def test_a_sum_says_how_far_it_may_be_off():
    tenths = [0.1] * 10
    exact = aggregate(AggregateFunction.SUM, list(tenths), Scalar.F64)

    assert isinstance(exact, RoundedFloat)
    assert exact == 1.0
    # From 3.12 on, `sum` itself corrects what each addition loses.
    assert 0 < abs(reduce(add, tenths) - exact) <= exact.slack < 1e-13


def test_a_sum_that_may_overflow_on_the_way_says_so():
    exact = aggregate(AggregateFunction.SUM, [1e308, 1e308, -1e308], Scalar.F64)

    assert isinstance(exact, RoundedFloat)
    assert (exact, exact.slack) == (1e308, inf)
