"""Why restoring a table shuts out every writer that was only asleep."""

from typing import Final

import lance
import pytest
from lance import LanceDataset, LanceOperation
from lance.commit import CommitConflictError

from tests.contract.lance import builders
from tests.contract.lance.builders import append, commit, create, keep_columns, keys_of, restore

OPERATIONS: Final = {**builders.OPERATIONS, "project": keep_columns}

FENCED: Final = {
    "append": False,
    "delete": False,
    "update": False,
    "merge": False,
    "project": False,
    "index": False,
    "overwrite": True,
}


@pytest.fixture(params=["main", "branch"])
def base(request: pytest.FixtureRequest, uri: str) -> LanceDataset:
    """A table at version 2, seen from main and then from a branch."""
    first = create(uri, "a")
    second = commit(first, append(first, "b"))
    return second if request.param == "main" else second.create_branch("draft", 2)


def test_restoring_an_unmoved_head_makes_the_next_version_with_the_same_rows(base):
    fence = commit(base, restore(base))

    assert fence.version == base.version + 1
    assert keys_of(fence) == keys_of(base)


def test_a_restore_keeps_its_properties(base):
    fence = commit(base, restore(base), properties={"omnigraph.writer": "recovery"})

    read = fence.read_transaction(fence.version)

    assert read is not None
    assert read.transaction_properties == {"omnigraph.writer": "recovery"}


@pytest.mark.parametrize(("kind", "retryable"), FENCED.items())
def test_whatever_was_staged_before_a_restore_is_refused(base, kind, retryable):
    operation = OPERATIONS[kind](base)
    commit(base, restore(base))

    with pytest.raises(CommitConflictError) as conflict:
        commit(base, operation)
    assert conflict.value.retryable is retryable


@pytest.mark.parametrize("kind", FENCED)
def test_whatever_is_staged_after_a_restore_commits(base, kind):
    fence = commit(base, restore(base))

    assert commit(fence, OPERATIONS[kind](fence)).version == fence.version + 1


def test_a_change_of_config_gets_through_the_fence(base):
    operation = OPERATIONS["config"](base)
    fence = commit(base, restore(base))

    assert commit(base, operation).version == fence.version + 1


@pytest.mark.parametrize("moved_by", OPERATIONS)
def test_a_restore_is_never_refused(base, moved_by):
    commit(base, OPERATIONS[moved_by](base))

    restored = commit(base, restore(base))

    assert restored.version == base.version + 2
    assert restored.to_table() == base.to_table()


def test_a_restore_undoes_an_applied_commit_without_forgetting_it(base):
    applied = commit(base, append(base, "doomed"))
    restored = commit(applied, LanceOperation.Restore(base.version))

    assert keys_of(restored) == ["a", "b"]
    assert keys_of(restored.checkout_version(applied.version)) == ["a", "b", "doomed"]


def test_a_restore_by_checkout_is_the_same_fence(uri):
    base = create(uri, "a")
    operation = append(base, "late")
    lance.dataset(uri, version=1).restore()

    with pytest.raises(CommitConflictError) as conflict:
        commit(base, operation)
    assert conflict.value.retryable is False


def test_row_ids_are_not_used_again_after_a_restore(base):
    applied = commit(base, append(base, "doomed"))
    restored = commit(applied, LanceOperation.Restore(base.version))
    landed = commit(restored, append(restored, "new"))

    doomed = applied.to_table(columns=["_rowid"])["_rowid"].to_pylist()
    kept = landed.to_table(columns=["_rowid"])["_rowid"].to_pylist()

    assert kept[-1] > max(doomed)


def test_fragment_ids_are_not_used_again_after_a_restore(base):
    applied = commit(base, append(base, "doomed"))
    restored = commit(applied, LanceOperation.Restore(base.version))
    landed = commit(restored, append(restored, "new"))

    doomed = [each.fragment_id for each in applied.get_fragments()]
    assert landed.get_fragments()[-1].fragment_id > max(doomed)


def test_a_restore_on_a_branch_leaves_main_alone(uri):
    main = create(uri, "a")
    branch = main.create_branch("draft", 1)
    commit(branch, restore(branch))

    assert lance.dataset(uri).version == 1
    assert commit(main, append(main, "b")).version == 2
