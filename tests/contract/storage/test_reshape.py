"""Other columns for a table: in one version, with every value where it belongs."""

import pickle
import subprocess
import sys
from collections.abc import Mapping
from typing import Any, Final

import lance
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from omnigraph.errors import InvalidInputError, StorageError, TableConflictError
from omnigraph.schema.arrow import property_field, table_schema
from omnigraph.schema.catalog import SchemaType
from omnigraph.schema.parser import parse_schema
from omnigraph.storage import column_files, truncation
from omnigraph.storage.column_files import ColumnFile, TableColumn, write_column_file
from omnigraph.storage.fields import read_columns
from omnigraph.storage.heads import preview, restore
from omnigraph.storage.indexes import (
    IndexSpec,
    covered_fragments,
    find_gaps,
    indexed_columns,
    stage_indexes,
)
from omnigraph.storage.lookups import find
from omnigraph.storage.reshape import (
    plan_reshape,
    stage_reshape,
    stage_reshaped_rows,
)
from omnigraph.storage.scans import open_address
from omnigraph.storage.staging import (
    StagedWrite,
    delete_rows,
    locate,
    stage_append,
    stage_create,
    stage_delete,
    stage_upsert,
    write_files,
    write_rows,
)
from omnigraph.storage.store import Store
from omnigraph.storage.tables import Table
from tests.support.tables import (
    AUTHOR,
    CREATED,
    LOCATION,
    SCHEMA,
    UPDATED,
    applied,
    by_id,
    create,
    filled,
    ids,
    in_fragments,
    kept,
    latest,
    numbers,
    row_ids,
    rows,
    stage_added,
)

AGE: Final = pa.field("age", pa.int32())
WEIGHT: Final = pa.field("weight", pa.float64(), nullable=False, metadata={"unit": "kg"})
TITLE: Final = pa.field("title", pa.string())
NAME: Final = pa.field("name", pa.string(), nullable=False)
NUMBER_TEXT: Final = pa.field("n", pa.string())
NOTE: Final = pa.field("note", pa.string())


def lengths(batch: pa.RecordBatch) -> pa.RecordBatch:
    """A weight from the length of the note, and the number as a text."""
    made = [
        pc.cast(pc.utf8_length(batch["note"]), pa.float64()),
        pc.cast(batch["n"], pa.string()),
    ]
    return pa.RecordBatch.from_arrays(made, schema=pa.schema([WEIGHT, NUMBER_TEXT]))


def computed(table: Table) -> list[ColumnFile]:
    """Files that tasks wrote: they open the table by its address, and send the files back."""
    there = open_address(pickle.loads(pickle.dumps(table.address)))
    files = [
        write_column_file(
            there, each.id, [WEIGHT, NUMBER_TEXT], reading=["n", "note"], compute=lengths
        )
        for each in there.fragments()
    ]
    sent: list[ColumnFile] = pickle.loads(pickle.dumps(files))
    return sent


def compacted(store: Store, *, ref: str | None = None) -> Table:
    handle = lance.dataset(store.tables.uri(LOCATION)).checkout_version((ref, None))
    handle.optimize.compact_files()
    handle.validate()
    return latest(store, ref=ref)


def test_one_version_renames_converts_adds_and_drops(store, elsewhere):
    table = in_fragments(store, "ab", ["c", "long"])
    before = table.read()
    columns = [
        TableColumn(WEIGHT),
        TableColumn(pa.field("key", pa.string(), nullable=False), "id"),
        TableColumn(AGE),
        TableColumn(NUMBER_TEXT),
    ]
    staged = stage_reshape(table, columns, computed(table))
    changed = applied(staged)

    assert (changed.version, staged.row_count) == (table.version + 1, 4)
    assert changed.schema.names == ["weight", "key", "age", "n"]
    assert changed.schema.field("weight").metadata == {b"unit": b"kg"}
    assert [each.nullable for each in changed.schema] == [False, False, True, True]
    for reader in (changed, latest(elsewhere)):
        assert reader.read().to_pylist() == [
            {"weight": 9.0, "key": "a", "age": None, "n": "0"},
            {"weight": 9.0, "key": "b", "age": None, "n": "0"},
            {"weight": 9.0, "key": "c", "age": None, "n": "0"},
            {"weight": 12.0, "key": "long", "age": None, "n": "0"},
        ]
    older = elsewhere.tables.open(LOCATION, ref=None, version=table.version)
    assert older.read().equals(before)


