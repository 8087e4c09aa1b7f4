"""The numbers of fragments: which were ever used, and what reusing one would do."""

import dataclasses

import lance
import pytest
from lance import LanceDataset, LanceOperation
from lance.optimize import Compaction

from omnigraph.storage.lance_messages import parse_message
from tests.contract.lance.builders import (
    SCHEMA,
    append,
    commit,
    create,
    delete,
    index,
)

MAX_FRAGMENT_ID = 11
KEYS = "abcd"


def highest(dataset: LanceDataset) -> int | bytes | None:
    """What the manifest of a handle says of the highest number."""
    _, arguments = dataset.__reduce__()
    return dict(parse_message(arguments[3])).get(MAX_FRAGMENT_ID)


@pytest.fixture
def shrunk(anywhere: str) -> LanceDataset:
    """Fragments 0 to 3, of which the last is indexed and then deleted."""
    base = create(anywhere)
    for key in KEYS:
        base = commit(base, append(base, key))
    base = commit(base, LanceOperation.CreateIndex([index(base, fragment_ids=[3])], []))
    return commit(base, delete(base, "d"))


def rewrite(dataset: LanceDataset, number: int) -> LanceDataset:
    """Compact all fragments into one of this number."""
    [task] = Compaction.plan(dataset, options={"target_rows_per_fragment": 100}).tasks
    result = task.execute(dataset)
    [new] = result.new_fragments
    group = LanceOperation.RewriteGroup(
        old_fragments=result.original_fragments,  # type: ignore[attr-defined]
        new_fragments=[dataclasses.replace(new, id=number)],
    )
    return commit(dataset, LanceOperation.Rewrite([group], []))


def found(dataset: LanceDataset) -> list[int]:
    return [dataset.count_rows(f"key = '{key}'") for key in KEYS]


def test_a_pickled_handle_has_the_highest_number_that_a_fragment_ever_had(shrunk):
    assert set(shrunk.fragment_ids()) == {0, 1, 2}
    assert highest(shrunk) == 3


def test_the_highest_number_is_inherited_by_branches_detached_versions_and_overwrites(shrunk):
    branch = shrunk.create_branch("draft", shrunk.version)
    detached = LanceDataset.commit(
        shrunk, LanceOperation.Append([]), read_version=shrunk.version, detached=True
    )
    overwritten = commit(shrunk, LanceOperation.Overwrite(SCHEMA, []))

    assert [highest(each) for each in (branch, detached, overwritten)] == [3, 3, 3]
    assert set(commit(overwritten, append(overwritten, "e")).fragment_ids()) == {4}


def test_a_table_that_never_had_a_fragment_has_no_highest_number(uri):
    assert highest(create(uri)) is None
    assert highest(create(f"{uri}2", "a")) == 0


def test_a_rewritten_fragment_with_a_number_that_an_index_still_names_is_not_found(shrunk):
    rewritten = rewrite(shrunk, 3)

    # Known wrong answers: the index is thought to know all rows of fragment 3, and to be right.
    assert rewritten.count_rows() == 3
    assert found(rewritten) == [0, 0, 0, 1]


def test_a_rewritten_fragment_with_a_number_above_the_highest_is_found(shrunk):
    rewritten = rewrite(shrunk, 8)

    assert found(rewritten) == [1, 1, 1, 0]
    assert highest(lance.dataset(shrunk.uri)) == 8
    assert set(commit(rewritten, append(rewritten, "e")).fragment_ids()) == {8, 9}
