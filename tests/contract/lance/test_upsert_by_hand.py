"""An upsert assembled from fragments: rows keep their identity, and one commit may mix kinds."""

import dataclasses

import lance
from lance import LanceDataset, LanceOperation
from lance.fragment import RowIdSequence

from tests.contract.lance.builders import (
    append,
    commit,
    create,
    create_index,
    fragments_of,
    keys_of,
    mixed,
    staged,
    upsert,
    without,
)

VERSIONS = ["_row_created_at_version", "_row_last_updated_at_version"]


def row_ids(dataset: LanceDataset) -> dict[str, int]:
    found = dataset.to_table(columns=["key", "_rowid"]).to_pylist()
    return {each["key"]: each["_rowid"] for each in found}


def values(dataset: LanceDataset) -> dict[str, int]:
    found = dataset.to_table(columns=["key", "value"]).to_pylist()
    return {each["key"]: each["value"] for each in found}


def versions(dataset: LanceDataset) -> dict[str, tuple[int, int]]:
    found = dataset.to_table(columns=["key", *VERSIONS]).to_pylist()
    return {each["key"]: (each[VERSIONS[0]], each[VERSIONS[1]]) for each in found}


def test_an_updated_row_keeps_its_row_id(anywhere):
    base = create(anywhere, "a", "b", "c")

    commit(base, upsert(base, "c", "a", value=7))

    landed = lance.dataset(anywhere)
    assert values(landed) == {"a": 7, "b": 0, "c": 7}
    assert row_ids(landed) == row_ids(base)


def test_an_updated_row_moves_to_a_new_address(uri):
    base = create(uri, "a", "b")
    landed = commit(base, upsert(base, "a", value=7))

    where = "key = 'a'"
    before = base.to_table(columns=["_rowaddr"], filter=where)["_rowaddr"][0].as_py()
    after = landed.to_table(columns=["_rowaddr"], filter=where)["_rowaddr"][0].as_py()

    assert (before >> 32, after >> 32) == (0, 1)


def test_an_inserted_row_gets_a_row_id_nobody_had(uri):
    base = create(uri, "a", "b")

    landed = commit(base, upsert(base, "a", value=7, inserting=["n"]))

    assert row_ids(landed) == {**row_ids(base), "n": 2}


def test_given_row_ids_bind_to_the_leading_rows_of_a_fragment(uri):
    base = create(uri, "a", "b")
    [fragment] = staged(base, "n", "a")
    kept = RowIdSequence([row_ids(base)["a"]]).to_inline_metadata()
    updated, removed = without(base, ["a"])
    operation = LanceOperation.Update(
        removed_fragment_ids=removed,
        updated_fragments=updated,
        new_fragments=[dataclasses.replace(fragment, row_id_meta=kept)],
        fields_modified=[],
        fields_for_preserving_frag_bitmap=[0, 1],
        update_mode="rewrite_rows",
    )

    landed = commit(base, operation)

    # Written in the wrong order, the insert takes the updated row's identity.
    assert row_ids(landed)["n"] == row_ids(base)["a"]


def test_one_commit_may_mix_updates_inserts_and_deletes(anywhere):
    base = create(anywhere, "a", "b", "c")

    landed = commit(base, mixed(base, update=("a",), insert=("n",), delete=("b",), value=7))

    assert landed.version == 2
    assert values(lance.dataset(anywhere)) == {"a": 7, "c": 0, "n": 7}


def test_one_commit_may_only_delete(uri):
    base = create(uri, "a", "b")

    assert keys_of(commit(base, mixed(base, delete=("a",), value=0))) == ["b"]


def test_one_commit_may_only_insert(uri):
    base = create(uri, "a")

    assert keys_of(commit(base, mixed(base, insert=("n",), value=0))) == ["a", "n"]


def test_a_fragment_emptied_by_an_upsert_is_gone(uri):
    base = create(uri, "a", "b")

    landed = commit(base, upsert(base, "a", "b", value=7))

    assert [each.fragment_id for each in landed.get_fragments()] == [1]


def test_a_row_can_be_updated_again_and_again(uri):
    base = head = create(uri, "a", "b")
    for value in range(1, 5):
        head = commit(head, upsert(head, "a", value=value))

    assert values(head) == {"a": 4, "b": 0}
    assert row_ids(head) == row_ids(base)


def test_updates_from_several_fragments_fit_in_one_commit(uri):
    base = create(uri, "a", "b")
    base = commit(base, append(base, "c", "d"))

    landed = commit(base, upsert(base, "d", "a", value=7))

    assert values(landed) == {"a": 7, "b": 0, "c": 0, "d": 7}
    assert row_ids(landed) == row_ids(base)


def test_the_result_passes_lances_own_validation(uri):
    base = create(uri, "a", "b", "c")

    commit(base, mixed(base, update=("a",), insert=("n",), delete=("b",), value=7)).validate()


def test_an_update_sets_last_updated_and_keeps_created(uri):
    base = create(uri, "a", "b")
    base = commit(base, append(base, "c"))

    landed = commit(base, upsert(base, "a", value=7, inserting=["n"]))

    assert versions(landed) == {"a": (1, 3), "b": (1, 1), "c": (2, 2), "n": (3, 3)}


def test_rows_changed_since_a_version_can_be_filtered(uri):
    base = create(uri, "a", "b", "c")
    landed = commit(base, upsert(base, "b", value=7))

    changed = landed.to_table(columns=["key"], filter="_row_last_updated_at_version > 1")

    assert changed["key"].to_pylist() == ["b"]


def test_row_versions_on_a_branch_count_on_from_the_fork(uri):
    main = create(uri, "a", "b")
    main = commit(main, append(main, "c"))
    branch = main.create_branch("draft", 2)

    landed = commit(branch, upsert(branch, "a", value=7))

    assert versions(landed) == {"a": (1, 3), "b": (1, 1), "c": (2, 2)}


def test_without_stable_row_ids_an_update_loses_its_identity(uri):
    lance.write_dataset(create(f"{uri}-source", "a", "b").to_table(), uri)
    base = lance.dataset(uri)
    base.update({"value": "7"}, where="key = 'a'")

    assert row_ids(base)["a"] != 0
    assert versions(base) == {"a": (1, 1), "b": (1, 1)}


def test_an_index_still_answers_rightly_after_an_upsert(uri):
    base = create(uri, "a", "b", "c")
    base = commit(base, create_index(base))

    landed = commit(base, mixed(base, update=("a",), insert=("n",), delete=("b",), value=7))

    found = {key: landed.to_table(filter=f"key = '{key}'")["value"].to_pylist() for key in "abcn"}
    assert found == {"a": [7], "b": [], "c": [0], "n": [7]}


def test_upserted_rows_are_not_covered_by_an_index_until_it_is_extended(uri):
    base = create(uri, "a", "b", "c")
    base = commit(base, create_index(base))

    landed = commit(base, upsert(base, "a", value=7, inserting=["n"]))

    assert landed.stats.index_stats("key_index")["num_unindexed_rows"] == 2


def test_an_upsert_on_a_branch_leaves_mains_fragments_alone(anywhere):
    main = create(anywhere, "a", "b")
    before = [(each.id, each.files[0].path) for each in fragments_of(main)]
    branch = main.create_branch("draft", 1)

    landed = commit(branch, mixed(branch, update=("a",), insert=("n",), delete=("b",), value=7))

    assert values(landed) == {"a": 7, "n": 7}
    fresh = lance.dataset(anywhere)
    assert [(each.id, each.files[0].path) for each in fragments_of(fresh)] == before
    assert values(fresh) == {"a": 0, "b": 0}
