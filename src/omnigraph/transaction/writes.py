"""Writes: what a caller requests, what a planner makes of it, and what became of it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, Self, TypeAlias, TypeVar

from omnigraph.integrity.violations import Violation
from omnigraph.manifest.drafts import AddHistory, ForgetStream
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.model.commits import Commit, OperationKind
from omnigraph.model.followups import FollowUpFailure
from omnigraph.model.identities import TypeIdentity
from omnigraph.model.ids import CommitId
from omnigraph.model.names import BranchName
from omnigraph.model.streams import StreamStep
from omnigraph.model.tables import TableKey, TablePin
from omnigraph.schema.accepted import AcceptedSchema
from omnigraph.schema.catalog import SchemaType
from omnigraph.storage.staging import StagedWrite
from omnigraph.storage.tables import Table
from omnigraph.transaction.view import View

Report = TypeVar("Report")


@dataclass(frozen=True, slots=True)
class WriteRequest:
    """The parameters that every kind of write takes from its caller.

    Attributes:
        expect_head: The commit whose rows the branch must have.
        source: The snapshot that a merge brings in.
        approvals: How many reviewers approved it.
        waits: Whether to wait for concurrent writers of the same tables and to retry the plan.
        attempt: Set for a request with a key.
        stream: The batch of a stream that is written. The branch records it, also if it changes
            nothing; the first one of a stream makes a commit in any case.
    """

    kind: OperationKind
    branch: BranchName
    actor: str | None = None
    message: str | None = None
    expect_head: CommitId | None = None
    source: Snapshot | None = None
    approvals: int = 0
    waits: bool = True
    attempt: KeyedAttempt | None = None
    stream: StreamStep | None = None


@dataclass(frozen=True, slots=True)
class KeyedAttempt:
    """One attempt of a request with a key (`transaction.requests`).

    Attributes:
        keep: Called with the outcome and the commit id before the first effect, while the tables
            are held. Raises ConflictError if another process runs the same request.
        commit_id: The commit that earlier attempts would have made; None for the first one.
    """

    keep: Callable[[WriteOutcome[Any], CommitId], None]
    commit_id: CommitId | None = None


Stage: TypeAlias = "Callable[[Table], StagedWrite | None]"
"""Writes the files of one table's change, on the table it will be committed to; no head moves.

