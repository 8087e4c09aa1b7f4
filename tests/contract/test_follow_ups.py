"""What follows a commit and fails: the commit is the result, and the result reports the failure."""

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

import omnigraph
from omnigraph.errors import (
    ConflictError,
    ErrorCode,
    NotAllowedError,
    OmnigraphError,
    OutcomeUnknownError,
    RecoveryNeededError,
    StorageError,
)
from omnigraph.failpoints import Failpoint, arm
from omnigraph.graph import Graph
from tests.support.writers import furnished, insert

ROWS: Final = {"Person": [{"name": "eva"}]}
FAILURES: Final = (
    ConflictError("node:Person stayed busy", hint="try again", code=ErrorCode.TABLE_BUSY),
    StorageError("the disk is gone", hint="try again"),
    RecoveryNeededError("a head moved", hint="see 'omnigraph repair'"),
    OutcomeUnknownError("the answer was lost", hint="look for the commit"),
)


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    return furnished(str(tmp_path / "graph.omni"))


@pytest.fixture
def draft(graph: Graph) -> Graph:
    draft = graph.branches.create("draft")
    insert(graph, "eva", branch="draft")
    return draft


def raising(error: BaseException) -> Callable[[], None]:
    def fail() -> None:
        raise error

    return fail


def load_and_fail_to_index(graph: Graph, error: BaseException, **more: Any) -> omnigraph.LoadResult:
    # The load is the first write that is planned, and the index the second.
    with arm(Failpoint.WRITE_AFTER_PLAN, raising(error), after_hits=1):
        return graph.load(ROWS, **more)


@pytest.mark.parametrize("error", FAILURES, ids=lambda each: each.code)
def test_a_load_whose_indexes_cannot_be_built_has_landed_and_says_so(
    graph: Graph, error: OmnigraphError
) -> None:
    result = load_and_fail_to_index(graph, error)
    assert result.commit_id == graph.snapshot().head.commit_id
    assert graph.entity("Person", "eva") is not None
    [warning] = result.warnings
    assert (warning.step, warning.code) == ("index", error.code)
    assert warning.message == f"the indexes of branch main are not up to date: {error.message}"
    assert "'omnigraph index'" in warning.hint
    assert ("try again" in warning.hint, error.hint in warning.hint) == (False, not error.retryable)


def test_a_warning_about_indexes_names_the_branch_they_are_of(graph: Graph) -> None:
    result = load_and_fail_to_index(graph, FAILURES[0], branch="review", start="main")
    assert graph.branches.list() == ("main", "review")
    [warning] = result.warnings
    assert "the indexes of branch review" in warning.message
    assert "'omnigraph index --branch review'" in warning.hint


def test_a_load_with_a_warning_can_be_pickled(graph: Graph) -> None:
    result = load_and_fail_to_index(graph, FAILURES[0])
    assert pickle.loads(pickle.dumps(result)) == result


def test_an_interrupt_while_indexes_are_built_says_that_the_load_has_landed(graph: Graph) -> None:
    with pytest.raises(KeyboardInterrupt) as interrupted:
        load_and_fail_to_index(graph, KeyboardInterrupt())
    head = graph.snapshot().head
    assert head.operation == "load"
    [note] = interrupted.value.__notes__
    assert f"the load landed as commit {head.commit_id}" in note


def test_what_goes_well_has_no_warnings(graph: Graph, draft: Graph) -> None:
    assert graph.load(ROWS, mode="merge").warnings == ()
    assert draft.load({"City": [{"name": "oslo"}]}).warnings == ()
    outcome = graph.merge("draft", delete_branch=True)
    assert (outcome.deleted_source, outcome.warnings) == (True, ())


def merge_and_meanwhile(
    graph: Graph,
    action: Callable[[], object],
    point: Failpoint = Failpoint.WRITE_AFTER_SETTLE,
) -> omnigraph.MergeOutcome:
    """Merge the draft and delete it; something happens meanwhile, once the merge has landed."""
    seen: list[bool] = []

    def act() -> None:
        seen.append(True)
        if len(seen) == 1:
            action()

    with arm(point, act):
        return graph.merge("draft", delete_branch=True)