def test_a_change_of_names_and_nullability_writes_no_file_and_touches_no_row(local):
    table = applied(stage_delete(in_fragments(local, "abc", "d"), ids=["b"]))
    local.meter.take()
    columns = [
        TableColumn(NUMBER_TEXT, "note"),
        TableColumn(AGE),
        TableColumn(SCHEMA.field("id"), "id"),
    ]
    staged = stage_reshape(table, columns)
    assert local.meter.take().writes == 0
    changed = applied(staged)

    assert by_id(changed, "n") == {each: f"note of {each}" for each in "acd"}
    assert by_id(changed, "age") == dict.fromkeys("acd")
    for own in (row_ids(table), by_id(table, CREATED), by_id(table, UPDATED)):
        assert own in (row_ids(changed), by_id(changed, CREATED), by_id(changed, UPDATED))
    assert changed.fragments() == table.fragments()


def test_values_keep_their_rows_and_row_ids_beside_deleted_ones(local):
    table = applied(stage_delete(in_fragments(local, "abc", ["d", "long", "f"]), ids=["a", "d"]))
    changed = applied(stage_reshape(table, [*kept(table), TableColumn(WEIGHT)], [*weights(table)]))

    assert by_id(changed, "weight") == {"b": 9.0, "c": 9.0, "long": 12.0, "f": 9.0}
    assert numbers(changed) == numbers(table)
    assert row_ids(changed) == row_ids(table)
    assert by_id(changed, CREATED) == by_id(table, CREATED)


def weights(table: Table) -> list[ColumnFile]:
    def weigh(batch: pa.RecordBatch) -> pa.RecordBatch:
        return lengths(batch).select(["weight"])

    return [
        write_column_file(table, each.id, [WEIGHT], reading=["note", "n"], compute=weigh)
        for each in table.fragments()
    ]


# Columns of every stored type, required and nullable, beside keys that each property has.
EVERYTHING: Final = parse_schema(
    """
    node Doc {
      name: String @key
      flag: Bool  flags: [Bool]?  small: I32?  big: U64  share: F32  day: Date  moment: DateTime?
      mood: enum(good, bad)  tags: [String]  sizes: [I64]?  vector: Vector(3)  maybe: Vector(2)?
      body: Blob  image: Blob?  parts: [Blob]  pages: [Blob]?
    }
    """
).node_type("Doc")
ROW_COUNT: Final = 400
BATCH_ROWS: Final = 32
LARGE: Final = bytes(range(256)) * 1024


def is_added(field: pa.Field) -> bool:
    return field.name not in ("id", "name")


def value_of(field: pa.Field, row: int) -> Any:
    """The value that a property gets in a row; small numbers, so that each type holds them."""
    if field.nullable and row % 3 == 0:
        return None
    return plain_value(field.type, row)


def plain_value(type_: pa.DataType, row: int) -> Any:
    if pa.types.is_fixed_size_list(type_):
        return [float(row + place) for place in range(type_.list_size)]
    if pa.types.is_list(type_):
        return [plain_value(type_.value_type, row + place) for place in range(1 + row % 3)]
    if pa.types.is_boolean(type_):
        return row % 2 == 0
    if pa.types.is_string(type_):
        return f"text {row}"
    if pa.types.is_large_binary(type_):
        return LARGE if row % 100 == 1 else b"%d" % row
    return pa.scalar(row, type_).as_py()


