"""Indexes: they make reads cheaper, and never change an answer."""

import math
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.choices import IndexKind
from omnigraph.limits import INDEX_SEGMENTS_MAX
from omnigraph.storage import segments
from omnigraph.storage.indexes import (
    IndexSpec,
    build_segment,
    covered_fragments,
    find_gaps,
    highest_fragment_id,
    read_indexes,
    stage_indexes,
    stage_segments,
)
from omnigraph.storage.segments import count_joined, find_unneeded, plan_segments
from omnigraph.storage.staging import stage_append, stage_delete, stage_overwrite, stage_upsert
from omnigraph.storage.tables import Table
from tests.support.tables import applied, create, ids, in_fragments, latest, numbered_rows, rows

ID = IndexSpec("id")
NUMBER = IndexSpec("n")
NOTE = IndexSpec("note")


def fragment_ids(table: Table) -> frozenset[int]:
    return frozenset(each.id for each in table.fragments())


def answers(table: Table) -> list[list[str]]:
    """What a reader learns by equality, by range and by absence, on both columns."""
    filters = ["id = 'a'", "id IN ('b', 'x')", "id >= 'c'", "n = 0", "n = 1", "n > 0", "n IS NULL"]
    return [ids(table, each) for each in filters]


def test_several_indexes_are_built_in_one_transaction(table, elsewhere):
    staged = stage_indexes(table, [ID, NUMBER])
    indexed = applied(staged)

    assert staged is not None
    assert (indexed.version, staged.row_count) == (2, 3)
    assert covered_fragments(indexed, ID) == covered_fragments(indexed, NUMBER) == {0}
    assert covered_fragments(latest(elsewhere), ID) == {0}


def test_a_table_can_be_read_while_it_is_indexed(table):
    large = applied(stage_append(table, rows([f"row {number}" for number in range(20_000)], n=1)))
    done, faults = threading.Event(), list[RuntimeError]()

    def read() -> None:
        while not done.is_set():
            try:
                _ = large.handle.schema
            except RuntimeError as fault:
                faults.append(fault)

    reader = threading.Thread(target=read)
    reader.start()
    try:
        for _ in range(3):
            assert stage_indexes(large, [ID, NUMBER]) is not None
    finally:
        done.set()
        reader.join()
    assert faults == []


def test_a_table_without_an_index_covers_nothing(table):
    assert covered_fragments(table, ID) == frozenset()


def test_nothing_is_staged_where_nothing_is_missing(table):
    indexed = applied(stage_indexes(table, [ID]))

    assert stage_indexes(indexed, [ID]) is None
    assert stage_indexes(indexed, []) is None


def test_nothing_is_staged_for_an_empty_table(store):
    assert stage_indexes(create(store), [ID, NUMBER]) is None


def test_an_index_is_extended_to_new_fragments_only(table):
    indexed = applied(stage_indexes(table, [ID]))
    grown = applied(stage_append(indexed, rows("x")))
    assert covered_fragments(grown, ID) == {0}
    extended = applied(stage_indexes(grown, [ID]))

    assert covered_fragments(extended, ID) == fragment_ids(extended) == {0, 1}
    assert stage_indexes(extended, [ID]) is None


def test_one_index_may_lag_behind_another(table):
    table = applied(stage_indexes(table, [ID]))
    table = applied(stage_append(table, rows("x", n=1)))
    table = applied(stage_indexes(table, [NUMBER, ID]))

    assert covered_fragments(table, ID) == covered_fragments(table, NUMBER) == {0, 1}
    assert answers(table)[1] == ["b", "x"]


