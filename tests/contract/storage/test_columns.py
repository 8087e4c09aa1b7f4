"""Columns from memory are those of a scan, in its order, whatever was written, read and dropped."""

import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from omnigraph.storage import chunks, columns, pieces, tables
from omnigraph.storage.column_files import TableColumn
from omnigraph.storage.columns import read_all_fragments, read_fragments, read_values, split_runs
from omnigraph.storage.compaction import rewrite_fragments, stage_rewrites
from omnigraph.storage.lookups import find
from omnigraph.storage.pieces import FragmentFiles, Piece
from omnigraph.storage.reshape import stage_reshape
from omnigraph.storage.staging import (
    stage_append,
    stage_create,
    stage_delete,
    stage_overwrite,
    stage_upsert,
)
from omnigraph.storage.store import Store
from omnigraph.storage.tables import Table
from tests.support.tables import (
    LOCATION,
    applied,
    create,
    filled,
    in_fragments,
    kept,
    latest,
    rows,
    stage_added,
)

NUMBER = pa.field("number", pa.uint32())
TAGS = pa.field("tags", pa.list_(pa.string()))
POINT = pa.field("point", pa.list_(pa.float32(), 2))
EXTRA = pa.field("extra", pa.string())
SCHEMA = pa.schema([pa.field("id", pa.string(), nullable=False), NUMBER, TAGS, POINT])
NAMES = ["a", "b", "c", "d", "e", "f"]


def rows_of(given: list[tuple[str, int | None]], schema: pa.Schema) -> pa.Table:
    """Rows with a value of each type, made from an id and a number."""
    made = [
        {
            "id": name,
            "number": number,
            "tags": None if number is None else [name] * (number % 3),
            "point": None if number is None else [number, -number],
            "extra": name * 2,
        }
        for name, number in given
    ]
    return pa.Table.from_pylist(made, schema)


pair = st.tuples(st.sampled_from(NAMES), st.sampled_from([None, 0, 1, 2, 3]))
distinct = st.lists(pair, min_size=1, max_size=4, unique_by=lambda each: each[0])
step = st.one_of(
    st.tuples(st.just("append"), distinct),
    st.tuples(st.just("append"), distinct),
    st.tuples(st.just("upsert"), distinct),
    st.tuples(st.just("delete"), st.lists(st.sampled_from(NAMES), max_size=2)),
    st.tuples(st.just("overwrite"), distinct),
    st.tuples(st.just("column"), st.sampled_from([None, "x"])),
    st.tuples(st.just("rename"), st.none()),
    st.tuples(st.just("replace"), st.integers(0, 5)),
    st.tuples(st.just("compact"), st.none()),
    st.tuples(st.just("branch"), st.none()),
    st.tuples(st.just("main"), st.none()),
    st.tuples(st.just("reopen"), st.none()),
    st.tuples(st.just("elsewhere"), distinct),
)
# Bounds that tables of a few rows cross: rows of a small fragment, bytes of one that is fetched
# whole, rows that are joined, and bytes that are kept.
BOUNDS = {
    "all in memory": (100, 1 << 20, 100, 1 << 20),
    "small ones in memory": (2, 1 << 20, 3, 1 << 20),
    "by column": (100, 0, 2, 1 << 20),
    "little room": (100, 1 << 20, 100, 4000),
    "nothing kept": (100, 1 << 20, 100, 0),
}


@contextmanager
def bounded(by: tuple[int, int, int, int]) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pieces, "KEPT_FRAGMENT_ROWS_MAX", by[0])
        patch.setattr(columns, "KEPT_FRAGMENT_ROWS_MAX", by[0])
        patch.setattr(tables, "FETCHED_WHOLE_BYTES_MAX", by[1])
        patch.setattr(chunks, "JOINED_CHUNK_ROWS_MAX", by[2])
        patch.setattr(pieces, "KEPT_COLUMNS_BYTES_MAX", by[3])
        yield


