"""Work: a writer's plan, made on one view of the graph, and the result of its transaction."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Generic, Self, TypeAlias, TypeVar

from omnigraph.model.commits import Commit
from omnigraph.model.followups import FollowUpFailure
from omnigraph.model.identities import TypeIdentity
from omnigraph.model.tables import TableKey, TablePin
from omnigraph.schema.accepted import AcceptedSchema
from omnigraph.schema.catalog import SchemaType
from omnigraph.storage.staging import StagedWrite
from omnigraph.storage.tables import Table
from omnigraph.transaction.view import View

Report = TypeVar("Report")

Stage: TypeAlias = "Callable[[Table], StagedWrite | None]"
"""Writes the files of one table's change, on the table it will be committed to; no head moves.

Returns None if there is nothing to change."""

Prepare: TypeAlias = "Callable[[Mapping[TableKey, Table]], None]"
"""Called once before the first `Stage`, with the tables of all: what several tables can do in one
step belongs here."""


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


Verify: TypeAlias = "Callable[[StagedTables], None]"
"""Checks what can only be checked on staged files; raises if they must not become visible."""


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
class StagedTables:
    """What was staged for one write.

    Attributes:
        changes: By the key until now, the staged write of each table that changes.
        created: By key, the tables of new types.
    """

    changes: Mapping[TableKey, StagedWrite]
    created: Mapping[TableKey, TablePin]


@dataclass(frozen=True, slots=True)
class Work(Generic[Report]):
    """One attempt's plan: everything was computed and validated, and nothing has been written.

    Attributes:
        report: The writer's report to its caller.
        changes: How to stage each table that changes. If empty, there will be no commit, unless
            the work `is_history`.
        prepare: Called before the changes are staged; None where each is staged by itself.
        reads: Other tables whose rows the plan relied on, such as those of an edge's ends. They
            must not have moved when the first effect happens.
        guards: Tables that must not be written between the first effect and the publish, though
            this writer does not change them: the edges that a deleted node might get meanwhile.
        note: What the message of the commit says after the caller's own words, if anything.
        replans: Whether the plan may be repeated on newer rows without asking the caller.
        inserts: By table, how many rows it inserts. If these rows are all new, a repeated plan must
            not replace any, because a concurrent writer was told that the row had landed; a plan
            that replaces rows is not repeated.
        is_history: Whether it makes a commit even if no table changes, as a merge does.
        lineage: Commits of the merged branch, which become part of this history.
        schema_change: What changes in the schema; None if it stays.
        verify: Called after staging, before the first trace of the write.
        is_bulk: Whether it is a job on Spark, after which no automatic maintenance follows.
    """

    report: Report
    changes: Mapping[TableKey, Stage] = field(default_factory=dict)
    prepare: Prepare | None = None
    reads: frozenset[TableKey] = frozenset()
    guards: frozenset[TableKey] = frozenset()
    note: str = ""
    replans: bool = False
    inserts: Mapping[TableKey, int] = field(default_factory=dict)
    is_history: bool = False
    lineage: tuple[Commit, ...] = ()
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
class TransactionResult(Generic[Report]):
    """The result of a transaction.

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
