"""Optimize: fewer fragments, the same rows, no row changed for anyone who asks."""

from collections.abc import Sequence
from pathlib import Path

import pytest

import omnigraph
from omnigraph.errors import NotAllowedError, StaleHeadError, TypeNotFoundError
from omnigraph.failpoints import Failpoint, arm
from omnigraph.limits import FOLD_FRAGMENTS_MIN
from omnigraph.maintenance import optimize
from omnigraph.merge.outcomes import Outcome
from omnigraph.model.commits import MAINTENANCE_ACTOR, OperationKind
from omnigraph.storage import compaction
from omnigraph.storage.compaction import Rewrite
from omnigraph.storage.tables import Table

SCHEMA = """
node Person { name: String @key  age: I32? }
edge Knows: Person -> Person
"""
INSERT = "query q($n: String) { insert Person { name: $n, age: 1 } }"
AGE = "query q($n: String, $a: I32) { update Person set { age: $a } where name = $n }"
PEOPLE = "query q() { match { $p: Person } return { $p.name, $p.age } }"


@pytest.fixture
def graph(tmp_path: Path) -> omnigraph.Graph:
    graph = omnigraph.init(tmp_path / "graph", SCHEMA)
    graph.settings.set("maintenance.optimize", "off")
    return graph


def grow(graph: omnigraph.Graph, count: int, *, first: int = 0) -> None:
    for number in range(first, first + count):
        graph.mutate(INSERT, {"n": f"p{number:03}"})


def people(graph: omnigraph.Graph) -> list[dict[str, object]]:
    return list(graph.query(PEOPLE).rows())


def fragment_count(graph: omnigraph.Graph, type_name: str = "Person") -> int:
    snapshot = graph.snapshot()
    [pin] = [pin for key, pin in snapshot.pins.items() if key.type_name == type_name]
    return len(graph._store.tables.open_pin(pin).fragments())


def operations(graph: omnigraph.Graph) -> list[OperationKind]:
    return [commit.operation for commit in graph.commits.list()]


def test_rows_are_the_same_in_fewer_fragments_and_older_commits_read_as_before(graph):
    grow(graph, 6)
    graph.mutate(AGE, {"n": "p001", "a": 7})
    before, rows = graph.snapshot().head.commit_id, people(graph)

    result = graph.optimize(message="tidy")

    assert fragment_count(graph) == 1
    assert result.tables["Person"].fragments_before == 6
    assert result.tables["Person"].fragments_after == 1
    assert result.tables["Person"].rows_rewritten == 6
    assert "id" in result.tables["Person"].indexed
    assert people(graph) == people(graph.at(commit=before)) == rows
    assert operations(graph)[0] is OperationKind.OPTIMIZE
    assert graph.commits.list()[0].message == "tidy"
    assert not graph.check(history=True).findings


def test_an_optimized_graph_is_left_as_it_is(graph):
    grow(graph, 3)
    graph.optimize()
    commits = graph.commits.list()

    assert graph.optimize().commit_id is None
    assert graph.commits.list() == commits


def test_diffs_and_the_feed_show_nothing_of_it(graph):
    grow(graph, 3)
    before = graph.snapshot().head.commit_id
    cursor = graph.baseline()

    graph.optimize()

    assert not graph.diff(before, "main").counts
    assert not any(commit.diff.counts for commit in graph.changes(after=cursor).commits)


def test_only_the_named_types_are_optimized(graph):
    grow(graph, 3)
    assert graph.optimize(types="Knows").commit_id is None
    assert graph.optimize(types=["Person"]).commit_id is not None
    with pytest.raises(TypeNotFoundError, match="Persn"):
        graph.optimize(types=["Persn"])


def test_if_needed_leaves_a_few_fragments(graph):
    grow(graph, 3)
    assert graph.optimize(if_needed=True).commit_id is None


def test_a_branch_leaves_shared_tables_to_their_owner(graph):
    grow(graph, 3)
    graph.branches.create("draft")
    draft = graph.at(branch="draft")

    result = draft.optimize()
    assert result.commit_id is None
    assert result.shared == ("Person", "Knows")

    grow(draft, 3, first=10)
    assert draft.optimize().tables["Person"].fragments_after == 1
    assert fragment_count(graph) == 3
    assert len(people(draft)) == 6
    assert len(people(graph)) == 3


def test_a_point_of_history_is_not_optimized(graph):
    grow(graph, 1)
    past = graph.at(commit=graph.snapshot().head.commit_id)
    with pytest.raises(NotAllowedError):
        past.optimize()


def test_a_write_that_an_optimize_overtook_is_planned_again(graph):
    grow(graph, 3)
    other = omnigraph.open(graph.uri)
    overtaken: list[bool] = []

    def overtake() -> None:
        if not overtaken:
            overtaken.append(True)
            overtaken.append(other.optimize().commit_id is not None)

    with arm(Failpoint.WRITE_AFTER_PLAN, overtake):
        graph.mutate(AGE, {"n": "p001", "a": 9})

    assert overtaken == [True, True]
    assert {row["p.name"]: row["p.age"] for row in people(graph)}["p001"] == 9
    assert not graph.check(history=True).findings


