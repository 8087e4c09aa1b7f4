"""Deleting rows by their place in a fragment."""

import lance
import pytest
from lance import LanceDataset, LanceOperation
from lance.fragment import LanceFragment

from tests.contract.lance.builders import append, commit, create, delete, keys_of


def first_fragment(dataset: LanceDataset) -> LanceFragment:
    return dataset.get_fragments()[0]


def test_deleting_some_rows_gives_the_fragment_a_deletion_file(uri):
    left = first_fragment(create(uri, "a", "b")).delete_rows([0])

    assert left is not None
    assert left.deletion_file is not None
    assert left.num_rows == 1


def test_deleting_every_row_of_a_fragment_gives_none(uri):
    assert first_fragment(create(uri, "a", "b")).delete_rows([0, 1]) is None


def test_a_staged_delete_changes_nothing_until_it_is_committed(anywhere):
    first_fragment(create(anywhere, "a", "b")).delete_rows([0])

    assert keys_of(lance.dataset(anywhere)) == ["a", "b"]


def test_a_delete_commits(anywhere):
    base = create(anywhere, "a", "b", "c")

    commit(base, delete(base, "b"))

    assert keys_of(lance.dataset(anywhere)) == ["a", "c"]


def test_a_delete_that_empties_a_fragment_names_its_id(uri):
    base = create(uri, "a")
    base = commit(base, append(base, "b"))

    operation = delete(base, "a")

    assert list(operation.deleted_fragment_ids) == [0]
    assert keys_of(commit(base, operation)) == ["b"]


def test_deleting_every_row_leaves_an_empty_table(uri):
    base = create(uri, "a", "b")

    landed = commit(base, delete(base, "a", "b"))

    assert (landed.count_rows(), landed.get_fragments()) == (0, [])


def test_deleting_a_row_twice_is_harmless(uri):
    base = create(uri, "a", "b", "c")
    landed = commit(base, delete(base, "a"))

    left = first_fragment(landed).delete_rows([0, 1])

    assert left is not None
    assert left.num_rows == 1


def test_offsets_count_deleted_rows_too(uri):
    base = create(uri, "a", "b", "c")
    landed = commit(base, delete(base, "a"))

    left = first_fragment(landed).delete_rows([1])

    assert left is not None
    assert keys_of(commit(landed, LanceOperation.Delete([left], [], "by hand"))) == ["c"]


def test_an_offset_beyond_the_fragment_is_a_valueerror(uri):
    with pytest.raises(ValueError, match="offset 5 is out of range"):
        first_fragment(create(uri, "a")).delete_rows([5])


def test_the_other_rows_keep_their_row_ids(uri):
    base = create(uri, "a", "b", "c")

    landed = commit(base, delete(base, "b"))

    assert landed.to_table(columns=["_rowid"])["_rowid"].to_pylist() == [0, 2]


def test_a_deleted_rows_id_is_not_used_again(uri):
    base = create(uri, "a", "b")
    landed = commit(base, delete(base, "b"))
    landed = commit(landed, append(landed, "b"))

    assert landed.to_table(columns=["_rowid"])["_rowid"].to_pylist() == [0, 2]
