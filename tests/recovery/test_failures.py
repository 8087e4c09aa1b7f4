"""Storage fails under a write: it lands whole or not at all, says so, and blocks nobody."""

import threading
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import omnigraph
from omnigraph.clock import SystemClock
from omnigraph.errors import ErrorCode, OmnigraphError, RecoveryNeededError, StorageError
from omnigraph.failpoints import Failpoint, arm
from omnigraph.graph import Graph
from omnigraph.manifest.drafts import CommitDraft
from omnigraph.manifest.layout import RECOVERY
from omnigraph.model.commits import OperationKind
from omnigraph.model.ids import CommitId, OperationId
from omnigraph.model.names import MAIN
from omnigraph.model.tables import TableKey
from omnigraph.recovery.audit import Audit
from omnigraph.recovery.entries import RecoveryKind
from omnigraph.recovery.intents import Intent, TableIntent
from omnigraph.recovery.sidecars import Sidecars
from omnigraph.storage import heads, staging
from omnigraph.storage.objects import Objects
from omnigraph.storage.store import Store
from omnigraph.storage.tables import TableAddress
from tests.support import crashes
from tests.support.crashes import (
    Bases,
    Cut,
    assert_next_writes_work,
    at_rest,
    cut_off,
    has_sidecar,
    picture,
    put_to_death,
    write_by_name,
)
from tests.support.publishing import PERSON
from tests.support.writers import DRAFT, WRITERS, found_city, insert, person

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


@pytest.fixture
def uri(place: Callable[[], str]) -> str:
    return place()


class Flaky:
    """Calls of one function, of which the nth fails, before it does its work or after.

    Attributes:
        calls: How many there were.
    """

    def __init__(
        self,
        monkeypatch: pytest.MonkeyPatch,
        target: Any,
        name: str,
        *,
        nth: int,
        after: bool = False,
        where: Callable[..., bool] = lambda *_: True,
    ) -> None:
        self.calls = 0
        original = getattr(target, name)

        def flaky(*arguments: Any, **named: Any) -> Any:
            if not where(*arguments):
                return original(*arguments, **named)
            self.calls += 1
            failing = self.calls == nth
            answer = original(*arguments, **named) if after or not failing else None
            if failing:
                message = f"{name} number {nth} failed"
                raise StorageError(message)
            return answer

        monkeypatch.setattr(target, name, flaky)


def on_sidecars(_: Objects, path: str, *__: object) -> bool:
    return path.startswith(RECOVERY)


def person_ids(uri: str) -> set[str]:
    return {each["id"] for each in picture(uri).rows[MAIN, str(PERSON)]}


@pytest.mark.parametrize(
    ("named", "said"),
    [
        (
            {"key": TableKey.parse("node:Nobody")},
            "names node:Nobody at nodes/.*, not of branch main",
        ),
        (
            {"location": "nodes/elsewhere"},
            "names node:Person at nodes/elsewhere, not of",
        ),
        (
            {"ref": "elsewhere"},
            "has node:Person on ref elsewhere, and branch main",
        ),
    ],
)
def test_a_sidecar_that_does_not_fit_its_branch_is_named_and_stays(uri, named, said):
    graph, clock = omnigraph.open(uri), SystemClock()
    pin = graph.snapshot().pin(PERSON)
    table = TableIntent(PERSON, pin.location, pin.ref, pin.version, pin.version + 1)
    tables = (replace(table, **named),)
    draft = CommitDraft(MAIN, CommitId(clock.ulid()), OperationKind.LOAD)
    intent = Intent(OperationId(clock.ulid()), draft, clock.now(), tables)
    Sidecars(graph._store.objects).put(intent)

    with pytest.raises(RecoveryNeededError, match=said) as refused:
        insert(graph, "eva")

    path = f"{RECOVERY}/{intent.operation_id}.json"
    assert path in refused.value.message
    assert "from a backup" in refused.value.hint
    assert graph._store.objects.list(RECOVERY) == (path,)


def test_a_sidecar_that_cannot_be_put_means_that_nothing_happened(uri, monkeypatch):
    graph, before = omnigraph.open(uri), at_rest(uri)
    with monkeypatch.context() as patch:
        Flaky(patch, Objects, "put", nth=1, where=on_sidecars)
        with pytest.raises(StorageError, match="put number 1"):
            insert(graph, "eva")

    assert at_rest(uri) == before
    assert_next_writes_work(uri)


