"""Rewriting fragments: the same rows under the same row ids, found by indexes, on any ref."""

import json
import random

import numpy as np
import pyarrow as pa
import pytest

from omnigraph.errors import StorageError, TableConflictError
from omnigraph.limits import ROW_ID_BYTES_MAX
from omnigraph.storage import heads
from omnigraph.storage.compaction import (
    ROW_VERSION_RUNS_MAX,
    ROW_VERSION_RUNS_MIN,
    Rewrite,
    find_current,
    index_rewrites,
    join_runs,
    measure_fragments,
    rewrite_fragments,
    stage_rewrites,
)
from omnigraph.storage.indexes import (
    IndexSpec,
    build_segment,
    covered_fragments,
    find_gaps,
    stage_indexes,
)
from omnigraph.storage.segments import find_dead_segments
from omnigraph.storage.staging import locate, stage_append, stage_delete, stage_upsert
from omnigraph.storage.store import Store
from omnigraph.storage.tables import ROW_ID, Table
from tests.support.tables import LOCATION, UPDATED, applied, create, in_fragments, rows

ID = IndexSpec("id")


def rewritten(table: Table, *, row_id_bytes_max: int = ROW_ID_BYTES_MAX) -> Rewrite:
    ids = [fragment.id for fragment in table.fragments()]
    return rewrite_fragments(table, ids, row_id_bytes_max=row_id_bytes_max)


def stored(table: Table) -> dict[str, tuple[int, int]]:
    """By id, the number and the row id of each row."""
    found = table.read(["id", "n", ROW_ID]).to_pylist()
    return {row["id"]: (row["n"], row[ROW_ID]) for row in found}


def versions(table: Table) -> dict[str, int]:
    return {row["id"]: row[UPDATED] for row in table.read(["id", UPDATED]).to_pylist()}


@pytest.fixture
def worn(store: Store) -> Table:
    """Four fragments, one of which was updated in part and one of which lost a row."""
    table = in_fragments(store, "ab", "cd", "ef", "gh")
    table = applied(stage_upsert(table, rows("c", n=7)))
    return applied(stage_delete(table, ids=["e"]))


def test_rows_keep_their_values_and_row_ids(worn):
    compact = applied(stage_rewrites(worn, [rewritten(worn)]))

    assert stored(compact) == stored(worn)
    assert compact.version == worn.version + 1
    [fragment] = compact.fragments()
    assert (fragment.physical_rows, fragment.num_deletions) == (7, 0)
    assert set(versions(compact)) == set(versions(worn))


def test_row_versions_are_never_lowered_and_never_above_what_was_rewritten(worn):
    compact = applied(stage_rewrites(worn, [rewritten(worn)]))

    before, after = versions(worn), versions(compact)
    assert all(before[key] <= after[key] <= worn.version for key in before)


def test_later_writes_find_and_version_the_rewritten_rows(worn):
    table = applied(stage_rewrites(worn, [rewritten(worn)]))

    table = applied(stage_upsert(table, rows("az", n=9)))
    table = applied(stage_delete(table, ids=["b"]))

    assert {key: n for key, (n, _) in stored(table).items()} == {
        **dict.fromkeys("dfgh", 0),
        "c": 7,
        "a": 9,
        "z": 9,
    }
    assert stored(table)["a"][1] == stored(worn)["a"][1]
    assert versions(table)["a"] == versions(table)["z"] == table.version - 1


def test_a_part_of_the_fragments_can_be_rewritten(store):
    table = in_fragments(store, "a", "b", "c", "d")
    first, second, *_ = table.fragments()

    compact = applied(stage_rewrites(table, [rewrite_fragments(table, [first.id, second.id])]))

    assert [size.row_count for size in measure_fragments(compact)] == [1, 1, 2]
    assert stored(compact) == stored(table)