def documents(type_: SchemaType, numbers_: list[int]) -> pa.Table:
    schema = table_schema(type_)
    columns: Mapping[str, list[Any]] = {
        field.name: (
            [value_of(field, row) for row in numbers_]
            if is_added(field)
            else [str(row) for row in numbers_]
        )
        for field in schema
    }
    return pa.table(columns, schema=schema)


def test_every_type_of_value_is_added_to_rows_between_long_runs_of_deleted_ones(local, monkeypatch):
    monkeypatch.setattr(column_files, "ROWS_PER_BATCH_MAX", BATCH_ROWS)
    every = documents(EVERYTHING, list(range(ROW_COUNT)))
    created = stage_create(local.tables, LOCATION, every.select(["id", "name"]))
    # More than a batch of deleted rows, single ones, and the first and the last row.
    gone = {0, 1, *range(40, 180), *range(200, 230, 2), *range(380, ROW_COUNT)}
    table = applied(stage_delete(applied(created), ids=[str(row) for row in sorted(gone)]))
    fields = [each for each in table_schema(EVERYTHING) if is_added(each)]

    def look_up(batch: pa.RecordBatch) -> pa.RecordBatch:
        places = pa.array([int(each) for each in batch["name"].to_pylist()])
        [made] = (
            every.select([each.name for each in fields]).take(places).combine_chunks().to_batches()
        )
        return made

    [fragment] = table.fragments()
    file = write_column_file(table, fragment.id, fields, reading=["name"], compute=look_up)
    changed = applied(stage_reshape(table, [*kept(table), *map(TableColumn, fields)], [file]))

    live = np.array([row for row in range(ROW_COUNT) if row not in gone])
    assert changed.read().to_pylist() == every.take(pa.array(live)).to_pylist()
    for reader in (changed, compacted(local)):
        last = reader.read(filter_text="id IN ('201', '379')")
        assert last.to_pylist() == every.take(pa.array([201, 379])).to_pylist()


def test_added_columns_are_stored_like_those_a_table_is_created_with(local):
    whole = applied(stage_create(local.tables, "nodes/whole", documents(EVERYTHING, [1])))
    table = applied(stage_create(local.tables, LOCATION, rows("").select(["id"])))
    others = [TableColumn(each) for each in table_schema(EVERYTHING) if each.name != "id"]
    changed = applied(stage_reshape(table, [*kept(table), *others]))

    assert read_columns(changed.handle.lance_schema) == read_columns(whole.handle.lance_schema)
    grown = applied(stage_append(changed, documents(EVERYTHING, [1, 2, 3])))
    assert grown.read().to_pylist() == documents(EVERYTHING, [1, 2, 3]).to_pylist()


@pytest.mark.parametrize("is_copied", [False, True], ids=["kept", "copied"])
@pytest.mark.parametrize("first", [[], [1]], ids=["created empty", "created full"])
def test_every_type_of_value_stays_under_another_name_and_nullability(local, first, is_copied):
    # A table that is created empty stores blobs in another way.
    table = applied(stage_create(local.tables, LOCATION, documents(EVERYTHING, first)))
    every = documents(EVERYTHING, [*first, 2, 3, 4, 5])
    table = applied(stage_append(table, every.slice(len(first))))
    table = applied(stage_delete(table, ids=["4"]))
    every = every.filter(pc.not_equal(every["id"], "4"))
    columns = [
        TableColumn(
            pa.field(f"new {each.name}", each.type, nullable=True, metadata=each.metadata),
            each.name,
        )
        for each in table_schema(EVERYTHING)
    ]
    changed = applied(
        staged_with_ages(table, columns) if is_copied else stage_reshape(table, columns)
    )

    assert all(each.nullable for each in changed.schema)
    assert (
        changed.read([each.name for each in columns]).to_pylist()
        == every.rename_columns([f"new {each}" for each in every.column_names]).to_pylist()
    )
    assert changed.schema.names == [
        *(each.name for each in columns),
        *(["age"] if is_copied else []),
    ]