def test_a_sidecar_that_cannot_be_deleted_after_the_publish_fails_nothing(uri, monkeypatch, caplog):
    graph = omnigraph.open(uri)
    with monkeypatch.context() as patch:
        Flaky(patch, Objects, "delete", nth=1, where=on_sidecars)
        landed = insert(graph, "eva")

    assert landed.commit is not None
    assert "stays" in caplog.text
    assert has_sidecar(uri)
    assert "eva" in person_ids(uri)

    insert(graph, "kay")

    (only,) = at_rest(uri).recoveries
    assert only.kind == RecoveryKind.ALREADY_PUBLISHED
    assert only.commit_id == landed.commit.commit_id
    assert {"eva", "kay"} <= person_ids(uri)


def test_sidecars_that_cannot_be_listed_fail_writes_and_opens_loudly(uri, monkeypatch):
    graph, before = omnigraph.open(uri), at_rest(uri)
    for nth in (1, 2):
        with monkeypatch.context() as patch:
            Flaky(patch, Objects, "list", nth=nth, where=on_sidecars)
            with pytest.raises(StorageError, match="list number"):
                insert(graph, "eva")
        assert at_rest(uri) == before
    with monkeypatch.context() as patch:
        Flaky(patch, Objects, "list", nth=1, where=on_sidecars)
        with pytest.raises(StorageError, match="list number 1"):
            omnigraph.open(uri)
        omnigraph.open(uri, read_only=True)


UNREADABLE = {
    "cut off": b'{"schema_version": 2, "oper',
    "empty": b"",
    "no sidecar": b"[]",
    "newer": b'{"schema_version": 3}',
    "not text": b"\xff\xfe\x00",
}


@pytest.mark.parametrize("data", UNREADABLE.values(), ids=UNREADABLE)
def test_an_unreadable_sidecar_blocks_writers_and_stays_and_is_named(uri, data):
    graph, before = omnigraph.open(uri), picture(uri)
    path = f"{RECOVERY}/01J00000000000000000000000.json"
    graph._store.objects.put(path, data)

    for attempt in (lambda: insert(graph, "eva"), lambda: omnigraph.open(uri), graph.refresh):
        with pytest.raises(RecoveryNeededError, match=path) as refused:
            attempt()
        assert refused.value.details["path"] == path

    assert graph._store.objects.list(RECOVERY) == (path,)
    stored = graph._store.objects.read(path)
    assert stored is not None
    assert stored.data == data
    reader = omnigraph.open(uri, read_only=True)
    assert [each.path for each in reader.recoveries.pending().unreadable] == [path]
    assert picture(uri) == before
    graph._store.objects.delete(path)
    assert_next_writes_work(uri)


BLOCKED = {
    "create a branch": lambda graph: graph.branches.create("other"),
    "delete a branch": lambda graph: graph.branches.delete("draft"),
    "create a tag": lambda graph: graph.tags.create("v2"),
    "delete a tag": lambda graph: graph.tags.delete("v1"),
    "set a setting": lambda graph: graph.settings.set("maintenance.optimize", "manual"),
    "unset a setting": lambda graph: graph.settings.unset("maintenance.optimize"),
    "create a proposal": lambda graph: graph.proposals.create("draft", title="t"),
    "comment": lambda graph: graph.proposals.comment(1, "hm"),
    "store a query": lambda graph: graph.queries.put(
        "query names() { match { $p: Person } return { $p.name } }"
    ),
    "optimize": lambda graph: graph.optimize(),
    "cleanup": lambda graph: graph.cleanup(keep_commits=1),
    "merge": lambda graph: graph.merge("draft"),
}


