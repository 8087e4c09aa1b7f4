"""Meters: every request is counted, once, until it is taken."""

import pytest

from omnigraph.storage.meter import IOCount
from omnigraph.storage.staging import stage_append, stage_delete, stage_upsert
from omnigraph.storage.store import Store
from tests.support.tables import LOCATION, applied, create, latest, rows


@pytest.fixture
def s3(s3_bucket: str) -> Store:
    """A store whose counts match the requests; on a disk Lance also writes a version hint."""
    store = Store.open(f"s3://{s3_bucket}/graph")
    create(store, "abc")
    latest(store)
    store.meter.take()
    return store


def taken(store: Store) -> tuple[int, int]:
    count = store.meter.take()
    return count.reads, count.writes


def test_taking_resets(s3):
    s3.objects.put("a", b"")
    latest(s3).read()

    assert s3.meter.take() != IOCount()
    assert s3.meter.take() == IOCount()


def test_an_append_costs_one_data_file_and_two_files_of_a_commit(s3):
    table = latest(s3)
    s3.meter.take()
    staged = stage_append(table, rows("x"))
    assert taken(s3) == (0, 1)
    applied(staged)
    assert taken(s3) == (1, 2)


def test_an_append_costs_as_much_after_many_as_after_one(s3):
    table = latest(s3)
    costs = []
    for _ in range(12):
        s3.meter.take()
        table = applied(stage_append(table, rows("x")))
        costs.append(taken(s3))

    assert set(costs) == {(1, 3)}


def test_an_upsert_of_known_ids_also_writes_one_file_of_deletions(s3):
    table = applied(stage_append(latest(s3), rows("xyz")))
    s3.meter.take()
    staged = stage_upsert(table, rows("ax", n=1))
    _, writes = taken(s3)
    assert writes == 3
    applied(staged)
    assert taken(s3) == (1, 2)


def test_a_deletion_writes_one_file_per_fragment_that_keeps_rows(s3):
    table = latest(s3)
    s3.meter.take()
    stage_delete(table, ids=["a"])
    assert taken(s3)[1] == 1
    stage_delete(table, ids=["a", "b", "c"])
    assert taken(s3)[1] == 0


def test_bytes_are_counted_too(s3):
    table = latest(s3)
    s3.meter.take()
    stage_append(table, rows(f"id {number}" for number in range(1_000)))
    wrote = s3.meter.take()
    assert wrote.bytes_written > 1_000
    table.read()
    assert s3.meter.take().bytes_read > 0


def test_objects_count_one_request_each(store):
    objects = store.objects
    calls = {
        (0, 1): [
            lambda: objects.put("a", b"1"),
            lambda: objects.put_if_absent("a", b"2"),
            lambda: objects.update("a", b"3", expecting="no"),
            lambda: objects.delete("b"),
        ],
        (1, 0): [lambda: objects.read("a"), lambda: objects.list(""), lambda: objects.holds_any()],
    }
    for expected, each in calls.items():
        for call in each:
            call()
            assert taken(store) == expected


def test_listing_registered_refs_is_one_request_however_many_there_are(s3):
    for each in range(3):
        s3.refs.create(LOCATION, f"n{each}", source=None, version=1)
    s3.meter.take()
    s3.refs.registered(LOCATION)

    assert taken(s3) == (1, 0)


def test_work_on_a_ref_is_counted_too(s3):
    draft = s3.refs.create(LOCATION, "draft", source=None, version=1)
    s3.meter.take()
    applied(stage_append(draft, rows("x")))

    assert taken(s3) == (1, 3)


def test_two_stores_count_apart(s3, s3_bucket):
    other = Store.open(f"s3://{s3_bucket}/graph")
    latest(other).read()

    assert taken(s3) == (0, 0)
    assert taken(other) != (0, 0)


def test_counts_add_up():
    assert IOCount(1, 2, 3, 4) + IOCount(10, 20, 30, 40) == IOCount(11, 22, 33, 44)
