"""Laws of random graphs and of the reference: graphs are valid, answers are consistent."""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime

import pyarrow as pa
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from omnigraph.model.types import Scalar
from omnigraph.query import ir
from omnigraph.query.compile import compile_queries
from omnigraph.query.parameters import bind
from omnigraph.schema.arrow import table_schema
from omnigraph.schema.catalog import EdgeType
from tests.oracle.aggregates import SumTooLargeError
from tests.oracle.comparisons import assert_same_rows
from tests.oracle.equality import distinct, sort_key
from tests.oracle.reference import evaluate
from tests.oracle.tables import to_rows, to_tables
from tests.strategies.graphs import catalogs_and_graphs, graphs, query_catalogs
from tests.strategies.queries import read_queries, small_queries
from tests.strategies.schemas import catalogs

NOW = datetime(2024, 2, 29, 12, tzinfo=UTC)

slow_to_draw = settings(
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much], deadline=None
)


@given((catalogs | query_catalogs()).flatmap(lambda c: st.tuples(st.just(c), graphs(c))))
@slow_to_draw
def test_a_random_graph_breaks_no_rule_of_its_catalog(made):
    catalog, graph = made
    assert set(graph.rows) == {each.name for each in catalog.types}
    for type_ in catalog.types:
        rows = graph.rows_of(type_.name)
        assert len({each["id"] for each in rows}) == len(rows)
        for members in [each for each in (type_.key, *type_.uniques) if each]:
            full = [[row[name] for name in members] for row in rows]
            keys = [tuple(map(sort_key, each)) for each in full if None not in each]
            assert len(set(keys)) == len(keys)
        for range_ in type_.ranges:
            for value in [row[range_.property] for row in rows]:
                assert value is None or not (isinstance(value, float) and math.isnan(value))
                assert value is None or range_.low is None or range_.low <= value
                assert value is None or range_.high is None or value <= range_.high
        for length in type_.lengths:
            sizes = [len(row[length.property]) for row in rows if row[length.property] is not None]
            assert all((length.low or 0) <= each for each in sizes)
            assert all(length.high is None or each <= length.high for each in sizes)
        for check in type_.checks:
            texts = [row[check.property] for row in rows]
            assert all(re.search(check.pattern, each) for each in texts if each is not None)
        if isinstance(type_, EdgeType):
            assert_edges_fit(type_, graph)


def assert_edges_fit(type_, graph):
    sources = {each["id"] for each in graph.rows_of(type_.source)}
    targets = {each["id"] for each in graph.rows_of(type_.target)}
    rows = graph.rows_of(type_.name)
    assert {each["src"] for each in rows} <= sources
    assert {each["dst"] for each in rows} <= targets
    counts = Counter(each["src"] for each in rows)
    assert all(count <= (type_.cardinality.maximum or count) for count in counts.values())
    if targets:
        assert all(counts[each] >= type_.cardinality.minimum for each in sources)


@given((catalogs | query_catalogs()).flatmap(lambda c: st.tuples(st.just(c), graphs(c))))
@slow_to_draw
def test_a_graph_is_the_same_in_tables(made):
    catalog, graph = made
    for key, table in to_tables(graph, catalog).items():
        assert isinstance(table, pa.Table)
        assert table.schema.equals(table_schema(catalog.type_of(key)), check_metadata=True)
        actual = [list(map(sort_key, row.values())) for row in to_rows(table)]
        names = table.schema.names
        rows = graph.rows_of(key.type_name)
        assert actual == [[sort_key(row[name]) for name in names] for row in rows]


@st.composite
def questions(draw):
    """A query, a graph, and the values of the query's parameters."""
    catalog, graph = draw(catalogs_and_graphs)
    case = draw(small_queries(catalog) | read_queries(catalog))
    (query,) = compile_queries(case.text, catalog)
    assert isinstance(query, ir.ReadQuery)
    return query, graph, bind(query, case.values)


@given(questions())
@slow_to_draw
def test_a_limit_keeps_the_first_rows(question):
    query, graph, values = question
    whole = replace(query, limit=None)
    try:
        rows = evaluate(whole, graph, values, NOW)
    except SumTooLargeError:
        event("a sum is too large")
        return
    event(f"rows: {min(len(rows), 3)}")
    for limit in (0, 1, 2, len(rows)):
        cut = evaluate(replace(query, limit=limit), graph, values, NOW)
        assert_same_rows(whole, rows[:limit], cut)


@given(questions())
@slow_to_draw
def test_a_negation_and_its_opposite_share_the_rows(question):
    query, graph, values = question
    ungrouped = replace(
        query,
        columns=tuple(
            ir.Column(name, ir.ColumnValue(name, "id", Scalar.STRING, nullable=False))
            for name in query.variables
        ),
        order=(),
        tie_breakers=(),
        limit=None,
    )
    for negation in query.match.negations:
        without = replace(query.match, negations=())
        twice = ir.Negation(ir.Block((), (), (), (negation,)), negation.outer)
        counts = [
            len(evaluate(replace(ungrouped, match=match), graph, values, NOW))
            for match in (
                without,
                replace(without, negations=(negation,)),
                replace(without, negations=(twice,)),
            )
        ]
        assert counts[0] == counts[1] + counts[2]


@given(questions())
@slow_to_draw
def test_the_order_of_the_data_does_not_matter(question):
    query, graph, values = question
    mirrored = replace(graph, rows={name: rows[::-1] for name, rows in graph.rows.items()})
    try:
        rows = evaluate(query, graph, values, NOW)
    except SumTooLargeError:
        return
    assert_same_rows(query, rows, evaluate(query, mirrored, values, NOW))


@given(st.lists(st.floats() | st.integers()))
def test_values_are_distinct_exactly_if_they_sort_apart(numbers):
    distinct_numbers = distinct(numbers)
    assert {sort_key(each) for each in distinct_numbers} == {sort_key(each) for each in numbers}
    assert len(distinct_numbers) == len({sort_key(each) for each in distinct_numbers})
