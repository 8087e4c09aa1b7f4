"""Tags: names for commits that stand wherever a commit id can, on a disk and in a bucket."""

import json
from collections.abc import Callable
from functools import partial
from itertools import count
from pathlib import Path

import pytest

import omnigraph
from omnigraph.connector.options import PinnedQuery, pin
from omnigraph.errors import (
    AlreadyExistsError,
    BranchNotFoundError,
    CommitNotFoundError,
    ConflictError,
    ErrorCode,
    InvalidNameError,
    NotAllowedError,
    OmnigraphError,
    StaleHeadError,
    StorageError,
    TagNotFoundError,
)
from omnigraph.failpoints import Failpoint, arm
from omnigraph.graph import Graph
from omnigraph.limits import LEASE_SECONDS
from omnigraph.maintenance.checking.report import Invariant
from omnigraph.maintenance.cleanup.refs import RefCleanup, clean_refs
from omnigraph.manifest.tags import tag_path
from tests.support.clocks import FakeClock, LaterClock
from tests.support.concurrency import at_once
from tests.support.writers import furnished, insert

_numbers = count()
MUCH_LATER = 10 * 24 * 3600.0


@pytest.fixture(params=["local", "s3"])
def graph(request: pytest.FixtureRequest, tmp_path: Path) -> Graph:
    if request.param == "local":
        return furnished(str(tmp_path / "graph.omni"))
    return furnished(f"s3://{request.getfixturevalue('s3_bucket')}/graph.omni")


@pytest.fixture
def local(tmp_path: Path) -> Graph:
    return furnished(str(tmp_path / "graph.omni"))


def people(graph: Graph) -> list[str]:
    names = "query q() { match { $p: Person } return { $p.name } order { $p.name } }"
    return [row["p.name"] for row in graph.query(names).rows()]


def tip(graph: Graph, branch: str = "main") -> str:
    return str(graph.snapshot(branch=branch).head.commit_id)


def clean(graph: Graph) -> RefCleanup:
    sidecars = graph._transactions.recovery.sidecars
    return clean_refs(graph._manifest, sidecars, LaterClock(MUCH_LATER))


def test_a_tag_names_a_commit_until_it_is_deleted(graph):
    first = tip(graph)
    tag = graph.tags.create("release/1", actor="ada", message="the first\nof many")
    insert(graph, "eva")
    fresh = omnigraph.open(graph.uri, read_only=True)

    assert fresh.tags.list() == (tag,)
    shown = fresh.tags.show("release/1")
    assert (shown.commit_id, shown.actor, shown.message, shown.branch) == (
        first, "ada", "the first\nof many", "main",
    )  # fmt: skip
    assert people(fresh.at(commit="release/1")) == ["ada", "bob"]

    graph.tags.delete("release/1")
    assert graph.tags.list() == ()
    with pytest.raises(TagNotFoundError, match="has no tag release/1"):
        graph.tags.show("release/1")
    graph.tags.create("release/1")
    assert people(fresh.at(commit="release/1")) == ["ada", "bob", "eva"]


def test_a_tag_stands_wherever_a_commit_can(local):
    graph = local
    graph.tags.create("v1")
    first = tip(graph)
    insert(graph, "eva")
    graph.tags.create("v2")

    assert people(graph.at(commit="v1")) == ["ada", "bob"]
    assert graph.snapshot(commit="v1").head.commit_id == first
    query = "query q() { match { $p: Person } return { $p.name } }"
    assert len(graph.query(query, commit="v1").rows()) == 2
    assert graph.explain(query, commit="v1").engine == "local"
    assert graph.commits.show("v1").commit_id == first
    assert graph.commits.changes("v2").counts["Person"].inserted == 1
    assert graph.diff("v1", "v2").counts["Person"].inserted == 1
    assert graph.diff("v1", "main").counts["Person"].inserted == 1
    assert graph.entity("Person", "eva", at="v1") is None
    assert graph.schema.show(commit="v1").text == graph.schema.show().text
    assert graph.schema.diff("v1", "main").steps == ()
    assert [each.commit.commit_id for each in graph.changes(after="v1").commits] == [tip(graph)]
    assert people(graph.branches.create("from-tag", commit="v1")) == ["ada", "bob"]
    assert graph.tags.create("v1-again", commit="v1").commit_id == first
    pinned = pin({"graph": graph.uri, "commit": "v1", "query": query})
    assert isinstance(pinned, PinnedQuery)
    assert pinned.place.commit_id == first

    add = 'query q() { insert Person { name: "fay" } }'
    with pytest.raises(StaleHeadError):
        graph.mutate(add, expect_head="v1")
    assert graph.mutate(add, expect_head="v2").commit_id == tip(graph)


def test_a_handle_stays_where_its_tag_was(local):
    local.tags.create("v")
    past = local.at(commit="v")
    insert(local, "eva")
    local.tags.delete("v")
    local.tags.create("v")
    assert people(past) == ["ada", "bob"]


