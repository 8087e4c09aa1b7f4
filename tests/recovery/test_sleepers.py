"""Sleepers: a writer or a recovery that others took for dead wakes up, and spoils nothing."""

from collections.abc import Callable, Iterator
from functools import partial
from itertools import count
from pathlib import Path

import pytest

import omnigraph
from omnigraph.errors import ConflictError
from omnigraph.failpoints import Failpoint, SimulatedCrash, arm
from omnigraph.model.names import MAIN
from omnigraph.model.tables import TableKey
from omnigraph.recovery.entries import RecoveryKind
from tests.support import crashes
from tests.support.concurrency import at_once, in_processes
from tests.support.crashes import (
    Bases,
    Cut,
    as_other_machine,
    assert_next_writes_work,
    at_rest,
    cut_off,
    has_sidecar,
    much_later,
    picture,
    put_to_death,
    rows_of,
    sleeping_at,
    trace,
    write_by_name,
)
from tests.support.publishing import KNOWS, PERSON
from tests.support.writers import (
    DRAFT,
    WRITERS,
    insert,
    knows,
    person,
    upserts,
    write,
)

_numbers = count()


@pytest.fixture(scope="module")
def bases(tmp_path_factory: pytest.TempPathFactory) -> Bases:
    return Bases(tmp_path_factory.mktemp("bases"))


@pytest.fixture
def place(bases: Bases, tmp_path: Path) -> Callable[..., str]:
    def place(writer: str = "insert one") -> str:
        """A graph that this writer starts from."""
        return crashes.copied(bases.of(writer), tmp_path / f"{next(_numbers)}.omni")

    return place


