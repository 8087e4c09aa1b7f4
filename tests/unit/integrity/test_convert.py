"""Raw rows become typed ones exactly, or are violations."""

from __future__ import annotations

import itertools
import math
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from omnigraph.integrity.convert import Conversion, RawRow, convert_rows
from omnigraph.integrity.deltas import POSITION, delta_schema
from omnigraph.integrity.violations import Rule
from omnigraph.limits import ROWS_PER_BATCH_MAX
from omnigraph.schema.catalog import SchemaType
from omnigraph.schema.parser import parse_schema

NOON = datetime(2024, 2, 29, 12, tzinfo=UTC)


def converted(type_: SchemaType, *rows: RawRow, ignores_unknown: bool = False) -> Conversion:
    numbers = map(str, itertools.count(1))
    return convert_rows(
        type_,
        rows,
        mint=lambda: next(numbers),
        ignores_unknown=ignores_unknown,
        to_origin=lambda line: f"f:{line}",
    )


def node(body: str) -> SchemaType:
    return parse_schema(f"node P {{ {body} }}").node_type("P")


# fmt: off
ACCEPTED = [
    ("String",     "é",                     "é"),
    ("Bool",       True,                    True),
    ("I32",        3.0,                     3),
    ("I64",        3.0,                     3),
    ("I64",        "-9223372036854775808",  -(2**63)),
    ("U64",        "18446744073709551615",  2**64 - 1),
    ("U64",        Decimal(2**64 - 1),      2**64 - 1),
    ("F64",        2**53,                   float(2**53)),
    ("F64",        0.1,                     0.1),
    ("F64",        Decimal("0.5"),          0.5),
    ("F64",        math.inf,                math.inf),
    ("F32",        0.1,                     0.10000000149011612),
    ("Date",       "2024-02-29",            date(2024, 2, 29)),
    ("DateTime",   "2024-02-29T13:00:00+01:00", NOON),
    ("DateTime",   NOON,                    NOON),
    ("enum(a, b)", "c",                     "c"),
    ("[I64]",      [1, "2", 3.0, None],     [1, 2, 3, None]),
    ("[String]",   (),                      []),
    ("Vector(2)",  [1, 0.5],                [1.0, 0.5]),
    ("Blob",       "base64:AP8=",           b"\x00\xff"),
    ("Blob",       b"\x00",                 b"\x00"),
]
REFUSED = [
    ("String",     1),
    ("String",     "\ud800"),
    ("Bool",       1),
    ("I32",        True),
    ("I32",        3.5),
    ("I32",        "3"),
    ("I32",        2**31),
    ("I64",        math.nan),
    ("I64",        math.inf),
    ("I64",        Decimal("0.5")),
    ("I64",        Decimal("Infinity")),
    ("I64",        "3.0"),
    ("U32",        -1),
    ("F64",        "0.5"),
    ("F64",        True),
    ("F64",        2**53 + 1),
    ("F64",        10**400),
    ("F32",        2**24 + 1),
    ("F32",        1e300),
    ("Date",       "2023-02-29"),
    ("Date",       NOON),
    ("DateTime",   date(2024, 2, 29)),
    ("DateTime",   "noon"),
    ("enum(a, b)", 1),
    ("[I64]",      "12"),
    ("[I64]",      [1.5]),
    ("Vector(2)",  [1]),
    ("Vector(2)",  [1, "2"]),
    ("Blob",       "AP8="),
    ("Blob",       "base64:?"),
    ("Blob",       7),
]
# fmt: on


@pytest.mark.parametrize(("type_", "value", "expected"), ACCEPTED, ids=repr)
def test_a_value_converts_exactly(type_, value, expected):
    found = converted(node(f"x: {type_}?"), RawRow({"x": value}))

    assert found.report.is_clean
    assert found.rows["x"].to_pylist() == [expected]


@pytest.mark.parametrize(("type_", "value"), REFUSED, ids=repr)
def test_a_value_that_does_not_is_a_violation(type_, value):
    found = converted(node(f"x: {type_}?"), RawRow({"x": value, "id": "a"}, 7))

    [violation] = found.report.violations
    assert (violation.rule, violation.type_name, violation.properties) == (Rule.TYPE, "P", ("x",))
    assert (violation.id, violation.origin) == ("a", "f:7")
    assert found.rows.num_rows == 0


