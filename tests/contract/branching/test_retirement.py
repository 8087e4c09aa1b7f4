"""Branches that were deleted: what others merged of them stays, and the rest goes."""

import json
from datetime import timedelta
from itertools import count
from pathlib import Path

import pytest

import omnigraph
from omnigraph.branching import lifecycle
from omnigraph.errors import (
    BranchNotFoundError,
    CommitNotFoundError,
    ConflictError,
    ErrorCode,
    NotAllowedError,
    StorageError,
)
from omnigraph.failpoints import Failpoint, SimulatedCrash, arm
from omnigraph.graph import Graph
from omnigraph.limits import LEASE_SECONDS
from omnigraph.maintenance.cleanup.refs import RefCleanup, clean_refs
from omnigraph.manifest.branches import Branch, Branches
from omnigraph.manifest.layout import BRANCHES, MANIFEST, RETIRED
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.model.ids import CommitId
from omnigraph.model.names import BranchName
from omnigraph.storage.objects import Objects
from omnigraph.storage.refs import Refs
from tests.support.clocks import LaterClock
from tests.support.crashes import Cut, assert_next_writes_work, at_rest, cut_off
from tests.support.publishing import PERSON
from tests.support.writers import deletes, furnished, insert, write

AFTER_A_LEASE = LEASE_SECONDS + 1
MUCH_LATER = timedelta(days=10).total_seconds()


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    return furnished(str(tmp_path / "graph.omni"))


def clean(graph: Graph) -> RefCleanup:
    sidecars = graph._transactions.recovery.sidecars
    return clean_refs(graph._manifest, sidecars, LaterClock(MUCH_LATER))


def people(graph: Graph) -> list[str]:
    names = "query q() { match { $p: Person } return { $p.name } order { $p.name } }"
    return [row["p.name"] for row in graph.query(names).rows()]


def tip(graph: Graph, branch: str) -> str:
    return str(graph.snapshot(branch=branch).head.commit_id)


def test_commits_that_were_merged_are_read_after_their_branch_is_gone(graph):
    graph.branches.create("x")
    insert(graph, "eva", branch="x")
    early = tip(graph, "x")
    insert(graph, "fay", branch="x")
    graph.merge("x", delete_branch=True)
    assert clean(graph) == RefCleanup()

    fresh = omnigraph.open(graph.uri, read_only=True)
    assert people(fresh.at(commit=early)) == ["ada", "bob", "eva"]
    assert fresh.diff(early, "main").counts["Person"].inserted == 1
    assert fresh.entity("Person", "eva", at=early) is not None
    assert fresh.commits.changes(early).counts["Person"].inserted == 1
    assert fresh.check(history=True).findings == ()


def test_a_merge_goes_by_a_base_whose_branch_is_gone(graph):
    graph.branches.create("d")
    graph.branches.create("x")
    insert(graph, "new", branch="x")
    graph.merge("x", into="d")
    graph.merge("x", delete_branch=True)
    clean(graph)
    write(graph, {PERSON: deletes("new")}, branch="d")

    graph.merge("d")

    assert people(graph) == ["ada", "bob"]


def test_branches_that_had_one_name_after_another_are_told_apart(graph):
    tips = []
    for number in range(3):
        graph.branches.create("x")
        insert(graph, f"of x {number}", branch="x")
        tips.append(tip(graph, "x"))
        graph.merge("x", delete_branch=True)
        clean(graph)
    graph.branches.create("x", commit=tips[0])
    insert(graph, "newest", branch="x")

    expected = ["ada", "bob"]
    for number, commit_id in enumerate(tips):
        expected.append(f"of x {number}")
        assert people(graph.at(commit=commit_id)) == expected
    assert people(graph.at(branch="x")) == ["ada", "bob", "newest", "of x 0"]


def test_a_branch_can_start_at_a_commit_of_a_branch_that_is_gone(graph):
    graph.branches.create("x")
    insert(graph, "eva", branch="x")
    early = tip(graph, "x")
    insert(graph, "fay", branch="x")
    graph.merge("x", delete_branch=True)

    graph.branches.create("again", commit=early)
    insert(graph, "gus", branch="again")
    assert clean(graph) == RefCleanup()
    assert people(graph.at(branch="again")) == ["ada", "bob", "eva", "gus"]


def test_what_a_kept_branch_was_made_from_is_kept_with_it(graph):
    graph.branches.create("a")
    insert(graph, "of a", branch="a")
    graph.branches.create("b", branch="a")
    insert(graph, "of b", branch="b")
    kept = tip(graph, "b")
    graph.merge("b", delete_branch=True)
    graph.branches.delete("a")

    assert clean(graph) == RefCleanup()
    assert people(graph.at(commit=kept)) == ["ada", "bob", "of a", "of b"]


