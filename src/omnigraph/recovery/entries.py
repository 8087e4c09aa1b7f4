"""Entries of the audit, as data: what became of interrupted writes."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from omnigraph.model.brief import brief
from omnigraph.model.commits import OperationKind
from omnigraph.model.ids import CommitId, OperationId
from omnigraph.model.names import BranchName
from omnigraph.model.tables import TableKey
from omnigraph.wording import format_instant


class RecoveryKind(StrEnum):
    """How an interrupted write ended."""

    ROLLED_FORWARD = "rolled_forward"
    ROLLED_BACK = "rolled_back"
    ALREADY_PUBLISHED = "already_published"
    """It had landed; only its sidecar was left."""
    ORPHANED_BRANCH_DISCARDED = "orphaned_branch_discarded"
    STRAY_RESTORE_UNDONE = "stray_restore_undone"
    """A recovery that outlived its own lease had restored a table once more, or a repair undid
    writes that bypassed the graph."""


@dataclass(frozen=True, slots=True)
class TableMove:
    """What a recovery did to one table.

    Attributes:
        to_version: For a roll back, the version whose rows were restored; the head is newer.
    """

    key: TableKey
    from_version: int
    to_version: int


@brief
@dataclass(frozen=True, slots=True)
class RecoveryEntry:
    """One recovery.

    Attributes:
        operation_id: The write that it resolved.
        recovery_for_actor: The actor of that write.
        commit_id: The commit on the branch that resolved it, if there is one.
    """

    recovery_id: OperationId
    recovered_at: datetime
    kind: RecoveryKind
    operation_id: OperationId
    writer_kind: OperationKind
    branch: BranchName
    recovery_for_actor: str | None
    commit_id: CommitId | None
    tables: tuple[TableMove, ...]

    def to_json(self) -> dict[str, Any]:
        """The recovery as plain values that JSON can represent."""
        return {
            "operation_id": self.operation_id,
            "state": str(self.kind),
            "writer_kind": str(self.writer_kind),
            "branch": self.branch,
            "actor": self.recovery_for_actor,
            "recovery_id": self.recovery_id,
            "recovered_at": format_instant(self.recovered_at),
            "commit_id": self.commit_id,
            "tables": [
                {"table_key": str(table.key), "from": table.from_version, "to": table.to_version}
                for table in self.tables
            ],
        }
