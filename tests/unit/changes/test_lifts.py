"""Lifts: where the columns of a type come from in a table of another schema."""

import math
import pickle
from datetime import date

import pyarrow as pa
import pytest

from omnigraph.changes.lifts import (
    ConstantColumn,
    ConvertedColumn,
    Lift,
    LiftPair,
    SourceColumn,
    unlike_columns,
)
from omnigraph.model.identities import TypeIdentity
from omnigraph.model.types import EnumType, ListType, Scalar, VectorType
from omnigraph.schema.arrow import table_schema
from omnigraph.schema.catalog import NodeType, Property
from omnigraph.schema.parser import parse_schema
from omnigraph.storage.pairs import ColumnPair
from omnigraph.storage.tables import ROW_ADDRESS

OLD = parse_schema(
    "node P { a: I32?  b: String  gone: Bool?  again: String?  e: enum(x, y)? }"
).type_named("P")
NEW = parse_schema(
    "node Q { c: String?  a: I64?  again: String?  e: String?  d: I32 @default(5) }"
).type_named("Q")
IDENTITY = TypeIdentity("P")
LATER = TypeIdentity("P", {"c": "b", "again": "again~2"}, ("again", "gone"))


@pytest.fixture
def lift() -> Lift:
    return Lift.between(OLD, IDENTITY, wanted=NEW, wanted_identity=LATER)


def test_columns_come_from_the_property_of_their_origin(lift):
    assert lift.columns == (
        SourceColumn("id", "id"),
        SourceColumn("c", "b"),
        ConvertedColumn("a", "a", Scalar.I32, Scalar.I64),
        ConstantColumn("again", None),
        SourceColumn("e", "e"),
        ConstantColumn("d", 5),
    )
    assert lift.sources(["id", "c", "again", "d", "a", ROW_ADDRESS]) == [
        "id",
        "b",
        "a",
        ROW_ADDRESS,
    ]
    assert pickle.loads(pickle.dumps(lift)) == lift


def test_the_lift_of_a_type_to_itself_is_the_identity(lift):
    same = Lift.between(OLD, IDENTITY, wanted=OLD, wanted_identity=IDENTITY)
    assert same == Lift.identity(OLD)
    assert same.is_identity
    assert not lift.is_identity


def test_rows_become_rows_of_the_wanted_type(lift):
    rows = pa.table({"id": ["x"], "b": ["b"], "a": pa.array([1], pa.int32()), "e": ["y"]})
    names = ["id", "c", "a", "again", "e", "d"]
    lifted = lift.apply(rows, names)
    assert lifted.to_pylist() == [{"id": "x", "c": "b", "a": 1, "again": None, "e": "y", "d": 5}]
    assert lifted.schema.field("a").type == pa.int64()


def test_values_that_the_type_lacks_are_told_apart_by_another_column():
    back = Lift.between(NEW, LATER, wanted=OLD, wanted_identity=IDENTITY)
    rows = pa.table({"a": [2**40, 2**41, 7, None], "c": list("abcd")})
    lifted = back.apply(rows, ["a", "b"])
    assert lifted["a"].to_pylist() == [None, None, 7, None]
    (name,) = unlike_columns(lifted)
    assert lifted[name].to_pylist() == [str(2**40), str(2**41), None, None]


def test_pairs_say_which_columns_may_be_compared_as_they_are_stored(lift):
    pair = LiftPair(lift, Lift.identity(NEW))
    assert pair.columns == (
        ColumnPair("id", "id", "id"),
        ColumnPair("c", "b", "c"),
        ColumnPair("a", "a", "a", is_stored_alike=False),
        ColumnPair("again", None, "again", is_stored_alike=False),
        ColumnPair("e", "e", "e"),
        ColumnPair("d", None, "d", is_stored_alike=False, is_null=False),
    )
    assert pair.reads(["c", "d"]) == (["b"], ["c", "d"])
    # Neither side has these, and both have the same instead.
    assert [each.name for each in LiftPair(lift, lift).columns] == ["id", "c", "a", "e"]


def test_rows_of_two_versions_are_unlike_where_a_value_is(lift):
    pair = LiftPair(lift, Lift.identity(NEW))
    numbers = pa.array([1, 2, None, None], pa.int32())
    before = pa.table({"a": numbers, ROW_ADDRESS: range(4)})
    after = pa.table({"a": [1, 3, None, 4], "d": [5, 5, 5, 6], ROW_ADDRESS: range(4)})
    assert pair.unlike(["a"], before, after).tolist() == [False, True, False, True]
    assert pair.unlike(["d"], before, after).tolist() == [False, False, False, True]
    back = LiftPair(
        Lift.between(NEW, LATER, wanted=OLD, wanted_identity=IDENTITY), Lift.identity(OLD)
    )
    wide = pa.table({"a": [2**40, 1], ROW_ADDRESS: range(2)})
    narrow = pa.table({"a": pa.array([None, 1], pa.int32()), ROW_ADDRESS: range(2)})
    # What does not fit is not null.
    assert back.unlike(["a"], wide, narrow).tolist() == [True, False]


def test_lists_are_compared_too():
    type_ = parse_schema("node P { l: [I32]? }").type_named("P")
    rows = [
        pa.table({"l": pa.array(lists, pa.list_(pa.int32()))})
        for lists in ([[1], None], [[2], None])
    ]
    assert LiftPair.identity(type_).unlike(["l"], *rows).tolist() == [True, False]


def test_values_convert_as_a_schema_change_converts_them():
    texts = pa.chunked_array([["3.0", "007"], ["3.5", None], []], pa.utf8())
    converted = ConvertedColumn("a", "a", Scalar.STRING, Scalar.I32).convert(texts)
    assert converted.type == pa.int32()
    assert converted.to_pylist() == [3, 7, None, None]
    number = ConvertedColumn("a", "a", Scalar.F64, EnumType(("1", "2")))
    assert number.convert(pa.chunked_array([[2.0, math.nan]])).to_pylist() == ["2", "NaN"]
    assert number.is_total


@pytest.mark.parametrize(
    ("source", "wanted", "values"),
    [
        (Scalar.DATE, Scalar.I32, [date(2024, 1, 1), None]),
        (Scalar.I32, ListType(Scalar.I32), [1, None]),
        (ListType(Scalar.I32), ListType(Scalar.I64), [[1], None]),
        (VectorType(2), VectorType(3), [[1.0, 2.0], None]),
    ],
    ids=str,
)
def test_types_without_a_conversion_have_no_value_in_common(source, wanted, values):
    types = [NodeType("P", (Property("a", type_, nullable=True),)) for type_ in (source, wanted)]
    lift = Lift.between(types[0], IDENTITY, wanted=types[1], wanted_identity=IDENTITY)
    rows = pa.table({"a": pa.array(values, table_schema(types[0]).field("a").type)})
    lifted = lift.apply(rows, ["a"])
    (name,) = unlike_columns(lifted)
    assert lifted["a"].to_pylist() == [None, None]
    assert lifted[name].is_valid().to_pylist() == [True, False]
