"""Rows that were only moved to other fragments are not read to compare two versions."""

from collections.abc import Sequence
from itertools import permutations
from random import Random

import numpy as np
import pyarrow as pa
import pytest

import omnigraph
from omnigraph.storage import carried, compaction, heads
from omnigraph.storage.carried import NOWHERE, Fragments, OffsetSet, find_carried
from omnigraph.storage.column_files import TableColumn
from omnigraph.storage.differences import difference, read_parts
from omnigraph.storage.forks import Forks
from omnigraph.storage.pairs import ColumnPair, find_common_version, size_of, unequal_pairs
from omnigraph.storage.reshape import stage_reshape
from omnigraph.storage.row_runs import read_runs
from omnigraph.storage.staging import (
    StagedWrite,
    stage_append,
    stage_delete,
    stage_overwrite,
    stage_upsert,
)
from omnigraph.storage.store import Store
from omnigraph.storage.tables import ROW_ADDRESS, ROW_ID, ROW_VERSION, Table
from tests.support.compaction import stage_compaction
from tests.support.publishing import PERSON
from tests.support.tables import (
    AUTHOR,
    LOCATION,
    SCHEMA,
    applied,
    by_id,
    create,
    in_fragments,
    kept,
    numbered_rows,
    rows,
    stage_added,
)
from tests.support.writers import furnished, insert

ALIKE = [ColumnPair(name, name, name) for name in SCHEMA.names]
NEW = pa.field("new", pa.int64())


@pytest.fixture(autouse=True)
def _exact_versions(monkeypatch):
    """Compaction joins no runs of row versions, unless a test says so."""
    monkeypatch.setattr(compaction, "ROW_VERSION_RUNS_MIN", 1000)


def compacted(table: Table) -> Table:
    return applied(stage_compaction(table))


def fork(store: Store, table: Table, name: str) -> Table:
    address = table.address
    return store.refs.create(LOCATION, name, source=address.ref, version=address.version)


def to_read(
    before: Table, after: Table, columns: Sequence[ColumnPair] | None = ALIKE
) -> tuple[list[str], list[str]]:
    """The ids of the rows of either version that have to be read."""
    found = difference(before, after, unequal_pairs(before, after, columns))
    sides = ((before, found.before), (after, found.after))
    old, new = (
        sorted(
            name for batch in read_parts(table, parts, ["id"]) for name in batch["id"].to_pylist()
        )
        for table, parts in sides
    )
    assert (len(old), len(new)) == tuple(sum(p.row_count for p in parts) for _, parts in sides)
    return old, new


@pytest.mark.parametrize("columns", [ALIKE, None])
def test_a_compacted_table_has_nothing_to_read(store, columns):
    before = in_fragments(store, "ab", "cd", "ef")
    before = applied(stage_delete(before, ids=["c"]))
    after = compacted(before)

    assert unequal_pairs(before, after, columns) == ()
    assert unequal_pairs(after, before, columns) == ()
    assert size_of(before, after, ()).row_count == 0
    again = compacted(applied(stage_append(after, rows("g"))))
    assert to_read(before, again, columns) == ([], ["g"])


def test_what_was_written_beside_a_compaction_is_read_and_nothing_else(store):
    before = in_fragments(store, "abc", "def", "ghi")
    table = applied(stage_upsert(before, rows("bz", n=7)))
    table = applied(stage_delete(table, ids=["e"]))
    middle = compacted(table)
    after = compacted(applied(stage_upsert(middle, rows("hy", n=8))))

    assert to_read(before, middle) == (list("be"), list("bz"))
    assert to_read(before, after) == (list("beh"), list("bhyz"))
    assert to_read(after, before) == (list("bhyz"), list("beh"))
    assert to_read(middle, after) == (list("h"), list("hy"))
    pairs = unequal_pairs(before, after, ALIKE)
    assert size_of(before, after, pairs).row_count == 7
    assert 0 < size_of(before, after, pairs).byte_count < before.count_bytes()


def test_branches_that_were_compacted_on_both_sides_share_what_they_had(store):
    main = in_fragments(store, "abc", "def")
    start = main
    draft = fork(store, main, "x/draft")
    main = applied(stage_upsert(main, rows("am", n=1)))
    draft = applied(stage_upsert(draft, rows("bt", n=2)))
    # The same row id for different rows: only their versions tell them apart.
    assert by_id(main, ROW_ID)["m"] == by_id(draft, ROW_ID)["t"]
    main, draft = compacted(main), compacted(draft)

    assert find_common_version(main, draft) == start.version
    assert to_read(start, main) == (["a"], ["a", "m"])
    assert to_read(start, draft) == (["b"], ["b", "t"])
    assert to_read(main, draft) == (["a", "b", "m"], ["a", "b", "t"])


