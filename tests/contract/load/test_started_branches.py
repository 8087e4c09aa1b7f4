"""Loads that make their branch: one that fails takes back what it made, and nothing of others."""

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import pytest

import omnigraph
from omnigraph.errors import IntegrityError, OutcomeUnknownError, StorageError
from omnigraph.failpoints import Failpoint, arm
from omnigraph.graph import Graph
from omnigraph.recovery.pending import Pending
from tests.support.crashes import assert_next_writes_work
from tests.support.writers import furnished, insert

GOOD: Final = {"Person": [{"name": "eva"}]}
BAD: Final = {"Person": [{"name": "ada"}]}
"""Appended, it breaks a rule: there is an ada already."""


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    return furnished(str(tmp_path / "graph.omni"))


def while_it_reads(action: Callable[[], object]) -> Callable[[str, int, int | None], None]:
    """Lets something happen once the branch was made, before anything is written to it."""
    done: list[bool] = []

    def follow(stage: str, *_: object) -> None:
        if stage == "read" and not done:
            done.append(True)
            action()

    return follow


def load_onto_review(graph: Graph, rows: Any, **more: Any) -> Any:
    return graph.load(rows, branch="review", start="main", index=False, **more)


def refused(graph: Graph, meanwhile: Callable[[], object] = lambda: None) -> IntegrityError:
    with pytest.raises(IntegrityError) as refusal:
        load_onto_review(graph, BAD, progress=while_it_reads(meanwhile))
    return refusal.value


def notes(error: BaseException) -> str:
    return "\n".join(getattr(error, "__notes__", ()))


def fail() -> None:
    message = "the disk is gone"
    raise StorageError(message, hint="look for it")


def interrupt() -> None:
    raise KeyboardInterrupt


def test_a_load_that_fails_leaves_no_branch(graph):
    assert notes(refused(graph)) == ""
    assert graph.branches.list() == ("main",)


def test_a_load_that_fails_leaves_a_branch_that_was_there(graph):
    graph.branches.create("review")
    assert notes(refused(graph)) == ""
    assert graph.branches.list() == ("main", "review")


def test_a_load_that_fails_leaves_a_branch_that_others_committed_to(graph):
    rival = omnigraph.open(graph.uri)
    error = refused(graph, lambda: insert(rival, "fay", branch="review"))
    assert graph.at(branch="review").entity("Person", "fay") is not None
    head = graph.snapshot(branch="review").head.commit_id
    assert "branch review, which was created for this load, was not deleted" in notes(error)
    assert head in notes(error)
    assert_next_writes_work(graph.uri)


def test_a_load_that_fails_leaves_a_branch_that_others_made_under_its_name(graph):
    # It starts at the same commit, and has none of its own: only its ref tells them apart.
    rival = omnigraph.open(graph.uri)
    made: list[str | None] = []

    def make_again() -> None:
        rival.branches.delete("review")
        made.append(rival.branches.create("review").snapshot().ref)

    assert notes(refused(graph, make_again)) == ""
    assert [graph.snapshot(branch="review").ref] == made


def test_a_load_that_fails_says_nothing_of_a_branch_that_others_deleted(graph):
    rival = omnigraph.open(graph.uri)
    assert notes(refused(graph, lambda: rival.branches.delete("review"))) == ""
    assert graph.branches.list() == ("main",)


def test_a_load_that_fails_leaves_a_branch_that_others_build_on(graph):
    rival = omnigraph.open(graph.uri)
    error = refused(graph, lambda: rival.branches.create("child", branch="review"))
    assert graph.branches.list() == ("main", "child", "review")
    assert "child builds on it" in notes(error)


def test_a_branch_that_cannot_be_deleted_does_not_hide_why_the_load_failed(graph):
    with arm(Failpoint.BRANCH_AFTER_MARK, fail):
        error = refused(graph)
    assert "which was created for this load, was not deleted: the disk is gone" in notes(error)
    assert graph.branches.list() == ("main", "review")


def test_a_branch_stays_where_nobody_knows_whether_its_load_landed(graph):
    with ExitStack() as stack:
        for point in (Failpoint.WRITE_AFTER_EACH_APPLY, Failpoint.RECOVERY_AFTER_CLAIM):
            stack.enter_context(arm(point, fail))
        with pytest.raises(OutcomeUnknownError) as unknown:
            load_onto_review(graph, GOOD)
    assert graph.branches.list() == ("main", "review")
    assert "branch review was created for this load and was not deleted" in notes(unknown.value)
    # The next open finds the load complete, or undoes it: the branch is there for both.
    assert omnigraph.open(graph.uri).branches.list() == ("main", "review")
    assert_next_writes_work(graph.uri)


@pytest.mark.parametrize(
    "point",
    [Failpoint.WRITE_AFTER_PLAN, Failpoint.WRITE_AFTER_STAGE, Failpoint.WRITE_AFTER_EACH_APPLY],
)
def test_an_interrupted_load_leaves_no_branch(graph, point):
    with arm(point, interrupt), pytest.raises(KeyboardInterrupt):
        load_onto_review(graph, GOOD)
    assert graph.branches.list() == ("main",)
    graph.refresh()
    assert graph.recoveries.pending() == Pending((), (), ())
    assert_next_writes_work(graph.uri)


def test_a_load_that_was_interrupted_once_it_had_landed_keeps_its_branch(graph):
    with (
        arm(Failpoint.WRITE_AFTER_PUBLISH, interrupt),
        pytest.raises(KeyboardInterrupt) as interrupted,
    ):
        load_onto_review(graph, GOOD)
    review = graph.at(branch="review")
    assert review.entity("Person", "eva") is not None
    assert str(review.snapshot().head.commit_id) in notes(interrupted.value)


@pytest.mark.parametrize("rows", [GOOD, BAD])
def test_a_load_goes_to_a_branch_that_others_made_first_and_leaves_it_there(graph, rows):
    rival = omnigraph.open(graph.uri)
    seen: list[bool] = []

    def make_first() -> None:
        seen.append(True)
        if len(seen) == 1:
            load_onto_review(rival, {"City": [{"name": "oslo"}]})

    with arm(Failpoint.BRANCH_AFTER_REF, make_first), ExitStack() as refusal:
        if rows is BAD:
            refusal.enter_context(pytest.raises(IntegrityError))
        load_onto_review(graph, rows)
    review = graph.at(branch="review")
    assert review.entity("City", "oslo") is not None
    assert (review.entity("Person", "eva") is not None) == (rows is GOOD)
