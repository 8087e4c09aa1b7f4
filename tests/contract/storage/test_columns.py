"""Added columns: of nulls or of one value, and never mistaken for another column."""

import lance
import pyarrow as pa
import pytest

from omnigraph.errors import InvalidInputError, TableConflictError
from omnigraph.storage.indexes import IndexSpec, stage_indexes
from omnigraph.storage.staging import stage_append, stage_columns, stage_delete, stage_upsert
from tests.support.tables import (
    LOCATION,
    SCHEMA,
    applied,
    by_id,
    create,
    ids,
    in_fragments,
    latest,
    numbers,
    row_ids,
    rows,
)

AGE = pa.field("age", pa.int32())
WEIGHT = pa.field("weight", pa.float64(), nullable=False, metadata={"unit": "kg"})


def test_a_column_of_nulls_writes_no_file(store):
    table = in_fragments(store, "ab", "c")
    store.meter.take()
    staged = stage_columns(table, [AGE])

    assert store.meter.take().writes == 0
    assert staged.row_count == 3
    added = applied(staged)
    assert by_id(added, "age") == {"a": None, "b": None, "c": None}
    assert numbers(added) == numbers(table)
    assert row_ids(added) == row_ids(table)


def test_a_column_is_filled_with_its_value(store):
    table = in_fragments(store, "ab", "c")
    added = applied(stage_columns(table, [AGE, WEIGHT], values={"weight": 1.5}))

    assert by_id(added, "age") == {"a": None, "b": None, "c": None}
    assert by_id(added, "weight") == {"a": 1.5, "b": 1.5, "c": 1.5}
    assert numbers(added) == numbers(table)
    assert row_ids(added) == row_ids(table)


def test_added_columns_come_last_as_they_were_declared(table):
    added = applied(stage_columns(table, [WEIGHT, AGE], values={"weight": 0.0}))

    assert added.schema.names == ["id", "n", "note", "weight", "age"]
    assert not added.schema.field("weight").nullable
    assert added.schema.field("weight").type == pa.float64()
    assert added.schema.field("weight").metadata == {b"unit": b"kg"}
    assert added.schema.field("age").nullable
    assert not added.schema.field("id").nullable


@pytest.mark.parametrize("value", [0, 0.0])
def test_a_value_that_is_false_is_a_value(table, value):
    added = applied(stage_columns(table, [WEIGHT], values={"weight": value}))

    assert set(by_id(added, "weight").values()) == {0.0}


@pytest.mark.parametrize("values", [None, {}, {"weight": None}, {"age": 1}])
@pytest.mark.parametrize("held", ["", "a"], ids=["empty", "full"])
def test_a_column_that_may_not_be_null_needs_a_value(local, values, held):
    table = create(local, held)
    with pytest.raises(InvalidInputError, match="weight may not be null"):
        stage_columns(table, [WEIGHT], values=values)


@pytest.mark.parametrize("fields", [[pa.field("n", pa.string())], [AGE, AGE]])
def test_a_column_that_exists_is_refused(local, fields):
    with pytest.raises(InvalidInputError, match="exists already"):
        stage_columns(create(local, "a"), fields)


def test_an_empty_table_gets_its_columns_too(store):
    added = applied(stage_columns(create(store), [AGE, WEIGHT], values={"weight": 1.0}))

    assert added.schema.names == ["id", "n", "note", "age", "weight"]
    change = rows("a").append_column(AGE, pa.array([1], AGE.type))
    change = change.append_column(WEIGHT, pa.array([2.0]))
    assert applied(stage_append(added, change)).read().to_pylist() == change.to_pylist()


@pytest.mark.parametrize("values", [{}, {"age": 4}])
def test_deleted_rows_stay_deleted(table, values):
    deleted = applied(stage_delete(table, ids=["b"]))
    added = applied(stage_columns(deleted, [AGE], values=values))

    assert by_id(added, "age") == dict.fromkeys("ac", values.get("age"))
    assert row_ids(added) == row_ids(deleted)


@pytest.mark.parametrize("values", [{}, {"age": 4}])
def test_rows_of_the_new_shape_are_written_beside_the_old(table, values):
    added = applied(stage_columns(table, [AGE], values=values))
    change = rows("ax", n=1).append_column(AGE, pa.array([9, 10], AGE.type))
    upserted = applied(stage_upsert(added, change))

    old = values.get("age")
    assert by_id(upserted, "age") == {"a": 9, "b": old, "c": old, "x": 10}
    assert numbers(upserted) == {"a": 1, "b": 0, "c": 0, "x": 1}


@pytest.mark.parametrize("values", [{}, {"age": 4}])
@pytest.mark.parametrize("dropped", [["n"], ["note"], ["n", "note"]])
def test_values_stay_right_in_a_table_that_dropped_a_column(store, dropped, values):
    in_fragments(store, "ab", "c")
    lance.dataset(store.tables.uri(LOCATION)).drop_columns(dropped)
    table = latest(store)
    kept = table.read()
    assert table.schema.names == [each for each in SCHEMA.names if each not in dropped]

    added = applied(stage_columns(table, [AGE], values=values))
    assert added.read(table.schema.names).equals(kept)
    assert by_id(added, "age") == dict.fromkeys("abc", values.get("age"))

    # The dropped columns' old data are still in the files: a column must not find them.
    again = applied(stage_columns(added, [SCHEMA.field(each) for each in dropped]))
    for each in dropped:
        assert by_id(again, each) == dict.fromkeys("abc")
    assert again.read(table.schema.names).equals(kept)
    assert by_id(again, "age") == dict.fromkeys("abc", values.get("age"))


def test_indexes_stay(table):
    spec = IndexSpec("id")
    indexed = applied(stage_indexes(table, [spec]))
    for values in ({}, {"weight": 1.0}):
        field = WEIGHT if values else AGE
        indexed = applied(stage_columns(indexed, [field], values=values))

    assert stage_indexes(indexed, [spec]) is None
    assert ids(indexed, "id = 'b'") == ["b"]


def test_a_stale_column_is_refused(table, store):
    staged = stage_columns(table, [AGE], values={"age": 1})
    applied(stage_append(table, rows("x")))
    with pytest.raises(TableConflictError):
        applied(staged)

    assert ids(latest(store)) == ["a", "b", "c", "x"]
