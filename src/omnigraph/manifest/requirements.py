"""Requirements: what must hold of a branch for a commit to land; each explains itself."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self, TypeAlias

from omnigraph.errors import (
    RETRY_HINT,
    BranchNotFoundError,
    ConflictError,
    ErrorCode,
    OmnigraphError,
    StaleHeadError,
    TableConflictError,
)
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.model.ids import CommitId
from omnigraph.model.streams import StreamStep
from omnigraph.model.tables import TableKey


@dataclass(frozen=True, slots=True)
class HeadIs:
    """The branch must have the rows of the commit that the caller named.

    Attributes:
        rows_from: `Commit.rows_from` of that commit, so that maintenance makes no difference.
    """

    commit_id: CommitId
    rows_from: CommitId

    def unmet(self, now: Snapshot) -> ConflictError | None:
        """Why this no longer holds, or None if it does."""
        actual = now.head.commit_id
        if now.head.rows_from == self.rows_from:
            return None
        message = (
            f"requirement failed: branch {now.branch} is at {actual}, expected {self.commit_id}"
        )
        hint = RETRY_HINT
        return StaleHeadError(message, hint=hint, expected=self.commit_id, actual=actual)


@dataclass(frozen=True, slots=True)
class BranchIs:
    """The branch must be the one that was read, not a later branch of the same name."""

    ref: str | None

    def unmet(self, now: Snapshot) -> BranchNotFoundError | None:
        """Why this no longer holds, or None if it does."""
        return None if now.ref == self.ref else branch_deleted_error(now.branch)


def branch_deleted_error(name: str) -> BranchNotFoundError:
    """The error for a writer whose branch was deleted during the write."""
    message = f"branch {name} was deleted while it was written to"
    hint = "nothing of this write became visible; see 'omnigraph branch list'"
    return BranchNotFoundError(message, hint=hint)


@dataclass(frozen=True, slots=True)
class SchemaIs:
    """The branch must have the schema that the write was planned with."""

    digest: str

    def unmet(self, now: Snapshot) -> ConflictError | None:
        """Why this no longer holds, or None if it does."""
        if now.schema_digest == self.digest:
            return None
        message = f"the schema of branch {now.branch} changed since this was planned"
        return ConflictError(
            message,
            hint="read the schema again and retry",
            code=ErrorCode.SCHEMA_CHANGED,
            expected=self.digest,
            actual=now.schema_digest,
        )


@dataclass(frozen=True, slots=True)
class TableAt:
    """A table must be pinned where the plan read it."""

    key: TableKey
    version: int
    ref: str | None

    def unmet(self, now: Snapshot) -> ConflictError | None:
        """Why this no longer holds, or None if it does."""
        pin = now.pins.get(self.key)
        if pin is not None and (pin.version, pin.ref) == (self.version, self.ref):
            return None
        expected = _format_place(self.version, self.ref)
        actual = "not published" if pin is None else f"at {_format_place(pin.version, pin.ref)}"
        table = f"table {self.key} on branch {now.branch}"
        message = f"requirement failed: {table} is {actual}, expected {expected}"
        return TableConflictError(
            message,
            hint=RETRY_HINT,
            table_key=str(self.key),
            expected=self.version,
            actual=None if pin is None else pin.version,
        )


@dataclass(frozen=True, slots=True)
class StreamAt:
    """The newest batch of a stream must be the one that its next batch was planned after.

    Attributes:
        commit_id: The newest commit of the stream; None if the branch has none.
        number: The number of that batch; None if it does not matter, or the branch has none.
    """

    stream: str
    commit_id: CommitId | None
    number: int | None = None

    @classmethod
    def before(cls, step: StreamStep) -> Self:
        """The requirement of the next batch."""
        return cls(step.batch.stream, step.after, step.after_number)

    def unmet(self, now: Snapshot) -> ConflictError | None:
        """Why this no longer holds, or None if it does."""
        record = now.streams.get(self.stream)
        actual = None if record is None else record.commit_id
        # A batch without rows makes no commit, so the commit alone does not say it.
        is_same = record is None or self.number in (None, record.batch.number)
        if actual == self.commit_id and is_same:
            return None
        newest = "has no batch" if record is None else f"is at batch {record.batch.number}"
        message = f"the stream {self.stream} {newest} on branch {now.branch} now"
        hint = "read the branch again; another process runs the same stream"
        return ConflictError(message, hint=hint, code=ErrorCode.STREAM_MOVED)


Requirement: TypeAlias = HeadIs | BranchIs | SchemaIs | TableAt | StreamAt


def require(requirements: Iterable[Requirement], now: Snapshot) -> None:
    """Check all requirements against the current state of the branch."""
    unmet: list[OmnigraphError] = [
        failure for requirement in requirements if (failure := requirement.unmet(now))
    ]
    if not unmet:
        return
    first, *others = unmet
    for other in others:
        first.add_note(f"also: {other.message}")
    raise first


def _format_place(version: int, ref: str | None) -> str:
    return f"version {version}" + (f" of {ref}" if ref else "")
