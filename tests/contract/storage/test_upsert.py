"""Upserts: rows replaced under their old row ids, and new rows beside them, in one transaction."""

import pyarrow as pa
import pytest
from lance import LanceOperation

from omnigraph.errors import InvalidInputError
from omnigraph.limits import KEYS_PER_LOOKUP_MAX
from omnigraph.storage import lookups, staging
from omnigraph.storage.staging import (
    stage_append,
    stage_change,
    stage_delete,
    stage_upsert,
    write_files,
)
from tests.support.tables import (
    CREATED,
    SCHEMA,
    UPDATED,
    applied,
    by_id,
    create,
    ids,
    in_fragments,
    latest,
    numbered_rows,
    numbers,
    row_ids,
    rows,
)

ODD_IDS = [
    "",
    " ",
    "'",
    "''",
    '"',
    "`",
    "\\",
    "\\'",
    "a\\",
    "%",
    "_",
    "--",
    "/*",
    "NULL",
    "null",
    "a\nb",
    "a\tb",
    "a\0b",
    "\0",
    "é",
    "e\u0301",
    "日本語",
    "😀",
    "\u200b",
    "A",
    "a",
    "$1",
    "{}",
    "it's; drop table",
    "x" * 10_000,
]


def test_rows_that_are_only_added_are_committed_as_an_append(table):
    added = applied(stage_change(table, files=write_files(table, rows("xy"))))
    assert isinstance(operation_of(added), LanceOperation.Append)
    # What replaces rows, or takes some away, says so.
    assert isinstance(
        operation_of(applied(stage_upsert(added, rows("x", n=1)))), LanceOperation.Update
    )


def operation_of(table):
    """What the transaction did that made this version."""
    return table.handle.read_transaction(table.version).operation


def test_replaced_rows_keep_their_row_ids_and_their_age(table):
    upserted = applied(stage_upsert(table, numbered_rows({"c": 3, "x": 4, "a": 1})))

    before, after = row_ids(table), row_ids(upserted)
    assert numbers(upserted) == {"a": 1, "b": 0, "c": 3, "x": 4}
    assert {each: after[each] for each in "abc"} == before
    assert after["x"] not in before.values()
    assert by_id(upserted, CREATED) == {"a": 1, "b": 1, "c": 1, "x": 2}
    assert by_id(upserted, UPDATED) == {"a": 2, "b": 1, "c": 2, "x": 2}


def test_the_staged_row_count_is_the_one_that_comes_true(table):
    for change in (rows("ab", n=2), rows("axy"), rows("pq")):
        staged = stage_upsert(table, change)
        assert staged is not None
        table = applied(staged)
        assert staged.row_count == table.count_rows()


def test_a_row_id_names_the_row_after_every_rewrite(table, store):
    for turn in range(1, 4):
        table = applied(stage_upsert(table, rows("ca", n=turn)))
    table = applied(stage_delete(table, ids=["b"]))

    kept = row_ids(latest(store))
    assert kept == {"a": 0, "c": 2}
    for each, row_id in kept.items():
        assert ids(latest(store), f"_rowid = {row_id}") == [each]


def test_zero_matches_add_every_row(table):
    upserted = applied(stage_upsert(table, rows("xy", n=1)))

    assert numbers(upserted) == {"a": 0, "b": 0, "c": 0, "x": 1, "y": 1}
    assert {each: row_ids(upserted)[each] for each in "abc"} == row_ids(table)


def test_all_matches_replace_every_row_and_leave_no_empty_fragment(table):
    upserted = applied(stage_upsert(table, rows("cba", n=1)))

    assert numbers(upserted) == {"a": 1, "b": 1, "c": 1}
    assert row_ids(upserted) == row_ids(table)
    assert len(upserted.fragments()) == 1


def test_zero_rows_change_nothing(table):
    assert stage_upsert(table, rows("")) is None


def test_an_upsert_into_an_empty_table_adds_every_row(store):
    assert numbers(applied(stage_upsert(create(store), rows("ab", n=1)))) == {"a": 1, "b": 1}


def test_rows_are_replaced_wherever_they_lie(store):
    table = in_fragments(store, "abc", "def", "gh")
    upserted = applied(
        stage_upsert(table, numbered_rows({"h": 8, "b": 2, "e": 5, "z": 26, "a": 1}))
    )

    expected = {"a": 1, "b": 2, "c": 0, "d": 0, "e": 5, "f": 0, "g": 0, "h": 8, "z": 26}
    assert numbers(upserted) == expected
    after = row_ids(upserted)
    assert {each: after[each] for each in "abcdefgh"} == row_ids(table)
    assert len(set(after.values())) == 9


@pytest.mark.parametrize("rows_per_file", [1, 2, 3, 4])
def test_row_ids_follow_their_rows_across_files(store, monkeypatch, rows_per_file):
    table = in_fragments(store, "abcd", "efg")
    monkeypatch.setattr(staging, "ROWS_PER_FILE_MAX", rows_per_file)
    change = {"g": 7, "x": 10, "a": 1, "f": 6, "y": 11, "c": 3, "z": 12, "e": 5}
    staged = stage_upsert(table, numbered_rows(change))
    upserted = applied(staged)

    assert len(upserted.fragments()) >= 8 // rows_per_file
    assert numbers(upserted) == {"b": 0, "d": 0, **change}
    after = row_ids(upserted)
    assert {each: after[each] for each in "abcdefg"} == row_ids(table)
    assert len(set(after.values())) == 10
    assert {i for i, version in by_id(upserted, CREATED).items() if version == 4} == {"x", "y", "z"}
    for each, row_id in after.items():
        assert ids(upserted, f"_rowid = {row_id}") == [each]


