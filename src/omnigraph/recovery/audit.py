"""The audit: one row for each recovery, in a dataset that is never branched."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Final

import pyarrow as pa

from omnigraph.errors import ConflictError, ErrorCode, StorageError, TableConflictError
from omnigraph.manifest.layout import RECOVERIES
from omnigraph.model.commits import OperationKind
from omnigraph.model.ids import CommitId, OperationId
from omnigraph.model.names import BranchName
from omnigraph.model.tables import TableKey
from omnigraph.recovery.entries import RecoveryEntry, RecoveryKind, TableMove
from omnigraph.storage import filters, heads, staging
from omnigraph.storage.store import Store
from omnigraph.storage.tables import Table

AUDIT_ATTEMPTS_MAX: Final = 10
"""Times a recovery tries to record itself while others record themselves."""

AUDIT_FRAGMENTS_MAX: Final = 64
"""Recoveries that are recorded before their rows are folded into one fragment."""


_SCHEMA: Final = pa.schema(
    [
        pa.field("recovery_id", pa.string(), nullable=False),
        pa.field("recovered_at", pa.timestamp("us", tz="UTC"), nullable=False),
        pa.field("recovery_kind", pa.string(), nullable=False),
        pa.field("operation_id", pa.string(), nullable=False),
        pa.field("writer_kind", pa.string(), nullable=False),
        pa.field("branch", pa.string(), nullable=False),
        pa.field("recovery_for_actor", pa.string()),
        pa.field("commit_id", pa.string()),
        pa.field("tables", pa.string(), nullable=False),
    ]
)


class Audit:
    """The recoveries of one graph."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def entries(self) -> tuple[RecoveryEntry, ...]:
        """Every recovery, oldest first."""
        if not self._store.tables.exists(RECOVERIES):
            return ()
        rows = self._newest().read().to_pylist()
        return tuple(sorted(map(_decode, rows), key=lambda entry: entry.recovery_id))

    def record(self, entry: RecoveryEntry) -> None:
        """Add one entry; of several for one operation only the first is kept.

        The append is a compare-and-swap on the whole dataset, so that a stalled recovery whose work
        another process repeated cannot add a second one.
        """
        for _ in range(AUDIT_ATTEMPTS_MAX):
            existed = self._store.tables.exists(RECOVERIES)
            try:
                staged = self._stage_append(entry) if existed else self._stage_create(entry)
                if staged is not None:
                    heads.apply(staged, heads.Authorship(entry.recovery_id, OperationKind.RECOVERY))
            except TableConflictError:
                continue
            except StorageError:
                # The response may be lost. Of concurrent creators of the dataset, all but one fail.
                if self._has(entry):
                    return
                if not existed and self._store.tables.exists(RECOVERIES):
                    continue
                raise
            return
        message = f"the recovery of {entry.operation_id} could not be recorded: others were faster"
        raise ConflictError(message, hint="try again", code=ErrorCode.PUBLISH_CONTENTION)

    def _stage_create(self, entry: RecoveryEntry) -> staging.StagedWrite:
        return staging.stage_create(self._store.tables, RECOVERIES, _table(entry))

    def _stage_append(self, entry: RecoveryEntry) -> staging.StagedWrite | None:
        table = self._newest()
        if _holds(table, entry):
            return None
        rows = _table(entry)
        fragments = table.fragments()
        if len(fragments) < AUDIT_FRAGMENTS_MAX:
            return staging.stage_overwrite(table, rows, schema=_SCHEMA, carrying=fragments)
        return staging.stage_overwrite(table, pa.concat_tables([rows, table.read()]))

    def _has(self, entry: RecoveryEntry) -> bool:
        return self._store.tables.exists(RECOVERIES) and _holds(self._newest(), entry)

    def _newest(self) -> Table:
        return self._store.tables.open_latest(RECOVERIES, ref=None)


def _holds(table: Table, entry: RecoveryEntry) -> bool:
    return table.count_rows(filters.text_in("operation_id", [entry.operation_id])) > 0


def _table(entry: RecoveryEntry) -> pa.Table:
    return pa.Table.from_pylist([_encode(entry)], _SCHEMA)


def _encode(entry: RecoveryEntry) -> dict[str, object]:
    moves = [
        {"table_key": str(move.key), "from": move.from_version, "to": move.to_version}
        for move in entry.tables
    ]
    return {
        "recovery_id": entry.recovery_id,
        "recovered_at": entry.recovered_at,
        "recovery_kind": entry.kind,
        "operation_id": entry.operation_id,
        "writer_kind": entry.writer_kind,
        "branch": entry.branch,
        "recovery_for_actor": entry.recovery_for_actor,
        "commit_id": entry.commit_id,
        "tables": json.dumps(moves),
    }


def _decode(row: dict[str, object]) -> RecoveryEntry:
    moves = json.loads(str(row["tables"]))
    recovered_at, actor, commit = row["recovered_at"], row["recovery_for_actor"], row["commit_id"]
    assert isinstance(recovered_at, datetime), "the column holds instants"
    return RecoveryEntry(
        recovery_id=OperationId(str(row["recovery_id"])),
        recovered_at=recovered_at,
        kind=RecoveryKind(str(row["recovery_kind"])),
        operation_id=OperationId(str(row["operation_id"])),
        writer_kind=OperationKind(str(row["writer_kind"])),
        branch=BranchName(str(row["branch"])),
        recovery_for_actor=None if actor is None else str(actor),
        commit_id=None if commit is None else CommitId(str(commit)),
        tables=tuple(
            TableMove(TableKey.parse(move["table_key"]), move["from"], move["to"]) for move in moves
        ),
    )