def test_an_optimize_that_a_write_overtook_uses_what_it_has_rewritten(graph, monkeypatch):
    grow(graph, 3)
    other = omnigraph.open(graph.uri)
    written: list[str] = []

    def overtake() -> None:
        if not written:
            written.append("late")
            other.mutate(INSERT, {"n": "late"})

    rewrites: list[int] = []
    rewrite = compaction.rewrite_fragments

    def record(table: Table, fragment_ids: Sequence[int], **options: int) -> Rewrite:
        rewrites.append(len(fragment_ids))
        return rewrite(table, fragment_ids, **options)

    monkeypatch.setattr(optimize, "rewrite_fragments", record)
    with arm(Failpoint.WRITE_AFTER_STAGE, overtake):
        graph.optimize()

    assert written
    assert rewrites == [3], "the fourth fragment is alone"
    assert fragment_count(graph) == 2
    assert len(people(graph)) == 4
    assert operations(graph)[0] is OperationKind.OPTIMIZE


def test_a_condition_on_the_head_looks_through_maintenance(graph):
    grow(graph, 3)
    seen = graph.snapshot().head.commit_id
    optimized = graph.optimize().commit_id
    assert optimized is not None

    graph.mutate(AGE, {"n": "p001", "a": 2}, expect_head=seen)
    grow(graph, 1, first=50)
    again = graph.optimize().commit_id
    assert again is not None
    graph.ensure_indices()
    graph.mutate(AGE, {"n": "p001", "a": 3}, expect_head=again)
    with pytest.raises(StaleHeadError, match=seen):
        graph.mutate(AGE, {"n": "p001", "a": 4}, expect_head=seen)


def test_small_fragments_are_folded_by_the_writer_that_made_the_last_one(graph):
    graph.settings.set("maintenance.optimize", "auto")
    writer = omnigraph.open(graph.uri, actor="ada")
    grow(writer, FOLD_FRAGMENTS_MIN - 1)
    assert OperationKind.OPTIMIZE not in operations(writer)

    grow(writer, 1, first=FOLD_FRAGMENTS_MIN)

    newest, *_ = writer.commits.list()
    assert (newest.operation, newest.actor) == (OperationKind.OPTIMIZE, MAINTENANCE_ACTOR)
    assert fragment_count(writer) == 1
    assert len(people(writer)) == FOLD_FRAGMENTS_MIN
    assert not writer.check(history=True).findings


def test_nothing_is_folded_where_that_is_switched_off(graph):
    grow(graph, FOLD_FRAGMENTS_MIN + 2)
    assert fragment_count(graph) == FOLD_FRAGMENTS_MIN + 2


def test_a_fold_of_a_busy_table_is_left_to_a_later_write(graph):
    graph.settings.set("maintenance.optimize", "auto")
    writer, other = omnigraph.open(graph.uri), omnigraph.open(graph.uri)
    grow(writer, FOLD_FRAGMENTS_MIN - 1)
    writes: list[None] = []

    def overtake() -> None:
        """Another write lands while the fold is staged, but not while the insert is."""
        writes.append(None)
        if len(writes) == 2:
            other.mutate(AGE, {"n": "p001", "a": 5})

    with arm(Failpoint.WRITE_AFTER_STAGE, overtake):
        result = writer.mutate(INSERT, {"n": "last"})

    assert result.commit_id is not None
    assert result.warnings == ()
    assert len(people(writer)) == FOLD_FRAGMENTS_MIN
    grow(writer, 1, first=500)
    assert fragment_count(writer) < 5


def test_a_fold_that_fails_is_a_warning_of_the_write_that_landed(graph, monkeypatch):
    graph.settings.set("maintenance.optimize", "auto")
    writer = omnigraph.open(graph.uri)
    grow(writer, FOLD_FRAGMENTS_MIN - 1)

    def fail(*_: object, **__: object) -> None:
        message = "no space left on device"
        raise omnigraph.StorageError(message)

    monkeypatch.setattr("omnigraph.maintenance.optimize.rewrite_fragments", fail)
    result = writer.mutate(INSERT, {"n": "last"})

    assert result.commit_id is not None
    [warning] = result.warnings
    assert (warning.step, "no space left" in warning.message) == ("optimize", True)
    assert len(people(writer)) == FOLD_FRAGMENTS_MIN
    monkeypatch.undo()
    grow(writer, 1, first=900)
    assert fragment_count(writer) < 5


def test_a_target_that_was_only_optimized_is_fast_forwarded(graph):
    grow(graph, 3)
    graph.branches.create("draft")
    grow(graph.at(branch="draft"), 2, first=10)
    graph.optimize()

    assert graph.merge("draft").outcome is Outcome.FAST_FORWARD
    assert len(people(graph)) == 5
    assert graph.merge("draft").outcome is Outcome.ALREADY_UP_TO_DATE


def test_a_source_that_was_only_optimized_has_nothing_to_merge(graph):
    grow(graph, 3)
    graph.branches.create("draft")
    draft = graph.at(branch="draft")
    grow(draft, 2, first=10)
    graph.merge("draft")
    before = graph.snapshot().head.commit_id

    assert draft.optimize().commit_id is not None
    assert graph.merge("draft").outcome is Outcome.ALREADY_UP_TO_DATE
    assert graph.snapshot().head.commit_id == before