def test_nan_is_a_number_to_data():
    [value] = converted(node("x: F32"), RawRow({"x": math.nan})).rows["x"].to_pylist()
    assert math.isnan(value)


def test_what_is_left_out_gets_its_default_and_what_is_null_stays_null():
    type_ = node('a: String? @default("x")  b: I64?')
    rows = converted(type_, RawRow({}), RawRow({"a": None})).rows

    assert rows["a"].to_pylist() == ["x", None]
    assert rows["b"].to_pylist() == [None, None]


def test_what_no_property_takes_is_refused_with_the_nearest_name():
    type_ = node("name: String?")
    raw = RawRow({"nmae": "x"}, 1)

    [violation] = converted(type_, raw).report.violations
    assert str(violation) == "f:1: P: unknown property nmae (did you mean name?)"
    assert converted(type_, raw, ignores_unknown=True).rows.num_rows == 1


def test_every_fault_of_every_row_is_counted():
    found = converted(
        node("a: I64  b: Bool"),
        RawRow({"a": "x", "b": 1}),
        RawRow({"a": 1, "b": True}),
        RawRow({"a": 1.5, "b": True}),
    )

    assert found.rows.num_rows == 1
    assert {each.properties: count for each, count in found.report.counts.items()} == {
        ("a",): 2,
        ("b",): 1,
    }


def test_a_key_makes_the_id():
    type_ = node("a: String  b: I64  @key(a, b)")
    rows = converted(type_, RawRow({"a": "é", "b": 7.0}), RawRow({"a": "x", "b": "7"})).rows

    assert rows["id"].to_pylist() == ['["é","7"]', '["x","7"]']


@pytest.mark.parametrize(
    ("values", "rule", "properties"),
    [
        ({"n": None}, Rule.REQUIRED, ("n",)),
        ({}, Rule.REQUIRED, ("n",)),
        ({"n": math.nan}, Rule.KEY, ("n",)),
        ({"n": 1.0, "id": "2"}, Rule.TYPE, ("id",)),
        ({"n": 1.0, "id": 1}, Rule.TYPE, ("id",)),
    ],
)
def test_a_key_that_makes_no_id_is_a_violation(values, rule, properties):
    [violation] = converted(node("n: F64 @key"), RawRow(values)).report.violations

    assert (violation.rule, violation.properties) == (rule, properties)


def test_an_id_may_be_given_again_if_it_is_what_the_key_says():
    assert converted(node("n: F64 @key"), RawRow({"n": 1, "id": "1"})).report.is_clean


def test_without_a_key_the_given_id_is_taken_or_one_is_minted():
    rows = converted(node("n: F64?"), RawRow({"id": "mine"}), RawRow({})).rows

    assert rows["id"].to_pylist() == ["mine", "1"]


def test_edges_have_ends_beside_their_properties():
    catalog = parse_schema("node P { } edge K: P -> P { from: String?  @key(src, dst) }")
    type_ = catalog.edge_type("K")
    found = converted(
        type_,
        RawRow({"from": "x"}, source="a", target="b"),
        RawRow({}, source="a", target=7),
        RawRow({}, source="a"),
    )

    assert found.rows.drop_columns([POSITION]).to_pylist() == [
        {"id": '["a","b"]', "src": "a", "dst": "b", "from": "x"}
    ]
    assert [(each.rule, each.properties) for each in found.report.counts] == [
        (Rule.TYPE, ("dst",)),
        (Rule.REQUIRED, ("dst",)),
    ]


def test_rows_have_the_columns_of_a_delta_however_many_there_are():
    type_ = node("n: I64?")
    many = [RawRow({"n": each}, each) for each in range(ROWS_PER_BATCH_MAX + 1)]

    for rows in ([], many[:1], many[:-1], many):
        found = converted(type_, *rows).rows
        assert found.schema == delta_schema(type_)
        assert found["n"].to_pylist() == list(range(len(rows)))
        assert isinstance(found, pa.Table)
