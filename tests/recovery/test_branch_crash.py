"""Making and deleting branches, cut off anywhere and by two processes at once."""

from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph.errors import OmnigraphError
from omnigraph.failpoints import Failpoint
from omnigraph.graph import Graph
from omnigraph.maintenance.cleanup.refs import clean_refs
from omnigraph.manifest.layout import MANIFEST
from omnigraph.model.names import MAIN
from tests.support.clocks import LaterClock
from tests.support.concurrency import in_processes
from tests.support.crashes import (
    Cut,
    assert_next_writes_work,
    at_rest,
    cut_off,
    picture,
    put_to_death,
    trace,
)
from tests.support.publishing import PERSON
from tests.support.writers import furnished, insert

_numbers = count()
MUCH_LATER = 10 * 24 * 3600.0
Place = Callable[[], str]
Kill = Callable[..., None]


def furnish(uri: str) -> str:
    """A graph with a branch that has rows of its own."""
    # Not a copy of one: a branch holds absolute paths (docs/substrate.md, Branches of a table).
    graph = furnished(uri)
    graph.branches.create("old")
    insert(graph, "eva", branch="old")
    return graph.uri


@pytest.fixture
def local(tmp_path: Path) -> Place:
    return lambda: furnish(str(tmp_path / f"{next(_numbers)}.omni"))


@pytest.fixture
def s3(s3_bucket: str) -> Place:
    return lambda: furnish(f"s3://{s3_bucket}/{next(_numbers)}.omni")


def create(uri: str) -> None:
    omnigraph.open(uri).branches.create("new", branch="old")


def delete(uri: str) -> None:
    omnigraph.open(uri).branches.delete("old")


COMMANDS = {"create": create, "delete": delete}
LAST = {"create": Failpoint.BRANCH_AFTER_NAME, "delete": Failpoint.BRANCH_AFTER_UNREGISTER}
"""From there on, others see that it was done."""


def raised(cut: Cut, work: Callable[[str], None], uri: str) -> None:
    cut_off(cut, lambda: work(uri))


def cuts_of(uri: str, command: str) -> list[Cut]:
    every = trace(lambda: COMMANDS[command](uri))
    return [each for each in every if each.point.startswith("branch.")]


def seen(uri: str) -> dict[str, list[str]]:
    """Every branch, with its people, as a fresh reader sees them."""
    found = picture(uri).rows
    return {
        branch: [row["id"] for row in rows]
        for (branch, key), rows in found.items()
        if key == str(PERSON)
    }


def leftovers(graph: Graph) -> dict[str, int]:
    """How many refs each place has."""
    store = graph._store
    places = [MANIFEST, *(pin.location for pin in graph.snapshot().pins.values())]
    return {place: len(found) for place in places if (found := store.refs.list(place))}


BEFORE = {"main": ["ada", "bob"], "old": ["ada", "bob", "eva"]}
AFTER = {
    "create": {**BEFORE, "new": ["ada", "bob", "eva"]},
    "delete": {"main": ["ada", "bob"]},
}


def check(uri: str, command: str, *, done: bool) -> None:
    """It is done or it is not; it can be done again; and what it left can be cleaned up."""
    assert seen(uri) == (AFTER[command] if done else BEFORE)
    at_rest(uri)
    if not done:
        COMMANDS[command](uri)
        assert seen(uri) == AFTER[command]
    graph = omnigraph.open(uri)
    later, sidecars = LaterClock(MUCH_LATER), graph._transactions.recovery.sidecars
    assert clean_refs(graph._manifest, sidecars, later).troubles == ()
    assert seen(uri) == AFTER[command]
    assert_next_writes_work(uri)
    for branch in ("new", "old"):
        if branch in AFTER[command]:
            graph.branches.delete(branch)
    assert clean_refs(graph._manifest, sidecars, later).troubles == ()
    assert leftovers(graph) == {}


def test_the_loop_passes_every_failpoint_of_the_branch_commands(local):
    passed = {each.point for command in COMMANDS for each in cuts_of(local(), command)}

    assert passed == {each for each in Failpoint if each.startswith("branch.")}


@pytest.mark.parametrize("kill", [raised, put_to_death], ids=["raised", "killed"])
@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_that_is_cut_off_is_done_or_not(local, command, kill):
    for cut in cuts_of(local(), command):
        uri = local()
        kill(cut, COMMANDS[command], uri)
        check(uri, command, done=_follows(cut, command))


def _follows(cut: Cut, command: str) -> bool:
    points = list(Failpoint)
    return points.index(cut.point) >= points.index(LAST[command])


@pytest.mark.soak
@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_that_is_cut_off_on_an_object_store_is_done_or_not(s3, command):
    for cut in cuts_of(s3(), command):
        uri = s3()
        raised(cut, COMMANDS[command], uri)
        check(uri, command, done=_follows(cut, command))