def test_indexes_cover_the_new_fragments_after_one_more_version(store):
    table = applied(stage_indexes(in_fragments(store, "ab", "cd"), [ID]))
    table = applied(stage_append(table, rows("e")))
    staged = stage_rewrites(table, [rewritten(table)])
    preview = heads.preview(staged)
    [gap] = find_gaps(preview, [ID])

    whole = index_rewrites(staged, [build_segment(preview, gap)], find_dead_segments(preview))
    compact = applied(whole)

    assert compact.version == whole.version == table.version + 2
    assert covered_fragments(compact, ID) == {fragment.id for fragment in compact.fragments()}
    assert find_dead_segments(compact) == ()
    assert {key: locate(compact, pa.array([key])).num_rows for key in "abcdex"} == {
        **dict.fromkeys("abcde", 1),
        "x": 0,
    }


def test_a_branch_that_inherited_an_index_reads_through_it_after_a_compaction(store):
    table = applied(stage_indexes(in_fragments(store, "ab", "cd"), [ID]))
    store.refs.create(LOCATION, "draft", source=None, version=table.version)
    draft = store.tables.open_latest(LOCATION, ref="draft")
    draft = applied(stage_append(draft, rows("e")))

    staged = stage_rewrites(draft, [rewritten(draft)])
    preview = heads.preview(staged)
    gaps = find_gaps(preview, [ID])
    segments = [build_segment(preview, gap) for gap in gaps]
    compact = applied(index_rewrites(staged, segments, find_dead_segments(preview)))

    fresh = Store.open(store.root.uri).tables.open_latest(LOCATION, ref="draft")
    assert fresh.version == compact.version
    assert [fresh.count_rows(f"id = '{key}'") for key in "abcdex"] == [1, 1, 1, 1, 1, 0]
    assert stored(store.tables.open_latest(LOCATION, ref=None)) == stored(table)


def test_inherited_fragments_are_known(store):
    table = in_fragments(store, "ab", "cd")
    store.refs.create(LOCATION, "draft", source=None, version=table.version)
    draft = store.tables.open_latest(LOCATION, ref="draft")
    draft = applied(stage_append(draft, rows("e")))

    assert [size.is_inherited for size in measure_fragments(draft)] == [True, True, False]
    assert not any(size.is_inherited for size in measure_fragments(table))


def test_a_rewrite_is_current_until_its_fragments_change(store):
    table = in_fragments(store, "ab", "cd")
    rewrite = rewritten(table)

    appended = applied(stage_append(table, rows("e")))
    assert find_current(appended, [rewrite]) == [rewrite]
    assert stored(applied(stage_rewrites(appended, [rewrite]))) == stored(appended)


@pytest.mark.parametrize(
    "change",
    [
        lambda table: stage_delete(table, ids=["a"]),
        lambda table: stage_upsert(table, rows("a", n=3)),
    ],
)
def test_a_rewrite_is_not_current_after_a_change_of_its_rows(store, change):
    table = in_fragments(store, "ab", "cd")
    rewrite = rewritten(table)
    assert not find_current(applied(change(table)), [rewrite])


def test_a_rewrite_of_a_table_that_moved_is_refused(store):
    table = in_fragments(store, "ab", "cd")
    staged = stage_rewrites(table, [rewritten(table)])
    applied(stage_append(table, rows("e")))

    # Lance notices that both gave the same number to a fragment.
    with pytest.raises(StorageError, match="two fragments with id"):
        applied(staged)


def test_a_restore_fences_a_rewrite(store):
    table = in_fragments(store, "ab", "cd")
    staged = stage_rewrites(table, [rewritten(table)])
    heads.restore(table, table.version, heads.author_of(table) or pytest.fail("signed"))

    with pytest.raises(TableConflictError):
        applied(staged)


def test_a_table_of_one_row_fragments_keeps_few_runs_of_versions(store):
    table = create(store)
    for number in range(40):
        table = applied(stage_append(table, rows([f"k{number}"])))
    compact = applied(stage_rewrites(table, [rewritten(table)]))

    [fragment] = compact.fragments()
    assert len(set(versions(table).values())) == 40
    assert len(set(versions(compact).values())) == ROW_VERSION_RUNS_MIN
    assert fragment.last_updated_at_version_meta is not None
    assert len(json.loads(fragment.last_updated_at_version_meta.json())["inline"]) < 60
    assert stored(compact) == stored(table)