@pytest.mark.usefixtures("draft")
def test_a_merge_whose_source_got_a_branch_meanwhile_has_landed_and_says_so(graph: Graph) -> None:
    rival = omnigraph.open(graph.uri)
    outcome = merge_and_meanwhile(graph, lambda: rival.branches.create("child", branch="draft"))
    assert outcome.commit_id == graph.snapshot().head.commit_id
    assert graph.branches.list() == ("main", "child", "draft")
    assert not outcome.deleted_source
    [warning] = outcome.warnings
    assert (warning.step, warning.code) == ("delete_branch", ErrorCode.BRANCH_IN_USE)
    assert warning.message.startswith("branch draft was not deleted: ")
    assert "delete child first; then" in warning.hint
    assert "'omnigraph branch delete draft --confirm'" in warning.hint


@pytest.mark.usefixtures("draft")
@pytest.mark.parametrize("dry_run", [True, False])
def test_a_merge_whose_source_could_not_be_deleted_is_refused_also_as_a_dry_run(
    graph: Graph, *, dry_run: bool
) -> None:
    graph.branches.create("child", branch="draft")
    with pytest.raises(NotAllowedError, match="child builds on it") as refused:
        graph.merge("draft", delete_branch=True, dry_run=dry_run)
    [note] = refused.value.__notes__
    assert "nothing was merged" in note


@pytest.mark.usefixtures("draft")
def test_a_merge_whose_source_moved_on_meanwhile_says_so(graph: Graph) -> None:
    rival = omnigraph.open(graph.uri)
    outcome = merge_and_meanwhile(graph, lambda: insert(rival, "fay", branch="draft"))
    assert not outcome.deleted_source
    [warning] = outcome.warnings
    assert warning.code is ErrorCode.STALE_HEAD
    assert warning.hint == "merge it again: it has commits that main lacks"


@pytest.mark.usefixtures("draft")
def test_a_merge_whose_source_was_deleted_meanwhile_says_so(graph: Graph) -> None:
    rival = omnigraph.open(graph.uri)
    outcome = merge_and_meanwhile(graph, lambda: rival.branches.delete("draft"))
    assert not outcome.deleted_source
    [warning] = outcome.warnings
    assert warning.code is ErrorCode.BRANCH_NOT_FOUND
    assert "others" in warning.hint


def test_a_branch_that_was_made_again_is_not_deleted_with_a_merge_of_the_one_before(
    graph: Graph,
) -> None:
    # Both start at one commit, and have none of their own: only their refs tell them apart.
    graph.branches.create("draft")
    rival = omnigraph.open(graph.uri)
    made: list[str | None] = []

    def make_again() -> None:
        rival.branches.delete("draft")
        made.append(rival.branches.create("draft").snapshot().ref)

    outcome = merge_and_meanwhile(graph, make_again, Failpoint.WRITE_AFTER_HEAL)
    assert [graph.snapshot(branch="draft").ref] == made
    assert not outcome.deleted_source
    assert [each.code for each in outcome.warnings] == [ErrorCode.BRANCH_NOT_FOUND]


@pytest.mark.usefixtures("draft")
def test_a_merge_whose_source_cannot_be_deleted_has_landed_and_says_so(graph: Graph) -> None:
    with arm(Failpoint.BRANCH_AFTER_MARK, raising(StorageError("the disk is gone"))):
        outcome = graph.merge("draft", delete_branch=True)
    assert outcome.commit_id == graph.snapshot().head.commit_id
    [warning] = outcome.warnings
    assert warning.message == "branch draft was not deleted: the disk is gone"


@pytest.mark.usefixtures("draft")
def test_an_interrupt_while_the_source_is_deleted_says_that_the_merge_has_landed(
    graph: Graph,
) -> None:
    with (
        arm(Failpoint.BRANCH_AFTER_MARK, raising(KeyboardInterrupt())),
        pytest.raises(KeyboardInterrupt) as interrupted,
    ):
        graph.merge("draft", delete_branch=True)
    [note] = interrupted.value.__notes__
    head = graph.snapshot().head
    assert head.operation == "merge"
    assert f"the merge landed as commit {head.commit_id}" in note