@pytest.mark.parametrize(
    "use",
    [
        lambda graph: graph.at(commit="v1.O"),
        lambda graph: graph.query(
            "query q() { match { $p: Person } return { $p } }", commit="v1.O"
        ),
        lambda graph: graph.commits.show("v1.O"),
        lambda graph: graph.branches.create("x", commit="v1.O"),
        lambda graph: graph.tags.create("x", commit="v1.O"),
        lambda graph: graph.changes(after="v1.O"),
        lambda graph: graph.tags.show("v1.O"),
        lambda graph: graph.tags.delete("v1.O"),
        lambda graph: graph.mutate("query q() { delete Person }", expect_head="v1.O"),
        lambda graph: pin({"graph": graph.uri, "commit": "v1.O", "path": "Person"}),
    ],
)
def test_an_unknown_tag_is_named_with_the_nearest(local, use: Callable[[Graph], object]):
    local.tags.create("v1.0")
    with pytest.raises(TagNotFoundError, match=r"has no tag v1\.O") as told:
        use(local)
    assert told.value.hint == "did you mean v1.0?"


def test_where_a_branch_may_stand_the_nearest_name_of_any_kind_is_named(local):
    local.tags.create("release-1")
    with pytest.raises(
        BranchNotFoundError, match="neither a tag nor a commit: ids have 26"
    ) as told:
        local.diff("main", "release-2")
    assert told.value.hint == "did you mean release-1?"


@pytest.mark.parametrize("text", ["", "a b", "v1^"])
def test_what_can_be_no_name_at_all_is_told_so(local, text):
    with pytest.raises(InvalidNameError, match="neither a commit id nor the name of a tag"):
        local.at(commit=text)


@pytest.mark.parametrize("name", ["main", "draft"])
def test_a_branch_given_as_a_commit_is_told_so(local, name):
    local.branches.create("draft")
    with pytest.raises(OmnigraphError) as told:
        local.at(commit=name)
    assert told.value.hint == f"{name} is a branch: name it as the branch, and no commit"


def test_a_tag_is_never_the_name_of_a_branch_nor_a_branch_that_of_a_tag(graph):
    graph.branches.create("draft")
    with pytest.raises(AlreadyExistsError, match="has a branch draft") as told:
        graph.tags.create("draft")
    assert told.value.code is ErrorCode.BRANCH_EXISTS
    graph.tags.create("v1")
    with pytest.raises(AlreadyExistsError, match="has a tag v1") as told:
        graph.branches.create("v1")
    assert told.value.code is ErrorCode.TAG_EXISTS
    with pytest.raises(AlreadyExistsError, match="already has a tag v1") as told:
        graph.tags.create("v1")
    assert told.value.code is ErrorCode.TAG_EXISTS
    assert graph.branches.list() == ("main", "draft")
    assert [tag.name for tag in graph.tags.list()] == ["v1"]
    # What was withdrawn leaves nothing, and the names are free again.
    assert {each.ref for each in clean(graph).reclaimed} == set()
    graph.tags.delete("v1")
    graph.branches.create("v1")
    graph.branches.delete("draft")
    graph.tags.create("draft")


def test_a_name_may_be_above_or_below_that_of_a_branch(graph):
    graph.branches.create("review/1")
    graph.tags.create("review")
    graph.tags.create("review/1/done")
    assert graph.branches.list() == ("main", "review/1")


def test_what_is_missing_or_not_allowed_creates_nothing(local):
    with pytest.raises(CommitNotFoundError):
        local.tags.create("v1", commit="01ARZ3NDEKTSV4RRFFQ69G5FAV")
    with pytest.raises(BranchNotFoundError):
        local.tags.create("v1", branch="nope")
    with pytest.raises(InvalidNameError, match="is not a tag name"):
        local.tags.create("v 1")
    with pytest.raises(NotAllowedError):
        omnigraph.open(local.uri, read_only=True).tags.create("v1")
    with pytest.raises(NotAllowedError):
        local.at(commit=tip(local)).tags.delete("v1")
    assert local.tags.list() == ()


def create(graph: Graph, kind: str, name: str) -> str:
    try:
        getattr(omnigraph.open(graph.uri), kind).create(name)
    except OmnigraphError as refused:
        return str(refused.code)
    return "done"


def test_of_two_that_create_a_tag_one_does(graph):
    for number in range(3):
        name = f"v{number}"
        told = at_once([partial(create, graph, "tags", name)] * 2)
        assert sorted(told) == ["done", "tag_exists"]


def test_of_two_that_create_a_tag_and_a_branch_at_most_one_does(graph):
    for number in range(4):
        name = f"r{number}"
        told = at_once(
            [
                partial(create, graph, "tags", name),
                partial(create, graph, "branches", name),
            ]
        )
        assert told.count("done") <= 1
        exists = (
            name in [tag.name for tag in graph.tags.list()],
            name in graph.branches.list(),
        )
        assert exists == tuple(each == "done" for each in told)
    assert graph.check(rows=False).is_sound


