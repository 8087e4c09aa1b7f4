"""Merges upon merges: which base they have, and what becomes of histories whose branches went."""

from pathlib import Path

import pytest

import omnigraph
from omnigraph.errors import NotAllowedError
from omnigraph.graph import Graph
from omnigraph.merge.conflicts import MergeConflictError
from omnigraph.merge.outcomes import Outcome
from tests.contract.merge.oracle import Rows
from tests.contract.merge.worlds import change, conflict_keys, edge, node, rows_of, world

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


PEOPLE = """
node Person { name: String @key  age: I32? }
node City { name: String @key }
node Note { text: String? }
"""


def mutate(graph: Graph, *statements: str) -> None:
    for statement in statements:
        graph.mutate(f"query q() {{ {statement} }}")


def test_an_old_branch_that_lands_late_brings_back_nothing_that_was_undone(tmp_path):
    graph = omnigraph.init(tmp_path / "graph", PEOPLE)
    mutate(graph, 'insert Person { name: "Bob" age: 2 }')
    old, draft = graph.branches.create("old"), graph.branches.create("draft")
    mutate(
        graph,
        'update Person set { age: 5 } where name = "Bob"',
        'insert Person { name: "Gone" }',
    )
    graph.merge("main", into="draft")
    mutate(
        draft,
        'update Person set { age: 2 } where name = "Bob"',
        'delete Person where name = "Gone"',
    )
    mutate(graph, *(f'insert City {{ name: "c{number}" }}' for number in range(4)))
    mutate(old, 'insert Note { text: "late" }')
    # From here on, few commits lie between main and the first one; more lie before the right base.
    graph.merge("old")
    assert graph.merge("draft").outcome is Outcome.MERGED
    assert {id_: row["age"] for id_, row in rows_of(graph)["Person"].items()} == {"Bob": 2}


def test_branches_that_took_in_the_same_one_merge_after_it_was_deleted(graph):
    # The base is a commit of the branch that is gone.
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


@pytest.fixture
def merged_from_deleted(graph: Graph) -> str:
    """The commit of a deleted branch x, which main and d have, and which inserted `new`."""
    graph.branches.create("d")
    graph.branches.create("x")
    commit = put(graph, "x", node("new"))
    graph.merge("x", into="d")
    assert graph.merge("x", delete_branch=True).deleted_source
    return commit


@pytest.mark.usefixtures("merged_from_deleted")
def test_a_row_that_came_from_a_deleted_branch_can_be_deleted_by_a_merge(graph):
    change(graph, {"P": {"new": None}}, branch="d")
    graph.merge("d")
    assert has(graph) == {"x", "y"}


def test_a_value_that_came_from_a_deleted_branch_can_be_undone_by_a_merge(graph):
    graph.branches.create("d")
    graph.branches.create("x")
    put(graph, "x", node("x", a=5))
    graph.merge("x", into="d")
    graph.merge("x", delete_branch=True)
    put(graph, "d", node("x"))
    graph.merge("d")
    assert rows_of(graph)["P"]["x"] == node("x")


def test_commits_of_a_deleted_branch_are_read_as_they_were(graph, merged_from_deleted):
    start = str(graph.commits.show(merged_from_deleted).parent)
    change(graph, {"P": {"new": None}})
    assert graph.at(commit=merged_from_deleted).entity("P", "new") == node("new")
    assert graph.entity("P", "new", at=merged_from_deleted) == node("new")
    assert rows_of(graph, commit=merged_from_deleted)["P"].keys() == {"x", "y", "new"}
    assert inserted(graph, start, merged_from_deleted) == {"new"}
    assert graph.commits.changes(merged_from_deleted).counts["P"].inserted == 1


def inserted(graph: Graph, before: str, after: str) -> set[str]:
    changes = tuple(graph.diff(before, after).rows())
    assert {str(each.op) for each in changes} <= {"insert"}
    return {each.id for each in changes}


def test_a_branch_goes_on_from_a_commit_of_a_deleted_one(graph, merged_from_deleted):
    graph.branches.create("again", commit=merged_from_deleted)
    put(graph, "again", node("more"))
    assert has(graph, "again") == {"x", "y", "new", "more"}
    assert graph.merge("again").outcome is Outcome.MERGED
    assert has(graph) == {"x", "y", "new", "more"}


def test_a_branch_of_the_same_name_is_not_the_one_that_was_deleted(graph, merged_from_deleted):
    graph.branches.create("x", commit=graph.commits.list()[-1].commit_id)
    other = [put(graph, "x", node(name)) for name in ("one", "two", "three")]
    assert rows_of(graph, commit=merged_from_deleted)["P"].keys() == {"x", "y", "new"}
    assert rows_of(graph, commit=other[0])["P"].keys() == {"one"}
    change(graph, {"P": {"new": None}}, branch="d")
    assert graph.merge("d").outcome is Outcome.MERGED
    assert has(graph) == {"x", "y"}
    assert graph.merge("x").outcome is Outcome.MERGED
    assert has(graph) == {"x", "y", "one", "two", "three"}
    graph.branches.delete("x")
    for commit, rows in ((merged_from_deleted, {"x", "y", "new"}), (other[0], {"one"})):
        assert rows_of(graph, commit=commit)["P"].keys() == rows


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
    assert conflict_keys(preview.conflicts) == {("divergent_update", "P", "x", "a")}
    assert graph.merge("draft", dry_run=True, resolve="theirs").changes["P"].updated == 1
    assert graph._store.objects.list("") == before
    with pytest.raises(MergeConflictError):
        graph.merge("draft")


def test_readers_may_preview_and_not_merge(graph):
    graph.branches.create("draft")
    put(graph, "draft", node("n"))
    reader = omnigraph.open(graph.uri, read_only=True)
    assert reader.merge("draft", dry_run=True).outcome is Outcome.FAST_FORWARD
    with pytest.raises(NotAllowedError):
        reader.merge("draft")