def staged_with_ages(table: Table, columns: list[TableColumn]) -> StagedWrite:
    """A reshape that also adds a column of values."""
    plan = plan_reshape(table, [*columns, TableColumn(AGE)], filled={"age"})
    files = [
        write_column_file(table, each.id, [AGE], reading=[], compute=ages, copies=plan.copies)
        for each in table.fragments()
    ]
    return stage_reshape(table, plan.columns, files)


def ages(batch: pa.RecordBatch) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array([7] * batch.num_rows, AGE.type)], ["age"])


@pytest.mark.parametrize("text", ["body: Blob?", "parts: [Blob]?", "v: Vector(2)?", "l: [I32]?"])
def test_a_column_of_nulls_is_written_to_like_any_other(local, text):
    [own] = parse_schema(f"node Doc {{ {text} }}").node_type("Doc").properties
    field = property_field(own)
    table = in_fragments(local, "ab", "c")
    added = applied(stage_added(table, [field]))
    value = plain_value(field.type, 1)
    change = rows("ax", n=1).append_column(field, pa.array([value, None], field.type))
    changed = applied(stage_upsert(added, change))

    assert by_id(added, own.name) == dict.fromkeys("abc")
    assert by_id(changed, own.name) == {"a": value, "b": None, "c": None, "x": None}
    assert by_id(compacted(local), own.name) == by_id(changed, own.name)
    assert by_id(restore(changed, added.version, AUTHOR), own.name) == dict.fromkeys("abc")


@pytest.mark.parametrize("values", [{}, {"age": 4}])
@pytest.mark.parametrize("dropped", [["n"], ["note"], ["n", "note"]])
def test_a_column_does_not_find_the_values_of_a_dropped_one(local, dropped, values):
    table = in_fragments(local, "ab", "c")
    left = applied(stage_reshape(table, kept(table, but=dict.fromkeys(dropped))))
    assert left.schema.names == [each for each in SCHEMA.names if each not in dropped]

    added = applied(stage_added(left, [AGE], values=values))
    again = applied(stage_added(added, [SCHEMA.field(each) for each in dropped]))
    for each in dropped:
        assert by_id(again, each) == dict.fromkeys("abc")
    assert again.read(left.schema.names).equals(left.read())
    assert by_id(again, "age") == dict.fromkeys("abc", values.get("age"))
    assert compacted(local).read().to_pylist() == again.read().to_pylist()


def test_a_dropped_blob_at_the_end_leaves_no_trace_in_what_follows(local):
    table = in_fragments(local, "ab")
    [own] = parse_schema("node Doc { body: Blob? }").node_type("Doc").properties
    body = property_field(own)
    blobs = applied(stage_added(table, [body], values={"body": b"old"}))
    left = applied(stage_reshape(blobs, kept(blobs, but={"body": None})))
    again = applied(stage_added(left, [AGE, body]))
    once_more = applied(stage_added(left_of(again), [NUMBER_AS_FLOAT], values={"f": 2.5}))

    assert by_id(blobs, "body") == {"a": b"old", "b": b"old"}
    assert by_id(again, "body") == by_id(again, "age") == {"a": None, "b": None}
    assert by_id(once_more, "f") == {"a": 2.5, "b": 2.5}


NUMBER_AS_FLOAT: Final = pa.field("f", pa.float64())


def left_of(table: Table) -> Table:
    """The table without the columns that were added."""
    return applied(stage_reshape(table, kept(table, but={"age": None, "body": None})))


