"""Writes that have not ended, as data: in progress, interrupted, or in a form nobody can read."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Self

from omnigraph.errors import RecoveryNeededError
from omnigraph.model.brief import brief
from omnigraph.model.commits import OperationKind
from omnigraph.model.ids import CommitId, OperationId
from omnigraph.model.names import BranchName
from omnigraph.recovery.entries import TableMove

# A remote graph has these, and needs no storage.
if TYPE_CHECKING:
    from omnigraph.recovery.intents import Intent


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A sidecar that this release must not act on.

    Attributes:
        is_newer: Whether a newer release wrote it; otherwise it is damaged.
    """

    path: str
    reason: str
    is_newer: bool = False

    @property
    def next_step(self) -> str:
        """What the operator should do about it."""
        if self.is_newer:
            return "open the graph with the release that wrote it"
        return "restore the file from a backup, or follow docs/recovery.md before you move it"

    def refusal(self, more: int = 0) -> RecoveryNeededError:
        """The error for an operation that would have to act on it, and on `more` others."""
        others = f", and {more} more" if more else ""
        message = f"the recovery file {self.path} cannot be processed: {self.reason}{others}"
        hint = f"{self.next_step}; reading still works, read-only"
        return RecoveryNeededError(message, hint=hint, path=self.path)


@dataclass(frozen=True, slots=True)
class PendingWrite:
    """A write that has not ended.

    Attributes:
        lease_until: Until then no other process resolves it, unless its own process is gone.
        resolves: For a recovery, the operation that it resolves.
        process: The number of its process, on the machine where it runs.
        tables: The versions that it moves tables between.
    """

    operation_id: OperationId
    writer_kind: OperationKind
    branch: BranchName
    actor: str | None
    message: str | None
    started_at: datetime
    lease_until: datetime | None
    commit_id: CommitId
    resolves: OperationId | None
    process: int | None
    tables: tuple[TableMove, ...]

    @classmethod
    def of(cls, intent: Intent) -> Self:
        """The write of an intent."""
        draft, owner = intent.draft, intent.owner
        return cls(
            intent.operation_id,
            draft.kind,
            draft.branch,
            draft.actor,
            draft.message,
            intent.started_at,
            intent.lease_until,
            draft.commit_id,
            intent.resolves,
            None if owner is None else owner.pid,
            tuple(
                TableMove(table.key, table.expected_version, table.post_commit_pin)
                for table in intent.tables
            ),
        )


@brief
@dataclass(frozen=True, slots=True)
class Pending:
    """The writes that have not ended.

    Attributes:
        live: A process works on these, or may until their leases run out.
        interrupted: No process works on these; the next writer finishes or undoes them.
        unreadable: This release must not act on these.
    """

    live: tuple[PendingWrite, ...]
    interrupted: tuple[PendingWrite, ...]
    unreadable: tuple[Unreadable, ...]
