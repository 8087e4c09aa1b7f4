"""Refs: cheap, apart from each other, and gone when they are deleted."""

import pyarrow as pa
import pytest

from omnigraph.errors import (
    AlreadyExistsError,
    ErrorCode,
    InvalidNameError,
    NotFoundError,
    StorageError,
)
from omnigraph.model.names import BranchName
from omnigraph.storage import refs
from omnigraph.storage.indexes import IndexSpec, stage_indexes
from omnigraph.storage.staging import (
    stage_append,
    stage_delete,
    stage_overwrite,
    stage_upsert,
)
from omnigraph.storage.store import Store
from omnigraph.storage.tables import Table
from tests.support.concurrency import at_once
from tests.support.tables import (
    LOCATION,
    applied,
    by_id,
    create,
    ids,
    latest,
    numbers,
    row_ids,
    rows,
    stage_added,
)

RACERS = 6
pytestmark = pytest.mark.usefixtures("table")


def fork(store: Store, name: str, *, source: str | None = None, version: int = 1) -> Table:
    return store.refs.create(LOCATION, name, source=source, version=version)


def test_a_ref_starts_with_the_rows_of_the_version_it_was_made_at(table, store, elsewhere):
    applied(stage_append(table, rows("x")))
    draft = fork(store, "draft", version=1)

    assert (draft.version, draft.address.ref) == (1, "draft")
    assert numbers(draft) == {"a": 0, "b": 0, "c": 0}
    assert row_ids(draft) == row_ids(table)
    assert ids(latest(elsewhere, ref="draft")) == ["a", "b", "c"]


def test_a_ref_copies_no_data(store):
    data = f"{LOCATION}/data"
    before = store.objects.list(data)
    fork(store, "draft")

    assert store.objects.list(data) == before
    assert store.objects.list(f"{LOCATION}/tree/draft/data") == ()


def test_a_ref_of_a_ref_of_a_ref_sees_what_each_of_them_added(table, store, elsewhere):
    steps = [(None, "one"), ("one", "two"), ("two", "three")]
    for number, (source, name) in enumerate(steps, start=1):
        each = fork(store, name, source=source, version=number)
        applied(stage_upsert(each, rows(["a", f"of {name}"], n=number)))

    everyone = {"b": 0, "c": 0}
    assert numbers(latest(elsewhere)) == {"a": 0, **everyone}
    assert numbers(latest(elsewhere, ref="one")) == {"a": 1, "of one": 1, **everyone}
    expected = {"a": 3, "of one": 1, "of two": 2, "of three": 3, **everyone}
    assert numbers(latest(elsewhere, ref="three")) == expected
    assert row_ids(latest(elsewhere, ref="three"))["a"] == row_ids(table)["a"]


def test_refs_are_listed_by_their_names_sorted(store, elsewhere):
    names = ["z", "draft", "review/1", "review/2", "a/b/c", "é/枝", "A.b-c_d"]
    for each in names:
        fork(store, each)

    assert store.refs.list(LOCATION) == elsewhere.refs.list(LOCATION) == tuple(sorted(names))
    assert all(elsewhere.refs.exists(LOCATION, each) for each in names)
    for absent in ("review", "review/3", "a", "a/b", "b", "main", "", "É/枝"):
        assert not elsewhere.refs.exists(LOCATION, absent)


def test_a_table_without_refs_lists_none(store):
    assert store.refs.list(LOCATION) == ()


@pytest.mark.parametrize(
    "name",
    ["a" * 200, "é" * 20, "語" * 13, "/".join("a" * 33), "½Ⅳ²", "x.", "HEAD"],
    ids=lambda each: ascii(each)[:12],
)
def test_every_branch_name_can_be_a_ref(store, name):
    branch = BranchName.parse(name)
    draft = applied(stage_append(fork(store, branch), rows("x")))

    assert store.refs.list(LOCATION) == (name,)
    assert ids(latest(store, ref=name)) == ids(draft) == ["a", "b", "c", "x"]
    store.refs.delete(LOCATION, branch)
    assert store.refs.list(LOCATION) == ()


def test_a_name_that_is_taken_is_refused_and_the_ref_untouched(store, elsewhere):
    applied(stage_append(fork(store, "draft"), rows("x")))
    for each in (store, elsewhere):
        with pytest.raises(AlreadyExistsError) as taken:
            fork(each, "draft")
        assert taken.value.code is ErrorCode.REF_EXISTS

    assert ids(latest(elsewhere, ref="draft")) == ["a", "b", "c", "x"]