def test_indexes_stay_with_their_columns(local):
    table = applied(stage_indexes(in_fragments(local, "ab", "c"), map(IndexSpec, SCHEMA.names)))
    # The number goes, the note gets its name, and another column gets the note's.
    columns = [
        TableColumn(SCHEMA.field("id"), "id"),
        TableColumn(NUMBER_TEXT, "note"),
        TableColumn(NOTE),
    ]
    changed = applied(stage_reshape(table, columns))

    assert indexed_columns(changed) == {"id", "n"}
    assert find_gaps(changed, [IndexSpec("id"), IndexSpec("n")]) == ()
    assert ids(changed, "n = 'note of b'") == ["b"]
    change = pa.table(
        {"note": ["new"], "id": ["x"], "n": ["of x"]},
        schema=pa.schema([NOTE, SCHEMA.field("id"), NUMBER_TEXT]),
    )
    grown = applied(stage_append(changed, change))
    specs = [IndexSpec("n"), IndexSpec("note"), IndexSpec("id")]
    grown = applied(stage_indexes(grown, specs))
    assert stage_indexes(grown, specs) is None
    assert [len(covered_fragments(grown, each)) for each in specs] == [3, 3, 3]
    assert len(grown.handle.describe_indices()) == 3
    for filter_text in ("n = 'of x'", "note = 'new'", "id = 'x'"):
        assert ids(grown, filter_text) == ["x"]
    assert ids(grown, "note = 'note of b'") == []


def test_an_index_on_a_column_that_gets_values_elsewhere_stays(local):
    table = applied(
        stage_indexes(in_fragments(local, "ab", "c"), [IndexSpec("id"), IndexSpec("n")])
    )
    changed = applied(
        stage_reshape(table, kept(table, but={"n": TableColumn(WEIGHT)}), weights(table))
    )

    assert indexed_columns(changed) == {"id"}
    assert find_gaps(changed, [IndexSpec("id")]) == ()
    assert ids(changed, "id = 'b'") == ["b"]


def test_rows_are_written_and_deleted_afterwards_whatever_the_order_of_their_columns(local):
    table = applied(stage_indexes(in_fragments(local, "abc", "d"), [IndexSpec("id")]))
    columns = [TableColumn(WEIGHT), TableColumn(TITLE, "note"), *kept(table, but={"note": None})]
    changed = applied(stage_reshape(table, columns, weights(table)))
    fields = [SCHEMA.field("n"), TITLE, SCHEMA.field("id"), WEIGHT]
    change = pa.Table.from_pylist(
        [{"n": 1, "title": f"of {each}", "id": each, "weight": 0.5} for each in "bx"],
        schema=pa.schema(fields),
    )
    upserted = applied(stage_upsert(changed, change))
    left = applied(stage_delete(upserted, ids=["c", "x"]))

    assert numbers(left) == {"a": 0, "b": 1, "d": 0}
    assert by_id(left, "title") == {"a": "note of a", "b": "of b", "d": "note of d"}
    assert by_id(left, "weight") == {"a": 9.0, "b": 0.5, "d": 9.0}
    assert row_ids(upserted)["b"] == row_ids(table)["b"]
    assert (
        compacted(local).read(filter_text="id = 'b'").to_pylist()
        == left.read(filter_text="id = 'b'").to_pylist()
    )


def test_remembered_values_do_not_follow_a_name_to_another_column(local):
    table = in_fragments(local, "ab", "c")
    other = pa.field("other", pa.string())
    table = applied(stage_added(table, [other], values={"other": "same"}))
    assert find(table, "note", ["note of a"], columns=["id"])["id"].to_pylist() == ["a"]
    assert find(table, "other", ["same"], columns=["id"]).num_rows == 3
    swapped = {"note": TableColumn(other, "note"), "other": TableColumn(NOTE, "other")}
    changed = applied(stage_reshape(table, kept(table, but=swapped)))

    assert find(changed, "note", ["note of a"], columns=["id"]).num_rows == 0
    assert find(changed, "note", ["same"], columns=["id"]).num_rows == 3
    assert find(changed, "other", ["note of a"], columns=["id"])["id"].to_pylist() == ["a"]
    assert find(table, "note", ["note of a"], columns=["id"])["id"].to_pylist() == ["a"]


