"""The feed: every commit of a branch once, in order, from any point on."""

from pathlib import Path

import pytest

import omnigraph
from omnigraph.errors import (
    BranchNotFoundError,
    ErrorCode,
    FeedGapError,
    InvalidParameterError,
    NotFoundError,
)
from omnigraph.graph import Graph
from omnigraph.model.names import MAIN
from tests.contract.merge.oracle import Rows
from tests.contract.merge.worlds import change, edge, node, rows_of, world

BASE: Rows = {"P": {"x": node("x")}, "K": {}}


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    return world(tmp_path / "graph", BASE)


def follow(
    graph: Graph, rows: Rows, after: str | None, *, branch: str = MAIN, limit: int = 2
) -> str:
    """Bring a copy up to date, batch by batch, and give the cursor it is then at."""
    for _ in range(100):
        batch = graph.changes(after=after, branch=branch, limit=limit)
        assert len(batch.commits) <= limit
        for each in batch.commits:
            for row in each.diff.rows():
                if row.after is None:
                    del rows[row.type_name][row.id]
                else:
                    rows[row.type_name][row.id] = dict(row.after)
            assert rows == rows_of(graph, commit=each.commit.commit_id)
        after = batch.cursor
        if batch.is_newest:
            return after
    raise AssertionError


def test_a_copy_follows_a_branch_through_merges(graph):
    copy: Rows = {"P": {}, "K": {}}
    cursor = follow(graph, copy, None)
    assert copy == rows_of(graph)
    for number in range(5):
        change(graph, {"P": {f"n{number}": node(f"n{number}")}})
    graph.branches.create("draft")
    change(graph, {"P": {"d": node("d"), "n0": None}}, branch="draft")
    change(graph, {"K": {"e": edge("e", "x", "d")}}, branch="draft")
    change(graph, {"P": {"x": node("x", a=5)}})
    graph.merge("draft")
    graph.ensure_indices()
    change(graph, {"P": {"n1": None}})

    cursor = follow(graph, copy, cursor)
    assert copy == rows_of(graph)
    assert cursor == graph.baseline() == graph.snapshot().head.commit_id
    again = graph.changes(after=cursor)
    assert (again.commits, again.cursor, again.is_newest) == ((), cursor, True)


def test_a_branch_has_the_history_it_started_from(graph):
    change(graph, {"P": {"m": node("m")}})
    graph.branches.create("draft")
    change(graph, {"P": {"d": node("d")}}, branch="draft")
    change(graph, {"P": {"late": node("late")}})
    copy: Rows = {"P": {}, "K": {}}
    follow(graph, copy, None, branch="draft", limit=1)
    assert copy == rows_of(graph, "draft")
    assert graph.at(branch="draft").changes().cursor == graph.baseline(branch="draft")


def test_commits_come_oldest_first_and_once(graph):
    for number in range(5):
        change(graph, {"P": {f"n{number}": node(f"n{number}")}})
    ids = [each.commit_id for each in reversed(graph.commits.list())]
    told = [each.commit.commit_id for each in graph.changes(limit=100).commits]
    assert told == ids
    batch = graph.changes(limit=3)
    assert (batch.cursor, batch.is_newest) == (ids[2], False)
    rest = graph.changes(after=batch.cursor)
    assert [each.commit.commit_id for each in rest.commits] == ids[3:]
    assert rest.is_newest


