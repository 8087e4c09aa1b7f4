"""Overwrites: the table holds the new rows and what was carried, and nothing else."""

import lance
import pyarrow as pa
import pytest

from omnigraph.errors import StorageError, TableConflictError
from omnigraph.storage.staging import stage_append, stage_delete, stage_overwrite, stage_upsert
from tests.support.tables import (
    LOCATION,
    SCHEMA,
    applied,
    create,
    ids,
    in_fragments,
    latest,
    numbers,
    row_ids,
    rows,
)


def test_an_overwrite_leaves_only_its_own_rows(table, elsewhere):
    staged = stage_overwrite(table, rows("xy", n=1))
    applied(staged)

    assert numbers(latest(elsewhere)) == {"x": 1, "y": 1}
    assert staged.row_count == 2


def test_an_overwrite_with_zero_rows_empties_the_table_and_keeps_its_schema(table):
    staged = stage_overwrite(table, rows(""))
    emptied = applied(staged)

    assert (staged.row_count, emptied.count_rows(), emptied.fragments()) == (0, 0, ())
    assert emptied.schema.equals(SCHEMA)
    assert ids(applied(stage_append(emptied, rows("a")))) == ["a"]


def test_carried_fragments_keep_their_rows_behind_the_new_ones(store):
    table = in_fragments(store, "ab", "cd", "ef")
    staged = stage_overwrite(table, rows("xy", n=1), carrying=table.fragments()[1:])
    overwritten = applied(staged)

    assert overwritten.read(["id"])["id"].to_pylist() == list("xycdef")
    assert staged.row_count == 6
    assert {each: row_ids(overwritten)[each] for each in "cdef"} == {
        each: row_ids(table)[each] for each in "cdef"
    }


def test_zero_rows_may_carry_fragments(store):
    table = in_fragments(store, "ab", "cd")

    assert ids(applied(stage_overwrite(table, rows(""), carrying=table.fragments()[:1]))) == [
        "a",
        "b",
    ]


def test_carried_rows_can_still_be_replaced_and_deleted(store):
    table = in_fragments(store, "ab", "cd")
    table = applied(stage_overwrite(table, rows("x"), carrying=table.fragments()))
    table = applied(stage_upsert(table, rows("ax", n=1)))
    table = applied(stage_delete(table, ids=["c"]))

    assert numbers(table) == {"a": 1, "b": 0, "d": 0, "x": 1}


def test_row_ids_are_not_used_again_after_an_overwrite(table):
    overwritten = applied(stage_overwrite(table, rows("abc")))

    assert set(row_ids(overwritten).values()).isdisjoint(row_ids(table).values())


def test_a_fragment_with_deletions_cannot_be_carried(store):
    table = applied(stage_delete(in_fragments(store, "ab"), ids=["a"]))
    with pytest.raises(StorageError):
        applied(stage_overwrite(table, rows("x"), carrying=table.fragments()))

    assert ids(latest(store)) == ["b"]


def test_an_overwrite_may_change_the_schema(table):
    schema = pa.schema([SCHEMA.field("id"), pa.field("weight", pa.float64())], metadata={"a": "b"})
    change = pa.table({"id": ["x"], "weight": [1.5]}, schema=schema)
    overwritten = applied(stage_overwrite(table, change, schema=schema))

    assert overwritten.schema.equals(schema, check_metadata=True)
    assert overwritten.read().to_pylist() == [{"id": "x", "weight": 1.5}]


def test_an_overwrite_may_change_the_metadata_alone(table):
    stamped = SCHEMA.with_metadata({"stamp": "2"})
    staged = stage_overwrite(table, rows(""), schema=stamped, carrying=table.fragments())
    overwritten = applied(staged)

    assert overwritten.schema.metadata == {b"stamp": b"2"}
    assert ids(overwritten) == ["a", "b", "c"]


def test_an_overwrite_without_a_schema_keeps_the_metadata(table):
    stamped = SCHEMA.with_metadata({"stamp": "2"})
    table = applied(stage_overwrite(table, rows("a"), schema=stamped))
    table = applied(stage_overwrite(table, rows("b")))

    assert table.schema.metadata == {b"stamp": b"2"}


@pytest.mark.parametrize("dropped", ["n", "note"])
def test_columns_stay_apart_when_a_table_that_dropped_one_is_overwritten(local, dropped):
    create(local, "ab")
    lance.dataset(local.tables.uri(LOCATION)).drop_columns([dropped])
    table = latest(local)
    change = rows("xy", n=7).drop_columns([dropped])

    overwritten = applied(stage_overwrite(table, change))
    assert overwritten.read().equals(change)
    appended = applied(stage_append(overwritten, change))
    assert appended.read().equals(pa.concat_tables([change, change]))


@pytest.mark.parametrize("dropped", ["n", "note"])
def test_a_table_that_dropped_a_column_carries_nothing(local, dropped):
    create(local, "ab")
    lance.dataset(local.tables.uri(LOCATION)).drop_columns([dropped])
    table = latest(local)

    with pytest.raises(AssertionError, match="mixed up"):
        stage_overwrite(table, rows("").drop_columns([dropped]), carrying=table.fragments())


def test_of_two_overwrites_of_one_version_the_second_is_refused(table, store):
    first, second = stage_overwrite(table, rows("x")), stage_overwrite(table, rows("y"))
    applied(first)
    with pytest.raises(TableConflictError):
        applied(second)

    assert ids(latest(store)) == ["x"]