def test_an_unreadable_sidecar_stops_every_kind_of_write(uri):
    graph = omnigraph.open(uri, actor="ada")
    graph.branches.create("draft")
    insert(graph, "eva", branch="draft")
    graph.tags.create("v1")
    graph.settings.set("maintenance.optimize", "auto")
    graph.proposals.create("draft", title="first")
    graph._store.objects.put(f"{RECOVERY}/01J00000000000000000000000.json", b"{")
    files = {path: graph._store.objects.read(path) for path in graph._store.objects.list("")}
    for attempt in BLOCKED.values():
        with pytest.raises(RecoveryNeededError):
            attempt(graph)
    assert {path: graph._store.objects.read(path) for path in files} == files
    # Reading goes on.
    assert graph.branches.list() == ("main", "draft")
    assert graph.merge("draft", dry_run=True).changes


def test_a_sidecar_that_appears_unreadable_between_heal_and_claim_blocks_too(uri):
    graph = omnigraph.open(uri)
    path = f"{RECOVERY}/01J00000000000000000000000.json"

    with (
        arm(Failpoint.CLAIM_AFTER_PUT, lambda: graph._store.objects.put(path, b"{")),
        pytest.raises(RecoveryNeededError, match=path),
    ):
        insert(graph, "eva")

    assert graph._store.objects.list(RECOVERY) == (path,)
    assert "eva" not in person_ids(uri)


def test_a_recovery_that_cannot_be_recorded_fails_and_is_recorded_once_in_the_end(
    place, monkeypatch
):
    cuts = (
        Failpoint.WRITE_AFTER_CHECK,
        Failpoint.PUBLISH_AFTER_READ,
        Failpoint.WRITE_AFTER_PUBLISH,
    )
    for point in cuts:
        uri = place()
        cut_off(Cut(point), partial(write_by_name, uri, "delete"))
        for after in (False, True):
            with monkeypatch.context() as patch:
                Flaky(patch, Audit, "record", nth=1, after=after)
                with pytest.raises(StorageError, match="record number 1"):
                    omnigraph.open(uri)
            assert has_sidecar(uri)

        omnigraph.open(uri)

        assert len(at_rest(uri).recoveries) == 1
        assert_next_writes_work(uri)


def test_what_was_being_written_to_a_deleted_branch_is_discarded(uri):
    graph = omnigraph.open(uri)
    graph.branches.create(DRAFT)
    cut_off(Cut(Failpoint.WRITE_AFTER_EACH_APPLY), lambda: write_by_name(uri, "first of a branch"))
    graph.branches.delete(DRAFT)
    before = picture(uri)

    omnigraph.open(uri)

    (only,) = at_rest(uri).recoveries
    assert only.kind == RecoveryKind.ORPHANED_BRANCH_DISCARDED
    assert only.commit_id is None
    assert picture(uri) == before
    assert_next_writes_work(uri)


def test_a_branch_that_took_the_name_of_a_deleted_one_is_not_touched(uri):
    graph = omnigraph.open(uri)
    graph.branches.create(DRAFT)
    cut_off(Cut(Failpoint.WRITE_AFTER_EACH_APPLY), lambda: write_by_name(uri, "first of a branch"))
    graph.branches.delete(DRAFT)
    graph.branches.create(DRAFT)
    before = picture(uri)

    write_by_name(uri, "first of a branch")

    (only,) = at_rest(uri).recoveries
    assert only.kind == RecoveryKind.ORPHANED_BRANCH_DISCARDED
    after = picture(uri)
    assert "eva" in {each["id"] for each in after.rows[DRAFT, str(PERSON)]}
    assert after.rows[MAIN, str(PERSON)] == before.rows[MAIN, str(PERSON)]
    assert_next_writes_work(uri)


def commit_behind_our_back(graph: Graph, name: str) -> None:
    """Move a table's head as no writer of ours would: nothing says who, and nobody publishes."""
    store = Store.open(graph.uri)
    table = store.tables.open_latest(graph.snapshot().pin(PERSON).location, ref=None)
    rows = pa.Table.from_pylist([person(name)], table.schema)
    author = heads.Authorship(OperationId(graph._clock.ulid()), OperationKind.LOAD)
    heads.apply(staging.stage_append(table, rows), author)