Returns None if there is nothing to change."""

Prepare: TypeAlias = "Callable[[Mapping[TableKey, Table]], None]"
"""Called once before the first `Stage`, with the tables of all: what several tables can do in one
step belongs here."""

Verify: TypeAlias = "Callable[[StagedTables], None]"
"""Checks what can only be checked on staged files; raises if they must not become visible."""

Record: TypeAlias = AddHistory | ForgetStream
"""What a plan changes in the records of its branch, besides tables and the schema."""


@dataclass(frozen=True, slots=True)
class WritePlan(Generic[Report]):
    """A write, planned on one view of the graph: computed and validated, and nothing is written.

    Attributes:
        report: The planner's report to its caller.
        changes: How to stage each table that changes.
        prepare: Called before the changes are staged; None where each is staged by itself.
        reads: Other tables whose rows the plan relied on, such as those of an edge's ends. They
            must not have moved when the first effect happens.
        locks: Tables that nobody may write between the first effect and the publish, though this
            write does not change them: the edges that a deleted node might get meanwhile.
        note: What the message of the commit says after the caller's own words.
        can_replan: Whether the plan may be repeated on newer rows without asking the caller.
        inserts: By table, how many rows it inserts. If these rows are all new, a repeated plan must
            not replace any, because a concurrent writer was told that the row had landed; a plan
            that replaces rows is not repeated.
        records: What it changes in the records of the branch. With any, it makes a commit even if
            no table changes.
        schema_change: What changes in the schema; None if it stays.
        verify: Called after staging, before the first trace of the write.
        is_bulk: Whether it is a job on Spark, after which no automatic maintenance follows.
    """

    report: Report
    changes: Mapping[TableKey, Stage] = field(default_factory=dict)
    prepare: Prepare | None = None
    reads: frozenset[TableKey] = frozenset()
    locks: frozenset[TableKey] = frozenset()
    note: str = ""
    can_replan: bool = False
    inserts: Mapping[TableKey, int] = field(default_factory=dict)
    records: tuple[Record, ...] = ()
    schema_change: SchemaChange | None = None
    verify: Verify | None = None
    is_bulk: bool = False

    @property
    def touched_types(self) -> frozenset[str]:
        """The types whose rows or declarations it changes."""
        keys = set(self.changes)
        if (change := self.schema_change) is not None:
            created = {new.type.table_key for new in change.created}
            keys |= change.dropped | created | set(change.changed)
        declared = frozenset() if change is None else change.declared
        return declared.union(key.type_name for key in keys)

    @property
    def renamed_types(self) -> frozenset[str]:
        """The types that it gives another name, by the name that they have until then."""
        changed = {} if self.schema_change is None else self.schema_change.changed
        return frozenset(key.type_name for key, new in changed.items() if new.key != key)


@dataclass(frozen=True, slots=True)
class SchemaChange:
    """What a write changes in the schema of its branch.

    Attributes:
        schema: The schema from the commit on.
        created: The tables of new types.
        changed: By its key until now, what changes in each other type.
        dropped: The types that are dropped.
        declared: The types whose declarations change in any way, by their names in both schemas.
    """

    schema: AcceptedSchema
    created: tuple[CreatedTable, ...] = ()
    changed: Mapping[TableKey, PinChange] = field(default_factory=dict)
    dropped: frozenset[TableKey] = frozenset()
    declared: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class CreatedTable:
    """A table of a new type.

    Attributes:
        fill: Stages its first rows; None for an empty one.
    """

    type: SchemaType
    identity: TypeIdentity
    fill: Stage | None = None


@dataclass(frozen=True, slots=True)
class PinChange:
    """What changes in the pin of a type that stays: its key, its identity, or both."""

    key: TableKey
    identity: TypeIdentity


@dataclass(frozen=True, slots=True)
class StagedTables:
    """What was staged for one write.

    Attributes:
        changes: By the key until now, the staged write of each table that changes.
        created: By key, the tables of new types.
    """

    changes: Mapping[TableKey, StagedWrite] = field(default_factory=dict)
    created: Mapping[TableKey, TablePin] = field(default_factory=dict)

    def row_counts(self) -> dict[TableKey, RowCounts]:
        """The rows of each table that changes."""
        return {key: RowCounts.of(write) for key, write in self.changes.items()}


@dataclass(frozen=True, slots=True)
class RowCounts:
    """The rows of one changed table.

    Attributes:
        stored: How many rows it holds now.
        unchanged: How many rows of the write it had already, value for value.
    """

    stored: int
    unchanged: int = 0

    @classmethod
    def of(cls, staged: StagedWrite) -> Self:
        """The counts that a staged write leaves."""
        return cls(staged.row_count, staged.unchanged)


@dataclass(frozen=True, slots=True)
class WriteOutcome(Generic[Report]):
    """What became of a write.

    Attributes:
        commit: The commit that it made; None if there was nothing to change.
        view: The view that the final plan was made on.
        row_counts: The rows of each table that changed.
        warnings: What failed after the commit, which has landed all the same.
        tables: The changed tables as the commit left them, if automatic maintenance may follow.
    """

    report: Report
    view: View
    commit: Commit | None = None
    row_counts: Mapping[TableKey, RowCounts] = field(default_factory=dict)
    warnings: tuple[FollowUpFailure, ...] = ()
    tables: Mapping[TableKey, Table] = field(default_factory=dict)

    def upserts(self, key: TableKey, written: int) -> tuple[int, int, int]:
        """How many of the rows written to a table were inserted, updated, and unchanged."""
        counts = self.row_counts.get(key)
        if counts is None:
            return 0, 0, written
        inserted = counts.stored - self.view.snapshot.pin(key).row_count
        return inserted, written - inserted - counts.unchanged, counts.unchanged


class WriterSight(Protocol):
    """What the actor of a write may be told of rows."""

    def limit_violations(self) -> AbstractContextManager[None]:
        """Let the violations of a block say nothing about rows of hidden types."""
        ...

    def violation(self, violation: Violation) -> Violation:
        """A violation as the actor may see it."""
        ...


class WritePolicy(Protocol):
    """Decides about the writes of a handle. `policy.authority` implements it."""

    @property
    def is_limited(self) -> bool:
        """Whether anything is refused or hidden at all."""
        ...

    def admit(
        self,
        request: WriteRequest,
        *,
        changes: Collection[str] = (),
        reads: Collection[str] = (),
    ) -> None:
        """Refuse a write that its actor may not make, before a row is read.

        Args:
            changes: The types that it changes, as far as they are known.
            reads: The types whose rows decide what it does.

        Raises:
            NotAllowedError: the actor may not. Nothing was written.
        """
        ...

    def admit_result(
        self, request: WriteRequest, plan: WritePlan[Any], before: View, after: View
    ) -> None:
        """Refuse a write after which somebody could read what its actor may not read.

        Args:
            before: The view that it was planned on, and `after` the one that it would make.

        Raises:
            NotAllowedError: it would. Nothing was written.
        """
        ...

    def sight_of(self, request: WriteRequest) -> WriterSight:
        """What the actor of a write may be told of rows."""
        ...

    def conceal(self, text: str) -> AbstractContextManager[None]:
        """Make a branch that the actor may not read look like one that does not exist."""
        ...