def advance(store: Store, table: Table, kind: str, what: Any) -> tuple[Store, Table]:
    schema, address = table.schema, table.address
    match kind:
        case "append":
            return store, applied(stage_append(table, rows_of(what, schema)))
        case "upsert" if _are_distinct(table):
            staged = stage_upsert(table, rows_of(what, schema))
            return store, table if staged is None else applied(staged)
        case "delete":
            return store, applied(stage_delete(table, ids=what))
        case "overwrite":
            return store, applied(stage_overwrite(table, rows_of(what, schema)))
        case "column" if "extra" not in schema.names:
            values = {} if what is None else {"extra": what}
            return store, applied(stage_added(table, [EXTRA], values=values))
        case "rename" if "extra" in schema.names:
            columns_ = kept(table, but={"extra": TableColumn(EXTRA.with_name("tags2"), "extra")})
            renamed = applied(stage_reshape(table, columns_))
            columns_ = kept(renamed, but={"tags2": TableColumn(EXTRA, "tags2")})
            return store, applied(stage_reshape(renamed, columns_))
        case "replace":
            columns_ = kept(table, but={"number": TableColumn(NUMBER)})
            return store, applied(stage_reshape(table, columns_, filled(table, {NUMBER: what})))
        case "compact" if table.count_fragments() > 1:
            rewrite = rewrite_fragments(table, [each.id for each in table.fragments()])
            return store, applied(stage_rewrites(table, [rewrite]))
        case "branch" if address.ref is None and not store.refs.exists(LOCATION, "draft"):
            ref = store.refs.create(LOCATION, "draft", source=None, version=address.version)
            return store, ref
        case "main":
            return store, store.tables.open_latest(LOCATION, ref=None)
        case "reopen":
            store = Store.open(store.root.uri)
            return store, store.tables.open(LOCATION, ref=address.ref, version=address.version)
        case "elsewhere":
            other = Store.open(store.root.uri)
            newest = other.tables.open_latest(LOCATION, ref=address.ref)
            applied(stage_append(newest, rows_of(what, newest.schema)))
            return store, store.tables.open_latest(LOCATION, ref=address.ref)
        case _:
            return store, table


def _are_distinct(table: Table) -> bool:
    read = table.read(["id"])["id"].to_pylist()
    return len(set(read)) == len(read)


def check(table: Table) -> None:
    names = [*table.schema.names]
    scanned = table.read(names)
    for wanted in (names, ["number", "id"], ["tags"], ["point", "number"]):
        read = read_all_fragments(table, wanted)
        assert read.schema == scanned.select(wanted).schema
        assert read.to_pylist() == scanned.select(wanted).to_pylist()
    for left in (frozenset(), frozenset(each.id for each in table.fragments()[::2])):
        runs = split_runs(table, ["id", "number"], scanned=left)
        if runs is not None:
            parts = [
                table.read(["id", "number"], fragment_ids=run.fragment_ids)
                if run.rows is None
                else run.rows
                for run in runs
            ]
            together = [row for part in parts for row in part.to_pylist()]
            assert together == scanned.select(["id", "number"]).to_pylist()
            assert [i for run in runs for i in run.fragment_ids] == list(
                table.handle.fragment_ids()
            )
    found = find(table, "id", ["a", "c", "nobody"], columns=["tags", "number"])
    expected = [row for row in scanned.to_pylist() if row["id"] in ("a", "c")]
    shown = [(row["number"], row["tags"]) for row in found.to_pylist()]
    assert sorted(shown, key=str) == sorted(
        ((row["number"], row["tags"]) for row in expected), key=str
    )


