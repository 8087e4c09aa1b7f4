"""Compiling reports everything at once, in order, and never too much."""

from __future__ import annotations

import pickle

import pytest

from omnigraph.errors import InvalidInputError
from omnigraph.lang.diagnostics import DiagnosticsError, Severity
from omnigraph.query import ir
from omnigraph.query.codes import QueryCode
from omnigraph.query.compile import compile_queries, read_queries
from omnigraph.query.report import DIAGNOSTICS_MAX
from omnigraph.schema.parser import parse_schema

CATALOG = parse_schema(
    """
    node Person { name: String @key  age: I32? }
    node Company { name: String @key }
    edge Knows: Person -> Person { since: Date? }
    edge WorksAt: Person -> Company
    """
)


def compiled(match: str, parameters: str = "") -> ir.ReadQuery:
    text = f"query q({parameters}) {{ match {{ {match} }} return {{ 1 as one }} }}"
    (query,) = compile_queries(text, CATALOG)
    assert isinstance(query, ir.ReadQuery)
    return query


def test_an_empty_file_has_no_queries():
    assert compile_queries("// nothing\n", CATALOG) == ()


def test_errors_of_all_queries_come_together_in_the_order_of_the_text():
    text = """
    query a() { match { $p: Persn } return { $p } }
    query b() { match { $p Person } return { $p } }
    query c() { insert Person { nme: "x" } }
    """
    with pytest.raises(DiagnosticsError) as caught:
        compile_queries(text, CATALOG, name="people.gq")
    assert [each.code for each in caught.value.diagnostics] == ["T1", "Q000", "T23", "T3"]
    assert "people.gq:2:29" in str(caught.value)
    assert "did you mean Person?" in str(caught.value)
    assert isinstance(caught.value, InvalidInputError)


def test_a_refusal_survives_being_pickled():
    with pytest.raises(DiagnosticsError) as caught:
        compile_queries("query a() { }", CATALOG)
    again = pickle.loads(pickle.dumps(caught.value))
    assert str(again) == str(caught.value)


def test_no_more_is_reported_than_anyone_reads():
    clauses = " ".join(f"$p{at}: Persn" for at in range(1000))
    reading = read_queries(f"query a() {{ match {{ {clauses} }} return {{ 1 }} }}", CATALOG)
    assert len(reading.diagnostics) == DIAGNOSTICS_MAX


def test_many_warnings_do_not_hide_an_error():
    clauses = "$p: Person " + "$p.name is null " * 200
    text = f"query a() {{ match {{ {clauses} $p.agee = 3 }} return {{ $p }} }}"
    assert read_queries(text, CATALOG).queries is None


def test_warnings_do_not_refuse_a_query():
    text = "query a($x: I64) { match { $p: Person } return { $p } }"
    reading = read_queries(text, CATALOG)
    assert reading.queries is not None
    assert [(each.code, each.severity) for each in reading.diagnostics] == [
        (QueryCode.UNUSED_PARAMETER, Severity.WARNING)
    ]


def test_an_error_is_not_reported_again_for_what_follows_from_it():
    text = """query a($x: Strng) {
      match { $p: Persn $p.name = $x $q knowz $r $r.age > 3 }
      return { $p.name as n, $q.age }
      order { n }
    }"""
    codes = [each.code for each in read_queries(text, CATALOG).diagnostics]
    assert codes == ["T1", "T1", "T2"]


def test_what_an_inner_walk_fixes_does_not_reach_outside():
    query = compiled("$p: Person not { $p worksAt $c } not { $p worksAt $c }")
    assert query.variables == ("p",)
    assert [each.block.nodes for each in query.match.negations] == [
        (ir.NodeBinding("c", "Company"),),  # type: ignore[arg-type]
        (ir.NodeBinding("c", "Company"),),  # type: ignore[arg-type]
    ]


def test_a_name_bound_around_a_negation_is_the_same_inside_it():
    query = compiled("not { $p worksAt $c } $c: Company $p: Person")
    (negation,) = query.match.negations
    assert negation.block.nodes == ()
    assert negation.outer == ("c", "p")


def test_typed_queries_can_be_compared_and_hashed():
    first, second = compiled("$p: Person {age: 3}"), compiled("$p :Person { age:3, }")
    assert first == second
    assert hash(first) == hash(second)


def test_codes_are_numbered_without_gaps_and_explained():
    typed = [each for each in QueryCode if each.startswith("T")]
    assert typed == [f"T{number}" for number in range(1, 28)]
    assert all(each.sentence.endswith(".") for each in QueryCode)
