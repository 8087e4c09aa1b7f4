"""Deletions, by ids and by filter."""

import pytest

from omnigraph.errors import InvalidInputError
from omnigraph.storage.staging import stage_append, stage_delete, stage_upsert
from tests.support.tables import (
    applied,
    by_id,
    create,
    ids,
    in_fragments,
    numbers,
    row_ids,
    rows,
)


def test_rows_are_deleted_by_id(table):
    staged = stage_delete(table, ids=["c", "a"])

    assert staged.row_count == 1
    assert ids(applied(staged)) == ["b"]


def test_rows_are_deleted_by_filter(table):
    table = applied(stage_append(table, rows("xy", n=5)))
    staged = stage_delete(table, filter_text="n = 5")

    assert staged.row_count == 3
    assert ids(applied(staged)) == ["a", "b", "c"]


def test_an_emptied_fragment_goes_and_the_others_stay(store):
    table = in_fragments(store, "ab", "cd", "ef")
    staged = stage_delete(table, ids=["c", "d", "e"])
    deleted = applied(staged)

    assert ids(deleted) == ["a", "b", "f"]
    assert len(deleted.fragments()) == 2
    assert staged.row_count == deleted.count_rows() == 3
    assert row_ids(deleted) == {each: row_ids(table)[each] for each in "abf"}


def test_every_row_can_be_deleted(table):
    deleted = applied(stage_delete(table, filter_text="true"))

    assert (deleted.count_rows(), deleted.fragments()) == (0, ())
    assert ids(applied(stage_append(deleted, rows("z")))) == ["z"]


@pytest.mark.parametrize("what", [{"ids": []}, {"ids": ["nobody"]}, {"filter_text": "n = 99"}])
def test_a_deletion_that_matches_nothing_changes_nothing(table, what):
    staged = stage_delete(table, **what)
    deleted = applied(staged)

    assert staged.row_count == 3
    assert numbers(deleted) == numbers(table)
    assert deleted.fragments() == table.fragments()


def test_an_id_named_twice_is_deleted_once(table):
    staged = stage_delete(table, ids=["a", "a"])

    assert (staged.row_count, ids(applied(staged))) == (2, ["b", "c"])


def test_rows_are_deleted_from_a_fragment_again_and_again(table):
    for each in "ab":
        table = applied(stage_delete(table, ids=[each]))

    assert ids(table) == ["c"]
    assert ids(applied(stage_delete(table, ids=["a", "b", "c"]))) == []


def test_a_replaced_row_is_deleted_where_it_lies_now(table):
    table = applied(stage_upsert(table, rows("b", n=1)))
    table = applied(stage_delete(table, filter_text="n = 1"))

    assert ids(table) == ["a", "c"]


def test_a_deletion_leaves_the_age_of_other_rows_alone(table):
    deleted = applied(stage_delete(table, ids=["a"]))

    assert by_id(deleted, "_row_last_updated_at_version") == {"b": 1, "c": 1}


@pytest.mark.parametrize("what", [{}, {"ids": ["a"], "filter_text": "true"}])
def test_a_deletion_says_what_in_one_way(local, what):
    table = create(local, "a")
    with pytest.raises(InvalidInputError, match="ids or a filter"):
        stage_delete(table, **what)