def test_what_nobody_merged_goes_once_it_was_deleted_for_long_enough(graph):
    graph.branches.create("x")
    insert(graph, "eva", branch="x")
    lost = tip(graph, "x")
    graph.branches.delete("x")
    with pytest.raises(CommitNotFoundError):
        graph.at(commit=lost)

    assert graph.cleanup().refs == ()
    assert {each.location for each in clean(graph).reclaimed} >= {MANIFEST}
    assert graph._store.objects.list(RETIRED) == ()
    assert graph._store.refs.list(MANIFEST) == ()


def test_a_base_that_cannot_be_read_is_said_and_not_stepped_over(graph):
    graph.branches.create("d")
    graph.branches.create("x")
    insert(graph, "new", branch="x")
    graph.merge("x", into="d")
    graph.merge("x", delete_branch=True)
    write(graph, {PERSON: deletes("new")}, branch="d")
    before = tip(graph, "main")
    (retired,) = graph._manifest.names.retired_branches()
    for path in graph._store.objects.list(f"{MANIFEST}/tree/{retired.ref}"):
        graph._store.objects.delete(path)
    graph._store.objects.delete(f"{MANIFEST}/_refs/branches/{retired.ref}.json")

    fresh = omnigraph.open(graph.uri)
    for dry_run in (True, False):
        with pytest.raises(StorageError, match="what both branches come from") as refused:
            fresh.merge("d", dry_run=dry_run)
        assert refused.value.code is ErrorCode.MERGE_BASE_UNREADABLE
        assert refused.value.hint
    assert tip(graph, "main") == before
    assert [each.subject for each in fresh.check(history=True).findings]


@pytest.mark.parametrize("point", [Failpoint.BRANCH_AFTER_END, Failpoint.BRANCH_AFTER_RETIRE])
def test_the_next_writer_finishes_a_delete_that_was_killed(graph, point):
    graph.branches.create("draft")
    insert(graph, "eva", branch="draft")
    cut_off(Cut(point), lambda: graph.branches.delete("draft"))

    with pytest.raises(ConflictError, match="draft is being deleted"):
        insert(graph, "fay", branch="draft")
    later = omnigraph.open(graph.uri, clock=LaterClock(AFTER_A_LEASE))
    with pytest.raises(BranchNotFoundError, match="draft"):
        insert(later, "fay", branch="draft")
    assert graph.branches.list() == ("main",)
    graph.branches.create("draft")
    insert(graph, "gus", branch="draft")
    at_rest(graph.uri)
    assert_next_writes_work(graph.uri)


@pytest.mark.parametrize("point", [Failpoint.BRANCH_AFTER_END, Failpoint.BRANCH_AFTER_RETIRE])
def test_cleanup_finishes_a_delete_that_was_killed(graph, point):
    graph.branches.create("draft")
    insert(graph, "eva", branch="draft")
    cut_off(Cut(point), lambda: graph.branches.delete("draft"))

    assert graph.cleanup().refs == ()
    assert graph.branches.list() == ("main", "draft")
    omnigraph.open(graph.uri, clock=LaterClock(AFTER_A_LEASE)).cleanup()
    assert graph.branches.list() == ("main",)
    assert_next_writes_work(graph.uri)


@pytest.mark.parametrize("next_", ["writer", "cleanup", "delete"])
def test_a_delete_that_was_killed_before_the_branch_ended_did_not_happen(graph, next_):
    graph.branches.create("draft")
    insert(graph, "eva", branch="draft")
    cut_off(Cut(Failpoint.BRANCH_AFTER_MARK), lambda: graph.branches.delete("draft"))

    with pytest.raises(ConflictError, match="draft is being deleted"):
        insert(omnigraph.open(graph.uri), "fay", branch="draft")
    # A writer that was there before goes on, and what it was told has landed stays.
    insert(graph, "gus", branch="draft")
    later = omnigraph.open(graph.uri, clock=LaterClock(AFTER_A_LEASE))
    if next_ == "writer":
        insert(later, "hal", branch="draft")
    elif next_ == "cleanup":
        later.cleanup()
    else:
        later.branches.delete("draft")
        assert graph.branches.list() == ("main",)
        return
    assert people(graph.at(branch="draft"))[:4] == ["ada", "bob", "eva", "gus"]
    insert(omnigraph.open(graph.uri), "ida", branch="draft")
    assert_next_writes_work(graph.uri)