def test_a_branch_created_while_a_tag_is_sees_it(local):
    told: list[str] = []
    with arm(Failpoint.TAG_AFTER_PUT, lambda: told.append(create(local, "branches", "x"))):
        local.tags.create("x")
    assert told == ["tag_exists"]
    assert local.branches.list() == ("main",)
    assert [tag.name for tag in local.tags.list()] == ["x"]


def test_a_tag_created_while_a_branch_is_sees_it(local):
    told: list[str] = []
    with arm(Failpoint.BRANCH_AFTER_NAME, lambda: told.append(create(local, "tags", "x"))):
        local.branches.create("x")
    assert told == ["branch_exists"]
    assert local.branches.list() == ("main", "x")
    assert local.tags.list() == ()


def test_a_tag_that_took_too_long_is_withdrawn(local):
    clock = FakeClock()
    slow = omnigraph.open(local.uri, clock=clock)
    with (
        arm(Failpoint.TAG_AFTER_PUT, lambda: clock.sleep(LEASE_SECONDS + 1)),
        pytest.raises(ConflictError, match="took longer"),
    ):
        slow.tags.create("x")
    assert local.tags.list() == ()


def test_who_withdraws_a_tag_leaves_another_of_its_name(local):
    clock = FakeClock()
    slow = omnigraph.open(local.uri, clock=clock)

    def replace() -> None:
        local.tags.delete("x")
        local.tags.create("x", message="another")
        clock.sleep(LEASE_SECONDS + 1)

    # The second hit is that of the other one.
    with (
        arm(Failpoint.TAG_AFTER_PUT, lambda: None if local.tags.show("x").message else replace()),
        pytest.raises(ConflictError),
    ):
        slow.tags.create("x")
    assert [tag.message for tag in local.tags.list()] == ["another"]


def test_a_tagged_commit_is_read_after_its_branch_is_deleted_and_cleaned_up(graph):
    graph.branches.create("x")
    insert(graph, "eva", branch="x")
    early = tip(graph, "x")
    insert(graph, "fay", branch="x")
    graph.tags.create("v1", branch="x")
    insert(graph, "gil", branch="x")
    graph.branches.delete("x")
    clean(graph)

    fresh = omnigraph.open(graph.uri, read_only=True)
    assert people(fresh.at(commit="v1")) == ["ada", "bob", "eva", "fay"]
    # The history of what it names is there, too, by its ids.
    assert people(fresh.at(commit=early)) == ["ada", "bob", "eva"]
    assert fresh.diff(early, "v1").counts["Person"].inserted == 1
    assert len(fresh.at(commit="v1").commits.list()) == len(fresh.commits.list()) + 2
    assert fresh.check(history=True).findings == ()
    other = graph.branches.create("y", commit="v1")
    insert(graph, "hal", branch="y")
    assert people(other) == ["ada", "bob", "eva", "fay", "hal"]

    graph.branches.delete("y")
    graph.tags.delete("v1")
    assert len(clean(graph).reclaimed) > 0
    with pytest.raises(CommitNotFoundError):
        fresh.at(commit=early)


def test_a_check_finds_what_is_wrong_with_a_tag(local):
    local.tags.create("good")
    local.tags.create("lost")
    objects = local._store.objects
    record = json.loads(objects.read(tag_path("lost")).data)
    objects.put(tag_path("lost"), json.dumps({**record, "commit_id": "0" * 26}).encode())
    objects.put(tag_path("garbled"), b"{")
    objects.put("__tags/notes.txt", b"x")
    objects.put(tag_path("draft"), objects.read(tag_path("good")).data)
    local.branches.create("other")
    objects.put("__tags/other.json", objects.read(tag_path("good")).data)

    report = local.check(rows=False)

    assert report.checked[Invariant.TAG] == 5
    found = {each.subject: each.problem for each in report.findings}
    assert found.keys() == {"tag lost", "tag garbled", "tag other"}
    assert "commit 00000000000000000000000000, which tag lost names" in found["tag lost"]
    assert "cannot be read" in found["tag garbled"]
    assert "a branch has its name, too" in found["tag other"]
    assert all(each.invariant is Invariant.TAG for each in report.findings)
    assert [note.subject for note in report.notes] == ["__tags/notes.txt"]


@pytest.mark.parametrize("data", [b"{", b"[]", b"{}", b'{"commit_id": 3}'])
def test_a_record_that_cannot_be_read_is_an_error_and_can_be_deleted(local, data):
    local.tags.create("v1")
    local._store.objects.put(tag_path("v1"), data)
    for use in (local.tags.list, lambda: local.at(commit="v1")):
        with pytest.raises(StorageError, match=r"tag v1, __tags/v1\.json, cannot be read") as told:
            use()
        assert told.value.code is ErrorCode.CORRUPTED
    # Which commits it keeps is unknown, so that nothing of a deleted branch goes.
    local.branches.create("x")
    insert(local, "eva", branch="x")
    local.branches.delete("x")
    assert [each.ref for each in clean(local).reclaimed] == []
    local.tags.delete("v1")
    assert local.tags.list() == ()
    assert len(clean(local).reclaimed) > 0