def test_names_that_pass_to_other_columns_are_copied_where_files_are_written(local):
    table = applied(stage_delete(in_fragments(local, "abc", "d"), ids=["b"]))
    other = pa.field("other", pa.string())
    table = applied(stage_added(table, [other], values={"other": "same"}))
    columns = [
        TableColumn(SCHEMA.field("id"), "id"),
        TableColumn(NOTE, "other"),
        TableColumn(other, "note"),
        TableColumn(pa.field("n", pa.date32())),
        TableColumn(WEIGHT),
    ]
    plan = plan_reshape(table, columns, filled={"weight"})
    files = [
        write_column_file(
            table,
            each.id,
            [WEIGHT],
            reading=["note", "n"],
            compute=lambda batch: lengths(batch).select(["weight"]),
            copies=plan.copies,
        )
        for each in table.fragments()
    ]
    changed = applied(stage_reshape(table, plan.columns, files))

    assert [each.name for each in plan.copies] == ["note", "other", "n"]
    assert changed.schema.names == ["id", "note", "other", "n", "weight"]
    assert by_id(changed, "note") == dict.fromkeys("acd", "same")
    assert by_id(changed, "other") == {each: f"note of {each}" for each in "acd"}
    assert by_id(changed, "n") == dict.fromkeys("acd")
    assert by_id(changed, "weight") == dict.fromkeys("acd", 9.0)
    assert plan_reshape(table, columns, filled=()).copies == ()


REQUIRED: Final = pa.field("n", pa.int64(), nullable=False)


@pytest.mark.parametrize("is_copied", [False, True], ids=["kept", "copied"])
def test_a_column_whose_rows_with_nulls_were_deleted_may_become_required(local, is_copied):
    change = pa.concat_tables([rows("ab", n=1), rows("cde", n=None), rows("f", n=2)])
    table = applied(stage_append(create(local), change))
    table = applied(stage_delete(table, ids=["c", "d", "e"]))
    columns = kept(table, but={"n": TableColumn(REQUIRED, "n")})
    staged = staged_with_ages(table, columns) if is_copied else stage_reshape(table, columns)
    changed = applied(staged)

    assert not changed.schema.field("n").nullable
    assert numbers(changed) == {"a": 1, "b": 1, "f": 2}
    assert (ids(changed, "n = 2"), ids(changed, "n IS NULL")) == (["f"], [])
    assert numbers(compacted(local)) == {"a": 1, "b": 1, "f": 2}


def test_a_reshape_on_a_ref_leaves_main_alone(store):
    table = in_fragments(store, "ab", "c")
    before = store.objects.list(LOCATION)
    draft = store.refs.create(LOCATION, "draft", source=None, version=table.version)
    columns = kept(draft, but={"n": None, "note": TableColumn(TITLE, "note")})
    changed = applied(stage_reshape(draft, [*columns, TableColumn(WEIGHT)], weights(draft)))
    main = applied(stage_added(table, [AGE], values={"age": 7}))

    assert changed.schema.names == ["id", "title", "weight"]
    assert by_id(latest(store, ref="draft"), "weight") == dict.fromkeys("abc", 9.0)
    assert by_id(main, "age") == dict.fromkeys("abc", 7)
    new = set(store.objects.list(LOCATION)) - set(before)
    assert len([each for each in new if "/tree/draft/data/" in each]) == 2
    assert by_id(compacted(store, ref="draft"), "title") == by_id(table, "note")
    assert latest(store).read().equals(main.read())


def test_a_restore_brings_the_columns_and_their_indexes_back(local):
    table = applied(stage_indexes(in_fragments(local, "ab"), [IndexSpec("n")]))
    changed = applied(
        stage_reshape(table, kept(table, but={"n": TableColumn(WEIGHT)}), weights(table))
    )
    restored = restore(changed, table.version, AUTHOR)

    assert restored.schema.equals(table.schema)
    assert restored.read().equals(table.read())
    assert indexed_columns(restored) == {"n"}
    assert by_id(applied(stage_added(restored, [AGE])), "age") == dict.fromkeys("ab")


def test_an_empty_table_accepts_any_columns(local):
    table = create(local)
    columns = [TableColumn(SCHEMA.field("n"), "n"), TableColumn(NAME), TableColumn(WEIGHT)]
    changed = applied(stage_reshape(table, columns))

    assert changed.schema.names == ["n", "name", "weight"]
    row = pa.Table.from_pylist([{"n": 1, "name": "a", "weight": 2.0}], schema=changed.schema)
    assert applied(stage_append(changed, row)).read().equals(row)
    assert latest(local).handle.has_stable_row_ids


