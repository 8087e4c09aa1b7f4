"""The reference returns what was worked out by hand; the same cases are asked of every engine."""

from collections import Counter

import pytest

from omnigraph.errors import InvalidParameterError
from omnigraph.lang.diagnostics import errors_in
from omnigraph.query.compile import compile_queries, read_queries
from omnigraph.query.parameters import bind
from tests.oracle.aggregates import SumTooLargeError
from tests.oracle.comparisons import assert_same_rows
from tests.oracle.tables import to_rows, to_tables
from tests.support.query_cases import CASES, TooLarge
from tests.support.query_cases.graphs import SHAPES
from tests.support.query_cases.refusals import QUERIES, VALUES


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_answer_is_the_one_worked_out_by_hand(case):
    query = case.compile()
    if isinstance(case.expected, TooLarge):
        with pytest.raises(SumTooLargeError):
            case.reference()
        return
    assert [each.name for each in query.columns] == list(case.expected.columns)
    assert_same_rows(query, case.reference(), case.expected.by_name())


def test_the_graph_of_every_case_fits_into_tables():
    for on in {case.on for case in CASES}:
        for key, table in to_tables(on.graph, on.catalog).items():
            assert len(to_rows(table)) == len(on.graph.rows_of(key.type_name))


def test_each_case_has_its_own_title():
    assert [title for title, times in Counter(map(str, CASES)).items() if times > 1] == []


@pytest.mark.parametrize("refused", QUERIES, ids=str)
def test_a_query_without_meaning_is_refused(refused):
    text = f"query asked() {{ match {{ {refused.clauses} }} return {{ $s }} }}"
    found = errors_in(read_queries(text, refused.on.catalog).diagnostics)
    assert [each.code for each in found] == [refused.code]


@pytest.mark.parametrize("refused", VALUES, ids=str)
def test_values_that_do_not_fit_are_refused_by_name(refused):
    text = f"query asked({refused.takes}) {{ match {{ $s: Spot }} return {{ $s $x as x }} }}"
    (query,) = compile_queries(text, SHAPES.catalog)
    with pytest.raises(InvalidParameterError, match=refused.said):
        bind(query, refused.given)