def test_versions_in_common_follow_the_forks(store):
    first = in_fragments(store, "ab")
    main = applied(stage_append(first, rows("c")))
    draft = fork(store, main, "draft")
    moved = applied(stage_append(draft, rows("d")))
    second = fork(store, moved, "second")
    other = fork(store, main, "other")
    later = applied(stage_append(main, rows("e")))
    last = applied(stage_append(second, rows("f")))
    numbers = {
        (first, main): first,
        (first, last): first,
        (main, later): main,
        (later, draft): main,
        (later, last): main,
        (other, moved): main,
        (draft, last): draft,
        (moved, last): moved,
        (second, last): second,
    }
    fresh = Store.open(store.root.uri)
    for (one, two), common in numbers.items():
        for pair in ((one, two), (two, one)):
            opened = [
                fresh.tables.open(LOCATION, ref=each.address.ref, version=each.version)
                for each in pair
            ]
            assert find_common_version(*opened) == common.version
    detached = heads.preview(stage_append(main, rows("g")))
    assert find_common_version(detached, main) is None


def test_where_a_ref_started_is_read_once_and_where_it_is_unknown_rows_are(local, monkeypatch):
    main = in_fragments(local, "ab", "cd")
    draft = compacted(fork(local, main, "draft"))
    main = compacted(applied(stage_append(main, rows("e"))))
    assert to_read(main, draft) == (["e"], [])
    (path,) = local.objects.list(f"{LOCATION}/_refs/branches")
    local.objects.delete(path)
    assert to_read(main, draft) == (["e"], [])

    monkeypatch.setattr(local.tables, "forks", Forks(local.objects))
    assert to_read(main, draft) == (list("abcde"), list("abcd"))


def test_where_the_refs_of_branches_started_is_in_the_pins(tmp_path):
    graph = furnished(str(tmp_path / "graph.omni"))
    graph.branches.create("draft")
    insert(graph, "eva", branch="draft")
    graph.branches.create("below", branch="draft")
    insert(graph, "fay", branch="draft")
    insert(graph, "gus", branch="below")
    insert(graph, "hal")
    reader = omnigraph.open(graph.uri, read_only=True)
    pins = {
        branch: reader.snapshot(branch=branch).pin(PERSON) for branch in ("main", "draft", "below")
    }
    assert [len(pin.forks) for pin in pins.values()] == [0, 1, 2]
    tables = {branch: reader._store.tables.open_pin(pin) for branch, pin in pins.items()}
    start = tables["main"].version - 1

    assert find_common_version(tables["main"], tables["draft"]) == start
    assert find_common_version(tables["main"], tables["below"]) == start
    assert find_common_version(tables["draft"], tables["below"]) == start + 1
    assert find_common_version(tables["below"], tables["draft"]) == start + 1


def test_many_rows_in_random_order_are_found_a_few_at_a_time(local, monkeypatch):
    names = [f"{number:03}" for number in range(300)]
    table = in_fragments(local, names[:100], names[100:200], names[200:])
    random = Random(7)
    for _ in range(6):
        # Scattered row ids, and addresses in another order.
        table = applied(stage_upsert(table, rows(random.sample(names, 40), n=1)))
    before = compacted(table)
    written = random.sample(names, 25)
    after = compacted(applied(stage_upsert(before, rows(written, n=2))))
    expected = (sorted(written), sorted(written))

    assert to_read(before, after) == expected
    for runs_max in (1, 3, 50):
        monkeypatch.setattr(carried, "CARRIED_RUNS_MAX", runs_max)
        assert to_read(before, after) == expected


def test_a_column_of_nulls_that_was_added_since_costs_nothing(local):
    before = in_fragments(local, "ab", "cd")
    table = applied(stage_added(before, [NEW]))
    after = compacted(applied(stage_upsert(table, with_new(rows("b")))))
    columns = [*ALIKE, ColumnPair("new", None, "new", is_stored_alike=False)]

    assert to_read(before, after, columns) == (["b"], ["b"])
    backwards = [*ALIKE, ColumnPair("new", "new", None, is_stored_alike=False)]
    assert to_read(after, before, backwards) == (["b"], ["b"])
    # Rows that lack it may have another value than null.
    constant = [*ALIKE, ColumnPair("new", None, "new", is_stored_alike=False, is_null=False)]
    assert to_read(before, after, constant) == (list("abcd"), list("abcd"))


