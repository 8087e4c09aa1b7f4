"""Expressions of one row: what they may consist of, and what they give."""

from __future__ import annotations

import pickle
from datetime import UTC, date, datetime
from typing import Final

import pyarrow as pa
import pytest

from omnigraph.errors import InvalidInputError, LimitExceededError
from omnigraph.evolution.fills import Fill, compile_fill, parse_fill
from omnigraph.evolution.values import ColumnResult, ExpressionRecipe, RecipeTarget
from omnigraph.model.types import EnumType, PropertyType, Scalar, VectorType
from omnigraph.schema.arrow import table_schema
from omnigraph.schema.catalog import Property
from omnigraph.schema.parser import parse_schema

CATALOG: Final = parse_schema("""
node Person {
  first: String  last: String?  age: I32?  big: I64?  huge: U64?  thin: F32?  wide: F64?
  member: Bool?  born: Date?  seen: DateTime?  colour: enum(red, blue)?  tags: [String]?
}
edge Knows: Person -> Person { since: I32? }
""")
PERSON: Final = CATALOG.type_named("Person")
ROW: Final = {
    "id": "p1",
    "first": "Ada",
    "last": None,
    "age": 2**31 - 1,
    "big": 2**63 - 1,
    "huge": 2**64 - 1,
    "thin": 0.1,
    "wide": 2.5,
    "member": True,
    "born": date(2024, 2, 29),
    "seen": datetime(2024, 1, 1, 12, 0, 0, 500000, tzinfo=UTC),
    "colour": "red",
    "tags": ["a"],
}
S, B, I32, I64, U64 = Scalar.STRING, Scalar.BOOL, Scalar.I32, Scalar.I64, Scalar.U64
F32, F64, DATE, DATETIME = Scalar.F32, Scalar.F64, Scalar.DATE, Scalar.DATETIME


def compute(text: str, type_: PropertyType, *, nullable: bool = True) -> ColumnResult:
    property_ = Property("new", type_, nullable=nullable)
    recipe = ExpressionRecipe(
        RecipeTarget("Person", property_), compile_fill(PERSON, property_, text)
    )
    # Executors get a copy.
    recipe = pickle.loads(pickle.dumps(recipe))
    assert isinstance(recipe, ExpressionRecipe)
    batch = pa.RecordBatch.from_pylist([ROW], table_schema(PERSON)).select(list(recipe.reads))
    if not recipe.reads:
        batch = pa.record_batch({"_rowaddr": pa.array([0], pa.uint64())})
    result = recipe.compute(batch)
    assert result.values.type == recipe.target.field.type
    return result


@pytest.mark.parametrize(
    ("text", "type_", "expected"),
    [
        ("concat(first, ' ', last)", S, "Ada "),
        ("first || last", S, None),
        ("first || ' ' || age", S, "Ada 2147483647"),
        ("concat(thin, ' ', wide, ' ', seen, ' ', born, ' ', member)", S,
         "0.1 2.5 2024-01-01T12:00:00.500000Z 2024-02-29 true"),
        ("cast(3.0 as String)", S, "3"),
        ("coalesce(last, upper(first), '?')", S, "ADA"),
        ("lower(trim('  X ')) || replace(first, 'A', 'E')", S, "xEda"),
        ("substring(first, 2, 1)", S, "d"),
        ("case when age > 5 and not member then 'a' when colour = 'red' then 'b' end", S, "b"),
        ("nullif(first, 'Ada')", S, None),
        ("id", S, "p1"),
        ("null", S, None),
        ("'it''s'", S, "it's"),
        ("colour", EnumType(("red", "blue")), "red"),
        ("length('né')", I32, 2),
        ("age + 1", I64, 2**31),
        ("(age + 1) * 2 - 3", I64, 2**32 - 3),
        ("-7 % 3", I32, -1),
        ("huge - 1", U64, 2**64 - 2),
        ("18446744073709551615", U64, 2**64 - 1),
        ("-9223372036854775808", I64, -(2**63)),
        ("floor(big)", I64, 2**63 - 1),
        ("floor(wide)", I32, 2),
        ("ceil(wide)", I32, 3),
        ("round(wide * 1.111, 2)", F64, 2.78),
        ("abs(-age)", I32, 2**31 - 1),
        ("7 / 2", F64, 3.5),
        ("0.1", F32, 0.10000000149011612),
        ("thin", F64, 0.10000000149011612),
        ("1e3", F64, 1000.0),
        ("cast('-12' as I32)", I32, -12),
        ("cast(wide * 2 as I64)", I64, 5),
        ("cast(member as I32)", I32, 1),
        ("cast(1 as Bool)", B, True),
        ("last is null", B, True),
        ("last is not null or wide >= 2.5", B, True),
        ("year(born) * 10000 + month(born) * 100 + day(seen)", I32, 20240201),
        ("date '2023-12-31'", DATE, date(2023, 12, 31)),
        ("timestamp '2023-12-31 10:00:00'", DATETIME, datetime(2023, 12, 31, 10, tzinfo=UTC)),
        ("cast('2023-12-31T10:00:00+02:00' as DateTime)", DATETIME,
         datetime(2023, 12, 31, 8, tzinfo=UTC)),
        ("seen", DATETIME, ROW["seen"]),
        ("born", DATETIME, datetime(2024, 2, 29, tzinfo=UTC)),
        # A part that is not reached may not fail.
        ("case when wide > 0 then 10 / wide else 1 / (wide - wide) end", F64, 4.0),
        ("case when member then age else cast(first as I32) end", I32, 2**31 - 1),
    ],
)  # fmt: skip
def test_an_expression_gives_its_value(text, type_, expected):
    result = compute(text, type_)

    assert result.faults == ()
    assert result.values.to_pylist() == [expected]