@pytest.mark.parametrize("bounds", BOUNDS.values(), ids=BOUNDS.keys())
@settings(
    max_examples=20, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
@given(steps=st.lists(step, min_size=1, max_size=10))
def test_columns_are_those_of_a_scan(bounds, steps):
    with tempfile.TemporaryDirectory() as folder, bounded(bounds):
        store = Store.open(Path(folder) / "graph")
        table = applied(stage_create(store.tables, LOCATION, SCHEMA.empty_table()))
        seen = [table]
        for kind, what in steps:
            store, table = advance(store, table, kind, what)
            check(table)
            seen.append(table)
        # Older versions and other refs share data files, but not deletions, with what was read.
        for older in reversed(seen):
            check(older)


def test_the_check_can_fail(local, monkeypatch):
    table = in_fragments(local, "abc", "d")
    before = read_all_fragments(table, ["id"])["id"].to_pylist()
    monkeypatch.setattr(Piece, "without", lambda self, *_, **__: self.values)
    table = applied(stage_delete(table, ids=["b"]))
    assert read_all_fragments(table, ["id"])["id"].to_pylist() == before != table.read(["id"])


def reads(store: Store, table: Table, *names: str) -> int:
    store.meter.take()
    read_all_fragments(table, names)
    return store.meter.take().reads


def test_only_new_fragments_are_read(store, elsewhere):
    table = in_fragments(elsewhere, "a", "b", "cd")
    assert reads(store, latest(store), "id") == 3
    # Files of a few rows are fetched whole.
    assert reads(store, latest(store), "id", "n", "note") == 0
    table = applied(stage_append(table, rows("e")))
    newest = latest(store)
    assert reads(store, newest, "n", "id") == 1
    assert reads(store, newest, "n", "id", "note") == 0
    assert read_all_fragments(newest, ["id"])["id"].to_pylist() == ["a", "b", "c", "d", "e"]


def test_a_deletion_reads_which_rows_are_left_and_no_data(store, elsewhere):
    table = in_fragments(elsewhere, "abcdef", "g")
    assert reads(store, latest(store), "id") == 2
    table = applied(stage_delete(table, ids=["b", "g"]))
    newest = latest(store)
    assert reads(store, newest, "id") == 1
    assert read_all_fragments(newest, ["id"])["id"].to_pylist() == ["a", "c", "d", "e", "f"]
    applied(stage_upsert(table, rows("cx", n=1)))
    newest = latest(store)
    # One for which rows are left, and one for the new ones.
    assert reads(store, newest, "id", "n") == 2
    assert read_all_fragments(newest, ["id"])["id"].to_pylist() == ["a", "d", "e", "f", "c", "x"]


def test_what_this_store_wrote_is_not_read(store):
    table = in_fragments(store, "ab", "c")
    read_all_fragments(table, ["id", "n"])
    table = applied(stage_upsert(table, rows("bx", n=1)))
    table = applied(stage_delete(table, ids=["a"]))
    assert reads(store, table, "id", "n") == 0
    assert read_all_fragments(table, ["id", "n"]).to_pylist() == table.read(["id", "n"]).to_pylist()


def test_what_nobody_reads_is_not_kept(store):
    in_fragments(store, "ab", "c")
    assert not store.tables.pieces._shelves


def test_a_branch_reads_what_main_has_not(store, elsewhere):
    in_fragments(elsewhere, "a", "b")
    assert reads(store, latest(store), "id") == 2
    draft = elsewhere.refs.create(LOCATION, "draft", source=None, version=3)
    applied(stage_append(draft, rows("c")))
    applied(stage_append(latest(elsewhere), rows("d")))
    assert reads(store, latest(store, ref="draft"), "id") == 1
    assert reads(store, latest(store), "id") == 1
    assert read_all_fragments(latest(store, ref="draft"), ["id"])["id"].to_pylist() == [
        "a",
        "b",
        "c",
    ]


def test_an_older_version_with_rows_that_are_deleted_since_is_read_whole(store, elsewhere):
    table = in_fragments(elsewhere, "abc")
    applied(stage_delete(table, ids=["b"]))
    newest = latest(store)
    assert read_all_fragments(newest, ["id"])["id"].to_pylist() == ["a", "c"]
    older = store.tables.open(LOCATION, ref=None, version=table.version)
    assert read_all_fragments(older, ["id"])["id"].to_pylist() == ["a", "b", "c"]
    assert read_all_fragments(newest, ["id"])["id"].to_pylist() == ["a", "c"]


def test_values_stand_at_their_offsets(store):
    table = in_fragments(store, "abcd")
    table = applied(stage_delete(table, ids=["a", "c"]))
    fragments = [FragmentFiles.of(fragment) for fragment in table.fragments()]
    [fragment_id] = table.handle.fragment_ids()
    assert read_values(table, "id", fragments) == {fragment_id: (None, "b", None, "d")}
    assert read_fragments(table, ["id"], [fragment_id])["id"].to_pylist() == ["b", "d"]


def test_files_that_nobody_has_any_more_are_dropped(store, monkeypatch):
    monkeypatch.setattr(pieces, "_STALE_PIECES_MAX", 3)
    table = create(store, "a")
    read_all_fragments(table, ["id"])
    for number in range(1, 21):
        table = applied(stage_upsert(table, rows("a", n=number)))
        read_all_fragments(table, ["id"])
    counts = [len(shelf.pieces) for shelf in store.tables.pieces._shelves.values()]
    assert max(counts) <= 2 + 3 + 1


def test_memory_is_bounded_and_accounted_for(store, monkeypatch):
    monkeypatch.setattr(pieces, "KEPT_COLUMNS_BYTES_MAX", 20_000)
    table = create(store, "a")
    for number in range(30):
        table = applied(stage_append(table, rows([f"n{number}"])))
        read_all_fragments(table, ["id", "n", "note"])
    held = store.tables.pieces
    kept_bytes = sum(
        part.byte_count
        for shelf in held._shelves.values()
        for part in (*shelf.pieces.values(), *shelf.assemblies.values())
    )
    assert held._bytes == kept_bytes <= 20_000


def test_threads_may_read_at_once(store):
    table = in_fragments(store, *[f"{number:02}" for number in range(20)])
    fresh = Store.open(store.root.uri)
    opened = latest(fresh)
    expected = table.read(["id", "n"]).to_pylist()
    with ThreadPoolExecutor(8) as pool:
        read = list(
            pool.map(lambda _: read_all_fragments(opened, ["id", "n"]).to_pylist(), range(16))
        )
    assert read == [expected] * 16
