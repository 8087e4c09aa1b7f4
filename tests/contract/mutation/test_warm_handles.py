"""A handle that has just written plans on the state that it left, and nobody can tell."""

from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph.branching import lifecycle
from omnigraph.errors import (
    BranchNotFoundError,
    ConflictError,
    IntegrityError,
    StaleHeadError,
)
from omnigraph.failpoints import Failpoint
from omnigraph.graph import Graph
from omnigraph.manifest.layout import RECOVERY
from omnigraph.model.names import BranchName
from omnigraph.recovery.entries import RecoveryKind
from tests.support.crashes import Cut, cut_off, sleeping_at

SCHEMA = """
node Person { name: String @key  age: I32?  mail: String? @unique }
node City { name: String @key }
edge Knows: Person -> Person
"""
INSERT = "query q($n: String, $a: I32) { insert Person { name: $n, age: $a } }"
MAIL = "query q($n: String, $m: String) { insert Person { name: $n, mail: $m } }"
AGE = "query q($n: String, $a: I32) { update Person set { age: $a } where name = $n }"
DELETE = "query q($n: String) { delete Person where name = $n }"
CITY = "query q($n: String) { insert City { name: $n } }"
PEOPLE = "query q() { match { $p: Person } return { $p.name, $p.age } }"


