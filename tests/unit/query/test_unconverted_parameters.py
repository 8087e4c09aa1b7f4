"""A lowered query serves other numbers where they stand in its tree as they are, and only there."""

import pytest

from omnigraph.query import ir
from omnigraph.query.compile import compile_queries
from omnigraph.query.lowering.operands import unconverted_parameters
from omnigraph.schema.parser import parse_schema

CATALOG = parse_schema(
    """
    node Person { number: I64 @key  age: I32?  height: F64?  lucky: [I64]? }
    edge Knows: Person -> Person
    """
)


def unmoved(match: str, results: str = "$p.age", rest: str = "", type_: str = "I64") -> set[str]:
    text = f"query q($n: {type_}) {{ match {{ {match} }} return {{ {results} }} {rest} }}"
    (query,) = compile_queries(text, CATALOG)
    assert isinstance(query, ir.ReadQuery)
    return set(unconverted_parameters(query))


@pytest.mark.parametrize(
    "match",
    [
        "$p: Person {number: $n}",
        "$p: Person  $p.number >= $n",
        "$p: Person  $n < $p.number",
        "$p: Person  $p.number > $n  $p.number != $n",
        "$p: Person  not { $p knows $q  $q.number = $n }",
    ],
)
def test_a_number_compared_with_columns_of_its_type_is_not_moved(match: str) -> None:
    assert unmoved(match) == {"n"}


@pytest.mark.parametrize(
    "match",
    [
        # The column's type may not have the number: then the comparison becomes another.
        "$p: Person {age: $n}",
        "$p: Person  $p.height > $n",
        "$p: Person {number: $n}  $p.height > $n",
        "$p: Person  not { $p knows $q  $q.age = $n }",
        "$p: Person  $p.lucky contains $n",
        # This one is decided without any row.
        "$p: Person  $n > 3",
    ],
)
def test_a_number_that_may_have_to_be_moved_shapes_the_tree(match: str) -> None:
    assert unmoved(match) == set()


def test_a_number_that_is_also_a_limit_or_a_result_shapes_the_tree() -> None:
    by_key = "$p: Person {number: $n}"
    assert unmoved(by_key, rest="limit $n") == set()
    assert unmoved(by_key, results="$n as asked") == set()


def test_a_float_shapes_the_tree() -> None:
    # An id is made of a key's values, and not of one that is not finite.
    assert unmoved("$p: Person  $p.height > $n", type_="F64") == set()
