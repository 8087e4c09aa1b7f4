"""Records of a staged write: the draft of its commit, and the intent that recovery would read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Generic

from omnigraph.manifest.drafts import (
    AddHistory,
    AddParent,
    Change,
    CommitDraft,
    DropTable,
    PinTable,
    RecordBatch,
    SetSchema,
)
from omnigraph.manifest.requirements import BranchIs, Requirement, SchemaIs, TableAt
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.model.ids import CommitId, OperationId
from omnigraph.model.tables import TableKey, TablePin, Tombstone
from omnigraph.recovery.intents import ForkSource, Intent, TableIntent
from omnigraph.recovery.owners import this_process
from omnigraph.storage.staging import StagedWrite
from omnigraph.transaction.view import View
from omnigraph.transaction.writes import Report, StagedTables, WritePlan, WriteRequest


@dataclass(frozen=True, slots=True)
class StagedPlan(Generic[Report]):
    """A write that was planned and staged on one view. Nothing refers to its files yet.

    Attributes:
        conditions: What its caller requires of the branch, apart from tables.
    """

    request: WriteRequest
    view: View
    plan: WritePlan[Report]
    staged: StagedTables
    conditions: tuple[Requirement, ...] = ()

    @property
    def base(self) -> Snapshot:
        """The snapshot that it was planned on."""
        return self.view.snapshot

    @property
    def changes_tables(self) -> bool:
        """Whether a table or the schema changes."""
        return bool(self.staged.changes) or self.plan.schema_change is not None

    @property
    def held_tables(self) -> frozenset[TableKey]:
        """The tables that nobody else may write while it lands."""
        return self.plan.locks.union(self.staged.changes)

    @property
    def replaced_tables(self) -> frozenset[TableKey]:
        """The tables in which its inserts replace rows, since they grow by fewer than it writes."""
        return frozenset(
            key
            for key, write in self.staged.changes.items()
            if key in self.plan.inserts
            and write.row_count - self.base.pin(key).row_count + write.unchanged
            < self.plan.inserts[key]
        )

    def requirements(self, keys: Iterable[TableKey]) -> Iterator[Requirement]:
        """What must hold of the branch: that it is where the plan was made, in these tables."""
        yield BranchIs(self.base.ref)
        yield SchemaIs(self.base.schema_digest)
        for pin in self.pins(keys):
            yield TableAt(pin.key, pin.version, pin.ref)
        yield from self.conditions

    def pins(self, keys: Iterable[TableKey]) -> list[TablePin]:
        """The pins that the plan was made on, in the order in which heads move."""
        return [self.base.pin(key) for key in sorted(keys)]


def draft_of(write: StagedPlan[Any], commit_id: CommitId) -> CommitDraft:
    """The commit that the write makes."""
    request = write.request
    return CommitDraft(
        request.branch,
        commit_id,
        request.kind,
        request.actor,
        _message(write),
        changes=tuple(_changes(write)),
        # Not tables that were only read: their writers must claim tables that this write holds.
        requires=tuple(write.requirements(write.held_tables)),
    )


def intent_of(
    write: StagedPlan[Any], draft: CommitDraft, operation_id: OperationId, now: datetime
) -> Intent:
    """What recovery needs to finish the write or to undo it."""
    has_schema = draft.the(SetSchema) is not None
    recorded = replace(
        draft,
        # Recovery finds new pins by the heads, and the merged history by the merged commit.
        changes=tuple(
            change
            for change in draft.changes
            if not isinstance(change, AddHistory) and (has_schema or not _is_pin(change))
        ),
        requires=tuple(each for each in draft.requires if not isinstance(each, TableAt)),
    )
    changes = write.staged.changes
    return Intent(
        operation_id,
        recorded,
        now,
        tables=tuple(_table_intent(pin, changes[pin.key]) for pin in write.pins(changes)),
        locks=tuple(sorted(write.plan.locks)),
        owner=this_process(),
    )


def _is_pin(change: Change) -> bool:
    return isinstance(change, PinTable)


def _message(write: StagedPlan[Any]) -> str | None:
    message, note = write.request.message, write.plan.note
    if not note:
        return message
    return note if message is None else f"{message}\n\n{note}"


def _changes(write: StagedPlan[Any]) -> Iterator[Change]:
    yield from map(PinTable, _new_pins(write))
    change = write.plan.schema_change
    if change is not None:
        for pin in write.pins(change.dropped):
            origin = pin.identity.origin
            sealed = Tombstone(pin.table_id, pin.key, pin.location, pin.version, pin.ref, origin)
            yield DropTable(sealed)
        yield SetSchema(change.schema.digest)
    if write.request.source is not None:
        yield AddParent(write.request.source.head.commit_id)
    yield from write.plan.records
    if write.request.stream is not None:
        yield RecordBatch(write.request.stream.batch)


def _new_pins(write: StagedPlan[Any]) -> Iterator[TablePin]:
    """The pins that the commit adds or replaces."""
    changes = write.staged.changes
    change = write.plan.schema_change
    renamed = {} if change is None else change.changed
    for key in {**changes, **renamed}:
        pin = write.base.pin(key)
        if key in changes:
            staged = changes[key]
            pin = pin.move(
                version=staged.version, ref=staged.address.ref, row_count=staged.row_count
            )
        if key in renamed:
            pin = replace(pin, key=renamed[key].key, identity=renamed[key].identity)
        yield pin
    yield from write.staged.created.values()


def _table_intent(pin: TablePin, staged: StagedWrite) -> TableIntent:
    ref = staged.address.ref
    moves = TableIntent(pin.key, pin.location, ref, pin.version, staged.version)
    return moves if ref == pin.ref else replace(moves, forks_from=ForkSource(pin.ref))
