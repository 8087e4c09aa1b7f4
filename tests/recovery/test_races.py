"""Writers race, in threads and in processes: each lands whole or is told who was first."""

import os
import random
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph.errors import ConflictError, TableConflictError
from omnigraph.failpoints import Failpoint, arm
from omnigraph.model.names import MAIN
from omnigraph.model.tables import TableKey
from omnigraph.recovery.entries import RecoveryKind
from omnigraph.storage import turns
from tests.support.concurrency import at_once, in_processes
from tests.support.crashes import (
    assert_next_writes_work,
    at_rest,
    picture,
)
from tests.support.publishing import KNOWS, PERSON, SCHEMA
from tests.support.writers import (
    deletes,
    furnished,
    insert,
    knows,
    person,
    upserts,
    write,
)


@pytest.fixture
def uri(tmp_path: Path) -> str:
    return furnished(str(tmp_path / "graph.omni")).uri


def ids(uri: str, key: object = PERSON) -> set[str]:
    return {each["id"] for each in picture(uri).rows[MAIN, str(key)]}


def _age_of_ada(uri: str) -> int:
    people = picture(uri).rows[MAIN, str(PERSON)]
    return int(next(each["age"] for each in people if each["id"] == "ada"))


def _update_together(barrier: Any, uri: str, age: int) -> dict[str, Any]:
    with _meeting(barrier):
        return _update(uri, age)


def _meeting(barrier: Any) -> AbstractContextManager[None]:
    """Let every writer of this process wait for the others once it has planned."""

    def meet() -> None:
        barrier.wait(60)

    return arm(Failpoint.WRITE_AFTER_PLAN, meet)


def _update(uri: str, age: int) -> dict[str, Any]:
    """Land, or be told."""
    graph = omnigraph.open(uri)
    try:
        landed = write(graph, {PERSON: upserts(person("ada", age))})
    except TableConflictError as told:
        return {"code": told.code.value, **told.details}
    assert landed.commit is not None
    return {"commit": landed.commit.commit_id, "age": age}


@pytest.mark.parametrize("crowd", ["threads", "processes"])
def test_of_two_writers_on_one_base_exactly_one_wins(uri, crowd):
    pinned = omnigraph.open(uri).snapshot().pin(PERSON).version
    if crowd == "processes":
        answers = in_processes(_update_together, [(uri, 50), (uri, 60)])
    else:
        with _meeting(threading.Barrier(2)):
            answers = at_once([lambda: _update(uri, 50), lambda: _update(uri, 60)])

    (won,) = [each for each in answers if "commit" in each]
    (lost,) = [each for each in answers if "commit" not in each]
    assert lost == {
        "code": "expected_version_mismatch",
        "table_key": "node:Person",
        "expected": pinned,
        "actual": pinned + 1,
    }
    assert _age_of_ada(uri) == won["age"]
    rest = at_rest(uri)
    assert rest.snapshots[0].head.commit_id == won["commit"]
    assert rest.recoveries == ()


def _stop_before_apply(uri: str) -> None:
    """Write to two tables of main, and be suspended while holding them."""
    with arm(Failpoint.WRITE_AFTER_CHECK, lambda: os.kill(os.getpid(), signal.SIGSTOP)):
        changes = {PERSON: upserts(person("eva")), KNOWS: upserts(knows("eva", "ada"))}
        write(omnigraph.open(uri), changes)


def test_branch_does_not_queue_behind_a_suspended_writer_of_main(uri, monkeypatch):
    graph = omnigraph.open(uri)
    graph.branches.create("draft")
    suspended = get_context("spawn").Process(target=_stop_before_apply, args=(uri,))
    suspended.start()
    while "T" not in Path(f"/proc/{suspended.pid}/stat").read_text().rpartition(")")[2][:3]:
        time.sleep(0.05)
    acquired = []
    take = turns.turn

    @contextmanager
    def record(*args: Any, **limits: Any) -> Iterator[bool]:
        with take(*args, **limits) as is_acquired:
            acquired.append(is_acquired)
            yield is_acquired

    monkeypatch.setattr(turns, "turn", record)
    try:
        changes = {PERSON: upserts(person("fay")), KNOWS: upserts(knows("fay", "ada"))}
        write(graph, changes, branch="draft")
    finally:
        suspended.kill()
        suspended.join()
    assert acquired == [True, True], "one turn for each table, and none that others hold"
    assert "fay" in {each["id"] for each in picture(uri).rows["draft", str(PERSON)]}


OWN = [TableKey.parse(f"node:Own{number}") for number in range(4)]


