"""Laws of both parsers on mutated texts of the golden files: refused in place, or printed back."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from omnigraph.lang.source import Source
from omnigraph.query.compile import read_queries
from omnigraph.query.parser import read
from omnigraph.query.printer import print_queries
from omnigraph.schema.parser import parse_schema, read_schema
from omnigraph.schema.printer import print_schema
from tests.support.cases import cases

GOLDEN = Path(__file__).parent.parent / "golden"
CATALOG = parse_schema((GOLDEN / "query" / "schema.pg").read_text(encoding="utf-8"))
QUERIES = [case.text for path in sorted(GOLDEN.glob("query/*.case")) for case in cases(path)]
SCHEMAS = [case.text for path in sorted(GOLDEN.glob("schema/*.case")) for case in cases(path)]
TOKEN = re.compile(r'\s+|"(?:[^"\\]|\\.)*"|[$@]?\w+|.', re.DOTALL)
ODD = [
    "\x00",
    "\ud800",
    "\u2028",
    "é",
    "\\",
    '"',
    "/*",
    "*/",
    "//",
    "9" * 40,
    "$",
    "{",
    "}",
    "(",
    ")",
]

mutations_made = settings(
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large], deadline=None
)


@st.composite
def mutated(draw: st.DrawFn, corpus: list[str]) -> str:
    """A text of the corpus, with parts that were removed, repeated, moved, nested or replaced."""
    tokens = TOKEN.findall(draw(st.sampled_from(corpus)))
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(tokens)))
        end = min(len(tokens), start + draw(st.integers(0, 12)))
        part = tokens[start:end]
        other = TOKEN.findall(draw(st.sampled_from(corpus)))
        at = draw(st.integers(0, len(other)))
        match draw(st.sampled_from(("remove", "repeat", "nest", "move", "splice", "swap", "odd"))):
            case "remove":
                part = []
            case "repeat":
                part = part * draw(st.integers(2, 5))
            case "nest":
                part = ["(", *part, ")"] if draw(st.booleans()) else ["{", *part, "}"]
            case "move":
                tokens = tokens[:start] + tokens[end:]
                start = end = draw(st.integers(0, len(tokens)))
            case "splice":
                part = other[at : at + draw(st.integers(1, 30))]
            case "swap":
                part = part[::-1]
            case _:
                part = [draw(st.sampled_from(ODD))]
        tokens = [*tokens[:start], *part, *tokens[end:]]
    return "".join(tokens)


@given(mutated(QUERIES))
@mutations_made
def test_a_mutated_query_is_refused_in_its_place_or_printed_back(text: str) -> None:
    reading = read_queries(text, CATALOG)
    for diagnostic in reading.diagnostics:
        assert diagnostic.message
        assert 0 <= diagnostic.span.start <= diagnostic.span.end <= len(text)
        assert diagnostic.render(reading.source)
    syntax = read(Source("query.gq", text))
    printed = print_queries(syntax.queries)
    again = read(Source("query.gq", printed))
    assert not again.diagnostics
    assert again.queries == syntax.queries
    assert print_queries(again.queries) == printed


@given(mutated(SCHEMAS))
@mutations_made
def test_a_mutated_schema_is_refused_in_its_place_or_printed_back(text: str) -> None:
    reading = read_schema(text)
    for diagnostic in reading.diagnostics:
        assert diagnostic.message
        assert 0 <= diagnostic.span.start <= diagnostic.span.end <= len(text)
        assert diagnostic.render(reading.source)
    if reading.catalog is not None:
        printed = print_schema(reading.catalog)
        assert print_schema(parse_schema(printed)) == printed


NESTED = {
    "parentheses": ("$p.age = ", "(", "1", ")"),
    "inversions": ("", "not (", "$p.age = 1", ")"),
    "cases": ("$p.age = ", "case when $p.age = 1 then 2 else ", "3", " end"),
    "calls": ("$p.name = ", "lower(", "$p.name", ")"),
    "subqueries": ("$p.age = ", "count { $p knows $q  $q.age = ", "1", " }"),
    "optionals": ("", "optional { $p knows $q  ", "$p.age = 1", " }"),
    "junctions": ("", "($p.age = 1 or ", "$p.age = 2", ")"),
    "sums": ("$p.age = ", "1 + (", "1", ")"),
    "negatives": ("$p.age = ", "-", "$p.age", ""),
}


@pytest.mark.parametrize("name", NESTED)
@pytest.mark.parametrize("depth", [30, 2_000])
def test_nesting_is_bounded_and_answered_at_once(name: str, depth: int) -> None:
    before, opened, middle, closed = NESTED[name]
    clause = f"{before}{opened * depth}{middle}{closed * depth}"
    text = f"query a() {{ match {{ $p: Person  {clause} }} return {{ $p }} }}"
    started = time.process_time()
    reading = read_queries(text, CATALOG)
    assert time.process_time() - started < 5
    assert reading.queries is not None or reading.diagnostics
    for query in read(Source("query.gq", text)).queries:
        assert read(Source("query.gq", print_queries([query]))).queries == (query,)
