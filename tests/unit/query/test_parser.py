"""Reading and printing queries: what the golden files cannot say in one outcome."""

from __future__ import annotations

import pytest

from omnigraph.lang.source import Source
from omnigraph.query import ast
from omnigraph.query.parser import read
from omnigraph.query.printer import print_expression, print_queries

KEYWORDS = [
    "query", "match", "with", "return", "order", "limit", "skip", "not", "as", "asc", "desc",
    "insert", "update",
    "delete", "set", "where", "and", "is", "null", "true", "false", "contains", "starts_with",
    "distinct", "count", "sum", "avg", "min", "max", "now", "date", "datetime", "nearest", "bm25",
    "search", "fuzzy", "match_text", "rrf", "from", "to", "type", "kind", "when", "id",
]  # fmt: skip


def parsed(text: str) -> ast.QueryNode:
    syntax = read(Source("query.gq", text))
    assert syntax.diagnostics == ()
    (query,) = syntax.queries
    return query


def test_spans_do_not_count_when_syntaxes_are_compared():
    one = parsed("query a() { match { $p: Person } return { $p } }")
    other = parsed("query a(){match{$p:Person}return{$p,}} // same")
    assert one == other
    assert one.name.span == other.name.span
    assert isinstance(one.body, ast.Read)
    assert isinstance(other.body, ast.Read)
    assert one.body.projections[0].expression.span != other.body.projections[0].expression.span


@pytest.mark.parametrize("word", KEYWORDS)
def test_a_keyword_may_name_a_query_a_property_a_variable_and_an_alias(word):
    text = f"""query {word}(${word}_: I64) {{
      match {{
        ${word}: T {{ {word}: 1, {word}: ${word}_ }}
        ${word}.{word} = 2
        ${word}.{word} is null
      }}
      return {{ ${word}.{word} as {word} ${word} as a }}
      order {{ ${word}.{word} desc, a }}
    }}"""
    query = parsed(text)
    assert parsed(print_queries([query])) == query


@pytest.mark.parametrize("word", KEYWORDS)
def test_a_keyword_may_name_what_a_mutation_assigns_and_tests(word):
    text = f"""query a() {{
      insert T {{
        {word}: 1 {word}: $x {word}: true, {word}: null {word}: now() {word}: "x" {word}: [1]
      }}
      update T set {{ a: 1 {word}: 2 }} where {word} = 1 and {word} is null and {word} is not null
    }}"""
    query = parsed(text)
    assert parsed(print_queries([query])) == query


@pytest.mark.parametrize(
    "word", [each for each in KEYWORDS if each not in ("contains", "starts_with")]
)
def test_a_keyword_may_be_an_edge_word(word):
    text = (
        f"query a() {{ match {{ $a {word} $b $a <{word}> $b $a $w:{word} $b }} return {{ $a }} }}"
    )
    body = parsed(text).body
    assert isinstance(body, ast.Read)
    assert [each.edge.text for each in body.clauses if isinstance(each, ast.Traversal)] == [
        word
    ] * 3


def test_a_column_without_an_alias_is_spelt_without_signs():
    body = parsed("query a() { match { $p: P } return { count(distinct $p.age) } }").body
    assert isinstance(body, ast.Read)
    (projection,) = body.projections
    assert isinstance(projection.expression, ast.AggregateCall)
    assert print_expression(projection.expression, sigil="") == "count(distinct p.age)"


def test_an_alias_called_query_does_not_start_one():
    text = "query a() { match { $p: P } return { $p.a as query count($p) as n } }"
    assert isinstance(parsed(text).body, ast.Read)