def with_new(table: pa.Table) -> pa.Table:
    return table.append_column(NEW, pa.array([5] * len(table)))


def test_values_that_a_schema_change_wrote_are_read(local):
    before = in_fragments(local, "ab", "cd")
    after = compacted(applied(stage_added(before, [NEW], values={"new": 3})))
    columns = [*ALIKE, ColumnPair("new", None, "new", is_stored_alike=False)]

    assert to_read(before, after, columns) == (list("abcd"), list("abcd"))
    # Later versions have them in common.
    later = compacted(applied(stage_upsert(after, with_new(rows("c")))))
    assert to_read(after, later, [*ALIKE, ColumnPair("new", "new", "new")]) == (["c"], ["c"])


def test_values_that_two_branches_filled_in_are_compared(store):
    main = in_fragments(store, "ab", "cd")
    draft = fork(store, main, "draft")
    # Both give the column the same number: it is not by the number that its values are told apart.
    main, draft = (
        compacted(applied(stage_added(table, [NEW], values={"new": value})))
        for table, value in ((main, 1), (draft, 2))
    )
    assert numbers_of(main) == numbers_of(draft)

    columns = [*ALIKE, ColumnPair("new", "new", "new")]
    assert to_read(main, draft, columns) == (list("abcd"), list("abcd"))


def numbers_of(table: Table) -> dict[str, int]:
    return {field.name(): field.id() for field in table.handle.lance_schema.fields()}


def test_a_column_that_was_dropped_and_added_again_is_read(local):
    before = in_fragments(local, "ab", "cd")
    table = applied(stage_reshape(before, kept(before, but={"note": None})))
    table = applied(stage_added(table, [pa.field("note", pa.string())]))
    after = compacted(table)

    assert to_read(before, after) == (list("abcd"), list("abcd"))
    assert to_read(before, after, ALIKE[:2]) == ([], [])


def test_another_name_and_nullability_cost_nothing(local):
    before = in_fragments(local, "ab", "cd")
    changed = TableColumn(pa.field("text", pa.string(), nullable=False), "note")
    after = compacted(applied(stage_reshape(before, kept(before, but={"note": changed}))))

    columns = [*ALIKE[:2], ColumnPair("text", "note", "text")]
    assert to_read(before, after, columns) == ([], [])


def test_an_overwritten_table_is_read_whole(local):
    before = in_fragments(local, "ab", "cd")
    after = compacted(applied(stage_overwrite(before, rows("abcd"))))

    assert to_read(before, after) == (list("abcd"), list("abcd"))


def test_a_version_that_was_undone_changes_nothing(local):
    before = in_fragments(local, "ab", "cd")
    undone = applied(stage_upsert(before, rows("a", n=9)))
    restored = heads.restore(undone, before.version, AUTHOR)
    after = compacted(applied(stage_upsert(restored, rows("c", n=1))))

    assert to_read(before, after) == (["c"], ["c"])
    assert to_read(restored, after) == (["c"], ["c"])


def test_carried_rows_are_found_at_their_new_address_and_other_rows_are_not(local):
    main = in_fragments(local, "abc", "def")
    draft = applied(stage_append(fork(local, main, "draft"), rows("t")))
    common = main.version
    main = compacted(applied(stage_upsert(main, rows("bm", n=1))))
    wanted = by_id(draft, ROW_ID)
    assert wanted["t"] == by_id(main, ROW_ID)["m"]
    order = sorted(wanted, reverse=True)
    fragments = Fragments(main, range(len(main.fragments())))

    found = find_carried(fragments, np.array([wanted[name] for name in order], np.uint64), common)

    addresses = by_id(main, ROW_ADDRESS)
    expected = [NOWHERE if name in "bt" else addresses[name] for name in order]
    assert found.tolist() == expected


