"""Which commits Lance refuses when the head has moved, and which it quietly rebases."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Final

import lance
import pytest
from lance import LanceDataset, LanceOperation
from lance.commit import CommitConflictError
from lance.dataset import Transaction

from tests.contract.lance.builders import (
    OPERATIONS,
    SCHEMA,
    append,
    commit,
    create,
    fragments_of,
    keys_of,
    overwrite,
    staged,
    update_config,
    upsert,
)

OK: Final = "rebased"
AGAIN: Final = "conflict, retryable"
NEVER: Final = "conflict, not retryable"

RACERS: Final = 4
ROUNDS: Final = 5

# fmt: off
STALE: Final = {
    #            append delete update merge  config index  overwrite restore   moved the head
    "append":    (OK,    OK,    OK,    OK,    OK,    OK,    NEVER,    NEVER),
    "delete":    (OK,    AGAIN, AGAIN, AGAIN, OK,    OK,    NEVER,    NEVER),
    "update":    (OK,    AGAIN, AGAIN, AGAIN, OK,    OK,    NEVER,    NEVER),
    "merge":     (AGAIN, AGAIN, AGAIN, AGAIN, OK,    OK,    NEVER,    NEVER),
    "config":    (OK,    OK,    OK,    OK,    NEVER, OK,    OK,       OK),
    "index":     (OK,    OK,    OK,    OK,    OK,    AGAIN, NEVER,    NEVER),
    "overwrite": (AGAIN, AGAIN, AGAIN, AGAIN, AGAIN, AGAIN, AGAIN,    AGAIN),
    "restore":   (OK,    OK,    OK,    OK,    OK,    OK,    OK,       OK),
}
# fmt: on
CASES: Final = [
    pytest.param(stale, moved_by, outcome, id=f"{stale}-after-{moved_by}")
    for stale, outcomes in STALE.items()
    for moved_by, outcome in zip(OPERATIONS, outcomes, strict=True)
]


def race(contenders: list[LanceDataset], base: LanceDataset) -> list[str]:
    """Let every contender overwrite `base` at the same moment; the keys of those who won."""
    start = Barrier(len(contenders))

    def contend(number: int) -> str | None:
        key = f"{base.version}-{number}"
        operation = overwrite(contenders[number], key)
        start.wait()
        try:
            commit(contenders[number], operation)
        except CommitConflictError:
            return None
        return key

    with ThreadPoolExecutor(len(contenders)) as threads:
        return [won for won in threads.map(contend, range(len(contenders))) if won]


@pytest.mark.parametrize(("stale", "moved_by", "outcome"), CASES)
def test_a_stale_commit_is_rebased_or_refused_by_kind(uri, stale, moved_by, outcome):
    base = create(uri, "a", "b", "c")
    operation = OPERATIONS[stale](base)
    commit(base, OPERATIONS[moved_by](base))

    if outcome == OK:
        assert commit(base, operation, read_version=1).version == 3
    else:
        with pytest.raises(CommitConflictError) as conflict:
            commit(base, operation, read_version=1)
        assert conflict.value.retryable is (outcome == AGAIN)


def test_a_stale_overwrite_is_refused_even_with_max_retries_zero(anywhere):
    base = create(anywhere, "a")
    operation = overwrite(base, "late")
    commit(base, overwrite(base, "first"))

    with pytest.raises(CommitConflictError, match="after 0 retries") as conflict:
        commit(base, operation)

    assert conflict.value.retryable is True
    assert keys_of(lance.dataset(anywhere)) == ["first"]


def test_a_stale_overwrite_wins_over_an_append_as_soon_as_one_retry_is_allowed(uri):
    base = create(uri, "a")
    operation = overwrite(base, "late")
    commit(base, append(base, "first"))

    landed = LanceDataset.commit(base, operation, read_version=1, max_retries=1)

    assert (landed.version, keys_of(landed)) == (3, ["late"])


def test_a_stale_overwrite_is_refused_over_an_overwrite_however_many_retries(uri):
    base = create(uri, "a")
    operation = overwrite(base, "late")
    commit(base, overwrite(base, "first"))

    with pytest.raises(CommitConflictError, match="preempted by concurrent transaction Overwrite"):
        LanceDataset.commit(base, operation, read_version=1, max_retries=20)


def test_an_overwrite_given_a_uri_is_as_strict_as_one_given_a_handle(uri):
    base = create(uri, "a")
    commit(base, append(base, "b"))

    with pytest.raises(CommitConflictError):
        LanceDataset.commit(uri, overwrite(base, "late"), read_version=1, max_retries=0)


def test_an_overwrite_is_as_strict_on_a_branch(anywhere):
    branch = create(anywhere, "a").create_branch("draft", 1)
    operation = overwrite(branch, "late")
    commit(branch, append(branch, "b"))

    with pytest.raises(CommitConflictError):
        commit(branch, operation)


def test_an_overwrite_without_a_read_version_fails_when_retries_are_off(uri):
    base = create(uri, "a")

    with pytest.raises(OSError, match=r"_versions/0\.manifest was not found"):
        LanceDataset.commit(base, overwrite(base, "b"), max_retries=0)


def test_a_commit_other_than_overwrite_and_restore_must_name_its_read_version(uri):
    base = create(uri, "a")

    with pytest.raises(ValueError, match="read_version is required"):
        LanceDataset.commit(base, append(base, "b"), max_retries=0)


def test_racing_overwrites_have_exactly_one_winner(anywhere):
    head = create(anywhere, "a")
    for _ in range(ROUNDS):
        winners = race([lance.dataset(anywhere) for _ in range(RACERS)], head)
        before, head = head, lance.dataset(anywhere)
        assert keys_of(head) == winners
        assert head.version == before.version + 1


def test_racing_overwrites_on_a_branch_have_exactly_one_winner(anywhere):
    main = create(anywhere, "a")
    head = main.create_branch("draft", 1)
    for _ in range(ROUNDS):
        contenders = [
            lance.dataset(anywhere).checkout_version(("draft", None)) for _ in range(RACERS)
        ]
        winners = race(contenders, head)
        before, head = head, main.checkout_version(("draft", None))
        assert keys_of(head) == winners
        assert head.version == before.version + 1


def test_racing_appends_all_land(anywhere):
    base = create(anywhere, "a")
    start = Barrier(RACERS)

    def contend(number: int) -> None:
        operation = append(base, f"new-{number}")
        start.wait()
        LanceDataset.commit(anywhere, operation, read_version=1, max_retries=20)

    with ThreadPoolExecutor(RACERS) as threads:
        list(threads.map(contend, range(RACERS)))

    assert sorted(keys_of(lance.dataset(anywhere))) == ["a", "new-0", "new-1", "new-2", "new-3"]


def test_a_stale_append_is_rebased_over_an_orphan_commit(uri):
    base = create(uri, "a")
    operation = append(base, "ours")
    commit(base, append(base, "orphan"))

    landed = commit(base, operation)

    # The version is the only sign: it is not the pinned version plus one.
    assert landed.version == base.version + 2
    assert keys_of(landed) == ["a", "orphan", "ours"]


def test_an_append_staged_before_a_column_was_added_reads_null_there(uri):
    base = create(uri, "a")
    operation = append(base, "late")
    commit(base, OPERATIONS["merge"](base))

    landed = commit(base, operation, read_version=1)

    assert landed.to_table(columns=["extra"])["extra"].to_pylist() == [None, None]


def test_updates_of_two_fragments_are_both_kept(uri):
    first = create(uri, "a")
    base = commit(first, append(first, "b"))
    operation = upsert(base, "b", value=2)
    commit(base, upsert(base, "a", value=1))

    landed = commit(base, operation)

    assert sorted(landed.to_table()["value"].to_pylist()) == [1, 2]


def test_updates_of_one_fragment_conflict_even_when_the_rows_differ(uri):
    base = create(uri, "a", "b")
    operation = upsert(base, "b", value=2)
    commit(base, upsert(base, "a", value=1))

    with pytest.raises(CommitConflictError) as conflict:
        commit(base, operation)
    assert conflict.value.retryable is True


def test_changes_of_different_config_keys_are_both_kept(uri):
    base = create(uri, "a")
    other = LanceOperation.UpdateConfig(config_updates=LanceOperation.UpdateMap({"other": "on"}))
    commit(base, update_config(base))

    assert commit(base, other).config() == {"setting": "on", "other": "on"}


def test_a_refused_overwrite_leaves_its_files_but_no_version(uri):
    base = create(uri, "a")
    fragments = staged(base, "late")
    landed = commit(base, append(base, "b"))

    with pytest.raises(CommitConflictError):
        LanceDataset.commit(
            base,
            Transaction(1, LanceOperation.Overwrite(SCHEMA, fragments)),
            max_retries=0,
        )

    assert [each["version"] for each in landed.versions()] == [1, 2]
    # The files are still good: the same fragments may be committed on the fresh head.
    retried = LanceOperation.Overwrite(SCHEMA, [*fragments_of(landed), *fragments])
    assert keys_of(commit(landed, retried)) == ["a", "b", "late"]