@pytest.mark.parametrize(
    ("there", "wanted"),
    [("review", "review/x"), ("review/x", "review"), ("a/b", "a/b/c/d"), ("a/b/c/d", "a")],
)
def test_a_ref_above_or_below_another_by_path_is_refused(store, there, wanted):
    fork(store, there)
    with pytest.raises(InvalidNameError):
        fork(store, wanted)

    assert store.refs.list(LOCATION) == (there,)


def test_a_name_that_only_begins_alike_is_free(store):
    for each in ("review/x", "reviews", "review-x", "review.x"):
        fork(store, each)

    assert len(store.refs.list(LOCATION)) == 4


def test_a_ref_at_a_version_that_does_not_exist_is_not_made(store):
    fork(store, "draft")
    for source, version in ((None, 9), ("draft", 9), ("nowhere", 1), (None, -1)):
        with pytest.raises(StorageError):
            fork(store, "new", source=source, version=version)
        assert not store.refs.exists(LOCATION, "new")

    assert ids(fork(store, "new")) == ["a", "b", "c"]


def test_a_ref_on_a_missing_table_is_not_found(store):
    with pytest.raises(NotFoundError):
        store.refs.create("nodes/none", "draft", source=None, version=1)


def test_deleting_a_ref_that_does_not_exist_is_not_found(store):
    with pytest.raises(NotFoundError):
        store.refs.delete(LOCATION, "draft")


def test_a_deleted_ref_is_gone_with_its_files(store, elsewhere):
    applied(stage_append(fork(store, "draft"), rows("x")))
    store.refs.delete(LOCATION, "draft")

    for each in (store, elsewhere):
        assert not each.refs.exists(LOCATION, "draft")
        with pytest.raises(StorageError):
            latest(each, ref="draft")
        with pytest.raises(StorageError):
            each.tables.open(LOCATION, ref="draft", version=1)
    assert store.objects.list(f"{LOCATION}/tree") == ()
    assert ids(latest(store)) == ["a", "b", "c"]


def test_a_ref_that_others_build_on_is_not_deleted(store):
    fork(store, "one")
    fork(store, "two", source="one")
    with pytest.raises(StorageError):
        store.refs.delete(LOCATION, "one")

    assert ids(latest(store, ref="one")) == ids(latest(store, ref="two")) == ["a", "b", "c"]


NEW = pa.field("new", pa.int64())
WRITES = {
    "append": lambda table: stage_append(table, rows("x")),
    "upsert": lambda table: stage_upsert(table, rows("ax", n=1)),
    "delete": lambda table: stage_delete(table, ids=["a"]),
    "overwrite": lambda table: stage_overwrite(table, rows("x")),
    "columns of nulls": lambda table: stage_added(table, [NEW]),
    "columns of values": lambda table: stage_added(table, [NEW], values={"new": 1}),
    "indexes": lambda table: stage_indexes(table, [IndexSpec("id")]),
}


def files_of_main(store: Store) -> list[str]:
    below = store.objects.list(LOCATION)
    return [each for each in below if not each.startswith(f"{LOCATION}/tree/")]


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES.keys())
def test_a_write_on_a_ref_touches_neither_the_rows_nor_the_files_of_main(store, elsewhere, write):
    # Opened by a name and a version: such a handle's own uri is main's.
    fork(store, "draft")
    draft = elsewhere.tables.open(LOCATION, ref="draft", version=1)
    before = files_of_main(store)
    applied(write(draft))

    assert files_of_main(store) == before
    assert latest(store, ref="draft").version == 2
    assert (latest(store).version, numbers(latest(store))) == (1, {"a": 0, "b": 0, "c": 0})


def test_a_write_on_main_does_not_show_on_a_ref(table, store):
    fork(store, "draft")
    applied(stage_upsert(table, rows("ax", n=1)))

    assert numbers(latest(store, ref="draft")) == {"a": 0, "b": 0, "c": 0}
    assert latest(store, ref="draft").version == 1


def test_refs_that_number_fragments_and_rows_alike_are_not_mixed_up(table, store):
    # Each makes its own fragment 1 of its own rows, read through the same caches.
    changes = {None: "cx", "one": "ay", "two": "bz"}
    for ref, change in changes.items():
        base = table if ref is None else fork(store, ref)
        applied(stage_upsert(base, rows(change, n=1)))

    for _ in range(2):
        for ref, change in changes.items():
            now = latest(store, ref=ref)
            assert {each for each, n in numbers(now).items() if n == 1} == set(change)
            for each, row_id in row_ids(now).items():
                assert ids(now, f"_rowid = {row_id}") == [each]
            created = by_id(now, "_row_created_at_version")
            assert created == {"a": 1, "b": 1, "c": 1, change[1]: 2}


