"""The audit: one row for each operation, whoever records it and however often."""

from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pytest

from omnigraph.clock import SystemClock
from omnigraph.errors import ConflictError, ErrorCode, StorageError, TableConflictError
from omnigraph.failpoints import Failpoint, arm
from omnigraph.manifest.layout import RECOVERIES
from omnigraph.model.commits import OperationKind
from omnigraph.model.ids import CommitId, OperationId
from omnigraph.model.names import MAIN
from omnigraph.model.tables import TableKey
from omnigraph.recovery.audit import AUDIT_FRAGMENTS_MAX, Audit
from omnigraph.recovery.entries import RecoveryEntry, RecoveryKind, TableMove
from omnigraph.storage.store import Store
from tests.support.concurrency import at_once

PERSON = TableKey.parse("node:Person")
_clock = SystemClock()


@pytest.fixture(params=["local", "s3"])
def uri(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "local":
        return str(tmp_path)
    return f"s3://{request.getfixturevalue('s3_bucket')}/graph.omni"


def entry(number: int = 1) -> RecoveryEntry:
    return RecoveryEntry(
        recovery_id=OperationId(_clock.ulid()),
        recovered_at=datetime(2026, 1, 1, microsecond=7, tzinfo=UTC),
        kind=RecoveryKind.ROLLED_BACK,
        operation_id=OperationId(f"operation {number}"),
        writer_kind=OperationKind.MUTATION,
        branch=MAIN,
        recovery_for_actor="ada" if number % 2 else None,
        commit_id=CommitId(_clock.ulid()) if number % 2 else None,
        tables=(TableMove(PERSON, 5, 4),) * (number % 3),
    )


def test_a_graph_that_never_recovered_has_no_entries(uri):
    assert Audit(Store.open(uri)).entries() == ()


def test_what_is_recorded_is_read_again_oldest_first(uri):
    audit = Audit(Store.open(uri))
    recorded = [entry(number) for number in range(4)]
    for each in recorded[::-1]:
        audit.record(each)

    assert Audit(Store.open(uri)).entries() == tuple(recorded)


def test_an_operation_is_recorded_once(uri):
    audit = Audit(Store.open(uri))
    first = entry()
    audit.record(first)
    audit.record(first)
    Audit(Store.open(uri)).record(replace(entry(), kind=RecoveryKind.ROLLED_FORWARD))

    assert audit.entries() == (first,)


@pytest.mark.parametrize("there", [False, True], ids=["the first of all", "later"])
def test_of_many_that_record_one_operation_at_once_one_is_kept(uri, there):
    if there:
        Audit(Store.open(uri)).record(entry(99))
    rivals = [entry() for _ in range(4)]

    at_once([partial(Audit(Store.open(uri)).record, each) for each in rivals])

    (only,) = [e for e in Audit(Store.open(uri)).entries() if e.operation_id == "operation 1"]
    assert only in rivals


def test_many_that_record_different_operations_at_once_are_all_kept(uri):
    recorded = [entry(number) for number in range(4)]

    at_once([partial(Audit(Store.open(uri)).record, each) for each in recorded])

    assert set(Audit(Store.open(uri)).entries()) == set(recorded)


def test_rows_are_folded_before_they_lie_in_too_many_files(tmp_path):
    store = Store.open(tmp_path)
    audit = Audit(store)
    recorded = [entry(number) for number in range(AUDIT_FRAGMENTS_MAX + 5)]
    for each in recorded:
        audit.record(each)
        fragments = store.tables.open_latest(RECOVERIES, ref=None).fragments()
        assert len(fragments) <= AUDIT_FRAGMENTS_MAX

    assert len(fragments) < 8
    assert audit.entries() == tuple(recorded)
    audit.record(recorded[0])
    assert len(audit.entries()) == len(recorded)


@pytest.mark.parametrize("there", [False, True], ids=["the first of all", "later"])
@pytest.mark.parametrize("said", [StorageError, TableConflictError])
def test_a_lost_answer_is_no_second_entry(uri, there, said):
    if there:
        Audit(Store.open(uri)).record(entry(99))

    def lose_the_answer() -> None:
        message = "the connection broke after the request was sent"
        raise said(message)

    with arm(Failpoint.APPLY_AFTER_COMMIT, lose_the_answer):
        Audit(Store.open(uri)).record(entry())

    found = [each.operation_id for each in Audit(Store.open(uri)).entries()]
    assert sorted(found) == ["operation 1", "operation 99"][: len(found)]
    assert len(found) == 1 + there


def test_a_recorder_that_is_never_first_says_so(tmp_path):
    others = iter(range(100, 200))
    audit = Audit(Store.open(tmp_path))
    audit.record(entry(99))
    busy = False

    def be_faster() -> None:
        nonlocal busy
        if not busy:
            busy = True
            Audit(Store.open(tmp_path)).record(entry(next(others)))
            busy = False

    class Overtaken(Audit):
        def _stage_append(self, entry):
            staged = super()._stage_append(entry)
            be_faster()
            return staged

    with pytest.raises(ConflictError) as told:
        Overtaken(Store.open(tmp_path)).record(entry())

    assert told.value.code is ErrorCode.PUBLISH_CONTENTION
    assert "operation 1" not in {each.operation_id for each in audit.entries()}