@pytest.fixture(autouse=True)
def _apart(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with as_other_machine(monkeypatch):
        yield


def ids(uri: str, key: TableKey = PERSON, branch: str = MAIN) -> set[str]:
    return {each["id"] for each in rows_of(uri, key, branch)}


def settled(uri: str) -> None:
    """Nothing is left of anybody, though it may take the next write to see to that."""
    graph = omnigraph.open(uri)
    for branch in graph._manifest.branches():
        write(
            graph,
            {PERSON: upserts(person("last")), KNOWS: upserts(knows("last", "ada"))},
            branch=branch,
        )
    graph.ensure_indices()
    at_rest(uri)


RARE = {
    "embed",
    "index",
    "optimize",
    "optimize words",
    "insert one",
    "insert by a warm handle",
    "update",
    "delete",
}
"""Writers whose steps are those of others at the gate: they sleep in soak."""

GATED = [
    pytest.param(writer, marks=pytest.mark.soak)
    if writer.startswith("schema ") or kind.then or writer in RARE
    else writer
    for writer, kind in WRITERS.items()
]


@pytest.mark.parametrize("writer", GATED)
def test_a_writer_that_slept_through_its_lease_lands_or_fails_whole(place, writer):
    kind = WRITERS[writer]
    uri = place(writer)
    before = picture(uri)
    cuts = trace(lambda: write_by_name(uri, writer))
    after = picture(uri)
    assert len(cuts) > 12
    for cut in cuts:
        uri = place(writer)
        graph = omnigraph.open(uri)

        def meanwhile(uri: str = uri) -> None:
            insert(much_later(uri), "rival", branch=kind.branch)

        landed = True
        with sleeping_at(cut, meanwhile):
            try:
                kind.write(graph)
            except ConflictError:
                landed = False

        # Whoever may be planned again is; the others may only fail because the rival was first.
        assert landed or not kind.replans, cut
        expected = after if landed else before
        seen = picture(uri)
        for where, rows in seen.rows.items():
            ours = [each for each in rows if each["id"] != "rival"]
            assert ours == expected.rows[where], f"{cut}: {where}"
        assert "rival" in ids(uri, branch=kind.branch), cut
        at_rest(uri)
        settled(uri)


def test_a_writer_that_slept_is_told_which_table_moved(place):
    uri = place()
    graph = omnigraph.open(uri)
    pinned = graph.snapshot().pin(PERSON).version

    with (
        sleeping_at(Cut(Failpoint.WRITE_AFTER_CHECK), lambda: insert(much_later(uri), "rival")),
        pytest.raises(ConflictError) as told,
    ):
        write(graph, {PERSON: upserts(person("ada", 99))})

    assert told.value.code == "expected_version_mismatch"
    assert told.value.details["table_key"] == "node:Person"
    assert told.value.details["expected"] == pinned
    at_rest(uri)


DELETION_STOPPED_AT = {
    "nothing moved": Cut(Failpoint.WRITE_AFTER_CHECK),
    "one head of two": Cut(Failpoint.WRITE_AFTER_EACH_APPLY),
    "both heads": Cut(Failpoint.PUBLISH_AFTER_READ),
    "published": Cut(Failpoint.WRITE_AFTER_PUBLISH),
}


@pytest.mark.parametrize("found", DELETION_STOPPED_AT)
def test_a_recovery_that_slept_through_its_lease_spoils_nothing(place, found):
    first = DELETION_STOPPED_AT[found]

    def crashed() -> str:
        uri = str(place())
        cut_off(first, lambda: write_by_name(uri, "delete"))
        assert has_sidecar(uri)
        return uri

    uri = crashed()
    cuts = trace(lambda: omnigraph.open(uri))
    deleted = "bob" not in ids(uri)
    assert len(cuts) > 6
    for cut in cuts:
        uri = crashed()

        def meanwhile(uri: str = uri) -> None:
            other = much_later(uri)
            insert(other, "rival")

        with sleeping_at(cut, meanwhile):
            omnigraph.open(uri)

        assert "rival" in ids(uri), cut
        assert ("bob" not in ids(uri)) is deleted, cut
        assert ("ada-bob" not in ids(uri, KNOWS)) is deleted, cut
        settled(uri)
        assert {"rival", "last"} <= ids(uri), cut
        kinds = [each.kind for each in at_rest(uri).recoveries]
        assert len([k for k in kinds if k != RecoveryKind.STRAY_RESTORE_UNDONE]) == 1, cut


def test_a_stray_restore_is_undone_by_the_next_write(place):
    uri = place()
    cut_off(Cut(Failpoint.WRITE_AFTER_CHECK), lambda: write_by_name(uri, "delete"))

    def meanwhile() -> None:
        insert(much_later(uri), "rival")

    # It sleeps after it has looked, restores what it had seen, and dies before it looks again.
    with (
        sleeping_at(Cut(Failpoint.RECOVERY_AFTER_CLASSIFY), meanwhile),
        arm(Failpoint.RECOVERY_AFTER_EACH_RESTORE, after_hits=2),
        pytest.raises(SimulatedCrash),
    ):
        omnigraph.open(uri)
    assert not has_sidecar(uri)
    assert "rival" in ids(uri)

    graph = omnigraph.open(uri)
    write(graph, {PERSON: upserts(person("ada", 40)), KNOWS: upserts(knows("ada", "rival"))})

    assert {"rival", "ada"} <= ids(uri)
    kinds = [each.kind for each in at_rest(uri).recoveries]
    assert kinds == [RecoveryKind.ROLLED_BACK, RecoveryKind.STRAY_RESTORE_UNDONE]
    assert_next_writes_work(uri)


ENDS = {
    "lands": None,
    "dies with one head moved": Cut(Failpoint.WRITE_AFTER_EACH_APPLY),
    "dies with both heads moved": Cut(Failpoint.WRITE_AFTER_EACH_APPLY, 2),
    "dies published": Cut(Failpoint.WRITE_AFTER_PUBLISH),
}


@pytest.mark.parametrize(
    "rival",
    [
        "delete",
        pytest.param("update", marks=pytest.mark.soak),
        pytest.param("index", marks=pytest.mark.soak),
    ],
)
@pytest.mark.parametrize("end", ENDS)
def test_a_rival_that_died_beside_a_live_writer_is_no_harm_to_it(place, rival, end):
    uri = place()
    before = picture(uri)
    cuts = trace(lambda: write_by_name(uri, "insert two"))
    after = picture(uri)
    death = ENDS[end]
    if death is not None:
        # A point does one thing at a time: sleep, or die.
        cuts = [each for each in cuts[: cuts.index(death)] if each.point != death.point]
    for cut in cuts:
        uri = place()
        graph = omnigraph.open(uri)

        def meanwhile(uri: str = uri) -> None:
            cut_off(Cut(Failpoint.CLAIM_AFTER_PUT), partial(write_by_name, uri, rival))

        write_it = partial(WRITERS["insert two"].write, graph)
        with sleeping_at(cut, meanwhile):
            if death is None:
                write_it()
            else:
                # No recovery passes these: it is this writer that dies there.
                cut_off(death, write_it)
        omnigraph.open(uri)

        seen = picture(uri)
        whole = after if death is None or end == "dies published" else before
        assert seen == whole or (seen == after and end == "dies with both heads moved"), cut
        recoveries = at_rest(uri).recoveries
        assert len(recoveries) == (1 if death is None else 2), cut
        settled(uri)


def test_two_first_writers_of_a_branch_leave_nothing_that_needs_a_person(place):
    # Each made a fork of its own. One lands on it while the other, which had seen nothing of that
    # yet, dies.
    uri = place("first of a branch")

    def meanwhile() -> None:
        put_to_death(Cut(Failpoint.CLAIM_AFTER_PUT), write_by_name, uri, "first of a branch")

    with sleeping_at(Cut(Failpoint.WRITE_AFTER_CHECK), meanwhile):
        insert(omnigraph.open(uri), "first", branch=DRAFT)

    omnigraph.open(uri)

    assert "first" in ids(uri, branch=DRAFT)
    (only,) = at_rest(uri).recoveries
    assert only.kind == RecoveryKind.ROLLED_BACK
    assert_next_writes_work(uri)


def test_two_handles_that_recover_at_once_record_one_recovery(place):
    for cut in DELETION_STOPPED_AT.values():
        uri = place()
        cut_off(cut, partial(write_by_name, uri, "delete"))

        at_once([partial(omnigraph.open, uri)] * 4)

        assert len(at_rest(uri).recoveries) == 1
        assert_next_writes_work(uri)


def _open_together(barrier, uri: str) -> None:
    barrier.wait(60)
    omnigraph.open(uri)


def test_processes_that_recover_at_once_record_one_recovery(place):
    uri = place()
    put_to_death(Cut(Failpoint.WRITE_AFTER_EACH_APPLY), write_by_name, uri, "delete")

    in_processes(_open_together, [(uri,)] * 3)

    assert len(at_rest(uri).recoveries) == 1
    assert "bob" in ids(uri)