def test_a_ref_made_again_shows_nothing_of_the_old_one(store, elsewhere):
    spec = IndexSpec("id")
    for turn, (name, n) in enumerate([("x", 1), ("y", 2), ("z", 3)]):
        draft = fork(store if turn % 2 else elsewhere, "draft")
        assert numbers(draft) == {"a": 0, "b": 0, "c": 0}
        with pytest.raises(StorageError):
            store.tables.open(LOCATION, ref="draft", version=2)

        draft = applied(stage_upsert(draft, rows(["a", name], n=n)))
        draft = applied(stage_indexes(draft, [spec]))
        draft = applied(stage_delete(draft, ids=["b"]))
        for each in (store, elsewhere):
            opened = each.tables.open(LOCATION, ref="draft", version=4)
            for now in (opened, latest(each, ref="draft")):
                assert numbers(now) == {"a": n, "c": 0, name: n}
                assert ids(now, f"id IN ('a', 'b', '{name}')") == ["a", name]
            middle = each.tables.open(LOCATION, ref="draft", version=2)
            assert numbers(middle) == {"a": n, "b": 0, "c": 0, name: n}
        store.refs.delete(LOCATION, "draft")


def test_of_racing_creators_exactly_one_wins(uri):
    def contend(turn: int) -> str:
        try:
            fork(Store.open(uri), f"draft/{turn}")
        except AlreadyExistsError:
            return "lost"
        return "won"

    for turn in range(3):
        outcomes = at_once([lambda turn=turn: contend(turn)] * RACERS)  # type: ignore[misc]
        assert sorted(outcomes) == ["lost"] * (RACERS - 1) + ["won"]
        assert ids(latest(Store.open(uri), ref=f"draft/{turn}")) == ["a", "b", "c"]


def test_creators_of_different_names_all_win(store):
    made = at_once([lambda name=f"n{each}": fork(store, name) for each in range(RACERS)])  # type: ignore[misc]

    assert [ids(each) for each in made] == [["a", "b", "c"]] * RACERS
    assert store.refs.list(LOCATION) == tuple(f"n{each}" for each in range(RACERS))


def test_refs_come_and_go_while_others_read_through_the_same_store(store):
    def read() -> list[list[str]]:
        return [ids(store.tables.open(LOCATION, ref=None, version=1)) for _ in range(20)]

    def change(name: str) -> list[list[str]]:
        seen = []
        for _ in range(3):
            seen.append(ids(fork(store, name)))
            store.refs.delete(LOCATION, name)
        return seen

    seen = at_once([read, read, read, lambda: change("one"), lambda: change("two")])

    assert all(each == ["a", "b", "c"] for one in seen for each in one)
    assert store.refs.list(LOCATION) == ()


# What a kill in the middle of making or deleting a ref leaves.


@pytest.fixture
def leftover(store) -> str:
    """A name whose files are there while the name itself is not."""
    applied(stage_append(fork(store, "é/draft"), rows("x")))
    [name_file] = store.objects.list(f"{LOCATION}/_refs/branches")
    store.objects.delete(name_file)
    return "é/draft"


def test_a_half_made_ref_does_not_exist(leftover, store):
    assert not store.refs.exists(LOCATION, leftover)
    with pytest.raises(NotFoundError):
        store.refs.delete(LOCATION, leftover)


def test_a_half_made_ref_is_in_the_way_until_it_is_reclaimed(leftover, store, monkeypatch):
    monkeypatch.setattr(refs, "_LOOKS_MAX", 2)
    with pytest.raises(StorageError):
        fork(store, leftover)

    store.refs.reclaim(LOCATION, leftover)

    assert ids(fork(store, leftover)) == ["a", "b", "c"]
    assert latest(store, ref=leftover).version == 1


def test_reclaiming_where_nothing_was_left_changes_nothing(store):
    fork(store, "drafts")
    store.refs.reclaim(LOCATION, "draft")

    assert ids(latest(store, ref="drafts")) == ids(latest(store)) == ["a", "b", "c"]


@pytest.mark.parametrize("name", ["review/x", "review"])
def test_a_ref_that_exists_is_never_reclaimed(store, name):
    fork(store, "review/x")
    with pytest.raises(AlreadyExistsError):
        store.refs.reclaim(LOCATION, name)

    assert ids(latest(store, ref="review/x")) == ["a", "b", "c"]


def test_a_name_without_files_can_be_deleted_and_made_again(local):
    create(local, "ab")
    fork(local, "draft")
    for each in local.objects.list(f"{LOCATION}/tree/draft"):
        local.objects.delete(each)

    assert local.refs.exists(LOCATION, "draft")
    with pytest.raises(AlreadyExistsError):
        fork(local, "draft")
    local.refs.delete(LOCATION, "draft")
    assert ids(fork(local, "draft")) == ["a", "b"]
