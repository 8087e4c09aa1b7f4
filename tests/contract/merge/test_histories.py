"""Merges upon merges: which base they have, and what becomes of histories whose branches went."""

from pathlib import Path

import pytest

from omnigraph.graph import Graph
from omnigraph.merge.conflicts import MergeConflictError
from omnigraph.merge.graphs import Outcome
from tests.contract.merge.oracle import Rows
from tests.contract.merge.worlds import change, edge, node, rows_of, told, world

BASE: Rows = {"P": {name: node(name) for name in ("x", "y")}, "K": {}}


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    return world(tmp_path / "graph", BASE)


def put(graph: Graph, branch: str, *rows: dict[str, object]) -> str:
    change(graph, {"P": {str(row["id"]): row for row in rows}}, branch=branch)
    return str(graph.snapshot(branch=branch).head.commit_id)


def has(graph: Graph, branch: str = "main") -> set[str]:
    return set(rows_of(graph, branch)["P"])


def test_a_branch_is_merged_again_and_again(graph):
    graph.branches.create("draft")
    for number in range(3):
        put(graph, "draft", node(f"d{number}"), node("x", a=number + 10))
        put(
            graph, "main", node(f"m{number}"), node("x", b=number + 10) if not number else node("m")
        )
        assert graph.merge("draft").outcome is Outcome.MERGED
        assert rows_of(graph)["P"]["x"] == node("x", a=number + 10, b=10)
    assert graph.merge("draft").outcome is Outcome.ALREADY_UP_TO_DATE
    # The other way, all is new to the branch that main has had itself.
    assert graph.merge("main", into="draft").outcome is Outcome.FAST_FORWARD
    assert rows_of(graph, "draft") == rows_of(graph)


def test_what_was_undone_after_a_merge_stays_undone(graph):
    graph.branches.create("draft")
    put(graph, "draft", node("d"), node("x", a=5))
    graph.merge("draft")
    put(graph, "main", node("x", a=1))
    change(graph, {"P": {"d": None}})
    put(graph, "draft", node("e"))
    graph.merge("draft")
    assert has(graph) == {"x", "y", "e"}
    assert rows_of(graph)["P"]["x"] == node("x")


def test_criss_cross_merges_end_alike(graph):
    for name in ("a", "b"):
        graph.branches.create(name)
        put(graph, name, node(name))
    heads = {name: graph.snapshot(branch=name).head.commit_id for name in ("a", "b")}
    graph.branches.create("old_a", commit=heads["a"])
    graph.merge("b", into="a")
    graph.merge("old_a", into="b")
    put(graph, "a", node("x", a=7))
    put(graph, "b", node("x", b=7))
    assert graph.merge("b", into="a").outcome is Outcome.MERGED
    assert graph.merge("a", into="b").outcome is Outcome.FAST_FORWARD
    assert rows_of(graph, "a") == rows_of(graph, "b")
    assert rows_of(graph, "a")["P"]["x"] == node("x", a=7, b=7)


def test_merges_climb_from_branch_to_branch(graph):
    graph.branches.create("a")
    put(graph, "a", node("of a"))
    graph.branches.create("b", branch="a")
    put(graph, "b", node("of b"))
    put(graph, "main", node("of main"))
    assert graph.merge("b", into="a").outcome is Outcome.FAST_FORWARD
    assert graph.merge("a").outcome is Outcome.MERGED
    assert has(graph) == {"x", "y", "of a", "of b", "of main"}
    assert graph.merge("b").outcome is Outcome.ALREADY_UP_TO_DATE
    assert graph.merge("main", into="b").outcome is Outcome.FAST_FORWARD
    assert has(graph, "b") == has(graph)


def test_edits_that_cancel_out_are_recorded_and_change_nothing(graph):
    graph.branches.create("draft")
    put(graph, "draft", node("x", a=5), node("n"))
    put(graph, "draft", node("x"))
    change(graph, {"P": {"n": None}}, branch="draft")
    pins = graph.snapshot().pins
    outcome = graph.merge("draft")
    assert (outcome.outcome, outcome.changes) == (Outcome.FAST_FORWARD, {})
    head = graph.snapshot().head
    assert (head.commit_id, head.merged_parent) == (outcome.commit_id, outcome.source_commit)
    assert graph.snapshot().pins == pins
    assert graph.merge("draft").outcome is Outcome.ALREADY_UP_TO_DATE


