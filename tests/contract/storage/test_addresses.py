"""Addresses travel between processes; handles do not."""

import pickle

import pytest

from omnigraph.storage.staging import delete_rows, locate, stage_change, stage_upsert, write_files
from tests.support.concurrency import in_processes
from tests.support.processes import numbers_at
from tests.support.tables import LOCATION, applied, ids, latest, numbers, row_ids, rows


def test_tables_stores_and_staged_writes_refuse_to_be_pickled(table, store):
    for each in (table, store, stage_upsert(table, rows("a", n=1))):
        with pytest.raises(TypeError, match="cannot be pickled"):
            pickle.dumps(each)


@pytest.mark.parametrize("uri", ["odd-path", "s3"], indirect=True)
def test_an_address_opens_the_same_rows_in_another_process(table, store):
    draft = store.refs.create(LOCATION, "é/draft", source=None, version=1)
    draft = applied(stage_upsert(draft, rows("ax", n=1)))
    moved = applied(stage_upsert(table, rows("ay", n=2)))
    applied(stage_upsert(moved, rows("a", n=3)))
    pinned = [table, moved, draft]

    seen = in_processes(numbers_at, [(each.address,) for each in pinned])

    assert seen == [numbers(each) for each in pinned]
    assert seen[1:] == [{"a": 2, "b": 0, "c": 0, "y": 2}, {"a": 1, "b": 0, "c": 0, "x": 1}]


def test_an_address_says_which_version_of_which_ref(table, store):
    draft = store.refs.create(LOCATION, "draft", source=None, version=1)

    assert str(table.address) == f"{store.root.uri}/{LOCATION} v1"
    assert str(draft.address) == f"{store.root.uri}/{LOCATION}@draft v1"


def test_what_executors_send_back_is_staged_by_the_driver(table, elsewhere):
    # Each task opens the pinned table by its address, and only metadata comes back.
    pinned = pickle.loads(pickle.dumps(table.address))
    there = elsewhere.tables.open(pinned.location, ref=pinned.ref, version=pinned.version)
    found = locate(there, rows("c")["id"])
    files = write_files(there, rows("cx", n=1), row_ids=found["_rowid"].to_pylist())
    deletions = delete_rows(there, found["_rowaddr"])

    files, deletions = pickle.loads(pickle.dumps((files, deletions)))
    staged = stage_change(table, files=files, deletions=deletions)
    changed = applied(staged)

    assert numbers(changed) == {"a": 0, "b": 0, "c": 1, "x": 1}
    assert row_ids(changed)["c"] == row_ids(table)["c"]
    assert staged.row_count == 4


def test_files_that_no_staged_write_names_are_never_seen(table, store):
    write_files(table, rows("xyz"))
    kept = write_files(table, rows("w"))
    applied(stage_change(table, files=kept))

    assert ids(latest(store)) == ["a", "b", "c", "w"]
