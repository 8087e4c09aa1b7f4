"""Requests with keys: one commit, and one result, however often they are repeated."""

from contextlib import ExitStack
from datetime import timedelta
from functools import partial

import pytest

from omnigraph import graph as graphs
from omnigraph.errors import (
    BranchNotFoundError,
    ErrorCode,
    IntegrityError,
    InvalidInputError,
    InvalidParameterError,
    StorageError,
)
from omnigraph.failpoints import Failpoint, arm
from omnigraph.recovery.pending import Pending
from omnigraph.transaction.requests import RequestKey
from tests.support.clocks import LaterClock
from tests.support.concurrency import at_once
from tests.support.crashes import cut_off, much_later, trace

SCHEMA = """
node Person { name: String @unique }
node Note { text: String }
node City { name: String @key }
"""
CITY = 'query q() { insert City { name: "Oslo" } }'
NOTE = 'query q() { insert Note { text: "once" } }'
PERSON = 'query q() { insert Person { name: "Ada" } }'


@pytest.fixture
def graph(tmp_path):
    return graphs.init(tmp_path / "graph", SCHEMA)


def notes(graph) -> int:
    query = "query q() { match { $n: Note } return { count($n) as n } }"
    return int(graph.query(query).rows()[0]["n"])


def test_a_repetition_has_the_first_result(graph, tmp_path):
    first = graph.mutate(NOTE, key="k")
    again = graphs.open(tmp_path / "graph").mutate(NOTE, key="k")

    assert again == first
    assert notes(graph) == 1
    assert graph.snapshot().head.commit_id == first.commit_id


def test_a_request_whose_outcome_is_unknown_is_repeated_by_itself(graph):
    """A write and its undoing fail, as beside a recovery of what a killed process left."""
    left = [Failpoint.WRITE_AFTER_EACH_APPLY, Failpoint.RECOVERY_AFTER_CLAIM]

    def fail_once(point: Failpoint) -> None:
        if point in left:
            left.remove(point)
            message = "the disk is gone"
            raise StorageError(message)

    points = tuple(left)
    with ExitStack() as stack:
        for point in points:
            stack.enter_context(arm(point, partial(fail_once, point)))
        result = graph.mutate(NOTE, key="k")

    assert left == []
    assert graph.mutate(NOTE, key="k") == result
    assert notes(graph) == 1
    assert graph.recoveries.pending() == Pending((), (), ())


def test_a_repetition_of_what_a_rule_forbids_twice_has_the_first_result(graph):
    first = graph.mutate(PERSON, key="k")

    assert graph.mutate(PERSON, key="k") == first
    with pytest.raises(IntegrityError):
        graph.mutate(PERSON, key="another")


def test_a_repetition_long_after_is_found_in_older_history(graph):
    first = graph.mutate(NOTE, key="k")
    for number in range(70):
        graph.mutate(f'query q() {{ insert Person {{ name: "{number}" }} }}')

    assert graph.mutate(NOTE, key="k") == first


def test_a_request_that_changes_nothing_is_answered_likewise(graph):
    text = 'query q() { delete Person where name = "Eve" }'
    first = graph.mutate(text, key="k")
    graph.mutate('query q() { insert Person { name: "Eve" } }')

    assert first.commit_id is None
    assert graph.mutate(text, key="k") == first


def test_an_attempt_that_finds_its_change_made_has_the_result_of_the_other_attempt(graph, tmp_path):
    others = [graphs.open(tmp_path / "graph")]
    landed = []

    def land() -> None:
        if others:
            landed.append(others.pop().mutate(CITY, key="k"))

    # Between the look for an earlier attempt and the plan, which finds nothing to change.
    with arm(Failpoint.WRITE_AFTER_HEAL, land):
        result = graphs.open(tmp_path / "graph").mutate(CITY, key="k")
    assert landed == [result]
    assert result.inserted == 1
    assert graph.mutate(CITY, key="k") == result


def test_a_request_that_failed_can_be_repeated(graph):
    graph.mutate(PERSON)
    with pytest.raises(IntegrityError):
        graph.mutate(PERSON, key="k")
    graph.mutate('query q() { delete Person where name = "Ada" }')

    assert graph.mutate(PERSON, key="k").inserted == 1


def test_a_key_stands_for_one_request(graph):
    graph.mutate(NOTE, key="k")

    with pytest.raises(InvalidInputError) as refused:
        graph.mutate(PERSON, key="k")
    assert refused.value.code is ErrorCode.REQUEST_MISMATCH


def test_actors_have_keys_of_their_own(graph):
    ada, bob = (graph.mutate(NOTE, key="k", actor=actor) for actor in ("ada", "bob"))

    assert ada.commit_id != bob.commit_id
    assert notes(graph) == 2


@pytest.mark.parametrize("key", ["", "a\nb", "k" * 256])
def test_a_strange_key_is_refused(graph, key):
    with pytest.raises(InvalidParameterError):
        graph.mutate(NOTE, key=key)


def test_a_key_is_forgotten_after_a_day(graph, tmp_path):
    first = graph.mutate(NOTE, key="k")
    later = graphs.open(tmp_path / "graph", clock=LaterClock(timedelta(hours=25).total_seconds()))

    assert later.mutate(NOTE, key="k").commit_id != first.commit_id
    assert notes(graph) == 2


def test_repetitions_at_the_same_time_make_one_commit(graph, tmp_path):
    handles = [graphs.open(tmp_path / "graph") for _ in range(4)]

    results = at_once([partial(handle.mutate, NOTE, key="k") for handle in handles])

    assert len({result.commit_id for result in results}) == 1
    assert notes(graph) == 1


def test_a_crash_anywhere_and_a_repetition_make_one_commit(tmp_path):
    """Every cut of the first attempt; the repetition comes from another process, much later."""
    traced = graphs.init(tmp_path / "traced", SCHEMA)
    writes = trace(lambda: traced.mutate(NOTE, key="k"))
    assert len(writes) > 8
    for number, cut in enumerate(writes):
        uri = tmp_path / str(number)
        graph = graphs.init(uri, SCHEMA)
        cut_off(cut, partial(graph.mutate, NOTE, key="k"))

        result = much_later(str(uri)).mutate(NOTE, key="k")

        assert (result.inserted, notes(graph)) == (1, 1), cut
        assert result.commit_id is not None
        assert graph.commits.show(result.commit_id).operation == "mutation"


def test_a_load_with_a_key_happens_once(graph, tmp_path):
    source = tmp_path / "notes.jsonl"
    source.write_text('{"type": "Note", "data": {"text": "a"}}\n')
    key = RequestKey.parse("k", source.read_text())
    first = graph.load(source, key=key)
    again = graph.load(source, key=key)

    assert again.commit_id == first.commit_id
    assert (again.changes, notes(graph)) == (first.changes, 1)


@pytest.mark.parametrize("is_ahead", [False, True], ids=["fast-forward", "merged"])
def test_a_repetition_has_the_first_result_after_its_branch_was_merged_and_deleted(
    graph, *, is_ahead
):
    draft = graph.branches.create("draft")
    first = draft.mutate(NOTE, key="k")
    if is_ahead:
        graph.mutate(PERSON)
    graph.merge("draft", delete_branch=True)

    assert graph.mutate(NOTE, branch="draft", key="k") == first
    assert notes(graph) == 1


def test_a_repetition_on_a_branch_that_was_deleted_with_its_commits_finds_no_branch(graph):
    graph.branches.create("draft").mutate(NOTE, key="k")
    graph.branches.delete("draft")

    with pytest.raises(BranchNotFoundError):
        graph.mutate(NOTE, branch="draft", key="k")