def test_a_head_that_nobody_answers_for_blocks_writers_of_its_table_alone(uri):
    graph, before = omnigraph.open(uri), picture(uri)
    pinned = graph.snapshot().pin(PERSON).version
    commit_behind_our_back(graph, "intruder")

    for _ in range(2):
        with pytest.raises(RecoveryNeededError, match="omnigraph repair") as refused:
            insert(graph, "eva")
        assert refused.value.code is ErrorCode.UNCOVERED_DRIFT
        assert refused.value.details == {
            "table_key": "node:Person",
            "pinned": pinned,
            "head": pinned + 1,
        }
    assert not has_sidecar(uri)
    assert picture(uri) == before
    omnigraph.open(uri)
    found_city(graph, "pisa")
    assert picture(uri).rows[MAIN, str(PERSON)] == before.rows[MAIN, str(PERSON)]


def test_a_pin_above_its_head_is_refused_and_not_waited_for(uri, monkeypatch):
    graph = omnigraph.open(uri)
    monkeypatch.setattr(
        "omnigraph.transaction.commit.Transactions._head", lambda _, pin: pin.version - 1
    )

    with pytest.raises(RecoveryNeededError) as refused:
        insert(graph, "eva")

    assert refused.value.code is ErrorCode.UNCOVERED_DRIFT


def _is_table(_: object, address: TableAddress, *__: object) -> bool:
    return "__manifest" not in address.location


def _is_manifest(base: object, address: TableAddress, *_: object) -> bool:
    return not _is_table(base, address)


INJURIES: dict[str, tuple[Any, str, Callable[..., bool]]] = {
    "put": (Objects, "put", on_sidecars),
    "list": (Objects, "list", on_sidecars),
    "delete": (Objects, "delete", on_sidecars),
    "apply": (heads, "_commit", _is_table),
    "publish": (heads, "_commit", _is_manifest),
    "restore": (heads, "restore", lambda *_: True),
}


RARE = {"embed", "insert one", "update", "optimize words", "schema of a branch"}
"""Writers whose steps are those of others at the gate; the crash loop has what follows a commit."""

GATED = [
    pytest.param(writer, marks=pytest.mark.soak) if kind.then or writer in RARE else writer
    for writer, kind in WRITERS.items()
]


@pytest.mark.parametrize("writer", GATED)
@pytest.mark.parametrize("injury", INJURIES)
def test_a_storage_error_anywhere_leaves_before_or_after_and_wedges_nobody(
    place, monkeypatch, injury, writer
):
    kind = WRITERS[writer]
    uri = place(writer)
    before = picture(uri)
    write_by_name(uri, writer)
    after = landed = picture(uri)
    if kind.then is not None:
        uri = place(writer)
        cut_off(Cut(Failpoint.WRITE_AFTER_SETTLE), partial(write_by_name, uri, writer))
        landed = picture(uri)
    target, name, where = INJURIES[injury]
    for lost_answer in (False, True):
        nth = 1
        while True:
            uri = place(writer)
            graph = omnigraph.open(uri)
            with monkeypatch.context() as patch:
                flaky = Flaky(patch, target, name, nth=nth, after=lost_answer, where=where)
                try:
                    kind.write(graph)
                    # What follows its commit may have failed, or been left to a later write.
                    expected = [landed, after]
                except OmnigraphError:
                    expected = [before]
            if flaky.calls < nth:
                break
            # What failed is known, and so is what became of the write.
            assert picture(uri) in expected, (nth, lost_answer)
            assert_next_writes_work(uri)
            nth += 1
        assert nth > 1 or injury == "restore"


def test_a_failed_writer_does_not_wait_for_a_thread_that_waits_for_it(uri):
    # One thread recovers a dead writer and so waits for the live one; that one fails, and has to
    # clean up after itself, in the same process.
    healer = threading.Thread(target=omnigraph.open, args=(uri,))
    failed: list[float] = []

    def meanwhile() -> None:
        put_to_death(Cut(Failpoint.CLAIM_AFTER_PUT), write_by_name, uri, "update")
        healer.start()
        time.sleep(0.5)
        failed.append(time.monotonic())
        message = "the disk is full"
        raise StorageError(message)

    graph = omnigraph.open(uri)
    with arm(Failpoint.WRITE_AFTER_EACH_APPLY, meanwhile):
        WRITERS["insert one"].write(graph)
    waited = time.monotonic() - failed[0]
    healer.join()

    assert waited < 20
    assert "eva" in person_ids(uri)
    assert_next_writes_work(uri)
