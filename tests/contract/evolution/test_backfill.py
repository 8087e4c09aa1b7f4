"""Columns of whole tables: both engines write the same values and report the same rows."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pyarrow as pa
import pytest

from omnigraph.clock import SystemClock
from omnigraph.engine.spark import relations
from omnigraph.evolution.backfill import ColumnFiller, FilledTable, TableFill
from omnigraph.evolution.fills import compile_fill
from omnigraph.evolution.values import (
    ConstantRecipe,
    ConversionRecipe,
    ExpressionRecipe,
    Recipe,
    RecipeTarget,
)
from omnigraph.model.types import Scalar
from omnigraph.schema.arrow import table_schema
from omnigraph.schema.catalog import Property
from omnigraph.schema.parser import parse_schema
from omnigraph.storage import staging
from omnigraph.storage.column_files import TableColumn
from omnigraph.storage.reshape import stage_reshape
from omnigraph.storage.store import Store
from omnigraph.storage.tables import Table
from tests.support.tables import applied

SCHEMA: Final = "node Person { age: String?  first: String  last: String? }"
PERSON: Final = parse_schema(SCHEMA).type_named("Person")
PARTS: Final = (
    [("p0", "0", "Al", "Yi"), ("p1", "41", "Ada", "Byron"), ("p2", "7", "Bo", None)],
    [("p3", "x", "Cy", "Li"), ("p4", None, "Di", "Wu"), ("p5", "3.5", "Ed", "Oz")],
    [("p6", "12", "Flo", "Ray")],
)
"""The rows of each fragment; p0 and p4 are deleted later."""

AGE, FULL, LEVEL = (
    Property("years", Scalar.I32, nullable=True),
    Property("full", Scalar.STRING),
    Property("level", Scalar.I64),
)


@pytest.fixture(params=["local", "spark"])
def filler(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> ColumnFiller:
    if request.param == "local":
        from omnigraph.backends.local import LocalBackend

        return LocalBackend()
    from omnigraph.backends.spark import SparkBackend
    from omnigraph.engine.spark.execute import SparkEngine

    # Even a small table is filled by several tasks.
    monkeypatch.setattr(relations, "SPARK_PARTITION_ROWS_MIN", 1)
    return SparkBackend(SparkEngine(request.getfixturevalue("spark")))


@pytest.fixture
def table(tmp_path: Path) -> Table:
    store = Store.open(tmp_path / "graph")
    schema = table_schema(PERSON)
    parts = [
        pa.table(dict(zip(schema.names, zip(*part, strict=True), strict=True)), schema)
        for part in PARTS
    ]
    made = applied(staging.stage_create(store.tables, "nodes/person", parts[0]))
    for part in parts[1:]:
        made = applied(staging.stage_append(made, part))
    return applied(staging.stage_delete(made, ids=["p0", "p4"]))


@pytest.fixture
def other(tmp_path: Path) -> Table:
    """A table of one row, which shares the run."""
    store = Store.open(tmp_path / "graph")
    row = pa.table({"id": ["q1"], "age": ["1"], "first": ["Q"], "last": ["R"]})
    row = row.cast(table_schema(PERSON))
    return applied(staging.stage_create(store.tables, "nodes/other", row))


def recipes(years: Property) -> tuple[Recipe, ...]:
    fill = compile_fill(PERSON, FULL, "concat(first, ' ', upper(last))")
    return (
        ConversionRecipe(RecipeTarget("Person", years), "age", Scalar.STRING),
        ExpressionRecipe(RecipeTarget("Person", FULL), fill),
        ConstantRecipe(RecipeTarget("Person", LEVEL), 3),
    )


def read_filled(
    table: Table, filled: FilledTable, fields: list[pa.Field]
) -> list[tuple[object, ...]]:
    """The rows of the table with the new columns, by id."""
    kept = [TableColumn(field, field.name) for field in table_schema(PERSON)]
    shaped = applied(stage_reshape(table, [*kept, *map(TableColumn, fields)], filled.files))
    rows = shaped.read(["id", *(field.name for field in fields)]).to_pylist()
    return sorted(tuple(row.values()) for row in rows)


def test_each_fragment_gets_its_values_and_offenders_are_named(filler, table, other):
    steps: list[tuple[int, int]] = []
    fills = [TableFill(table, recipes(AGE)), TableFill(other, recipes(AGE)[2:])]

    people, others = filler.fill_columns(fills, SystemClock(), lambda *step: steps.append(step))

    assert [str(violation) for violation in people.report.violations] == [
        "Person 'p3': years: x is not of type I32 (write a whole number)",
        "Person 'p5': years: 3.5 is not of type I32 (write a whole number)",
    ]
    assert people.report.total == 2
    assert others.report.is_clean
    assert steps
    fields = [recipe.target.field for recipe in recipes(AGE)]
    assert read_filled(table, people, fields) == [
        ("p1", 41, "Ada BYRON", 3),
        ("p2", 7, "Bo ", 3),
        ("p3", None, "Cy LI", 3),
        ("p5", None, "Ed OZ", 3),
        ("p6", 12, "Flo RAY", 3),
    ]
    assert read_filled(other, others, fields[2:]) == [("q1", 3)]


def test_a_table_without_rows_needs_no_files(tmp_path):
    from omnigraph.backends.local import LocalBackend

    store = Store.open(tmp_path / "graph")
    empty = table_schema(PERSON).empty_table()
    table = applied(staging.stage_create(store.tables, "nodes/person", empty))

    [filled] = LocalBackend().fill_columns([TableFill(table, recipes(AGE))], SystemClock())

    assert filled.files == ()
    assert filled.report.is_clean


def test_a_value_that_may_not_be_null_is_a_violation_and_not_a_failure(table):
    from omnigraph.backends.local import LocalBackend

    required = Property("surname", Scalar.STRING)
    fill = compile_fill(PERSON, required, "last")
    fills = [TableFill(table, (ExpressionRecipe(RecipeTarget("Person", required), fill),))]

    [filled] = LocalBackend().fill_columns(fills, SystemClock())

    assert [str(violation) for violation in filled.report.violations] == [
        "Person 'p2': surname may not be null"
    ]