CHANGES = {
    "append": lambda table: stage_append(table, rows("x", n=1)),
    "upsert of some": lambda table: stage_upsert(table, numbered_rows({"a": 1, "x": 1, "c": None})),
    "upsert of all": lambda table: stage_upsert(table, rows("abcdef", n=1)),
    "deletion of some": lambda table: stage_delete(table, ids=["a", "f"]),
    "deletion of a fragment": lambda table: stage_delete(table, ids=["a", "b", "c"]),
    "deletion of all": lambda table: stage_delete(table, filter_text="true"),
    "overwrite": lambda table: stage_overwrite(table, rows("abx", n=1)),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_an_answer_is_the_same_with_an_index_and_without(store, local, change):
    plain = in_fragments(local, "abc", "def")
    indexed = applied(stage_indexes(in_fragments(store, "abc", "def"), [ID, NUMBER]))
    assert answers(indexed) == answers(plain)

    plain, indexed = applied(change(plain)), applied(change(indexed))
    assert answers(indexed) == answers(plain)

    if (missing := stage_indexes(indexed, [ID, NUMBER])) is not None:
        indexed = applied(missing)
    assert answers(indexed) == answers(plain)
    assert fragment_ids(indexed) <= covered_fragments(indexed, ID)

    plain = applied(stage_upsert(plain, numbered_rows({"a": 2, "b": 0, "z": 1})))
    indexed = applied(stage_upsert(indexed, numbered_rows({"a": 2, "b": 0, "z": 1})))
    assert answers(indexed) == answers(plain)


def test_an_index_is_used(local):
    many = [f"{number:05}" for number in range(20_000)]
    table = create(local, many)
    indexed = applied(stage_indexes(table, [ID]))

    plan = indexed.handle.scanner(filter="id = '00777'").explain_plan()
    assert "ScalarIndexQuery" in plan
    assert ids(indexed, "id = '00777'") == ["00777"]


def test_an_index_built_on_a_ref_answers_there_and_is_unknown_elsewhere(table, store):
    fork = store.refs.create(table.address.location, "draft", source=None, version=1)
    fork = applied(stage_append(fork, rows("x", n=1)))
    fork = applied(stage_indexes(fork, [ID, NUMBER]))

    assert ids(fork, "id IN ('a', 'x')") == ["a", "x"]
    assert covered_fragments(latest(store, ref="draft"), ID) == {0, 1}
    assert covered_fragments(latest(store), ID) == frozenset()


def test_an_inherited_index_answers_on_a_ref_and_is_extended_there(table, store):
    table = applied(stage_indexes(table, [ID, NUMBER]))
    fork = store.refs.create(table.address.location, "draft", source=None, version=2)
    assert ids(fork, "id = 'b'") == ["b"]

    fork = applied(stage_upsert(fork, numbered_rows({"b": 1, "x": 1})))
    fork = applied(stage_indexes(fork, [ID, NUMBER]))

    assert answers(fork) == [["a"], ["b", "x"], ["c", "x"], ["a", "c"], ["b", "x"], ["b", "x"], []]
    assert answers(latest(store)) == [["a"], ["b"], ["c"], ["a", "b", "c"], [], [], []]


def test_the_highest_number_of_a_fragment_counts_those_that_are_gone(store):
    table = in_fragments(store, "abc", "def", "ghi")
    assert highest_fragment_id(table) == 2

    table = applied(stage_delete(table, ids=["d", "e", "f", "g", "h", "i"]))
    fork = store.refs.create(table.address.location, "draft", source=None, version=table.version)

    assert fragment_ids(table) == {0}
    assert highest_fragment_id(table) == highest_fragment_id(fork) == 2
    assert highest_fragment_id(applied(stage_overwrite(table, rows("x")))) == 3


def test_a_table_that_never_had_rows_has_no_number_of_a_fragment(store):
    assert highest_fragment_id(create(store)) == -1


def extended(table: Table, *groups: str) -> Table:
    """The table with more fragments, each indexed by a segment of its own."""
    for group in groups:
        table = applied(stage_append(table, rows(group, n=1)))
        table = applied(stage_indexes(table, [ID, NUMBER]))
    return table


def segment_counts(table: Table) -> dict[str, int]:
    return {each.name: len(each.segments) for each in read_indexes(table)}


def upkept(table: Table, *specs: IndexSpec) -> Table:
    built = [build_segment(table, gap) for gap in find_gaps(table, specs)]
    change = plan_segments(table, specs, built)
    return applied(stage_segments(table, change.new, removed=change.removed))


def test_an_index_that_is_not_wanted_is_removed(table):
    indexed = applied(stage_indexes(table, [ID, NUMBER, NOTE]))

    assert find_unneeded(indexed, [ID, NUMBER, NOTE]) == ()
    assert segment_counts(upkept(indexed, ID)) == {"id_btree": 1}


def test_an_index_of_another_kind_takes_the_place_of_the_old_one(table):
    indexed = applied(stage_indexes(table, [ID, IndexSpec("n", IndexKind.BITMAP)]))
    assert segment_counts(indexed) == {"id_btree": 1, "n_bitmap": 1}

    changed = upkept(indexed, ID, NUMBER)

    assert segment_counts(changed) == {"id_btree": 1, "n_btree": 1}
    assert answers(changed) == answers(table)


def test_a_second_index_of_the_same_column_is_removed(table):
    indexed = applied(stage_indexes(table, [ID]))
    second = indexed.handle.create_index_uncommitted(
        "id", "BTREE", name="another", fragment_ids=[0]
    )
    doubled = applied(stage_segments(indexed, [second]))
    assert segment_counts(doubled) == {"id_btree": 1, "another": 1}

    assert len(segment_counts(upkept(doubled, ID))) == 1


def test_the_last_segment_of_an_index_goes_when_nothing_is_left_of_it(table):
    emptied = applied(stage_delete(applied(stage_indexes(table, [ID])), filter_text="true"))
    assert segment_counts(emptied) == {"id_btree": 1}

    assert segment_counts(upkept(emptied, ID)) == {}


def test_many_segments_are_joined_and_find_what_they_found(store):
    specs = [ID, NUMBER]
    table = in_fragments(store, "abc")
    for key in "defghijkl":
        table = applied(stage_append(table, rows(key, n=1)))
        table = upkept(table, *specs)

    assert max(segment_counts(table).values()) <= INDEX_SEGMENTS_MAX
    assert covered_fragments(table, specs[0]) == fragment_ids(table)
    everyone = list("abcdefghijkl")
    found = table.read(["id"], filter_text="id >= 'a'", indexed_only=True)
    assert sorted(found["id"].to_pylist()) == everyone
    assert [ids(table, f"id = '{key}'") for key in everyone] == [[key] for key in everyone]
    assert ids(table, "n = 0") == ["a", "b", "c"]


def test_segments_that_a_ref_inherited_are_joined_there_and_stay_elsewhere(store):
    main = extended(in_fragments(store, "abc"), *"defghijkl")
    assert segment_counts(main)["id_btree"] == 9
    fork = store.refs.create(main.address.location, "draft", source=None, version=main.version)

    fork = upkept(fork, ID, NUMBER)

    assert segment_counts(fork) == {"id_btree": 1, "n_btree": 1}
    assert ids(latest(store, ref="draft"), "id >= 'a'") == list("abcdefghijkl")
    assert segment_counts(latest(store))["id_btree"] == 9
    assert ids(latest(store), "id = 'l'") == ["l"]


def test_a_new_segment_that_was_joined_leaves_no_files(local):
    table = extended(in_fragments(local, "abc"), *"defghijk")
    folder = Path(local.root.uri, table.address.location, "_indices")
    before = {path.name for path in folder.iterdir()}

    table = upkept(applied(stage_append(table, rows("l"))), ID)

    [index] = read_indexes(table)
    assert {path.name for path in folder.iterdir()} - before == {
        each.uuid for each in index.segments
    }


@given(st.lists(st.integers(0, 2_000), min_size=1, max_size=200))
def test_however_segments_arrive_they_stay_few_and_are_joined_seldom(arrivals):
    segments: list[int] = []
    written = 0
    for row_count in arrivals:
        segments = sorted([*segments, row_count])
        count = count_joined(segments)
        joined = sum(segments[:count])
        written += joined
        segments = sorted([*segments[count:], joined]) if count else segments
        assert len(segments) <= INDEX_SEGMENTS_MAX
        assert sum(segments) <= sum(arrivals)
    assert written <= sum(arrivals) * (2 + math.log2(len(arrivals)))


def test_segments_that_would_become_too_large_stay_apart(monkeypatch):
    monkeypatch.setattr(segments, "INDEX_SEGMENT_ROWS_MAX", 10)

    assert count_joined([1] * 8 + [10]) == 8
    assert count_joined([9] * 20) == 0
    # A limit of all that is joined makes a segment smaller, and never larger.
    assert count_joined([9] * 20, rows_max=1_000) == 0
    assert count_joined([1] * 20) == 10
    assert count_joined([1] * 20, rows_max=4) == 4
