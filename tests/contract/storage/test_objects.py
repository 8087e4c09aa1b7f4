"""Small objects: exactly one winner, no lost update, and absence that is not an error."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from omnigraph.storage.store import Store
from tests.support.concurrency import at_once, in_processes
from tests.support.processes import contend_for_objects, count_up, increment

RACERS = 6
in_two_places = pytest.mark.parametrize("uri", ["path", "s3"], indirect=True)
PATHS = ["a", "a/b", "a/b/c/d.json", "__recovery/01J.json", "with space/ü %2F#1.json", "日本/枝"]


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("data", [b"", b"one", bytes(range(256)), b"x" * 300_000], ids=len)
def test_an_object_is_read_back_whole(store, elsewhere, path, data):
    store.objects.put(path, data)
    found = elsewhere.objects.read(path)

    assert found is not None
    assert found.data == data


def test_a_put_replaces(store):
    store.objects.put("a", b"one")
    store.objects.put("a", b"two")

    assert store.objects.read("a").data == b"two"


def test_an_object_that_is_not_there_is_none(store):
    assert store.objects.read("a") is None
    store.objects.put("b/c", b"")
    assert store.objects.read("a") is None
    assert store.objects.read("b") is None


def test_deleting_removes_and_deleting_again_changes_nothing(store):
    store.objects.delete("a")
    store.objects.put("a", b"")
    store.objects.put("b", b"")
    store.objects.delete("a")
    store.objects.delete("a")
    store.objects.delete("folder/a")

    assert store.objects.list("") == ("b",)


def test_a_listing_shows_the_paths_below_a_folder_sorted(store, elsewhere):
    for each in reversed(PATHS[2:]):
        store.objects.put(each, b"")
    store.objects.put("ab", b"")

    assert elsewhere.objects.list("") == tuple(sorted([*PATHS[2:], "ab"]))
    assert elsewhere.objects.list("a") == ("a/b/c/d.json",)
    assert elsewhere.objects.list("a/b/") == ("a/b/c/d.json",)
    assert elsewhere.objects.list("with space") == (PATHS[4],)
    assert elsewhere.objects.list("nothing") == ()


def test_a_store_where_nothing_is_yet_lists_nothing(store):
    assert store.objects.list("") == store.objects.list("a/b") == ()
    assert not store.objects.holds_any()


def test_a_folder_holds_any_when_an_object_lies_below_it(store):
    store.objects.put("a/b/c", b"")

    assert store.objects.holds_any()
    assert store.objects.holds_any("a")
    assert store.objects.holds_any("a/b")
    assert not store.objects.holds_any("a/b/c")
    assert not store.objects.holds_any("b")


def test_a_listing_of_many_objects_is_complete(local):
    paths = tuple(f"a/{number:03}" for number in range(200))
    for each in paths:
        local.objects.put(each, b"")

    assert local.objects.list("a") == paths


def test_a_neighbour_whose_name_begins_alike_is_another_graph(uri):
    one, two = Store.open(uri), Store.open(f"{uri}s")
    two.objects.put("a", b"")

    assert one.objects.list("") == ()
    assert not one.objects.holds_any()


# Put if absent.


def test_a_put_if_absent_to_a_taken_name_changes_nothing(store, elsewhere):
    assert store.objects.put_if_absent("a/b", b"one")
    assert not elsewhere.objects.put_if_absent("a/b", b"two")
    assert not store.objects.put_if_absent("a/b", b"one")

    assert store.objects.read("a/b").data == b"one"


def test_a_deleted_name_is_free_again(store):
    store.objects.put_if_absent("a", b"one")
    store.objects.delete("a")

    assert store.objects.put_if_absent("a", b"two")


def test_of_racing_threads_exactly_one_puts(store, uri):
    for turn in range(5):
        won = at_once([contender(uri, f"race/{turn}", mark) for mark in range(RACERS)])

        assert won.count(True) == 1
        assert store.objects.read(f"race/{turn}").data == b"%d" % won.index(True)


def contender(uri: str, path: str, mark: int) -> Callable[[], bool]:
    return lambda: Store.open(uri).objects.put_if_absent(path, b"%d" % mark)


@in_two_places
def test_of_racing_processes_exactly_one_puts(store, uri):
    rounds, marks = 10, ["one", "two", "three"]
    outcomes = in_processes(contend_for_objects, [(uri, mark, rounds) for mark in marks])

    for turn, won in enumerate(zip(*outcomes, strict=True)):
        assert won.count(True) == 1
        winner = marks[won.index(True)].encode()
        assert store.objects.read(f"race/{turn}.json").data == winner


# Conditional update.


def test_an_update_lands_where_the_object_is_unchanged(store):
    store.objects.put("a", b"one")

    assert store.objects.update("a", b"two", expecting=store.objects.read("a").tag)
    assert store.objects.read("a").data == b"two"


def test_an_update_of_what_has_changed_is_refused(store, elsewhere):
    store.objects.put("a", b"one")
    stale = store.objects.read("a").tag
    elsewhere.objects.put("a", b"two")

    assert not store.objects.update("a", b"three", expecting=stale)
    assert store.objects.read("a").data == b"two"


@pytest.mark.parametrize("path", ["a", "folder/a", "folder/deep/a"])
def test_an_update_of_what_is_gone_is_refused_and_brings_nothing_back(store, path):
    tag = '"none"'
    assert not store.objects.update(path, b"new", expecting=tag)
    store.objects.put(path, b"one")
    tag = store.objects.read(path).tag
    store.objects.delete(path)

    assert not store.objects.update(path, b"two", expecting=tag)
    assert store.objects.read(path) is None


def test_a_disk_that_gives_two_objects_one_number_and_one_time_does_not_mislead_an_update(local):
    # Numbers of files are used again at once, and a clock may tick seldom: here are both.
    local.objects.put("a", b"1")
    seen = local.objects.read("a").tag
    file = Path(local.root.uri, "a")
    before = file.stat()
    file.write_bytes(b"2")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))

    assert not local.objects.update("a", b"3", expecting=seen)
    assert local.objects.read("a").data == b"2"


def test_threads_that_count_by_conditional_update_lose_no_count(store, uri):
    store.objects.put("counters/a", b"0")
    calls = [lambda: increment(Store.open(uri).objects, "counters/a", 5)] * RACERS
    at_once(calls)

    assert store.objects.read("counters/a").data == b"30"


@in_two_places
def test_processes_that_count_by_conditional_update_lose_no_count(store, uri):
    store.objects.put("counters/a", b"0")
    in_processes(count_up, [(uri, "counters/a", 20)] * 3)

    assert store.objects.read("counters/a").data == b"60"


def test_a_half_written_object_is_not_listed_or_read(local):
    local.objects.put("a/b", b"whole")
    # obstore writes "<name>#<number>" and renames; a kill leaves the former.
    Path(local.root.uri, "a", "c#1").write_bytes(b"half")

    assert local.objects.list("") == ("a/b",)
    assert local.objects.read("a/c") is None
    assert local.objects.put_if_absent("a/c", b"whole")