def row_id_bytes(table: Table) -> int:
    return sum(fragment.row_id_bytes for fragment in measure_fragments(table))


def shuffled(store: Store) -> Table:
    """A table of which every other row was updated, one after the other, in no order."""
    names = [f"k{number:03}" for number in range(400)]
    table = create(store, names)
    some = random.Random(1).sample(names[::2], 200)
    for first in range(0, len(some), 20):
        table = applied(stage_upsert(table, rows(some[first : first + 20], n=first + 1)))
    return table


def test_rows_keep_their_order_while_their_row_ids_take_little_space(store):
    table = shuffled(store)
    compact = applied(stage_rewrites(table, [rewritten(table)]))

    ids = compact.read([ROW_ID])[ROW_ID].to_pylist()
    assert ids == table.read([ROW_ID])[ROW_ID].to_pylist() != sorted(ids)


def test_rows_that_were_updated_in_any_order_are_sorted_by_their_row_ids(store):
    table = shuffled(store)
    compact = applied(stage_rewrites(table, [rewritten(table, row_id_bytes_max=100)]))

    assert stored(compact) == stored(table)
    assert compact.read([ROW_ID])[ROW_ID].to_pylist() == list(range(400))
    assert row_id_bytes(compact) < 20
    before, after = versions(table), versions(compact)
    assert all(before[name] <= after[name] <= table.version for name in before)


def test_row_ids_that_no_order_shortens_take_few_bytes_each(store):
    table = shuffled(store)
    base, *others = table.fragments()
    numbers = [fragment.id for fragment in others]
    updated = rewrite_fragments(table, numbers, row_id_bytes_max=100)
    compact = applied(stage_rewrites(table, [updated]))

    assert stored(compact) == stored(table)
    [size] = measure_fragments(compact)[1:]
    assert size.row_id_bytes <= 2 * size.row_count + 20
    # With what is left of the others, they become ranges.
    again = applied(stage_rewrites(compact, [rewritten(compact, row_id_bytes_max=100)]))
    assert stored(again) == stored(table)
    assert row_id_bytes(again) < 20
    assert locate(again, pa.array(["k007", "k008"])).num_rows == 2
    assert base.physical_rows == 400


def test_a_few_long_ranges_of_row_ids_stay_ranges(store):
    table = create(store, [f"k{number:04}" for number in range(3000)])
    table = applied(stage_upsert(table, rows([f"k{number:04}" for number in range(1000)], n=1)))
    compact = applied(stage_rewrites(table, [rewritten(table)]))

    assert stored(compact) == stored(table)
    assert row_id_bytes(compact) < 40


def test_few_runs_are_exact_and_many_are_bounded():
    assert join_runs(np.array([5] * 9 + [6], np.uint64)) == [(9, 5), (1, 6)]
    many = np.arange(1 << 20, dtype=np.uint64)
    runs = join_runs(many)
    assert ROW_VERSION_RUNS_MAX // 2 <= len(runs) <= ROW_VERSION_RUNS_MAX
    assert sum(count for count, _ in runs) == len(many)
    assert (np.repeat([v for _, v in runs], [c for c, _ in runs]) >= many).all()


def test_rows_that_were_written_late_raise_few_others():
    versions = np.ones(1 << 20, np.uint64)
    versions[-100:] = np.arange(100) + 2
    versions[1000:1010] = 500
    runs = join_runs(versions)
    joined = np.repeat([version for _, version in runs], [count for count, _ in runs])
    assert (joined >= versions).all()
    assert len(runs) <= ROW_VERSION_RUNS_MAX
    # All versions but those of a few rows are exact.
    assert np.count_nonzero(joined != versions) < 200