def _insert_many(barrier: Any, uri: str, writer: int, commits: int) -> list[str]:
    """Half of the crowd writes to one table, and each of the others to one of its own."""
    key = OWN[writer // 2] if writer % 2 else PERSON
    graph = omnigraph.open(uri)
    barrier.wait(60)
    made: list[str] = []
    for number in range(commits):
        row = {"id": f"p{writer}-{number}", "name": f"p{writer}-{number}"}
        landed = write(graph, {key: upserts(row)}, replans=True)
        assert landed.commit is not None
        made.append(landed.commit.commit_id)
    return made


def _assert_crowd_lands(uri: str, commits: int) -> None:
    own = [f"node {each.type_name} {{ name: String @key }}" for each in OWN]
    omnigraph.init(uri, "\n".join([SCHEMA, *own]))
    answers = in_processes(_insert_many, [(uri, each, commits) for each in range(8)])

    made = {each for answer in answers for each in answer}
    assert len(made) == 8 * commits
    *chain, first = omnigraph.open(uri).commits.list()
    assert {each.commit_id for each in chain} == made
    count = len(chain)
    assert [each.manifest_version - first.manifest_version for each in chain] == [
        *range(count, 0, -1)
    ]
    for number, key in enumerate(OWN):
        assert ids(uri, key) == {f"p{2 * number + 1}-{each}" for each in range(commits)}
    shared = {f"p{writer}-{each}" for writer in (0, 2, 4, 6) for each in range(commits)}
    assert ids(uri) == shared
    # Nobody died, so nobody was taken for dead.
    assert at_rest(uri).recoveries == ()


def test_writers_of_many_processes_all_land_in_one_chain(tmp_path):
    _assert_crowd_lands(str(tmp_path / "graph.omni"), commits=6)


@pytest.mark.soak
def test_writers_of_many_processes_all_land_in_one_long_chain(tmp_path):
    _assert_crowd_lands(str(tmp_path / "graph.omni"), commits=50)


def _write_for_ever(uri: str, writer: int, life: int, landed: Any) -> None:
    graph = omnigraph.open(uri)
    for number in range(1_000_000):
        name = f"p{writer}-{life}-{number}"
        changes = {PERSON: upserts(person(name)), KNOWS: upserts(knows(name, "ada"))}
        write(graph, changes, replans=True)
        landed.put(name)


@pytest.mark.soak
@pytest.mark.timeout(600)
def test_writers_killed_at_random_lose_nothing_and_leave_nothing(uri):
    context = get_context("spawn")
    chance = random.Random(7)
    landed = context.Manager().Queue()
    lives = [0] * 4

    def start(writer: int) -> Any:
        lives[writer] += 1
        arguments = (uri, writer, lives[writer], landed)
        process = context.Process(target=_write_for_ever, args=arguments)
        process.start()
        return process

    crowd = [start(writer) for writer in range(4)]
    ends = time.monotonic() + 60
    time.sleep(5)
    while time.monotonic() < ends:
        time.sleep(chance.random() * 2)
        doomed = chance.randrange(4)
        assert crowd[doomed].exitcode is None, "a writer failed by itself"
        os.kill(crowd[doomed].pid, signal.SIGKILL)
        crowd[doomed].join()
        crowd[doomed] = start(doomed)
    for each in crowd:
        each.kill()
        each.join()

    graph = omnigraph.open(uri)

    at_rest(uri)
    people, edges = ids(uri), ids(uri, KNOWS)
    said = {landed.get() for _ in range(landed.qsize())}
    assert said <= people
    # Whole or not at all: each has its edge, and no edge is without its person.
    assert {f"{each}-ada" for each in people - {"ada", "bob"}} == edges - {"ada-bob"}
    assert sum(lives) > 20
    kinds = {each.kind for each in graph.recoveries.list()}
    assert kinds <= {*RecoveryKind} - {RecoveryKind.ORPHANED_BRANCH_DISCARDED}
    assert_next_writes_work(uri)


def _skewed(barrier: Any, uri: str, role: str, rounds: int) -> list[str]:
    """One connects a new edge to a person, the other deletes that person unless it has edges."""
    graph = omnigraph.open(uri)
    outcomes = []
    for number in range(rounds):
        name = f"target{number}"
        if role == "founder":
            insert(graph, name)
        barrier.wait(60)
        # A handle that has written plans on the state it left, and again if that was not current.
        # These plans check no rule, so they must be made once, and before either is carried out.
        writer, planned = omnigraph.open(uri), partial(barrier.wait, 60)
        try:
            if role == "founder":
                rows = upserts(knows("ada", name))
                write(writer, {KNOWS: rows}, reads=frozenset({PERSON}), planned=planned)
            else:
                gone = deletes(name)
                write(writer, {PERSON: gone}, guards=frozenset({KNOWS}), planned=planned)
            outcomes.append("landed")
        except ConflictError as told:
            outcomes.append(told.code.value)
        barrier.wait(60)
    return outcomes


def test_an_edge_and_the_deletion_of_its_end_never_both_land(uri):
    # Neither replans: each knows only the graph as it was when both were planned.
    rounds = 8
    answers = in_processes(_skewed, [(uri, "founder", rounds), (uri, "eraser", rounds)])

    people = ids(uri)
    for each in picture(uri).rows[MAIN, str(KNOWS)]:
        assert {each["src"], each["dst"]} <= people, f"{each['id']} dangles"
    for pair in zip(*answers, strict=True):
        assert "landed" in pair
    at_rest(uri)