def test_rows_are_described_as_a_scan_reads_them(local):
    table = in_fragments(local, "abcd", "efgh", "ij")
    table = compacted(applied(stage_upsert(table, rows("kbf", n=1))))
    table = compacted(applied(stage_append(table, rows("lm"))))
    table = applied(stage_append(table, rows("nop")))
    table = applied(stage_upsert(table, rows("og", n=1)))
    places = range(len(table.fragments()))
    spread = {
        int(row_id) + place: (int(address) + place, int(version))
        for runs, versions in read_runs(table, places)
        for row_id, address, length, version in zip(
            runs.row_ids, runs.addresses, runs.lengths, versions, strict=True
        )
        for place in range(int(length))
    }
    read = table.read([ROW_ID, ROW_ADDRESS, ROW_VERSION]).to_pylist()
    assert spread == {row[ROW_ID]: (row[ROW_ADDRESS], row[ROW_VERSION]) for row in read}


def test_sets_of_offsets_are_what_they_were_made_of():
    random = np.random.default_rng(3)
    for share in (0.0, 0.001, 0.5, 1.0):
        mask = random.random(10_000) < share
        offsets = np.flatnonzero(mask)
        edges = np.diff(np.concatenate([[0], mask.astype(np.int8), [0]]))
        starts = np.flatnonzero(edges == 1)
        lengths = np.flatnonzero(edges == -1) - starts
        made = OffsetSet.of_runs(starts, lengths, physical_rows=len(mask))
        assert made.row_count == len(offsets)
        assert made.to_offsets().tolist() == offsets.tolist()
        arrays = [each for each in (made.starts, made.lengths, made.bits) if each is not None]
        assert sum(each.nbytes for each in arrays) <= len(mask) // 8


def test_joined_row_versions_cost_a_few_rows_more(local, monkeypatch):
    monkeypatch.setattr(compaction, "ROW_VERSION_RUNS_MIN", 4)
    names = [f"{number:03}" for number in range(200)]
    before = in_fragments(local, names[:100], names[100:])
    table = before
    for name in names[::40]:
        table = applied(stage_upsert(table, rows([name], n=1)))
    was, now = to_read(before, compacted(table))

    assert was == now
    assert set(names[::40]) <= set(was)
    assert len(was) < 20


@pytest.mark.parametrize("runs_min", [1, 1000])
def test_random_versions_of_two_refs_are_compared_as_their_rows_say(local, monkeypatch, runs_min):
    monkeypatch.setattr(compaction, "ROW_VERSION_RUNS_MIN", runs_min)
    for seed in range(3):
        check_random_versions(local, Random(seed), f"{seed}")


def test_row_versions_that_are_too_low_are_noticed(local):
    with pytest.raises(AssertionError):
        check_random_versions(local, Random(0), "low", row_version=1)


def check_random_versions(
    store: Store, random: Random, name: str, *, row_version: int | None = None
) -> None:
    """Any two versions: a row that is not read is in both, with the same values."""
    location = f"nodes/{name}"
    names = [f"{number:02}" for number in range(30)]
    versions = [create(store, names, location=location)]
    tips: dict[str | None, Table] = {None: versions[0]}
    for step in range(24):
        ref = random.choice(list(tips))
        table = tips[ref]
        if len(tips) < 3 and random.random() < 0.2:
            ref = f"ref{step}"
            address = table.address
            tips[ref] = store.refs.create(
                location, ref, source=address.ref, version=address.version
            )
            versions.append(tips[ref])
            continue
        tips[ref] = applied(random_write(random, table, names, row_version))
        versions.append(tips[ref])
    for before, after in permutations(random.sample(versions, 8), 2):
        old, new = (by_id(table, "n") for table in (before, after))
        was, now = to_read(before, after)
        unread_old, unread_new = old.keys() - set(was), new.keys() - set(now)
        assert {key: old[key] for key in unread_old} == {key: new[key] for key in unread_new}


def random_write(
    random: Random, table: Table, names: list[str], row_version: int | None
) -> StagedWrite:
    present = table.read(["id"])["id"].to_pylist()
    kind = random.choice(["upsert", "upsert", "delete", "compact", "compact"])
    if kind == "delete" and len(present) > 5:
        return stage_delete(table, ids=random.sample(present, random.randint(1, 3)))
    if kind == "compact":
        return stage_compaction(table, row_version=row_version)
    chosen = random.sample(names, random.randint(1, 6))
    # Numbers that no row has yet, so that every row changes.
    staged = stage_upsert(table, numbered_rows({key: random.getrandbits(60) for key in chosen}))
    assert staged is not None
    return staged
