"""Entries of the audit, as data: what became of interrupted writes."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from omnigraph.model.commits import OperationKind
from omnigraph.model.ids import CommitId, OperationId
from omnigraph.model.names import BranchName
from omnigraph.model.tables import TableKey


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