def test_a_command_cut_off_inside_lance_leaves_nothing_in_the_way(local):
    # Between Lance's own writes there is no failpoint of ours: a ref's files, then its name.
    uri = local()
    graph = omnigraph.open(uri)
    snapshot = graph.snapshot()
    ref = graph._clock.ulid()
    graph._store.refs.create(MANIFEST, ref, source=None, version=snapshot.manifest_version)
    (named,) = [path for path in graph._store.objects.list(f"{MANIFEST}/_refs") if ref in path]
    graph._store.objects.delete(named)

    create(uri)
    assert seen(uri) == AFTER["create"]
    later, sidecars = LaterClock(MUCH_LATER), graph._transactions.recovery.sidecars
    told = clean_refs(graph._manifest, sidecars, later)
    assert [each.ref for each in told.reclaimed] == [ref]
    assert graph._store.objects.list(f"{MANIFEST}/tree/{ref}") == ()


def compete(barrier: Any, uri: str, commands: list[tuple[str, str]]) -> list[str]:
    """Carry out one command per round, all processes at once, and tell how each ended."""
    graph = omnigraph.open(uri)
    told = []
    for verb, name in commands:
        barrier.wait(60)
        try:
            getattr(graph.branches, verb)(name)
        except OmnigraphError as refused:
            told.append(str(refused.code))
        else:
            told.append("done")
        barrier.wait(60)
    return told


ROUNDS = 4


def raced(uri: str, first: str, second: str) -> list[tuple[str, str]]:
    rounds = range(ROUNDS)
    mine, others = ([(verb, f"r{number}") for number in rounds] for verb in (first, second))
    ours, theirs = in_processes(compete, [(uri, mine), (uri, others)])
    return list(zip(ours, theirs, strict=True))


def test_of_two_that_create_a_branch_one_does(local):
    uri = local()
    told = raced(uri, "create", "create")
    assert {tuple(sorted(each)) for each in told} == {("branch_exists", "done")}
    graph = omnigraph.open(uri)
    assert graph.branches.list() == ("main", "old", *(f"r{n}" for n in range(ROUNDS)))
    # The loser's ref is gone, too.
    assert leftovers(graph)[MANIFEST] == 1 + ROUNDS
    assert_next_writes_work(uri)


def test_of_two_that_delete_a_branch_one_at_least_does_and_it_is_gone(local):
    uri = local()
    graph = omnigraph.open(uri)
    for number in range(ROUNDS):
        graph.branches.create(f"r{number}")
        insert(graph, "fay", branch=f"r{number}")
    told = raced(uri, "delete", "delete")
    assert {each for both in told for each in both} <= {"done", "branch_not_found"}
    assert all("done" in both for both in told)
    assert graph.branches.list() == ("main", "old")
    sidecars = graph._transactions.recovery.sidecars
    assert clean_refs(graph._manifest, sidecars, LaterClock(MUCH_LATER)).troubles == ()
    assert leftovers(graph).keys() <= {MANIFEST, graph.snapshot().pin(PERSON).location}
    assert set(leftovers(graph).values()) == {1}
    assert_next_writes_work(uri)


def test_a_branch_created_and_deleted_at_once_is_there_or_not(local):
    uri = local()
    told = raced(uri, "create", "delete")
    there = omnigraph.open(uri).branches.list()
    for number, (created, deleted) in enumerate(told):
        assert created == "done"
        assert deleted in ("done", "branch_not_found")
        assert (f"r{number}" in there) is (deleted != "done")
    assert_next_writes_work(uri)


def _make_on_top(barrier: Any, uri: str, number: int) -> str:
    """One process makes a branch from another that the other process deletes."""
    graph = omnigraph.open(uri)
    told = []
    for place in range(ROUNDS):
        barrier.wait(60)
        try:
            if number:
                graph.branches.create(f"on_{place}", branch=f"r{place}")
            else:
                graph.branches.delete(f"r{place}")
        except OmnigraphError as refused:
            told.append(str(refused.code))
        else:
            told.append("done")
        barrier.wait(60)
    return " ".join(told)


def test_no_branch_stands_on_one_that_is_gone(local):
    uri = local()
    graph = omnigraph.open(uri)
    for number in range(ROUNDS):
        graph.branches.create(f"r{number}")
        insert(graph, "fay", branch=f"r{number}")
    deleted, created = in_processes(_make_on_top, [(uri, 0), (uri, 1)])
    there = graph.branches.list()
    outcomes = zip(deleted.split(), created.split(), strict=True)
    for number, (gone, made) in enumerate(outcomes):
        # Both may yield to each other; never do both succeed.
        assert (gone, made) != ("done", "done")
        assert (f"r{number}" in there) is (gone != "done")
        assert (f"on_{number}" in there) is (made == "done")
    sidecars = graph._transactions.recovery.sidecars
    assert clean_refs(graph._manifest, sidecars, LaterClock(MUCH_LATER)).troubles == ()
    for branch in graph.branches.list():
        assert branch == MAIN or graph.entity("Person", "ada", at=branch) is not None
    assert_next_writes_work(uri)