def test_maintenance_is_passed_over_and_the_cursor_with_it(graph):
    written = [each.commit_id for each in reversed(graph.commits.list())]
    kept_by = []
    for number in range(3):
        change(graph, {"P": {f"n{number}": node(f"n{number}")}})
        written.append(graph.baseline())
        kept_by.append(graph.optimize().commit_id or graph.ensure_indices().commit_id)
    assert graph.optimize().commit_id is None
    kinds = {str(each.operation) for each in graph.commits.list()}
    assert "optimize" in kinds

    every = graph.changes(limit=100)
    assert [each.commit.commit_id for each in every.commits] == written
    assert (every.cursor, every.is_newest) == (graph.baseline(), True)
    # The cursor is behind what was passed over, so that the next batch does not start with it.
    first = graph.changes(limit=len(written) - 1)
    assert (first.cursor, first.is_newest) == (kept_by[1], False)
    rest = graph.changes(after=first.cursor, limit=1)
    assert [each.commit.commit_id for each in rest.commits] == written[-1:]
    assert (rest.cursor, rest.is_newest) == (kept_by[2], True)
    # A cursor from before is valid as well.
    again = graph.changes(after=written[-1])
    assert (again.commits, again.cursor, again.is_newest) == ((), kept_by[2], True)


def test_a_commit_of_maintenance_changed_nothing(graph):
    change(graph, {"P": {"n": node("n")}})
    before = graph.baseline()
    commit_id = graph.optimize().commit_id
    diff = graph.commits.changes(commit_id)
    assert (diff.before, diff.after, diff.tables) == (before, commit_id, ())


def test_a_baseline_is_where_what_comes_next_starts(graph):
    cursor = graph.baseline()
    change(graph, {"P": {"n": node("n")}})
    (only,) = graph.changes(after=cursor).commits
    assert [each.id for each in only.diff.rows()] == ["n"]


def test_cursors_outlive_handles(graph):
    cursor = graph.changes().cursor
    change(graph, {"P": {"n": node("n")}})
    again = omnigraph.open(graph.uri, read_only=True).changes(after=cursor)
    assert len(again.commits) == 1


def test_filters_narrow_the_changes_and_keep_the_commits(graph):
    cursor = graph.baseline()
    change(graph, {"P": {"n": node("n")}})
    change(graph, {"K": {"e": edge("e", "n", "x")}})
    batch = graph.changes(after=cursor, kinds=["edge"], ops=["insert"])
    assert [[row.id for row in each.diff.rows()] for each in batch.commits] == [[], ["e"]]


def test_a_cursor_of_another_history_is_a_gap_with_a_way_out(graph, tmp_path):
    other = world(tmp_path / "other", BASE).baseline()
    graph.branches.create("draft")
    change(graph, {"P": {"d": node("d")}}, branch="draft")
    strange = graph.baseline(branch="draft")
    for cursor in (other, strange, "0" * 26):
        with pytest.raises(FeedGapError, match="not in the history") as refused:
            graph.changes(after=cursor)
        assert refused.value.code is ErrorCode.FEED_GAP
        assert "baseline" in refused.value.hint
    # Once it was merged it is known, but was never a state of this branch.
    graph.merge("draft")
    with pytest.raises(FeedGapError):
        graph.changes(after=strange)


def test_commits_that_cannot_be_read_any_more_are_a_gap(graph):
    change(graph, {"P": {"n": node("n")}})
    cursor = graph.commits.list()[-1].commit_id
    version = graph.commits.list()[1].manifest_version
    store = graph._store
    (path,) = [
        each
        for each in store.objects.list("__manifest/_versions")
        if each.endswith((f"/{version}.manifest", f"/{2**64 - 1 - version:020}.manifest"))
    ]
    store.objects.delete(path)
    fresh = omnigraph.open(graph.uri, read_only=True)
    with pytest.raises(FeedGapError, match="cannot be read"):
        fresh.changes(after=cursor)
    assert fresh.changes(after=fresh.baseline()).commits == ()


def test_bad_requests_are_refused(graph):
    for limit in (0, -1):
        with pytest.raises(InvalidParameterError):
            graph.changes(limit=limit)
    with pytest.raises(NotFoundError, match="no tag nope"):
        graph.changes(after="nope")
    with pytest.raises(BranchNotFoundError):
        graph.changes(branch="nope")
    with pytest.raises(BranchNotFoundError):
        graph.baseline(branch="nope")