@pytest.fixture(params=["main", "draft"])
def branch(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def warm(tmp_path: Path, branch: str) -> Graph:
    """A handle that left the branch at a commit of its own."""
    graph = omnigraph.init(str(tmp_path / "graph.omni"), SCHEMA)
    if branch != "main":
        graph.branches.create(branch)
    graph.mutate(INSERT, {"n": "ada", "a": 36}, branch=branch)
    graph.mutate(MAIL, {"n": "bob", "m": "b@x"}, branch=branch)
    return graph


@pytest.fixture
def other(warm: Graph) -> Graph:
    return omnigraph.open(warm.uri)


def ages(graph: Graph, branch: str) -> dict[str, Any]:
    rows = omnigraph.open(graph.uri).query(PEOPLE, branch=branch).arrow().to_pylist()
    return {row["p.name"]: row["p.age"] for row in rows}


def test_an_update_sees_the_row_that_another_has_just_inserted(warm, other, branch):
    other.mutate(INSERT, {"n": "eva", "a": 1}, branch=branch)
    # Where this handle left the branch there is no such row, and nothing to do.
    warm.mutate(AGE, {"n": "eva", "a": 2}, branch=branch)

    assert ages(warm, branch) == {"ada": 36, "bob": None, "eva": 2}


def test_an_update_sees_that_another_has_just_deleted_the_row(warm, other, branch):
    other.mutate(DELETE, {"n": "ada"}, branch=branch)
    warm.mutate(AGE, {"n": "ada", "a": 2}, branch=branch)

    assert ages(warm, branch) == {"bob": None}


def test_an_update_keeps_what_another_has_just_changed_in_the_row(warm, other, branch):
    change = 'query q() { update Person set { mail: "a@x" } where name = "ada" }'
    other.mutate(change, branch=branch)
    warm.mutate(AGE, {"n": "ada", "a": 37}, branch=branch)

    mails = "query q() { match { $p: Person } return { $p.name, $p.mail, $p.age } }"
    rows = omnigraph.open(warm.uri).query(mails, branch=branch).arrow().to_pylist()
    assert {"p.name": "ada", "p.mail": "a@x", "p.age": 37} in rows


def test_a_rule_that_another_has_just_made_room_for_is_kept(warm, other, branch):
    other.mutate(DELETE, {"n": "bob"}, branch=branch)
    warm.mutate(MAIL, {"n": "eva", "m": "b@x"}, branch=branch)

    assert sorted(ages(warm, branch)) == ["ada", "eva"]


def test_a_rule_that_another_has_just_used_up_is_broken(warm, other, branch):
    other.mutate(MAIL, {"n": "eva", "m": "e@x"}, branch=branch)
    with pytest.raises(IntegrityError):
        warm.mutate(MAIL, {"n": "fay", "m": "e@x"}, branch=branch)

    assert sorted(ages(warm, branch)) == ["ada", "bob", "eva"]


def test_an_expected_head_is_compared_with_where_the_branch_is_now(warm, other, branch):
    left = warm.snapshot(branch=branch).head.commit_id
    other.mutate(CITY, {"n": "Oslo"}, branch=branch)
    now = other.snapshot(branch=branch).head.commit_id

    with pytest.raises(StaleHeadError):
        warm.mutate(AGE, {"n": "ada", "a": 1}, branch=branch, expect_head=left)
    warm.mutate(AGE, {"n": "ada", "a": 2}, branch=branch, expect_head=now)
    assert ages(warm, branch)["ada"] == 2


def test_a_schema_that_another_has_just_changed_is_the_one_that_counts(warm, other, branch):
    other.schema.apply(SCHEMA.replace("@unique }", "@unique  @range(age, 0..99) }"), branch=branch)
    with pytest.raises(IntegrityError):
        warm.mutate(INSERT, {"n": "eva", "a": 100}, branch=branch)
    warm.mutate(INSERT, {"n": "fay", "a": 99}, branch=branch)

    assert sorted(ages(warm, branch)) == ["ada", "bob", "fay"]


def test_a_write_that_another_process_was_killed_in_is_resolved_first(warm, branch):
    # Of another table, so that it stands in nobody's way.
    def die() -> None:
        omnigraph.open(warm.uri).mutate(CITY, {"n": "Oslo"}, branch=branch)

    cut_off(Cut(Failpoint.WRITE_AFTER_EACH_APPLY), die)
    assert warm._store.objects.list(RECOVERY) != ()
    warm.mutate(INSERT, {"n": "eva", "a": 1}, branch=branch)

    assert warm._store.objects.list(RECOVERY) == ()
    assert [entry.kind for entry in warm.recoveries.list()] == [RecoveryKind.ROLLED_FORWARD]
    commits = omnigraph.open(warm.uri).commits.list(branch=branch)
    assert commits[0].parent == commits[1].commit_id
    assert sorted(ages(warm, branch)) == ["ada", "bob", "eva"]


def test_a_row_of_a_killed_write_breaks_the_rule_of_the_next(warm, branch):
    def die() -> None:
        mail = {"n": "eva", "m": "e@x"}
        omnigraph.open(warm.uri).mutate(MAIL, mail, branch=branch)

    cut_off(Cut(Failpoint.WRITE_AFTER_EACH_APPLY), die)
    with pytest.raises(IntegrityError):
        warm.mutate(MAIL, {"n": "fay", "m": "e@x"}, branch=branch)

    assert sorted(ages(warm, branch)) == ["ada", "bob", "eva"]


@pytest.mark.parametrize("branch", ["draft"])
def test_a_branch_that_is_gone_is_not_found(warm, other, branch):
    other.branches.delete(branch)
    with pytest.raises(BranchNotFoundError):
        warm.mutate(INSERT, {"n": "eva", "a": 1}, branch=branch)

    assert warm._store.objects.list(RECOVERY) == ()


@pytest.mark.parametrize("branch", ["draft"])
def test_a_branch_that_was_made_again_is_written_to(warm, other, branch):
    other.branches.delete(branch)
    other.branches.create(branch)
    warm.mutate(INSERT, {"n": "eva", "a": 1}, branch=branch)

    assert ages(warm, branch) == {"eva": 1}


@pytest.mark.parametrize("branch", ["draft"])
def test_a_branch_that_is_being_deleted_is_written_to_until_it_ends(warm, other, branch):
    # docs/decisions/0008: who has written to the branch does not read the mark, only the end.
    found: dict[str, Any] = {}
    ref = warm.snapshot(branch=branch).ref

    def write_before() -> None:
        with pytest.raises(ConflictError, match="is being deleted"):
            omnigraph.open(warm.uri).mutate(INSERT, {"n": "fay", "a": 2}, branch=branch)
        landed = warm.mutate(INSERT, {"n": "eva", "a": 1}, branch=branch)
        found["landed"] = landed.commit_id

    def write_after() -> None:
        with pytest.raises(ConflictError, match="is being deleted"):
            warm.mutate(INSERT, {"n": "gus", "a": 3}, branch=branch)
        found["rows"] = ages(warm, branch)

    with (
        sleeping_at(Cut(Failpoint.BRANCH_AFTER_MARK), write_before),
        sleeping_at(Cut(Failpoint.BRANCH_AFTER_END), write_after),
    ):
        other.branches.delete(branch)
    with pytest.raises(BranchNotFoundError):
        warm.mutate(INSERT, {"n": "hal", "a": 4}, branch=branch)

    # What was reported is in what was deleted, and nothing came after it.
    assert found["rows"] == {"ada": 36, "bob": None, "eva": 1}
    ended = warm._manifest.open_ref(ref)
    assert (ended.is_ended, ended.contents.head) == (True, found["landed"])
    assert warm.branches.list() == ("main",)
    assert warm._store.objects.list(RECOVERY) == ()


@pytest.mark.parametrize("branch", ["draft"])
def test_a_branch_that_is_deleted_at_a_commit_stays_with_what_was_written_meanwhile(
    warm, other, branch
):
    record = other._manifest.names.find(BranchName(branch))
    head = other.snapshot(branch=branch).head.commit_id

    def write() -> None:
        warm.mutate(INSERT, {"n": "eva", "a": 1}, branch=branch)

    with (
        sleeping_at(Cut(Failpoint.BRANCH_AFTER_MARK), write),
        pytest.raises(StaleHeadError, match="was not deleted"),
    ):
        lifecycle.delete_unmoved(other._manifest, other._clock, record, head)

    warm.mutate(INSERT, {"n": "fay", "a": 2}, branch=branch)
    assert ages(warm, branch) == {"ada": 36, "bob": None, "eva": 1, "fay": 2}
    assert warm._store.objects.list(RECOVERY) == ()


def test_two_handles_that_take_turns_both_land_every_time(warm, other, branch):
    for number in range(6):
        graph = (warm, other)[number % 2]
        graph.mutate(INSERT, {"n": f"p{number}", "a": number}, branch=branch)

    history = omnigraph.open(warm.uri).commits.list(branch=branch)
    assert len(ages(warm, branch)) == 8
    newest = history[:6]
    assert [each.parent for each in newest[:-1]] == [each.commit_id for each in newest[1:]]