@pytest.mark.parametrize("columns", [[TableColumn(NAME)], [TableColumn(AGE), TableColumn(NAME)]])
def test_a_column_that_may_not_be_null_needs_values(local, columns):
    table = in_fragments(local, "a", "b")
    with pytest.raises(InvalidInputError, match="name may not be null, and has no values for 2"):
        stage_reshape(table, [*kept(table), *columns])
    files = filled(table, {NAME: "one"})[:1]
    with pytest.raises(InvalidInputError, match="no values for 1 of 2 fragments"):
        stage_reshape(table, [*kept(table), *columns], files)


def test_a_column_that_may_not_be_null_is_given_no_null(local):
    table = applied(stage_append(create(local, "a"), rows("b", n=None)))
    required = pa.field("required", pa.int64(), nullable=False)
    with pytest.raises(InvalidInputError, match="required may not be null, and 1 values are"):
        write_column_file(
            table,
            1,
            [required],
            reading=["n"],
            compute=lambda batch: pa.RecordBatch.from_arrays([batch["n"]], ["required"]),
        )


@pytest.mark.parametrize(
    "columns",
    [
        [TableColumn(AGE), TableColumn(AGE)],
        [TableColumn(AGE, "n"), TableColumn(SCHEMA.field("n"), "n")],
    ],
)
def test_a_column_stands_for_itself_only_once(local, columns):
    with pytest.raises(InvalidInputError, match="duplicate column"):
        stage_reshape(create(local, "a"), columns)


def test_what_a_computation_raises_is_raised(local):
    def fail(_: pa.RecordBatch) -> pa.RecordBatch:
        message = "not today"
        raise LookupError(message)

    with pytest.raises(LookupError, match="not today"):
        write_column_file(create(local, "a"), 0, [AGE], reading=[], compute=fail)


def test_a_file_that_was_cut_short_is_refused(local, monkeypatch):
    table = create(local, "a")
    monkeypatch.setattr(truncation, "_LANCE_END", b"ELSE")
    with pytest.raises(StorageError, match="cut short"):
        filled(table, {AGE: 1})


@pytest.mark.parametrize("values", [{}, {"age": 4}])
def test_a_stale_reshape_is_refused(local, values):
    table = create(local, "abc")
    staged = stage_added(table, [AGE], values=values)
    other = stage_added(table, [AGE], values=values)
    applied(staged)
    with pytest.raises(TableConflictError):
        applied(other)

    assert latest(local).version == 2


READ: Final = """
import pickle, sys
from omnigraph.storage.scans import open_address
table = open_address(pickle.loads(bytes.fromhex(sys.argv[1])))
print(table.version, sorted(table.read(["id", "weight"]).to_pylist(), key=str))
"""


@pytest.mark.parametrize("ref", [None, "draft"])
def test_a_preview_shows_what_a_write_would_make_and_moves_nothing(store, ref):
    table = in_fragments(store, "ab", "c")
    if ref is not None:
        table = store.refs.create(LOCATION, ref, source=None, version=table.version)
    staged = stage_reshape(table, [*kept(table), TableColumn(WEIGHT)], weights(table))
    shown = preview(staged)

    assert by_id(shown, "weight") == dict.fromkeys("abc", 9.0)
    assert shown.count_bytes() > table.count_bytes()
    assert (latest(store, ref=ref).version, table.handle.latest_version) == (table.version,) * 2
    assert [each["version"] for each in latest(store, ref=ref).handle.versions()][
        -1
    ] == table.version
    opened = open_address(pickle.loads(pickle.dumps(shown.address)))
    assert by_id(opened, "weight") == dict.fromkeys("abc", 9.0)
    changed = applied(staged)
    assert changed.version == table.version + 1
    assert changed.read().equals(shown.read())


