"""Branches that were deleted: what others merged of them stays, and the rest goes."""

from datetime import timedelta
from pathlib import Path

import pytest

import omnigraph
from omnigraph.branching.cleanup import RefCleanup, clean_refs
from omnigraph.errors import (
    BranchNotFoundError,
    CommitNotFoundError,
    ConflictError,
    ErrorCode,
    NotAllowedError,
    StorageError,
)
from omnigraph.failpoints import Failpoint
from omnigraph.graph import Graph
from omnigraph.limits import LEASE_SECONDS
from omnigraph.manifest.layout import BRANCHES, MANIFEST, RETIRED
from omnigraph.model.names import BranchName
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
    (retired,) = graph._manifest.names.retired()
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


@pytest.mark.parametrize("point", [Failpoint.BRANCH_AFTER_MARK, Failpoint.BRANCH_AFTER_RETIRE])
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


@pytest.mark.parametrize("point", [Failpoint.BRANCH_AFTER_MARK, Failpoint.BRANCH_AFTER_RETIRE])
def test_cleanup_finishes_a_delete_that_was_killed(graph, point):
    graph.branches.create("draft")
    insert(graph, "eva", branch="draft")
    cut_off(Cut(point), lambda: graph.branches.delete("draft"))

    assert graph.cleanup().refs == ()
    assert graph.branches.list() == ("main", "draft")
    omnigraph.open(graph.uri, clock=LaterClock(AFTER_A_LEASE)).cleanup()
    assert graph.branches.list() == ("main",)
    assert_next_writes_work(graph.uri)


def test_a_killed_delete_of_what_others_build_on_is_withdrawn(graph):
    graph.branches.create("draft")
    cut_off(Cut(Failpoint.BRANCH_AFTER_MARK), lambda: graph.branches.delete("draft"))
    later = omnigraph.open(graph.uri, clock=LaterClock(AFTER_A_LEASE))
    # As somebody who registered it just before the mark, and was not seen in time.
    branch = graph._manifest.names.find(BranchName("draft"))
    assert branch is not None
    child = later._manifest.names
    graph._manifest.names.mark(branch, ending_since=None)
    graph.branches.create("child", branch="draft")
    assert branch.ending_since is not None
    child.mark(branch, ending_since=branch.ending_since)

    insert(later, "eva", branch="draft")
    assert people(graph.at(branch="draft")) == ["ada", "bob", "eva"]
    with pytest.raises(NotAllowedError, match="child builds on it"):
        graph.branches.delete("draft")


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


def test_a_branch_created_at_the_last_moment_keeps_what_it_stands_on(graph, monkeypatch):
    graph.branches.create("x")
    insert(graph, "eva", branch="x")
    snapshot = graph.snapshot(branch="x")
    graph.branches.delete("x")
    delete = Refs.delete
    made: list[bool] = []

    def late(refs: Refs, location: str, name: str) -> None:
        if location == MANIFEST and not made:
            made.append(True)
            version = snapshot.manifest_version
            refs.mint(MANIFEST, graph._clock.ulid(), source=snapshot.ref, version=version)
        delete(refs, location, name)

    monkeypatch.setattr(Refs, "delete", late)
    found = clean(graph)
    assert [each.location for each in found.troubles] == [MANIFEST]
    assert found.reclaimed == ()
    pin = snapshot.pin(PERSON)
    assert pin.ref in graph._store.refs.list(pin.location)


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

    def test_records_in_folders_of_an_earlier_release_are_found(self, graph):
        graph.branches.create("review/1")
        insert(graph, "eva", branch="review/1")
        objects = graph._store.objects
        stored = objects.read(f"{BRANCHES}/review=1.json")
        assert stored is not None
        objects.delete(f"{BRANCHES}/review=1.json")
        objects.put(f"{BRANCHES}/review/1.json", stored.data)

        assert graph.branches.list() == ("main", "review/1")
        insert(graph, "fay", branch="review/1")
        with pytest.raises(omnigraph.errors.AlreadyExistsError):
            graph.branches.create("review/1")
        assert graph.merge("review/1", delete_branch=True).deleted_source
        assert objects.list(BRANCHES) == ()
