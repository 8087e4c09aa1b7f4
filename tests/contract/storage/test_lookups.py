"""Rows are found by a column's values just as a filter would find them, and small ones unread."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from omnigraph.limits import KEPT_FRAGMENT_ROWS_MAX
from omnigraph.storage import lookups, values
from omnigraph.storage.column_files import TableColumn
from omnigraph.storage.indexes import IndexSpec, stage_indexes
from omnigraph.storage.lookups import find, is_found_cheaply
from omnigraph.storage.reshape import stage_reshape
from omnigraph.storage.staging import (
    stage_append,
    stage_create,
    stage_delete,
    stage_overwrite,
    stage_upsert,
)
from omnigraph.storage.store import Store
from omnigraph.storage.tables import ROW_ADDRESS, ROW_ID, Table
from tests.support.tables import (
    LOCATION,
    applied,
    create,
    filled,
    ids,
    in_fragments,
    kept,
    rows,
    stage_added,
)

SOURCE = pa.field("src", pa.string())
EXTRA = pa.field("extra", pa.string())
SCHEMA = pa.schema([pa.field("id", pa.string(), nullable=False), SOURCE])
NAMES = ["a", "b", "c", "d", "it's", ""]
COLUMNS = ["id", "src", ROW_ID, ROW_ADDRESS]


def edges(pairs: list[tuple[str, str | None]]) -> pa.Table:
    return pa.table({"id": [i for i, _ in pairs], "src": [src for _, src in pairs]}, schema=SCHEMA)


def naive(table: Table, column: str, wanted: set[str | None]) -> list[Any]:
    found = table.read(COLUMNS).to_pylist()
    return [row for row in found if row[column] is not None and row[column] in wanted]


def in_order(found: list[Any]) -> list[Any]:
    return sorted(found, key=lambda row: row[ROW_ADDRESS])


def check(table: Table, column: str, wanted: set[str | None]) -> None:
    found = find(table, column, wanted, columns=COLUMNS)
    assert found.column_names == COLUMNS
    assert in_order(found.to_pylist()) == in_order(naive(table, column, wanted))
    array = pa.array(sorted(each for each in wanted if each is not None), pa.string())
    again = find(table, column, array, columns=[ROW_ADDRESS])
    assert sorted(again[ROW_ADDRESS].to_pylist()) == sorted(found[ROW_ADDRESS].to_pylist())


pair = st.tuples(st.sampled_from(NAMES), st.sampled_from([*NAMES, None]))
step = st.one_of(
    st.tuples(st.just("append"), st.lists(pair, min_size=1, max_size=5)),
    st.tuples(st.just("upsert"), st.lists(pair, max_size=4, unique_by=lambda each: each[0])),
    st.tuples(st.just("delete"), st.lists(st.sampled_from(NAMES), max_size=2)),
    st.tuples(st.just("overwrite"), st.lists(pair, max_size=3)),
    st.tuples(st.just("index"), st.sampled_from(["id", "src"])),
    st.tuples(st.just("column"), st.none()),
    st.tuples(st.just("swap"), st.none()),
    st.tuples(st.just("replace"), st.sampled_from(NAMES)),
    st.tuples(st.just("branch"), st.none()),
    st.tuples(st.just("main"), st.none()),
    st.tuples(st.just("reopen"), st.none()),
)
lookup = st.tuples(
    st.sampled_from(["id", "src"]), st.sets(st.sampled_from([*NAMES, "nobody", None]))
)
# Bounds that tables of a few rows cross: rows of a fragment and of a lookup, values, rows for each
# of more values, fragments, bytes and values of files of the past.
BOUNDS = {
    "all in memory": (100, 100, 100, 64, 100, 1 << 20, 100),
    "small ones in memory": (2, 6, 100, 64, 100, 1 << 20, 100),
    "asking the index": (100, 100, 100, 64, 0, 1 << 20, 100),
    "nothing kept": (100, 100, 100, 64, 100, 0, 100),
    "many values": (100, 100, 2, 64, 100, 1 << 20, 100),
    "many values, asking the index": (100, 100, 1, 1, 0, 1 << 20, 100),
    "nothing of the past": (100, 100, 100, 64, 100, 1 << 20, 0),
}


@contextmanager
def bounded(by: tuple[int, ...]) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lookups, "KEPT_FRAGMENT_ROWS_MAX", by[0])
        patch.setattr(lookups, "KEPT_LOOKUP_ROWS_MAX", by[1])
        patch.setattr(lookups, "KEYS_PER_LOOKUP_MAX", by[2])
        patch.setattr(lookups, "ROWS_READ_PER_KEY", by[3])
        patch.setattr(lookups, "OPENED_FRAGMENTS_MAX", by[4])
        patch.setattr(values, "KEPT_VALUES_BYTES_MAX", by[5])
        patch.setattr(lookups, "STALE_VALUES_MAX", by[6])
        yield


def advance(store: Store, table: Table, kind: str, given: Any) -> tuple[Store, Table]:
    has_extra = "extra" in table.schema.names
    change = edges(given) if kind in ("append", "upsert", "overwrite") else SCHEMA.empty_table()
    if has_extra:
        change = change.append_column("extra", pa.nulls(change.num_rows, pa.string()))
    address = table.address
    match kind:
        case "append":
            return store, applied(stage_append(table, change))
        case "upsert" if len(set(ids(table))) == table.count_rows():
            staged = stage_upsert(table, change)
            return store, table if staged is None else applied(staged)
        case "delete":
            return store, applied(stage_delete(table, ids=given))
        case "overwrite":
            return store, applied(stage_overwrite(table, change))
        case "index":
            staged = stage_indexes(table, [IndexSpec(given)])
            return store, applied(staged) if staged else table
        case "column" if not has_extra:
            return store, applied(stage_added(table, [EXTRA]))
        case "swap" if has_extra:
            swapped = {"src": TableColumn(EXTRA, "src"), "extra": TableColumn(SOURCE, "extra")}
            return store, applied(stage_reshape(table, kept(table, but=swapped)))
        case "replace":
            columns = kept(table, but={"src": TableColumn(SOURCE)})
            files = filled(table, {SOURCE: given})
            return store, applied(stage_reshape(table, columns, files))
        case "branch" if address.ref is None:
            if store.refs.exists(LOCATION, "draft"):
                store.refs.delete(LOCATION, "draft")
            ref = store.refs.create(LOCATION, "draft", source=None, version=address.version)
            return store, ref
        case "main":
            return store, store.tables.open_latest(LOCATION, ref=None)
        case "reopen":
            store = Store.open(store.root.uri)
            opened = store.tables.open(LOCATION, ref=address.ref, version=address.version)
            return store, opened
        case _:
            return store, table


@pytest.mark.parametrize("bounds", BOUNDS.values(), ids=BOUNDS.keys())
@settings(
    max_examples=20, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
@given(steps=st.lists(st.tuples(step, lookup), min_size=1, max_size=12))
def test_a_lookup_finds_what_a_filter_would(bounds, steps):
    with tempfile.TemporaryDirectory() as folder, bounded(bounds):
        store = Store.open(Path(folder) / "graph")
        table = applied(stage_create(store.tables, LOCATION, SCHEMA.empty_table()))
        seen = [table]
        for (kind, what), (column, wanted) in steps:
            if kind == "branch" and table.address.ref is None:
                # It is made anew, and nobody can read what it was.
                seen = [each for each in seen if each.address.ref is None]
            store, table = advance(store, table, kind, what)
            check(table, column, wanted)
            seen.append(table)
        # Older versions and other refs share data files, but not deletions, with what was read.
        for older in seen:
            for column in ("id", "src"):
                check(older, column, {"a", "b", "it's", None})


def reads(store: Store, table: Table, column: str, *wanted: str) -> int:
    store.meter.take()
    find(table, column, wanted, columns=["id", ROW_ADDRESS])
    return store.meter.take().reads


def test_fragments_that_hold_no_wanted_value_are_not_opened(store, elsewhere):
    in_fragments(store, "ab", "cd", "ef", "gh")
    table = elsewhere.tables.open_latest(LOCATION, ref=None)

    assert reads(elsewhere, table, "id", "nobody") == 4
    assert reads(elsewhere, table, "id", "nobody") == 0
    assert reads(elsewhere, table, "id", "d") == 1
    assert reads(elsewhere, table, "id", "b", "f", "nobody") == 2


def test_what_this_store_wrote_is_known_without_reading_it(store):
    table = in_fragments(store, "ab", "c")
    table = applied(stage_upsert(table, rows("bx", n=1)))
    table = store.tables.open(LOCATION, ref=None, version=table.version)

    assert reads(store, table, "id", "nobody") == 0


def test_what_is_left_after_a_deletion_is_known_without_reading_it(store):
    table = in_fragments(store, "ab", "cd")
    table = applied(stage_delete(table, ids=["a", "d"]))

    assert reads(store, table, "id", "a", "d") == 0
    assert find(table, "id", ["a", "b", "c", "d"], columns=["id"])["id"].to_pylist() == ["b", "c"]


def test_a_row_that_is_written_over_and_over_leaves_nothing_behind(store):
    table = in_fragments(store, ["hot"])
    for number in range(5):
        table = applied(stage_upsert(table, rows(["hot", f"cold{number}"], n=number)))

    # Only the newest fragment holds a live row of that id.
    assert reads(store, table, "id", "hot") == reads(store, table, "id", "cold4") <= 1


def test_values_of_files_of_the_past_are_forgotten(store, monkeypatch):
    monkeypatch.setattr(lookups, "STALE_VALUES_MAX", 8)
    table = in_fragments(store, ["hot"], "ab")
    for number in range(1, 41):
        table = applied(stage_upsert(table, rows(["hot"], n=number)))

    shelf = table.known["id"].shelf
    assert len(shelf.holders["hot"]) <= shelf.row_count <= 2 * 3 + 8 + 1
    assert reads(store, table, "id", "a", "hot", "nobody") <= 2


def test_a_version_of_main_that_was_just_made_is_opened_without_a_request(store):
    made = applied(stage_append(create(store, "a"), rows("b")))
    made = applied(stage_append(made, rows("c")))
    store.meter.take()

    assert store.tables.open(LOCATION, ref=None, version=made.version) is made
    assert store.meter.take().reads == 0


def test_a_version_of_a_ref_that_was_made_again_is_another_one(store):
    create(store, "a")
    first = store.refs.create(LOCATION, "draft", source=None, version=1)
    first = applied(stage_append(first, rows("b")))
    assert store.tables.open(LOCATION, ref="draft", version=2) is first
    find(first, "id", ["b"], columns=["id"])
    store.refs.delete(LOCATION, "draft")
    again = store.refs.create(LOCATION, "draft", source=None, version=1)
    applied(stage_append(again, rows("c")))

    second = store.tables.open(LOCATION, ref="draft", version=2)
    assert second is not first
    assert find(second, "id", ["b", "c"], columns=["id"])["id"].to_pylist() == ["c"]
    assert store.tables.open_latest(LOCATION, ref="draft") is second


def test_only_what_memory_or_an_index_finds_is_found_cheaply(local, monkeypatch):
    table = in_fragments(local, "ab", "c")
    assert is_found_cheaply(table, "id")
    assert is_found_cheaply(table, "note")
    monkeypatch.setattr(lookups, "KEPT_FRAGMENT_ROWS_MAX", 1)
    table = Store.open(local.root.uri).tables.open_latest(LOCATION, ref=None)

    assert not is_found_cheaply(table, "id")
    assert is_found_cheaply(applied(stage_indexes(table, [IndexSpec("id")])), "id")


@pytest.mark.parametrize(("keys", "is_read"), [(10, False), (200, True)])
def test_an_index_is_asked_for_as_many_values_as_the_table_makes_worth_it(
    local, monkeypatch, keys, is_read
):
    monkeypatch.setattr(lookups, "KEYS_PER_LOOKUP_MAX", 5)
    monkeypatch.setattr(lookups, "WHOLE_FRAGMENTS_MAX", 0)
    names = [f"{number:05}" for number in range(KEPT_FRAGMENT_ROWS_MAX * 2)]
    table = applied(stage_create(local.tables, LOCATION, edges([(each, "x") for each in names])))
    table = applied(stage_indexes(table, [IndexSpec("id")]))
    scan = Table.scan
    filters: list[str | None] = []

    def seen(*given: Any, filter_text: str | None = None, **others: Any) -> Any:
        filters.append(filter_text)
        return scan(*given, filter_text=filter_text, **others)

    monkeypatch.setattr(Table, "scan", seen)

    found = find(table, "id", pa.array(names[:keys]), columns=["id"])

    assert (filters == [None]) is is_read
    assert sorted(found["id"].to_pylist()) == names[:keys]


def test_a_fragment_of_one_request_is_read_once_and_its_index_never(store, elsewhere):
    table = in_fragments(elsewhere, "abc", "d")
    applied(stage_indexes(table, [IndexSpec("id")]))
    opened = store.tables.open_latest(LOCATION, ref=None)
    store.meter.take()
    assert find(opened, "id", ["b"], columns=["id", "n"]).num_rows == 1
    assert store.meter.take().reads == 2
    assert find(opened, "id", ["a", "d"], columns=["n", "id"]).num_rows == 2
    assert store.meter.take().reads == 0


def test_an_index_finds_what_would_take_more_requests(store, elsewhere):
    table = in_fragments(elsewhere, *"abcdefgh")
    applied(stage_indexes(table, [IndexSpec("id")]))
    opened = store.tables.open_latest(LOCATION, ref=None)
    store.meter.take()
    assert find(opened, "id", ["b"], columns=["id", "n"]).num_rows == 1
    assert store.meter.take().reads <= 4


def test_threads_may_look_up_at_once(local):
    from concurrent.futures import ThreadPoolExecutor

    in_fragments(local, *[f"{number:02}" for number in range(20)])
    table = Store.open(local.root.uri).tables.open_latest(LOCATION, ref=None)
    expected = [row["id"] for row in table.read(["id"]).to_pylist()]

    with ThreadPoolExecutor(8) as pool:
        found = list(
            pool.map(lambda i: find(table, "id", [i], columns=["id"])["id"].to_pylist(), expected)
        )
    assert [set(each) for each in found] == [{each} for each in expected]
