"""Laws of the query language: printed queries parse back, typed ones bind, nothing crashes."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from omnigraph.lang.diagnostics import DiagnosticsError, errors_in
from omnigraph.lang.source import Source
from omnigraph.query import ast, ir
from omnigraph.query.compile import compile_queries, read_queries
from omnigraph.query.parameters import bind
from omnigraph.query.parser import read
from omnigraph.query.printer import print_queries
from omnigraph.schema.parser import parse_schema
from tests.strategies.queries import read_queries as drawn_queries
from tests.strategies.schemas import catalogs

SCHEMA = Path(__file__).parent.parent / "golden" / "query" / "schema.pg"
CATALOG = parse_schema(SCHEMA.read_text(encoding="utf-8"))
CASES = drawn_queries(CATALOG)

slow_to_draw = settings(
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large], deadline=None
)

FRAGMENTS = st.sampled_from(
    ["query ", "a", "(", ")", "{", "}", "[", "]", "match ", "return ", "order ", "limit ", "not ",
     "$", "$p", "$_", ":", "Person", "knows", "contains ", "<", ">", "=", "!=", "is null", "as ",
     "count(", "now()", "date(", "nearest(", "rrf(", "insert ", "update ", "delete ", "set ",
     "with ", "where ", "and ", "or ", "in ", "is not null", "not $p.age", "[1, 2]", "(", ".", ",",
     "count {", "sum { ", "exists {", "optional {", "} or ", "from match {", "case when ", " end",
     '"', "\\", "//", "/*", "*/", "#", "\n", "-1", "2.5", "{1,3}",
     "\x00", "\ud800", "é", "\u2028", "@description(", "Vector(3)", "?", "null", "true"]
)  # fmt: skip


def read_or_refuse(text: str) -> None:
    """Read a text; a refusal must have a place and a reason. No other exception may be raised."""
    reading = read_queries(text, CATALOG)
    for diagnostic in reading.diagnostics:
        assert diagnostic.message
        assert 0 <= diagnostic.span.start <= diagnostic.span.end <= len(text)
    if reading.queries is None:
        with pytest.raises(DiagnosticsError) as caught:
            compile_queries(text, CATALOG)
        assert errors_in(caught.value.diagnostics)


def parse(text: str) -> tuple[ast.QueryNode, ...]:
    syntax = read(Source("query.gq", text))
    assert syntax.diagnostics == ()
    return syntax.queries


@given(CASES)
@slow_to_draw
def test_a_printed_query_reads_back_as_itself(case):
    assert parse(case.text) == (case.query,)


@given(CASES)
@slow_to_draw
def test_printing_is_canonical(case):
    assert print_queries(parse(case.text)) == case.text


@given(CASES)
@slow_to_draw
def test_a_well_typed_query_compiles_and_its_parameters_bind(case):
    (query,) = compile_queries(case.text, CATALOG)
    bound = bind(query, case.values)
    assert set(bound) == {each.name for each in query.parameters}


@given(catalogs.filter(lambda catalog: catalog.node_types), st.data())
@slow_to_draw
def test_queries_compile_over_any_schema(catalog, data):
    case = data.draw(drawn_queries(catalog))
    (query,) = compile_queries(case.text, catalog)
    bind(query, case.values)


@given(CASES)
@slow_to_draw
def test_every_name_of_a_typed_query_is_resolved(case):
    (query,) = compile_queries(case.text, CATALOG)
    assert isinstance(query, ir.ReadQuery)
    types: dict[str, tuple[str, ...]] = {}
    for part in query.selections:
        check_block(part.match, types)
        assert list(part.variables) == sorted(part.variables)
        assert len({each.name for each in part.columns}) == len(part.columns)
        if part.is_grouped:
            expressions = [each.expression for each in part.columns]
            for key in part.order:
                assert isinstance(key.expression, ir.Aggregate) or key.expression in expressions
        if isinstance(part, ir.Stage):
            assert {each.name for each in part.kept} <= set(part.variables)
            types = {each.name: each.type_names for each in part.kept}
            # The values that are kept are columns of no type.
            types[ir.KEPT] = ()


def check_block(block: ir.Block, outer: dict[str, tuple[str, ...]]) -> None:
    """Every variable is bound once, to the type that its edges and columns have."""
    types_in(block, outer)


def types_in(block: ir.Block, outer: dict[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    types = dict(outer)
    for node in block.nodes:
        assert node.variable not in types
        types[node.variable] = node.type_names
    for traversal in block.traversals:
        for step in traversal.steps:
            check_step(step, traversal, types)
        assert 1 <= traversal.hops_min <= traversal.hops_max
        if traversal.edge_variable is not None:
            assert traversal.hops_max == 1
            assert traversal.edge_variable not in types
            types[traversal.edge_variable] = tuple(step.edge_type for step in traversal.steps)
        if traversal.path is not None:
            assert traversal.path.variable not in types
            # What is read of a path are columns of no type.
            types[traversal.path.variable] = ()
    for part in block.optionals:
        assert part.outer
        assert set(part.outer) <= set(types)
        known = len(types)
        types |= types_in(part.block, types)
        assert len(types) > known
    for filter_ in block.filters:
        check_filter(filter_, types)
    for negation in block.negations:
        assert negation.outer
        assert set(negation.outer) <= set(types)
        check_block(negation.block, types)
    return types


def check_step(
    step: ir.EdgeStep, traversal: ir.Traversal, types: dict[str, tuple[str, ...]]
) -> None:
    """Its ends are among the types that they have, and are told where those are several."""
    edge = CATALOG.edge_type(step.edge_type)
    ends = (edge.source, edge.target)
    if step.direction is ir.Direction.IN:
        ends = (edge.target, edge.source)
    told = (step.source, step.destination)
    walked = (traversal.source, traversal.destination)
    for end, type_, label in zip(walked, ends, told, strict=True):
        known = types[end] if isinstance(end, str) else end.type_names
        assert type_ in known
        assert label == (type_ if len(known) > 1 else None)
    assert traversal.hops_max == 1 or edge.source == edge.target
    if step.direction is ir.Direction.BOTH:
        assert edge.source == edge.target


def check_filter(filter_: ir.Filter, types: dict[str, tuple[str, ...]]) -> None:
    match filter_:
        case ir.Comparison(left, _, right):
            operands: list[ir.Operand] = [left, right]
        case ir.NullTest(operand):
            operands = [operand]
        case ir.TextMatch(_, text, query):
            operands = [text, query]
        case ir.Junction(_, conditions):
            operands = []
            for each in conditions:
                check_filter(each, types)
        case ir.Inverse(condition):
            operands = []
            check_filter(condition, types)
    for tested in operands:
        if isinstance(tested, ir.ColumnValue):
            for name in types[tested.variable]:
                owner = CATALOG.type_named(name)
                property_types = {one.name: one.type for one in owner.properties}
                assert property_types.get(tested.column, tested.type) == tested.type


@given(CASES, st.randoms(use_true_random=False))
@slow_to_draw
def test_the_order_of_clauses_does_not_matter_where_every_node_is_bound(case, random):
    (query,) = compile_queries(case.text, CATALOG)
    assert isinstance(case.query.body, ast.Read)
    assert isinstance(query, ir.ReadQuery)
    body = case.query.body
    bound = {each.variable.name for each in body.clauses if isinstance(each, ast.Binding)}
    assume({node.variable for node in query.match.nodes} <= bound)
    # Only optional parts keep their order.
    optionals = [each for each in body.clauses if isinstance(each, ast.OptionalPart)]
    clauses = tuple(
        optionals.pop(0) if isinstance(each, ast.OptionalPart) else each
        for each in random.sample(body.clauses, len(body.clauses))
    )
    shuffled = replace(body, clauses=clauses)
    node = ast.QueryNode(case.query.name, case.query.parameters, None, None, shuffled)
    (other,) = compile_queries(print_queries([node]), CATALOG)
    assert isinstance(other, ir.ReadQuery)
    assert set(other.match.nodes) == set(query.match.nodes)
    assert sorted(map(repr, other.match.traversals)) == sorted(map(repr, query.match.traversals))
    assert sorted(map(repr, other.match.filters)) == sorted(map(repr, query.match.filters))


@given(st.text(st.characters(), max_size=200))
def test_any_text_is_read_or_refused(text):
    read_or_refuse(text)


@given(st.lists(FRAGMENTS, max_size=60).map("".join))
@slow_to_draw
def test_any_jumble_of_the_languages_own_words_is_read_or_refused(text):
    read_or_refuse(text)


@given(CASES, st.data())
@slow_to_draw
def test_a_damaged_query_is_read_or_refused(case, data):
    text = case.text
    at = data.draw(st.integers(0, len(text)))
    gone = data.draw(st.integers(0, 8))
    read_or_refuse(text[:at] + data.draw(FRAGMENTS | st.just("")) + text[at + gone :])


@given(CASES)
@slow_to_draw
def test_an_error_in_one_query_leaves_the_others_read(case):
    reading = read_queries(f"query z_() {{ match {{\n{case.text}", CATALOG)
    assert [each.code for each in errors_in(reading.diagnostics)] == ["Q000"]


def wide(clause: str, times: int) -> str:
    clauses = " ".join(clause.replace("#", str(at)) for at in range(times))
    return f"query a() {{ match {{ {clauses} }} return {{ 1 as one }} }}"


@pytest.mark.parametrize(
    "text",
    [
        "{" * 120_000,
        "query a() { match {" + "not {" * 100_000,
        wide("$p: Person " + "not {" * 60 + "$p.age > 3" + "}" * 60, 1),
        "query a() { match { $p: Person $p.age = " + "[" * 100_000,
        'query a() { match { $p: Person { name: "' + "x" * 250_000 + '" } } return { $p } }',
        'query a() { match { $p: Person { name: "' + "\\n" * 100_000,
        '"\\' * 100_000,
        "/*" * 100_000,
        "query " * 40_000,
        "query a(" * 100_000,
        "query a() { match { $p: Person $p.age = " + "9" * 250_000 + " } return { $p } }",
        "query a() { match { $p: Person $p.age = " + "9" * 50_000 + ".5 } return { $p } }",
        "query " + "a" * 250_000 + "() {}",
        wide("$p#: Person", 3_000),
        wide("$p# knows $p", 3_000),
        wide("$a# knows $b#", 3_000),
        wide("$p: Persn#", 3_000),
        wide("$p wrksAt# $c", 3_000),
        wide("$p: Person $p.nam# = $q#", 3_000),
        wide("$p: Person not { $p.age > # }", 2_000),
        "query a() { insert Note { " + "text: $text " * 5_000 + "} }",
        "x" * 2_000_000,
        "\x00" * 250_000,
        "\n" * 250_000 + "#",
    ],
    ids=lambda text: text[:50].encode("ascii", "backslashreplace").decode(),
)  # fmt: skip
def test_a_huge_text_is_answered_in_seconds(text):
    # The time of this process alone, so that the load of the machine does not matter.
    started = time.process_time()
    read_queries(text, CATALOG)
    assert time.process_time() - started < 20
