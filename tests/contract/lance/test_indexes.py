"""Indexes staged apart from the commit that adopts them."""

import lance
import pytest
from lance import LanceDataset, LanceOperation

from tests.contract.lance.builders import (
    append,
    commit,
    create,
    create_index,
    index,
    keys_of,
    mixed,
)


def names(dataset: LanceDataset) -> list[str]:
    return sorted(each.name for each in dataset.describe_indices())


def coverage(dataset: LanceDataset, name: str = "key_index") -> tuple[int, int]:
    statistics = dataset.stats.index_stats(name)
    return statistics["num_indexed_rows"], statistics["num_unindexed_rows"]


def plan(dataset: LanceDataset, where: str) -> str:
    return dataset.scanner(filter=where).explain_plan()


def test_a_staged_index_moves_no_version(anywhere):
    base = create(anywhere, "a", "b")

    index(base)

    assert lance.dataset(anywhere).version == 1
    assert names(lance.dataset(anywhere)) == []


def test_a_staged_index_must_name_its_fragments(uri):
    with pytest.raises(ValueError, match="requires fragment_ids"):
        create(uri, "a").create_index_uncommitted("key", "BTREE", name="key_index")


def test_one_commit_may_adopt_several_indexes(anywhere):
    base = create(anywhere, "a", "b")
    operation = LanceOperation.CreateIndex([index(base), index(base, "value")], [])

    commit(base, operation)

    landed = lance.dataset(anywhere)
    assert (landed.version, names(landed)) == (2, ["key_index", "value_index"])


def test_an_adopted_index_answers_lookups(anywhere):
    base = create(anywhere, "a", "b")

    commit(base, create_index(base))

    landed = lance.dataset(anywhere)
    assert "ScalarIndexQuery: query=[key = b]@key_index(BTree)" in plan(landed, "key = 'b'")
    assert landed.to_table(filter="key = 'b'")["key"].to_pylist() == ["b"]


def test_rows_appended_later_are_found_though_not_indexed(uri):
    base = create(uri, "a", "b")
    base = commit(base, create_index(base))

    landed = commit(base, append(base, "c"))

    assert coverage(landed) == (2, 1)
    assert landed.to_table(filter="key = 'c'")["key"].to_pylist() == ["c"]


def test_a_segment_for_new_fragments_completes_the_coverage(uri):
    base = create(uri, "a", "b")
    base = commit(base, create_index(base))
    base = commit(base, append(base, "c"))
    segment = index(base, fragment_ids=[1], replace=True)

    landed = commit(base, LanceOperation.CreateIndex([segment], []))

    assert coverage(landed) == (3, 0)
    [described] = landed.describe_indices()
    assert [set(each.fragment_ids) for each in described.segments] == [{0}, {1}]


def test_a_segment_without_replace_is_refused_by_name(uri):
    base = create(uri, "a")
    base = commit(base, create_index(base))

    with pytest.raises(RuntimeError, match="Index name 'key_index' already exists"):
        index(base)


def test_a_segment_on_a_branch_completes_an_inherited_index(anywhere):
    main = create(anywhere, "a", "b")
    main = commit(main, create_index(main))
    branch = main.create_branch("draft", 2)
    branch = commit(branch, append(branch, "c"))
    segment = index(branch, fragment_ids=[1], replace=True)

    commit(branch, LanceOperation.CreateIndex([segment], []))

    landed = lance.dataset(anywhere).checkout_version(("draft", None))
    assert coverage(landed) == (3, 0)
    assert [landed.count_rows(f"key = '{key}'") for key in "abc"] == [1, 1, 1]
    assert coverage(lance.dataset(anywhere)) == (2, 0)


def test_an_index_is_dropped_by_a_staged_operation(uri):
    base = create(uri, "a")
    doomed = index(base, "value")
    base = commit(base, LanceOperation.CreateIndex([index(base), doomed], []))

    assert names(commit(base, LanceOperation.CreateIndex([], [doomed]))) == ["key_index"]


def test_an_index_staged_before_other_rows_changed_still_answers_rightly(uri):
    base = create(uri, "a", "b", "c")
    operation = create_index(base)
    commit(base, mixed(base, update=("a",), insert=("n",), delete=("b",), value=7))

    landed = commit(base, operation)

    found = {key: landed.to_table(filter=f"key = '{key}'")["value"].to_pylist() for key in "abcn"}
    assert found == {"a": [7], "b": [], "c": [0], "n": [7]}


def test_an_empty_table_can_be_indexed(uri):
    base = create(uri)

    landed = commit(base, create_index(base))

    assert (names(landed), coverage(landed)) == (["key_index"], (0, 0))


def test_rows_appended_to_an_indexed_empty_table_are_found(uri):
    base = create(uri)
    base = commit(base, create_index(base))

    landed = commit(base, append(base, "a"))

    assert keys_of(landed) == ["a"]
    assert landed.count_rows("key = 'a'") == 1


def test_the_statistics_of_a_missing_index_are_a_keyerror(uri):
    with pytest.raises(KeyError, match='Index "key_index" not found'):
        coverage(create(uri, "a"))


def test_a_fast_search_answers_from_the_index_and_reads_nothing_else(uri):
    base = create(uri, "a", "b", "c")
    base = commit(base, create_index(base))
    base = commit(base, mixed(base, update=("a",), insert=("n",), delete=("b",), value=7))

    found = base.scanner(filter="key IN ('a', 'b', 'c', 'n')", fast_search=True).to_table()
    assert found["key"].to_pylist() == ["c"]
    base.io_stats_incremental()
    assert base.scanner(filter="key = 'nobody'", fast_search=True).to_table().num_rows == 0
    assert base.io_stats_incremental().read_iops == 0


def test_a_filtered_scan_opens_no_fragment_but_those_it_is_given(uri):
    base = create(uri, "a", "b")
    base = commit(base, create_index(base))
    for key in "cd":
        base = commit(base, append(base, key))
    every = base.get_fragments()
    chosen = [every[0], every[2]]

    found = base.scanner(filter="key IN ('a', 'c', 'd')", fragments=chosen).to_table()
    assert found["key"].to_pylist() == ["a", "d"]