def test_a_preview_is_read_in_another_process(local):
    table = in_fragments(local, "a")
    staged = stage_reshape(table, [*kept(table), TableColumn(WEIGHT)], weights(table))
    shown = preview(staged)
    address = pickle.dumps(shown.address).hex()
    command = [sys.executable, "-c", READ, address]
    done = subprocess.run(command, capture_output=True, text=True, check=True)

    assert shown.version >= 1 << 63
    assert done.stdout.strip() == f"{shown.version} [{{'id': 'a', 'weight': 9.0}}]"


@pytest.mark.parametrize("uri", ["odd-path", "s3"], indirect=True)
@pytest.mark.parametrize("ref", [None, "draft"])
@pytest.mark.parametrize("has_files", [False, True], ids=["names", "values"])
def test_rows_that_are_written_through_a_preview_are_part_of_the_change(store, ref, has_files):
    table = in_fragments(store, "abc", "d", "e", "f")
    table = applied(stage_indexes(table, [IndexSpec("id")]))
    # An index that covers a fragment which is gone, and a fragment with deletions.
    table = applied(stage_delete(table, ids=["a", "f"]))
    if ref is not None:
        table = store.refs.create(LOCATION, ref, source=None, version=table.version)
    weight = WEIGHT if has_files else pa.field("weight", pa.float64())
    columns = [*kept(table, but={"note": TableColumn(TITLE, "note")}), TableColumn(weight)]
    staged = stage_reshape(table, columns, weights(table) if has_files else ())
    shown = preview(staged)
    change = pa.Table.from_pylist(
        [{"id": each, "n": 1, "title": f"of {each}", "weight": 0.5} for each in "bx"],
        schema=shown.schema,
    )
    files, doomed = write_rows(
        shown, inserted=change.slice(1), updated=change.slice(0, 1), deleted=pa.array(["d"])
    )
    whole = stage_reshaped_rows(staged, files=files, deletions=delete_rows(shown, doomed))
    changed = applied(whole)

    assert (changed.version, whole.row_count) == (table.version + 1, 4)
    assert numbers(changed) == {"b": 1, "c": 0, "e": 0, "x": 1}
    assert by_id(changed, "title") == {"b": "of b", "c": "note of c", "e": "note of e", "x": "of x"}
    old = 9.0 if has_files else None
    assert by_id(changed, "weight") == {"b": 0.5, "c": old, "e": old, "x": 0.5}
    for each in "abcdefx":
        expected = [each] if each in "bcex" else []
        assert ids(changed, f"id = '{each}'") == expected
        assert find(changed, "id", [each], columns=["id"])["id"].to_pylist() == expected
    assert len(set(row_ids(changed).values())) == 4
    grown = applied(stage_append(changed, change.slice(1)))
    assert len(set(grown.read(["_rowid"])["_rowid"].to_pylist())) == 5
    assert stage_reshaped_rows(staged) is staged


def test_columns_that_take_over_names_are_copied_for_a_change_of_rows(local):
    table = in_fragments(local, "ab")
    other = pa.field("other", pa.string())
    table = applied(stage_added(table, [other], values={"other": "same"}))
    columns = kept(
        table, but={"note": TableColumn(other, "note"), "other": TableColumn(NOTE, "other")}
    )
    with pytest.raises(AssertionError, match="plan_reshape"):
        stage_reshaped_rows(stage_reshape(table, columns), files=write_files(table, table.read()))
    plan = plan_reshape(table, columns, filled=(), rows_change=True)
    files = [
        write_column_file(
            table, each.id, [], reading=[], compute=lambda batch: batch, copies=plan.copies
        )
        for each in table.fragments()
    ]
    staged = stage_reshape(table, plan.columns, files)
    shown = preview(staged)
    doomed = delete_rows(shown, locate(shown, pa.array(["a"]))["_rowaddr"])
    changed = applied(stage_reshaped_rows(staged, deletions=doomed))

    assert by_id(changed, "note") == {"b": "same"}
    assert by_id(changed, "other") == {"b": "note of b"}