@pytest.mark.parametrize("rows_per_file", [1, 2])
def test_appended_rows_are_split_into_files(table, monkeypatch, rows_per_file):
    monkeypatch.setattr(staging, "ROWS_PER_FILE_MAX", rows_per_file)
    appended = applied(stage_append(table, rows("pqrs")))

    assert len(appended.fragments()) == 1 + 4 // rows_per_file
    assert ids(appended) == list("abcpqrs")


@pytest.mark.parametrize("limit", [0, 2, 3, 4])
def test_few_ids_and_many_are_found_alike(store, monkeypatch, limit):
    table = in_fragments(store, "ab", "cd")
    monkeypatch.setattr(lookups, "KEYS_PER_LOOKUP_MAX", limit)
    upserted = applied(stage_upsert(table, rows("dxa", n=1)))

    assert numbers(upserted) == {"a": 1, "b": 0, "c": 0, "d": 1, "x": 1}
    assert {each: row_ids(upserted)[each] for each in "abcd"} == row_ids(table)
    assert ids(applied(stage_delete(upserted, ids=["a", "c", "x", "nobody"]))) == ["b", "d"]


def test_the_real_limit_is_crossed_without_notice(local):
    limit = KEYS_PER_LOOKUP_MAX
    table = create(local, (f"id {each}" for each in range(limit + 2)))
    for count in (limit, limit + 1):
        table = applied(stage_upsert(table, rows((f"id {each}" for each in range(count)), n=count)))
        assert table.count_rows(f"n = {count}") == count
        assert table.count_rows() == limit + 2


@pytest.mark.parametrize("limit", [0, 10_000], ids=["scanned", "looked up"])
def test_an_id_may_hold_anything(store, monkeypatch, limit):
    monkeypatch.setattr(lookups, "KEYS_PER_LOOKUP_MAX", limit)
    table = create(store, ODD_IDS)
    upserted = applied(stage_upsert(table, rows(ODD_IDS, n=1)))

    assert numbers(upserted) == dict.fromkeys(ODD_IDS, 1)
    assert row_ids(upserted) == row_ids(table)


@pytest.mark.parametrize("odd", ODD_IDS, ids=lambda each: ascii(each)[:12])
def test_an_odd_id_finds_itself_and_nobody_else(local, odd):
    table = create(local, ODD_IDS)

    assert staging.locate(table, pa.array([odd]))["id"].to_pylist() == [odd]
    assert ids(applied(stage_delete(table, ids=[odd]))) == sorted(set(ODD_IDS) - {odd})


def test_an_id_that_stands_twice_is_refused_before_anything_is_written(table, store):
    store.meter.take()
    with pytest.raises(InvalidInputError, match="duplicate id: 'x'"):
        stage_upsert(table, rows(["x", "y", "x"]))

    assert store.meter.take().writes == 0


def test_a_row_without_an_id_is_refused_before_anything_is_written(table, store):
    nullable = SCHEMA.set(0, pa.field("id", pa.string()))
    change = pa.table({"id": ["a", None], "n": [1, 2], "note": ["", ""]}, schema=nullable)
    store.meter.take()
    with pytest.raises(InvalidInputError, match="1 of 2 rows have no id"):
        stage_upsert(table, change)

    assert store.meter.take().writes == 0


def test_rows_in_many_batches_are_one_upsert(table):
    change = pa.concat_tables([rows("x", n=1), rows("a", n=2), rows(""), rows("yb", n=3)])

    assert len(change["id"].chunks) > 2
    expected = {"a": 2, "b": 3, "c": 0, "x": 1, "y": 3}
    assert numbers(applied(stage_upsert(table, change))) == expected


def test_an_id_the_table_holds_twice_is_replaced_by_one_row(table):
    doubled = applied(stage_append(table, rows("a", n=5)))
    assert ids(doubled) == ["a", "a", "b", "c"]

    staged = stage_upsert(doubled, rows("a", n=9))
    assert staged is not None
    upserted = applied(staged)

    assert numbers(upserted) == {"a": 9, "b": 0, "c": 0}
    assert staged.row_count == 3


def test_nulls_replace_values(table):
    assert numbers(applied(stage_upsert(table, rows("a", n=None))))["a"] is None


def test_rows_added_later_never_get_the_row_id_of_one_that_was_deleted(table):
    gone = row_ids(table)["c"]
    table = applied(stage_delete(table, ids=["c"]))
    table = applied(stage_upsert(table, rows("c")))

    assert row_ids(table)["c"] > gone


def test_an_append_takes_rows_one_batch_at_a_time(table):
    reader = rows("xyz", n=1).to_reader(max_chunksize=1)

    assert ids(applied(stage_append(table, reader))) == list("abcxyz")


def test_appended_rows_are_as_old_as_their_version(table):
    appended = applied(stage_append(table, rows("x")))

    assert by_id(appended, CREATED) == {"a": 1, "b": 1, "c": 1, "x": 2}
    assert by_id(appended, UPDATED) == {"a": 1, "b": 1, "c": 1, "x": 2}


def test_an_append_of_nothing_changes_nothing(table):
    staged = stage_append(table, rows(""))

    assert staged.row_count == 3
    assert applied(staged).fragments() == table.fragments()