def test_merged_commits_stay_in_history_after_their_branch_went(graph):
    graph.branches.create("draft")
    commits = [put(graph, "draft", node(f"d{number}")) for number in range(5)]
    # Many on main too: both sides are walked to where they part.
    for number in range(5):
        put(graph, "main", node(f"m{number}"))
    graph.merge("draft", delete_branch=True)
    assert graph.branches.list() == ("main",)
    assert [graph.commits.show(each).commit_id for each in commits] == commits
    graph.branches.create("next")
    put(graph, "next", node("n"))
    put(graph, "main", node("m"))
    assert graph.merge("next").outcome is Outcome.MERGED


def test_a_long_branch_that_took_main_in_at_its_end_is_carried_on_whole(graph):
    # The base is near, and most of what only theirs has lies far behind it.
    graph.branches.create("draft")
    commits = [put(graph, "draft", node(f"d{number}")) for number in range(6)]
    put(graph, "main", node("m"))
    graph.merge("main", into="draft")
    put(graph, "main", node("m2"))
    graph.merge("draft", delete_branch=True)
    assert [graph.commits.show(each).commit_id for each in commits] == commits
    assert has(graph) == {"x", "y", "m", "m2", *(f"d{number}" for number in range(6))}


def test_no_commit_is_carried_into_a_history_that_has_it(graph):
    for number in range(8):
        put(graph, "main", node(f"m{number}"))
    graph.branches.create("draft")
    for number in range(8, 12):
        put(graph, "main", node(f"m{number}"))
    for number in range(3):
        put(graph, "draft", node(f"d{number}"))
        graph.merge("draft")
    opened = graph._manifest.open(graph.snapshot().branch)
    ids = [row["object_id"] for row in opened.table.read(["object_id"]).to_pylist()]
    assert len(ids) == len(set(ids))


def test_branches_that_took_in_the_same_one_merge_after_it_went(graph):
    # The nearest common commit is one of the branch that is gone: it cannot be read any more.
    graph.branches.create("a")
    graph.branches.create("b")
    put(graph, "a", node("of a"), node("x", a=5))
    graph.merge("a")
    graph.merge("a", into="b")
    graph.branches.delete("a")
    put(graph, "main", node("x", a=5, b=6))
    put(graph, "b", node("of b"))
    assert graph.merge("b").outcome is Outcome.MERGED
    assert has(graph) == {"x", "y", "of a", "of b"}
    assert rows_of(graph)["P"]["x"] == node("x", a=5, b=6)


def test_rows_of_both_sides_meet_in_all_their_types(graph):
    graph.branches.create("draft")
    change(graph, {"K": {"t": edge("t", "x", "y")}, "P": {"t": node("t")}}, branch="draft")
    change(graph, {"K": {"o": edge("o", "y", "x")}, "P": {"o": node("o")}})
    assert graph.merge("draft").changes.keys() == {"P", "K"}
    assert set(rows_of(graph)["K"]) == {"t", "o"}


def test_a_fast_forward_takes_replaced_and_deleted_rows_too(graph):
    graph.ensure_indices()
    graph.branches.create("draft")
    put(graph, "draft", node("x", a=9), node("n"))
    change(graph, {"P": {"y": None}}, branch="draft")
    outcome = graph.merge("draft")
    assert outcome.outcome is Outcome.FAST_FORWARD
    counts = outcome.changes["P"]
    assert (counts.inserted, counts.updated, counts.deleted) == (1, 1, 1)
    assert rows_of(graph) == rows_of(graph, "draft")


def test_a_dry_run_writes_nothing(graph):
    graph.branches.create("draft")
    put(graph, "draft", node("x", a=2))
    before = graph._store.objects.list("")
    assert graph.merge("draft", dry_run=True).changes["P"].updated == 1
    put(graph, "main", node("x", a=3))
    before = graph._store.objects.list("")
    preview = graph.merge("draft", dry_run=True)
    assert told(preview.conflicts) == {("divergent_update", "P", "x", "a")}
    assert graph.merge("draft", dry_run=True, resolve="theirs").changes["P"].updated == 1
    assert graph._store.objects.list("") == before
    with pytest.raises(MergeConflictError):
        graph.merge("draft")


def test_readers_may_preview_and_not_merge(graph):
    import omnigraph
    from omnigraph.errors import NotAllowedError

    graph.branches.create("draft")
    put(graph, "draft", node("n"))
    reader = omnigraph.open(graph.uri, read_only=True)
    assert reader.merge("draft", dry_run=True).outcome is Outcome.FAST_FORWARD
    with pytest.raises(NotAllowedError):
        reader.merge("draft")