def test_a_branch_that_is_made_from_an_ended_one_has_not_ended(graph):
    graph.branches.create("draft")
    insert(graph, "eva", branch="draft")
    graph.merge("draft")
    ended: list[Snapshot] = []
    with arm(Failpoint.BRANCH_AFTER_END, lambda: ended.append(graph.at(branch="draft").snapshot())):
        graph.branches.delete("draft")
    lifecycle.create(graph._manifest, graph._clock, BranchName("heir"), ended[0])

    insert(graph, "fay", branch="heir")
    assert people(graph.at(branch="heir")) == ["ada", "bob", "eva", "fay"]


def record(graph: Graph, name: str) -> Branch:
    branch = graph._manifest.names.find(BranchName(name))
    assert branch is not None
    return branch


def test_a_killed_delete_of_what_others_build_on_is_withdrawn(graph):
    graph.branches.create("draft")
    graph.branches.create("child", branch="draft")
    # As by somebody who did not see the child in time, and was killed.
    graph._manifest.names.mark(record(graph, "draft"), graph._clock.now())

    later = omnigraph.open(graph.uri, clock=LaterClock(AFTER_A_LEASE))
    insert(later, "eva", branch="draft")
    assert people(graph.at(branch="draft")) == ["ada", "bob", "eva"]
    with pytest.raises(NotAllowedError, match="child builds on it"):
        graph.branches.delete("draft")


def test_a_killed_delete_at_a_commit_is_withdrawn_where_the_branch_moved_on(graph):
    graph.branches.create("draft")
    insert(graph, "eva", branch="draft")
    merged = CommitId(tip(graph, "draft"))
    insert(graph, "precious", branch="draft")
    # The write landed between the look at the head and the mark, and the deleter was killed.
    graph._manifest.names.mark(record(graph, "draft"), graph._clock.now(), head=merged)

    omnigraph.open(graph.uri, clock=LaterClock(AFTER_A_LEASE)).cleanup()
    assert people(graph.at(branch="draft")) == ["ada", "bob", "eva", "precious"]
    insert(graph, "fay", branch="draft")


def test_a_commit_that_landed_as_its_branch_lost_its_name_is_kept(graph):
    graph.branches.create("draft")
    expected = CommitId(tip(graph, "draft"))
    insert(graph, "precious", branch="draft")
    pin = graph.snapshot(branch="draft").pin(PERSON)
    # As by a deleter that was killed before it looked at the head once more.
    graph._manifest.names.retire(record(graph, "draft"), graph._clock.now(), head=expected)

    assert clean(graph) == RefCleanup()
    assert pin.ref in graph._store.refs.list(pin.location)


def test_a_delete_that_failed_leaves_the_branch_as_it_was(graph, monkeypatch):
    graph.branches.create("draft")
    insert(graph, "eva", branch="draft")
    users_of, calls = Branches.users_of, count()

    def failing(names: Branches, branch: Branch) -> tuple[BranchName, ...]:
        if next(calls):
            message = "the network is down"
            raise StorageError(message)
        return users_of(names, branch)

    with monkeypatch.context() as patch:
        patch.setattr(Branches, "users_of", failing)
        with pytest.raises(StorageError, match="network"):
            graph.branches.delete("draft")
    later = omnigraph.open(graph.uri, clock=LaterClock(AFTER_A_LEASE))
    insert(later, "fay", branch="draft")
    later.branches.create("child", branch="draft")


def test_a_mark_of_an_earlier_release_deletes_nothing(graph):
    graph.branches.create("draft")
    objects, path = graph._store.objects, f"{BRANCHES}/draft.json"
    stored = objects.read(path)
    assert stored is not None
    facts = {**json.loads(stored.data), "is_ending": True}
    del facts["ending_since"], facts["ending_head"]
    objects.put(path, json.dumps(facts).encode())

    insert(graph, "eva", branch="draft")
    omnigraph.open(graph.uri, clock=LaterClock(MUCH_LATER)).cleanup()
    assert people(graph.at(branch="draft")) == ["ada", "bob", "eva"]


def test_a_deleter_that_slept_takes_no_other_branch_its_name(graph, monkeypatch):
    graph.branches.create("x")
    rival = omnigraph.open(graph.uri)
    require_record, slept = Branches._require_record, count()

    def late(names: Branches, branch: Branch) -> object:
        held = require_record(names, branch)
        # The last look before the name is taken away.
        if names is graph._manifest.names and next(slept) == 2:
            rival.branches.delete("x")
            rival.branches.create("x")
            insert(rival, "eva", branch="x")
        return held

    monkeypatch.setattr(Branches, "_require_record", late)
    with pytest.raises(BranchNotFoundError):
        graph.branches.delete("x")
    monkeypatch.undo()
    assert next(slept) > 2
    assert people(graph.at(branch="x")) == ["ada", "bob", "eva"]


