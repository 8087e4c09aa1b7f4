"""Recipes report rows without a value like a load, and their columns are valid all the same."""

from __future__ import annotations

import pickle
from datetime import UTC, date, datetime

import pyarrow as pa
import pytest

from omnigraph.evolution.backfill import ColumnValues
from omnigraph.evolution.fills import compile_fill
from omnigraph.evolution.keys import check_kept_ids
from omnigraph.evolution.values import (
    ConstantRecipe,
    ConversionRecipe,
    ExpressionRecipe,
    RecipeTarget,
)
from omnigraph.limits import OFFENDERS_SHOWN_MAX
from omnigraph.model.types import EnumType, Scalar
from omnigraph.schema.catalog import NodeType, Property
from omnigraph.schema.parser import parse_schema


def target(type_, *, nullable: bool = True) -> RecipeTarget:
    return RecipeTarget("Thing", Property("new", type_, nullable=nullable))


@pytest.mark.parametrize(
    ("type_", "value"),
    [
        (Scalar.STRING, "é"),
        (Scalar.BOOL, False),
        (Scalar.U64, 2**64 - 1),
        (Scalar.F32, 0.5),
        (Scalar.DATE, date(1, 1, 1)),
        (Scalar.DATETIME, datetime(9999, 12, 31, tzinfo=UTC)),
        (EnumType(("a", "b")), "a"),
        (Scalar.STRING, None),
    ],
)
def test_a_constant_is_in_every_row(type_, value):
    recipe = pickle.loads(pickle.dumps(ConstantRecipe(target(type_), value)))
    result = recipe.compute(pa.record_batch({"_rowaddr": pa.array([1, 2, 3])}))

    assert recipe.reads == ()
    assert result.values.to_pylist() == [value] * 3
    assert result.values.type == recipe.target.field.type
    assert result.faults == ()


@pytest.mark.parametrize("type_", [s for s in Scalar if s is not Scalar.STRING])
def test_a_column_that_may_not_be_null_has_fillers_where_values_are_missing(type_):
    rows = pa.record_batch({"old": ["bad", None]})
    recipe = ConversionRecipe(target(type_, nullable=False), "old", Scalar.STRING)

    result = recipe.compute(rows)

    assert result.values.null_count == 0
    result.values.validate(full=True)
    assert [(str(fault.breach), fault.count) for fault in result.faults] == [
        ("type Thing(new)", 1),
        ("required Thing(new)", 1),
    ]
    assert [[offender.row for offender in fault.first] for fault in result.faults] == [[0], [1]]


def test_more_offenders_than_a_report_shows_are_counted_once():
    texts = ["bad"] * (OFFENDERS_SHOWN_MAX + 5) + [None]
    recipe = ConversionRecipe(target(Scalar.I32, nullable=False), "old", Scalar.STRING)

    type_fault, required_fault = recipe.compute(pa.record_batch({"old": texts})).faults

    assert (type_fault.count, len(type_fault.first)) == (25, 20)
    assert (required_fault.count, required_fault.first[0].row) == (1, 25)


def test_an_enum_converts_by_its_text():
    recipe = ConversionRecipe(target(Scalar.I64), "old", EnumType(("1", "two")))

    result = recipe.compute(pa.record_batch({"old": ["1", "two", None]}))

    assert result.values.to_pylist() == [1, None, None]
    [fault] = result.faults
    assert fault.first[0].value == "two"


def test_offenders_of_several_batches_are_named_by_the_ids_of_their_places():
    schema = parse_schema("node Thing { a: I32 }")
    broken = Property("broken", Scalar.F64)
    fill = compile_fill(schema.type_named("Thing"), broken, "10 / a")
    number = ConversionRecipe(target(Scalar.I32, nullable=False), "text", Scalar.STRING)
    values = ColumnValues([number, ExpressionRecipe(RecipeTarget("Thing", broken), fill)])
    assert values.reads == ("text", "a")

    first = values(pa.record_batch({"text": ["1", "x"], "a": pa.array([1, 2], pa.int32())}))
    values(pa.record_batch({"text": ["3", None], "a": pa.array([0, 5], pa.int32())}))
    asked = []

    def read_ids(places: list[int]) -> list[str]:
        asked.append(places)
        return [f"row{place}" for place in places]

    report = values.report(read_ids)

    assert first.to_pydict() == {"new": [1, 0], "broken": [10.0, 5.0]}
    assert asked == [[1, 2, 3]]
    assert [(one.id, one.value, str(one)) for one in report.violations] == [
        ("row1", "x", "Thing 'row1': new: x is not of type I32 (write a whole number)"),
        ("row3", None, "Thing 'row3': new may not be null"),
        ("row2", None, "Thing 'row2': broken: 10 / a: division by zero"),
    ]
    assert report.total == 3


def test_no_id_is_read_if_every_row_has_a_value():
    values = ColumnValues([ConstantRecipe(target(Scalar.I32), 7)])
    values(pa.record_batch({"_rowaddr": [1, 2]}))

    assert values.report(lambda _: pytest.fail("nothing is to be named")).is_clean


def key_report(type_: NodeType, **columns: object) -> list[tuple[str | None, str]]:
    report = check_kept_ids(type_, pa.record_batch(columns))
    return [(one.id, one.message) for one in report.violations]


def test_rows_keep_their_ids_if_these_are_the_texts_of_the_new_key():
    type_ = NodeType("Thing", (Property("name", Scalar.STRING),), key=("name",))

    assert key_report(type_, id=["a", "b"], name=["a", None]) == []
    assert key_report(type_, id=["a", "b"], name=["a", "B"]) == [
        ("b", "Thing 'b': the id 'b' does not match the key, which gives 'B'")
    ]


def test_keys_of_several_members_and_of_floats_are_compared_by_their_canonical_text():
    a, b = Property("a", Scalar.STRING), Property("b", Scalar.F64)
    pair = NodeType("Thing", (a, b), key=("a", "b"))
    single = NodeType("Thing", (b,), key=("b",))

    right, wrong = '["x","0.5"]', '["x","0.50"]'
    assert key_report(pair, id=[right, wrong], a=["x", "x"], b=[0.5, 0.5]) == [
        (
            wrong,
            f"Thing {wrong!r}: the id {wrong!r} does not match the key, which gives {right!r}",
        )
    ]
    [(row_id, message)] = key_report(single, id=["NaN", "3"], b=[float("nan"), 3.0])
    assert row_id == "NaN"
    assert "a number that is not finite" in message