@pytest.mark.parametrize(
    ("text", "type_", "reason"),
    [
        ("age / (age - age)", F64, "division by zero"),
        ("concat(age / 0, '')", S, "division by zero"),
        ("age % 0", I32, "division by zero"),
        ("big + 1", I64, "Overflow in addition of INT64 (9223372036854775807 + 1)!"),
        ("cast(first as I32)", I32, "Ada is not of type I32"),
        ("cast(' 5' as I32)", I32, " 5 is not of type I32"),
        ("cast('2147483648' as I32)", I32, "2147483648 is not of type I32"),
        ("cast(big as I32)", I32, "the number 9223372036854775807 does not fit in I32"),
        ("cast(wide as I32)", I32, "2.5 is not of type I32"),
        ("cast(big as F64)", F64, "9223372036854775807 is not of type F64"),
        ("cast(seen as Date)", DATE, "2024-01-01 12:00:00.5 is not of type Date"),
        ("wide", I32, "2.5 is not of type I32 (write a whole number)"),
        ("age + 1", I32, "the number does not fit in I32 (between -2147483648 and 2147483647)"),
        ("huge + 1", U64, "the number does not fit in U64 (between 0 and 18446744073709551615)"),
        ("big", F64, "9223372036854775807 is not exactly a number of type F64"),
    ],
)
def test_a_row_without_an_exact_value_is_a_violation(text, type_, reason):
    result = compute(text, type_)

    [fault] = result.faults
    [offender] = fault.first
    assert offender.reason == f"{text}: {reason}"
    assert str(fault.breach) == "type Person(new)"
    assert result.values.to_pylist() == [None]


@pytest.mark.parametrize(
    ("text", "type_", "message"),
    [
        ("frist", S, "the fill of Person.new names frist, and Person has no such property"),
        ("src", S, "the fill of Person.new names src, and Person has no such property"),
        ("tags", S, "the fill of Person.new names tags, which is of type [String]"),
        ("random()", F64, "the fill of Person.new may not use RANDOM()"),
        ("now()", DATETIME, "the fill of Person.new may not use NOW()"),
        ("getenv('HOME')", S, "the fill of Person.new may not use GETENV('HOME')"),
        ("(select 1)", I32, "the fill of Person.new may not use (SELECT 1)"),
        ("max(age)", I32, "the fill of Person.new may not use MAX(age)"),
        ("row_number() over ()", I32, "the fill of Person.new may not use ROW_NUMBER() OVER ()"),
        ("Person.first", S, "the fill of Person.new may not use Person.first"),
        ("first; last", S, "the fill of Person.new may not use first; last"),
        ("concat_ws(' ', first)", S, "the fill of Person.new may not use CONCAT_WS(' ', first)"),
        ("try_cast(first as I32)", I32,
         "the fill of Person.new may not use TRY_CAST(first AS I32)"),
        ("first from t", S, "the fill of Person.new is not an expression: first from t"),
        ("cast(age as decimal(3, 2))", F64, "the fill of Person.new casts to DECIMAL(3, 2)"),
        ("cast(age as Date)", DATE, "the fill of Person.new casts a whole number to Date"),
        ("age", S,
         "the fill of Person.new gives a whole number, and the property is of type String"),
        ("first", I32, "the fill of Person.new gives text, and the property is of type I32"),
        ("age", VectorType(2), "Person.new is of type Vector(2), which no expression gives"),
        ("1e999", F64, "the fill of Person.new has the number 1e999, which fits no type"),
    ],
)  # fmt: skip
def test_an_expression_that_is_not_allowed_is_refused_by_name(text, type_, message):
    with pytest.raises(InvalidInputError) as caught:
        compute(text, type_)

    assert caught.value.message == message
    assert caught.value.hint


def test_the_hint_names_the_nearest_property():
    with pytest.raises(InvalidInputError, match=r"did you mean first\?"):
        compute("frist", S)


def test_operands_that_do_not_fit_are_refused_before_any_row_is_read():
    with pytest.raises(InvalidInputError, match=r"age \+ first, has operands that do not fit"):
        compute("age + first", I64)


@pytest.mark.parametrize(
    "text",
    [
        "1 + " * 999 + "1",
        "(" * 1_500 + "1" + ")" * 1_500,
        "cast(cast(" * 6 + "age" + " as String) as I64)" * 6,
        "1" * 4_001,
    ],
    ids=["sums", "parentheses", "casts", "length"],
)
def test_an_expression_that_is_too_large_is_refused(text):
    with pytest.raises(LimitExceededError, match=r"the fill of Person\.new"):
        compute(text, F64)


def test_an_edge_has_ends():
    property_ = Property("label", S)
    fill = compile_fill(CATALOG.type_named("Knows"), property_, "concat(src, '->', dst, since)")
    rows = pa.record_batch({"src": ["a"], "dst": ["b"], "since": pa.array([None], pa.int32())})

    result = ExpressionRecipe(RecipeTarget("Knows", property_), fill).compute(rows)

    assert result.values.to_pylist() == ["a->b"]


def test_a_fill_names_a_property_and_an_expression():
    fill = parse_fill("Person.full = case when a = b then 1 end")

    assert fill == Fill("Person", "full", "case when a = b then 1 end")
    for text in ("Person.full", "full=1", "Person.=1", ".full=1", "Person.full=", ""):
        with pytest.raises(InvalidInputError, match=r"write Type\.property=expression"):
            parse_fill(text)