def test_a_name_whose_deleter_was_killed_in_its_last_step_can_be_had_again(graph, monkeypatch):
    graph.branches.create("x")
    delete = Objects.delete

    def killed(objects: Objects, path: str) -> None:
        if path == f"{BRANCHES}/x.json":
            raise SimulatedCrash
        delete(objects, path)

    with monkeypatch.context() as patch:
        patch.setattr(Objects, "delete", killed)
        with pytest.raises(SimulatedCrash):
            graph.branches.delete("x")
    with pytest.raises(BranchNotFoundError):
        graph.at(branch="x")
    with pytest.raises(ConflictError):
        graph.branches.create("x")
    later = omnigraph.open(graph.uri, clock=LaterClock(AFTER_A_LEASE))
    later.branches.create("x")
    assert people(graph.at(branch="x")) == ["ada", "bob"]


def test_a_merge_whose_source_is_deleted_meanwhile_merges_nothing(graph):
    graph.branches.create("x")
    insert(graph, "eva", branch="x")
    rival = omnigraph.open(graph.uri)
    plan = graph._merges._plan

    def late(*arguments: object) -> object:
        planned = plan(*arguments)
        rival.branches.delete("x")
        return planned

    graph._merges._plan = late
    with pytest.raises(BranchNotFoundError, match="x was deleted while it was merged"):
        graph.merge("x")
    assert people(graph) == ["ada", "bob"]
    assert_next_writes_work(graph.uri)


def test_a_branch_created_while_its_source_is_cleaned_up_is_refused(graph, monkeypatch):
    graph.branches.create("x")
    insert(graph, "eva", branch="x")
    snapshot = graph.snapshot(branch="x")
    graph.branches.delete("x")
    delete = Refs.delete
    made: list[bool] = []

    def late(refs: Refs, location: str, name: str) -> None:
        if location == MANIFEST and not made:
            made.append(True)
            with pytest.raises(ConflictError, match="branch x is being deleted"):
                lifecycle.create(graph._manifest, graph._clock, BranchName("y"), snapshot)
        delete(refs, location, name)

    monkeypatch.setattr(Refs, "delete", late)
    found = clean(graph)
    assert made
    assert found.troubles == ()
    assert graph.branches.list() == ("main",)
    assert graph._store.refs.list(MANIFEST) == ()
    assert graph.check().is_sound


class TestRecords:
    """What else may lie beside the records of branches."""

    def test_foreign_files_are_no_branches(self, graph):
        graph.branches.create("review/1")
        for name in (".DS_Store", "x.json.tmp", "a b.json", "sub/.DS_Store", "review=2.json~"):
            graph._store.objects.put(f"{BRANCHES}/{name}", b"x")
        assert graph.branches.list() == ("main", "review/1")
        insert(graph, "eva", branch="review/1")
        assert graph.merge("review/1", delete_branch=True).deleted_source
        assert graph.repair(dry_run=True).drifts == ()
        assert graph.commits.show(tip(graph, "main")).merged_parent is not None

    def test_one_damaged_record_keeps_nothing_else(self, graph):
        for name in ("a", "b"):
            graph.branches.create(name)
        insert(graph, "eva", branch="a")
        merged = tip(graph, "a")
        graph._store.objects.put(f"{BRANCHES}/broken.json", b"{")
        assert graph.branches.list() == ("main", "a", "b", "broken")
        graph.merge("a", delete_branch=True)
        graph.branches.delete("b")
        assert people(graph.at(commit=merged)) == ["ada", "bob", "eva"]
        found = clean(graph)
        assert ["broken" in each.message for each in found.troubles] == [True]
        assert found.reclaimed == ()
        with pytest.raises(StorageError, match="broken"):
            graph.at(branch="broken")
        graph._store.objects.delete(f"{BRANCHES}/broken.json")
        assert len(clean(graph).reclaimed) == 1

    def test_names_that_end_like_files_stand_beside_those_that_do_not(self, graph):
        for name in ("w", "w.json/b", "v.json/b"):
            graph.branches.create(name)
            insert(graph, f"of {name}", branch=name)
        graph.branches.delete("v.json/b")
        graph.branches.create("v")
        assert graph.branches.list() == ("main", "v", "w", "w.json/b")
        for name in ("w", "w.json/b"):
            assert f"of {name}" in people(graph.at(branch=name))
