"""The write protocol, for every kind of writer: heal, plan, stage, claim, apply, publish, settle.

Nothing is visible before `publish`, and from `claim` on a sidecar says how to finish or undo the
write. A process may die after any line: the next writer's `heal` brings the graph to exactly the
state before or the state after (docs/decisions/0006).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final, Protocol, Self, TypeAlias

from omnigraph.clock import Clock, back_off, creation_time
from omnigraph.engine.protocol import Data
from omnigraph.errors import (
    RETRY_HINT,
    BranchNotFoundError,
    ConflictError,
    ErrorCode,
    OmnigraphError,
    OutcomeUnknownError,
    RecoveryNeededError,
    StaleHeadError,
    StorageError,
    TableConflictError,
)
from omnigraph.failpoints import Failpoint, hit
from omnigraph.integrity.violations import IntegrityError, Violation
from omnigraph.limits import (
    EXCLUSION_BACKOFF_SECONDS_MAX,
    EXCLUSION_SECONDS_MAX,
    LEASE_SECONDS,
    QUEUE_SECONDS_MAX,
    REPLANS_MAX,
    STAGED_SECONDS_MAX,
)
from omnigraph.manifest import schemas
from omnigraph.manifest.branches import Branch
from omnigraph.manifest.expectations import (
    BranchIs,
    Expectation,
    HeadIs,
    SchemaIs,
    StreamAt,
    TableAt,
    branch_deleted_error,
    require,
)
from omnigraph.manifest.lifecycle import create_table, write_schema_text
from omnigraph.manifest.publisher import Publication, publish, record_batch
from omnigraph.manifest.reader import Manifest, OpenManifest
from omnigraph.manifest.removals import find_let_go
from omnigraph.manifest.schemas import Catalogs
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.model.commits import MAINTENANCE_KINDS, Commit, OperationKind
from omnigraph.model.followups import FollowUpFailure, schema_text_failure
from omnigraph.model.ids import CommitId, OperationId
from omnigraph.model.names import BranchName
from omnigraph.model.streams import StreamStep
from omnigraph.model.tables import TableKey, TablePin, Tombstone
from omnigraph.recovery.claims import claim, release_on_failure, renew_lease
from omnigraph.recovery.classify import CONFIRMED_KINDS
from omnigraph.recovery.intents import ForkSource, Intent, SchemaIntent, TableIntent
from omnigraph.recovery.owners import this_process, track_operation
from omnigraph.recovery.sweep import Recovery
from omnigraph.storage import heads
from omnigraph.storage.staging import StagedWrite
from omnigraph.storage.tables import Table, is_minted, ref_folder
from omnigraph.storage.turns import turns
from omnigraph.transaction.view import View, view_at
from omnigraph.transaction.work import (
    CreatedTable,
    Report,
    RowCounts,
    SchemaChange,
    StagedTables,
    TransactionResult,
    Work,
)

_log: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt of a request with a key (`transaction.requests`).

    Attributes:
        keep: Called with the result and the commit id before the first effect, while the tables are
            held. Raises ConflictError if another process carries out the same request.
        commit_id: The commit that earlier attempts would have made; None for the first one.
    """

    keep: Callable[[TransactionResult[Any], CommitId], None]
    commit_id: CommitId | None = None


@dataclass(frozen=True, slots=True)
class Order:
    """The caller's parameters that every kind of write has.

    Attributes:
        expect_head: The commit whose rows the branch must have for the write to happen.
        expect_rows_from: `Commit.rows_from` of that commit, which the transaction finds.
        source: The snapshot that a merge brings in.
        approvals: How many reviewers approved it.
        is_patient: Whether to wait for other writers of the same tables, and to plan again.
        begun_at: When the transaction began, which sets it.
        attempt: Set for a request with a key.
        stream: The batch of a stream that is written. The branch records it, also if it changes
            nothing; the first one of a stream makes a commit in any case.
        forgets: The stream whose record is removed.
    """

    kind: OperationKind
    branch: BranchName
    actor: str | None = None
    message: str | None = None
    expect_head: CommitId | None = None
    expect_rows_from: CommitId | None = None
    source: Snapshot | None = None
    approvals: int = 0
    is_patient: bool = True
    begun_at: datetime | None = None
    attempt: Attempt | None = None
    stream: StreamStep | None = None
    forgets: str | None = None

    @property
    def merged_parent(self) -> CommitId | None:
        """The commit that a merge brings in."""
        return None if self.source is None else self.source.head.commit_id


Admit: TypeAlias = "Callable[[Order, Collection[str]], None]"
"""Raises if the actor of a write may not make it. Called before the plan, and after it with the
types that the write changes."""

AdmitReads: TypeAlias = "Callable[[Order, Collection[str]], None]"
"""Raises if the actor of a write may not read these types."""

AdmitResult: TypeAlias = "Callable[[Order, Work[Any], View, View], None]"
"""Raises if the actor of a write may not leave its result behind. Called after staging with the
plan, the view that it was made on, and the view that it would make."""


class WriterSight(Protocol):
    """What the actor of a write may be told of rows."""

    def limit_violations(self) -> AbstractContextManager[None]:
        """Let the violations of a block say nothing about rows of hidden types."""
        ...

    def violation(self, violation: Violation) -> Violation:
        """A violation as the actor may see it."""
        ...


Conceal: TypeAlias = "Callable[[str], AbstractContextManager[None]]"
"""Makes a branch that the actor may not read look like one that does not exist, for a block that
names it."""

AfterCommit: TypeAlias = "Callable[[Order, Mapping[TableKey, Table]], tuple[FollowUpFailure, ...]]"
"""Called after each commit with the tables that it changed; returns what failed. The commit has
landed, so it raises no error."""


@dataclass(frozen=True, slots=True)
class _Claim:
    """A write that holds its tables and may be applied.

    Attributes:
        opened: The branch's manifest, read while the tables were held.
        read_at: When that began.
    """

    intent: Intent
    publication: Publication
    opened: OpenManifest
    read_at: datetime


@dataclass(frozen=True, slots=True)
class _PlanOnBranch:
    """A plan that was made on one state of the branch, and the tables in which it replaces rows."""

    snapshot: Snapshot
    replaces: frozenset[TableKey]

    @classmethod
    def of(cls, snapshot: Snapshot, work: Work[Any], staged: StagedTables) -> Self:
        """The plan, staged. An insert replaces rows if the table grows by fewer than it writes."""
        replaces = (
            key
            for key, write in staged.changes.items()
            if key in work.inserts
            and write.row_count - snapshot.pin(key).row_count + write.unchanged < work.inserts[key]
        )
        return cls(snapshot, frozenset(replaces))


class Transactions:
    """Runs the writes of one graph handle.

    Attributes:
        admit: Decides whether a write is allowed; None if every write is.
        admit_reads: Decides whether a write may read rows of types; None if it may read all.
        admit_result: Decides whether its result is; None if every result is.
        sight_of: Says what the actor of a write may be told; None if it may be told everything.
        conceal: Hides which branches there are; None if everybody may know.
        after_commit: Follows each commit that changed tables, unless its work is bulk.
    """

    admit: Admit | None = None
    admit_reads: AdmitReads | None = None
    admit_result: AdmitResult | None = None
    sight_of: Callable[[Order], WriterSight] | None = None
    conceal: Conceal | None = None
    after_commit: AfterCommit | None = None

    def __init__(self, manifest: Manifest, clock: Clock, catalogs: Catalogs) -> None:
        self._manifest = manifest
        self._store = manifest.store
        self._clock = clock
        self._catalogs = catalogs
        self._shared: set[BranchName] = set()
        self.recovery = Recovery(manifest, clock)

    def run(self, order: Order, plan: Callable[[View], Work[Report]]) -> TransactionResult[Report]:
        """Plan a write and make it visible in one commit, or leave the graph unchanged.

        A plan that only inserts rows is repeated when its tables moved before any effect.

        Args:
            plan: Computes and validates on one view of the graph. It writes nothing, and may be
                called several times.

        Raises:
            ConflictError: the branch is not at the expected commit, a table moved since the plan
                was made, or other writers kept it busy. Nothing became visible.
            BranchNotFoundError: there is no such branch, or it was deleted meanwhile. A later
                branch of its name has nothing of this write.
            CommitLetGoError: what a merge brings in was let go meanwhile. Nothing became visible.
            NotAllowedError: the actor may not make this write. Nothing became visible.
            RecoveryNeededError: an earlier write needs an operator. Nothing became visible.
            OutcomeUnknownError: whether the commit landed could not be determined.
        """
        if self.admit is not None:
            self.admit(order, ())
        shown = nullcontext() if self.sight_of is None else self.sight_of(order).limit_violations()
        with shown, nullcontext() if self.conceal is None else self.conceal(order.branch):
            landed = self._run(order, plan)
        if self.after_commit is None or not landed.tables or order.kind in MAINTENANCE_KINDS:
            return landed
        failures = self.after_commit(order, landed.tables)
        return replace(landed, warnings=(*landed.warnings, *failures)) if failures else landed

    def _run(self, order: Order, plan: Callable[[View], Work[Report]]) -> TransactionResult[Report]:
        order = replace(order, begun_at=self._clock.now())
        first = self._run_on_left(order, plan)
        if isinstance(first, TransactionResult):
            return first
        with ExitStack() as queue:
            attempt = 0
            while True:
                found = self._heal(order)
                self._require_not_replaced(order, found)
                hit(Failpoint.WRITE_AFTER_HEAL)
                view = self._view(order.branch, found)
                order = self._complete(order, view.snapshot)
                with self._on_branch(view.snapshot):
                    work, staged = self._plan(order, view, plan)
                if not staged.changes and work.schema_change is None:
                    recorded = self._record(order, view.snapshot, work)
                    return TransactionResult(work.report, view, recorded)
                planned = _PlanOnBranch.of(view.snapshot, work, staged)
                self._require_same_inserts(order, first, planned)
                first = first or planned
                if attempt == 0:
                    # From the second attempt on, this writer plans while it holds its turns.
                    queue.enter_context(self._take_turns(order, view.snapshot, work))
                try:
                    with (
                        self._on_branch(view.snapshot),
                        self._claimed(order, view.snapshot, work, staged) as claimed,
                    ):
                        result = self._land(order, view, work, staged, claimed)
                except ConflictError as conflict:
                    is_stray = conflict.code is ErrorCode.STRAY_RESTORE
                    if is_stray and attempt < REPLANS_MAX:
                        pins = _pins(view.snapshot, staged.changes)
                        self.recovery.restore_pins(order.branch, pins)
                    elif not self._may_replan(order, planned, work, conflict, attempt):
                        raise
                    back_off(self._clock, attempt, seconds_max=EXCLUSION_BACKOFF_SECONDS_MAX)
                    attempt += 1
                else:
                    return result

    def require_admitted(
        self, order: Order, *, changes: Collection[str], reads: Collection[str] = ()
    ) -> None:
        """Refuse a plan by the types that it changes and reads, before it reads a row.

        Raises:
            NotAllowedError: the actor may not change, or not read, one of them. Nothing was read.
        """
        if self.admit is not None:
            self.admit(order, changes)
        if self.admit_reads is not None:
            self.admit_reads(order, reads)

    def _require_not_replaced(self, order: Order, found: Branch | None) -> None:
        """Reject a branch that took the name of the one that this handle left, during a write."""
        assert order.begun_at is not None, "the transaction sets it"
        left = self._manifest.left(order.branch)
        if left is None or found is None or found.ref == left.ref:
            return
        if found.created_at is not None and found.created_at > order.begun_at:
            raise branch_deleted_error(order.branch)

    def _heal(self, order: Order) -> Branch | None:
        """Resolve interrupted writes of the branch, which may have to wait for others.

        Returns:
            The branch's record, if it was just read.
        """
        if order.is_patient:
            return self.recovery.heal_for_write(order.branch)
        if self.recovery.is_needed(order.branch):
            message = f"a write to branch {order.branch} was interrupted"
            hint = "the next write or read-write open completes it or rolls it back"
            raise ConflictError(message, hint=hint, code=ErrorCode.TABLE_BUSY)
        return None

    def _complete(self, order: Order, now: Snapshot) -> Order:
        """The order, with the commit that made the rows that its caller requires."""
        expected = order.expect_head
        if expected is None or order.expect_rows_from is not None:
            return order
        rows_from: CommitId = expected
        if expected == now.head.commit_id:
            rows_from = now.head.rows_from
        elif expected != now.head.rows_from:
            # The caller may name maintenance that other maintenance followed.
            opened = self._manifest.open(order.branch)
            named = self._manifest.lookup(opened, expected)
            rows_from = expected if named is None else named.rows_from
        return replace(order, expect_rows_from=rows_from)

    def _may_replan(
        self,
        order: Order,
        planned: _PlanOnBranch,
        work: Work[Report],
        conflict: ConflictError,
        attempt: int,
    ) -> bool:
        """Whether the write may be planned again on newer tables without asking the caller."""
        if attempt >= REPLANS_MAX or not order.is_patient or isinstance(conflict, StaleHeadError):
            return False
        if conflict.code in (ErrorCode.TABLE_BUSY, ErrorCode.REQUEST_TAKEN):
            # A caller that waited that long for a busy table should know; and one whose request
            # another process carries out looks for its result.
            return False
        if work.replans and not planned.replaces:
            return True
        # If only maintenance or a recovery moved the tables, the same plan is made again.
        now, before = self._manifest.current(order.branch), planned.snapshot
        return now.ref == before.ref and now.head.rows_from == before.head.rows_from

    def _require_same_inserts(
        self, order: Order, first: _PlanOnBranch | None, now: _PlanOnBranch
    ) -> None:
        """Reject an insert that would replace a row which was committed since the caller asked.

        If nothing was committed since, the first plan was made on an older state that this handle
        remembered.
        """
        if first is None:
            return
        assert order.begun_at is not None, "the transaction sets it"
        old, new = first.snapshot, now.snapshot
        overtaken = [key for key in now.replaces if old.pin(key).place != new.pin(key).place]
        if not overtaken or old.head.rows_from == new.head.rows_from:
            return
        opened = self._manifest.open(order.branch)
        newest = self._manifest.lookup(opened, new.head.rows_from)
        if newest is not None and newest.created_at <= order.begun_at:
            return
        key = min(overtaken)
        expected, actual = old.pin(key).version, new.pin(key).version
        message = (
            f"requirement failed: table {key} on branch {order.branch} is at version {actual}, "
            f"expected {expected}; a concurrent write inserted a row with the same key"
        )
        raise TableConflictError(
            message,
            hint="read the row, then insert again to replace it or update it",
            table_key=str(key),
            expected=expected,
            actual=actual,
        )

    def _run_on_left(
        self, order: Order, plan: Callable[[View], Work[Report]]
    ) -> TransactionResult[Report] | _PlanOnBranch | None:
        """The write, planned on the state in which this handle left the branch.

        If others moved the branch meanwhile, this is only the plan; None if there is none.

        This saves reading the branch and the sidecars before the plan: the claim lists the sidecars
        in any case, and nothing is applied unless the branch is where the plan was made. A failure
        proves nothing, because the branch may have moved: then it is planned on the current state.
        """
        left = self._manifest.left(order.branch)
        if order.kind is not OperationKind.MUTATION or left is None or order.branch in self._shared:
            return None
        view = view_at(self._store, self._catalogs, left)
        try:
            order = self._complete(order, left)
            work, staged = self._plan(order, view, plan)
        except OmnigraphError:
            return None
        if not staged.changes:
            return None
        planned = _PlanOnBranch.of(left, work, staged)
        with ExitStack() as stack:
            stack.enter_context(self._take_turns(order, left, work))
            stack.enter_context(self._on_branch(left))
            try:
                claimed = stack.enter_context(self._claimed(order, left, work, staged))
            except (ConflictError, BranchNotFoundError) as failure:
                if failure.code is ErrorCode.TABLE_BUSY:
                    raise
                return planned
            try:
                return self._land(order, view, work, staged, claimed)
            except ConflictError as conflict:
                if not self._may_replan(order, planned, work, conflict, attempt=0):
                    raise
                return planned

    def _plan(
        self, order: Order, view: View, plan: Callable[[View], Work[Report]]
    ) -> tuple[Work[Report], StagedTables]:
        require(_conditions(order), view.snapshot)
        try:
            work = plan(view)
        except IntegrityError as refusal:
            if self.admit is not None:
                # What rules say of a type's rows is for those who may write them.
                self.admit(order, refusal.types)
            raise
        if self.admit is not None and order.kind not in MAINTENANCE_KINDS:
            self.admit(order, work.touched_types)
        hit(Failpoint.WRITE_AFTER_PLAN)
        staged = self._stage(view, work)
        if work.verify is not None:
            work.verify(staged)
        if self.admit_result is not None and order.kind not in MAINTENANCE_KINDS:
            self.admit_result(order, work, view, self._result(view, work, staged))
        hit(Failpoint.WRITE_AFTER_STAGE)
        return work, staged

    def _result(self, view: View, work: Work[Report], staged: StagedTables) -> View:
        """The view that a staged write would make. Its tables are detached versions."""
        change = work.schema_change
        changed = {} if change is None else change.changed
        before = {new.key: old for old, new in changed.items()}

        def open_table(key: TableKey) -> Table:
            if key in staged.created:
                return self._store.tables.open_pin(staged.created[key])
            old_key = before.get(key, key)
            if old_key in staged.changes:
                return heads.preview(staged.changes[old_key])
            return view.data.table(old_key)

        catalog = view.catalog if change is None else change.schema.catalog
        return View(view.snapshot, catalog, Data(open_table))

    def _view(self, branch: BranchName, found: Branch | None) -> View:
        """The branch's current view."""
        left = self._manifest.left(branch)
        now = self._manifest.snapshot(self._manifest.open(branch, found=found), branch)
        if left is None or left.head.commit_id == now.head.commit_id:
            self._shared.discard(branch)
        else:
            # Others write to it: a plan on the state that this handle left would be in vain.
            self._shared.add(branch)
        return view_at(self._store, self._catalogs, now)

    @contextmanager
    def _claimed(
        self,
        order: Order,
        planned_on: Snapshot,
        work: Work[Report],
        staged: StagedTables,
    ) -> Iterator[_Claim]:
        """Hold the tables from the first trace of a write to its last; a crash may interrupt it.

        Raises:
            ConflictError: before the block, if what the plan relied on has moved, or other writers
                kept the tables busy. Nothing was applied.
            BranchNotFoundError: before the block, if the branch was deleted. Nothing was applied.
        """
        earlier = None if order.attempt is None else order.attempt.commit_id
        commit_id = earlier or CommitId(self._clock.ulid())
        publication = _publication(order, planned_on, work, staged, commit_id)
        intent = self._intent(order, planned_on, work, staged, publication)
        with track_operation(intent.operation_id):
            self._claim(order, intent)
            read_at = self._clock.now()
            with release_on_failure(self.recovery.sidecars, intent):
                opened = self._require_unmoved(order, planned_on, work, staged)
                # Once more: from now on the sidecar names it, so that no cleanup removes it.
                self._keep_schema(work)
                if order.attempt is not None:
                    view = view_at(self._store, self._catalogs, planned_on)
                    landing = TransactionResult(work.report, view, None, _row_counts(staged))
                    order.attempt.keep(landing, commit_id)
            hit(Failpoint.WRITE_AFTER_CHECK)
            yield _Claim(intent, publication, opened, read_at)

    def _land(
        self,
        order: Order,
        view: View,
        work: Work[Report],
        staged: StagedTables,
        claimed: _Claim,
    ) -> TransactionResult[Report]:
        intent = claimed.intent
        row_counts = _row_counts(staged)
        tables: dict[TableKey, Table] = {}
        try:
            author = heads.Authorship(intent.operation_id, intent.writer_kind)
            for key in sorted(staged.changes):
                tables[key] = self._apply(key, staged.changes[key], author)
                hit(Failpoint.WRITE_AFTER_EACH_APPLY)
            if intent.writer_kind in CONFIRMED_KINDS:
                intent = self._confirm(intent)
                hit(Failpoint.WRITE_AFTER_CONFIRM)
            commit = publish(
                self._manifest,
                self._clock,
                claimed.publication,
                opened=claimed.opened,
                read_at=claimed.read_at,
            )
            self._require_name(view.snapshot)
            hit(Failpoint.WRITE_AFTER_PUBLISH)
        except OmnigraphError as failure:
            commit = self._resolve_failure(intent, failure)
            return TransactionResult(work.report, view, commit, row_counts)
        warnings = self._write_schema_text(order, work)
        self._settle(intent)
        hit(Failpoint.WRITE_AFTER_SETTLE)
        # The small batches of a stream would otherwise leave ever more small fragments.
        followed = {} if work.is_bulk and order.stream is None else tables
        return TransactionResult(work.report, view, commit, row_counts, warnings, followed)

    def _keep_schema(self, work: Work[Report]) -> None:
        """Store the schema of a change."""
        if work.schema_change is not None:
            schema = work.schema_change.schema
            schemas.keep(self._store.objects, schema, now=self._clock.now())

    def _write_schema_text(self, order: Order, work: Work[Report]) -> tuple[FollowUpFailure, ...]:
        """Write the copy of main's schema that is for people; the commit has landed."""
        if work.schema_change is None or not order.branch.is_main:
            return ()
        try:
            write_schema_text(self._manifest)
        except OmnigraphError as failure:
            return (schema_text_failure(failure),)
        return ()

    def _record(self, order: Order, planned_on: Snapshot, work: Work[Report]) -> Commit | None:
        """The commit of a write that changes no table but belongs in the history.

        A batch of a stream that has nothing to say there is recorded without a commit.
        """
        step = order.stream
        # Rejected rows are stated in a commit, also if no other rows are left.
        is_stated = step is not None and (step.after is None or bool(work.note))
        if step is None and not work.is_history:
            return None
        commit_id = CommitId(self._clock.ulid())
        nothing = StagedTables({}, {})
        publication = _publication(order, planned_on, work, nothing, commit_id)
        self._require_source(order)
        commit = None
        if work.is_history or is_stated:
            commit = publish(self._manifest, self._clock, publication)
        else:
            record_batch(self._manifest, self._clock, publication)
        self._require_name(planned_on)
        return commit

    @contextmanager
    def _on_branch(self, planned_on: Snapshot) -> Iterator[None]:
        """Distinguish a storage failure from a deleted branch, and from a commit let go."""
        try:
            yield
        except StorageError as failure:
            self._require_branch(planned_on)
            if (gone := find_let_go(self._store, planned_on)) is not None:
                message = f"branch {planned_on.branch} has moved on, and {gone.message}"
                raise ConflictError(message, hint="try again") from failure
            raise

    def _require_name(self, planned_on: Snapshot) -> None:
        """Reject a write that is invisible because its branch was deleted, if it may be so.

        A branch ends before it loses its name, and then no publish succeeds. Only branches of older
        releases do not end.
        """
        if planned_on.ref is not None and not is_minted(planned_on.ref):
            self._require_branch(planned_on)

    def _require_branch(self, planned_on: Snapshot) -> None:
        """Reject a branch that lost its name."""
        name = planned_on.branch
        if not name.is_main and self._manifest.names.ref_of(name) != planned_on.ref:
            raise branch_deleted_error(name)

    def _require_source(self, order: Order) -> None:
        """Reject a merge of a branch that was deleted meanwhile.

        `cleanup` keeps the branch's files for longer than the publish can still take, and after
        that because the branch was merged.
        """
        source = order.source
        if source is None:
            return
        if self._age(order) > timedelta(seconds=LEASE_SECONDS):
            # Its sidecar is visible: a cleanup that marks the source from now on sees that.
            self._manifest.let_go.claim(source.head)
        if source.ref is None:
            return
        with suppress(BranchNotFoundError):
            if self._manifest.names.ref_of(source.branch) == source.ref:
                return
        message = f"branch {source.branch} was deleted while it was merged"
        raise BranchNotFoundError(message, hint="nothing was merged; see 'omnigraph branch list'")

    def _age(self, order: Order) -> timedelta:
        """How long ago the transaction began."""
        assert order.begun_at is not None, "the transaction sets it"
        return self._clock.now() - order.begun_at

    def _confirm(self, intent: Intent) -> Intent:
        """Record that every head has moved: the write above the pins is complete."""
        tables = tuple(
            replace(table, confirmed_version=table.post_commit_pin) for table in intent.tables
        )
        confirmed = renew_lease(replace(intent, tables=tables), self._clock)
        self.recovery.sidecars.put(confirmed)
        return confirmed

    def _intent(
        self,
        order: Order,
        planned_on: Snapshot,
        work: Work[Report],
        staged: StagedTables,
        publication: Publication,
    ) -> Intent:
        changes = staged.changes
        return Intent(
            operation_id=OperationId(self._clock.ulid()),
            writer_kind=order.kind,
            branch=order.branch,
            started_at=self._clock.now(),
            branch_ref=planned_on.ref,
            tables=tuple(
                _table_intent(planned_on.pin(key), changes[key]) for key in sorted(changes)
            ),
            actor=order.actor,
            message=_message(order, work),
            commit_id=publication.commit_id,
            merge_source_commit_id=order.merged_parent,
            guards=tuple(sorted(work.guards)),
            schema_digest=planned_on.schema_digest,
            schema_intent=_schema_intent(publication),
            expect_head=order.expect_rows_from,
            owner=this_process(),
            stream=order.stream,
        )

    def _claim(self, order: Order, intent: Intent) -> None:
        """Claim the tables exclusively, and resolve interrupted writes of the branch first."""
        seconds_max = EXCLUSION_SECONDS_MAX if order.is_patient else 0.0
        while True:
            sidecars = claim(self.recovery.sidecars, self._clock, intent, seconds_max=seconds_max)
            own = intent.operation_id
            others = [other for other in sidecars.intents if other.operation_id != own]
            if not self.recovery.interrupted(others, intent.branch):
                return
            self.recovery.sidecars.delete(intent.operation_id)
            self._heal(order)

    def _require_unmoved(
        self,
        order: Order,
        planned_on: Snapshot,
        work: Work[Report],
        staged: StagedTables,
    ) -> OpenManifest:
        """The branch's current manifest, if everything the plan relied on is unchanged.

        Raises:
            ConflictError: a published write moved the branch, or a recovery moved a head.
            RecoveryNeededError: a head moved, and no write accounts for it.
        """
        opened = self._open_again(planned_on)
        self._require_not_landed(order, opened)
        now = self._manifest.snapshot(opened, order.branch)
        self._require_source(order)
        self._require_young(order, staged)
        changes = staged.changes
        keys = {*changes, *work.guards, *work.reads}
        require((*_expectations(planned_on, keys), *_conditions(order)), now)
        # A ref that was just created for this write cannot be moved by others.
        pins = [pin for pin in _pins(planned_on, changes) if pin.ref == _ref(changes[pin.key])]
        current = [(pin, self._head(pin)) for pin in pins]
        ahead = [(pin, head) for pin, head in current if head != pin.version]
        if not ahead:
            return opened
        if all(self.recovery.is_stray(pin, head) for pin, head in ahead):
            message = "a stalled recovery rolled back tables of this write"
            raise ConflictError(message, hint="try again", code=ErrorCode.STRAY_RESTORE)
        raise _drift_error(order.branch, *ahead[0])

    def _require_not_landed(self, order: Order, opened: OpenManifest) -> None:
        """Reject a repetition of a request whose commit has landed.

        The claim excludes other writes with the same commit id, so none lands from now on.
        """
        earlier = None if order.attempt is None else order.attempt.commit_id
        if earlier is None or self._manifest.lookup(opened, earlier) is None:
            return
        message = f"the request has landed as commit {earlier}"
        raise ConflictError(message, hint="nothing is left to do", code=ErrorCode.REQUEST_TAKEN)

    def _open_again(self, planned_on: Snapshot) -> OpenManifest:
        """The current manifest of the branch that the plan was made on.

        Raises:
            BranchNotFoundError: the branch was deleted.
        """
        name, ref = planned_on.branch, planned_on.ref
        if ref is None or not is_minted(ref):
            # A branch of an older release is the one that has the name.
            return self._manifest.open(name)
        # No other branch ever has its ref, so the name need not be read.
        opened = self._manifest.open(name, found=Branch(name, ref))
        if opened.is_ended:
            raise branch_deleted_error(name)
        return opened

    def _require_young(self, order: Order, staged: StagedTables) -> None:
        """Reject files and tables that are so old that `cleanup` may soon consider them garbage."""
        age_max = timedelta(seconds=STAGED_SECONDS_MAX)
        created_at = [creation_time(pin.table_id) for pin in staged.created.values()]
        ages = [self._age(order), *(self._clock.now() - at for at in created_at)]
        if max(ages) > age_max:
            message = f"this {order.kind} began more than {age_max} ago, and has not landed since"
            hint = "try again; what takes longer has to be done in several parts"
            raise ConflictError(message, hint=hint)

    def _head(self, pin: TablePin) -> int:
        return self._store.tables.head_version(pin.location, ref=pin.ref)

    def _apply(self, key: TableKey, staged: StagedWrite, author: heads.Authorship) -> Table:
        try:
            return heads.apply(staged, author)
        except TableConflictError as cause:
            # The process that moved it considered this write interrupted, and has fenced it.
            pinned = staged.address
            head = self._store.tables.head_version(pinned.location, ref=pinned.ref)
            message = f"{key} moved from version {pinned.version} to {head} under this write"
            raise TableConflictError(
                message,
                hint=RETRY_HINT,
                table_key=str(key),
                expected=pinned.version,
                actual=head,
            ) from cause

    def _resolve_failure(self, intent: Intent, failure: OmnigraphError) -> Commit:
        """The commit, if recovery finds or finishes it; otherwise undo the write and raise."""
        try:
            self.recovery.resolve(intent)
            opened = self._manifest.open(intent.branch)
            assert intent.commit_id is not None, "this release gives every intent one"
            landed = self._manifest.lookup(opened, intent.commit_id)
        except BranchNotFoundError:
            raise branch_deleted_error(intent.branch) from failure
        except OmnigraphError as second:
            # A later recovery may still find it complete, and publish it.
            message = f"{failure.message}; and undoing it failed: {second.message}"
            hint = (
                "the next write or read-write open completes it or rolls it back; look for the "
                "commit then, before writing again"
            )
            raise OutcomeUnknownError(message, hint=hint, commit_id=intent.commit_id) from failure
        if landed is None:
            raise failure
        return landed

    def _settle(self, intent: Intent) -> None:
        try:
            self.recovery.sidecars.delete(intent.operation_id)
        except OmnigraphError as failure:
            # The commit is published. The next writer deletes the sidecar.
            _log.warning("the sidecar of %s stays: %s", intent.operation_id, failure)

    def _take_turns(
        self, order: Order, planned_on: Snapshot, work: Work[Report]
    ) -> AbstractContextManager[None]:
        """Queue behind other writers of the branch and its tables; after a timeout, go on without.

        A branch that has no ref of a table yet makes one for this write, so the writers of the
        table that it shares so far do not matter.
        """
        names = [
            ref_folder(pin.location, pin.ref if planned_on.owns(pin) else planned_on.ref)
            for pin in _pins(planned_on, {*work.changes, *work.guards})
        ]
        seconds_max = QUEUE_SECONDS_MAX if order.is_patient else 0.0
        return turns(self._store.root, names, seconds_max=seconds_max)

    def _stage(self, view: View, work: Work[Report]) -> StagedTables:
        tables = {key: self._own_table(view, key) for key in work.changes}
        if work.prepare is not None:
            work.prepare(tables)
        staged = {key: stage(tables[key]) for key, stage in work.changes.items()}
        changes = {key: write for key, write in staged.items() if write is not None}
        change = work.schema_change
        if change is None:
            return StagedTables(changes, {})
        self._keep_schema(work)
        return StagedTables(changes, dict(map(self._create_table, change.created)))

    def _create_table(self, created: CreatedTable) -> tuple[TableKey, TablePin]:
        """Create the table of a new type, at a location that nothing refers to until the publish.

        On a branch other than main it is shared, like any table of its source: the branch gets its
        own ref with its first write.
        """
        author = heads.Authorship(OperationId(self._clock.ulid()), OperationKind.SCHEMA_APPLY)
        pin = create_table(self._store, self._clock, created.type, author)
        if created.fill is not None:
            write = created.fill(self._store.tables.open_pin(pin))
            if write is not None:
                table = heads.apply(write, author)
                pin = replace(pin, version=table.version, row_count=write.row_count)
        hit(Failpoint.WRITE_AFTER_EACH_TABLE)
        return pin.key, replace(pin, identity=created.identity)

    def _own_table(self, view: View, key: TableKey) -> Table:
        """The table at its pin, on a ref that only this branch moves.

        A branch gets its own ref of a table at its first write there. A staged write can only be
        committed where it was staged, so the ref is created first; until the publish nothing refers
        to it, and an abandoned one is harmless: its name is never reused.
        """
        snapshot = view.snapshot
        pin = snapshot.pin(key)
        if snapshot.owns(pin):
            return view.data.table(key)
        fork = f"{snapshot.ref}/{self._clock.ulid()}"
        refs = self._store.refs
        table = refs.start(pin.location, fork, source=pin.ref, version=pin.version)
        hit(Failpoint.WRITE_AFTER_EACH_FORK)
        return table


def _pins(snapshot: Snapshot, keys: Iterable[TableKey]) -> list[TablePin]:
    return [snapshot.pin(key) for key in sorted(keys)]


def _conditions(order: Order) -> Iterator[Expectation]:
    if order.expect_head is not None and order.expect_rows_from is not None:
        yield HeadIs(order.expect_head, order.expect_rows_from)
    if order.stream is not None:
        yield StreamAt.before(order.stream)


def _expectations(planned_on: Snapshot, keys: Iterable[TableKey]) -> Iterator[Expectation]:
    yield BranchIs(planned_on.ref)
    yield SchemaIs(planned_on.schema_digest)
    for pin in _pins(planned_on, keys):
        yield TableAt(pin.key, pin.version, pin.ref)


def _message(order: Order, work: Work[Report]) -> str | None:
    if not work.note:
        return order.message
    return work.note if order.message is None else f"{order.message}\n\n{work.note}"


def _publication(
    order: Order,
    planned_on: Snapshot,
    work: Work[Report],
    staged: StagedTables,
    commit_id: CommitId,
) -> Publication:
    change = work.schema_change
    return Publication(
        order.branch,
        commit_id,
        order.kind,
        pins=tuple(_new_pins(planned_on, work, staged)),
        tombstones=() if change is None else tuple(_tombstones(planned_on, change)),
        merged_parent=order.merged_parent,
        lineage=work.lineage,
        actor=order.actor,
        message=_message(order, work),
        schema_digest=None if change is None else change.schema.digest,
        # Not tables that were only read: their writers must claim tables that this write holds.
        expecting=(
            *_expectations(planned_on, {*staged.changes, *work.guards}),
            *_conditions(order),
        ),
        stream=None if order.stream is None else order.stream.batch,
        forgets=order.forgets,
    )


def _new_pins(planned_on: Snapshot, work: Work[Report], staged: StagedTables) -> Iterator[TablePin]:
    """The pins that a commit adds or replaces."""
    changed = {} if work.schema_change is None else work.schema_change.changed
    for key in {**staged.changes, **changed}:
        pin = planned_on.pin(key)
        if key in staged.changes:
            pin = _move_pin(pin, staged.changes[key])
        if key in changed:
            pin = replace(pin, key=changed[key].key, identity=changed[key].identity)
        yield pin
    yield from staged.created.values()


def _tombstones(planned_on: Snapshot, change: SchemaChange) -> Iterator[Tombstone]:
    for pin in _pins(planned_on, change.dropped):
        origin = pin.identity.origin
        yield Tombstone(pin.table_id, pin.key, pin.location, pin.version, pin.ref, origin)


def _schema_intent(publication: Publication) -> SchemaIntent | None:
    """What recovery has to publish besides the heads that move."""
    if publication.schema_digest is None:
        return None
    return SchemaIntent(publication.schema_digest, publication.pins, publication.tombstones)


def _row_counts(staged: StagedTables) -> dict[TableKey, RowCounts]:
    return {key: RowCounts.of(write) for key, write in staged.changes.items()}


def _move_pin(pin: TablePin, staged: StagedWrite) -> TablePin:
    return pin.move(version=staged.version, ref=_ref(staged), row_count=staged.row_count)


def _table_intent(pin: TablePin, staged: StagedWrite) -> TableIntent:
    moves = TableIntent(pin.key, pin.location, _ref(staged), pin.version, staged.version)
    return moves if moves.ref == pin.ref else replace(moves, forks_from=ForkSource(pin.ref))


def _ref(staged: StagedWrite) -> str | None:
    return staged.address.ref


def _drift_error(branch: BranchName, pin: TablePin, head: int) -> RecoveryNeededError:
    message = (
        f"{pin.key} on branch {branch} is published at version {pin.version}, but its newest "
        f"version is {head}, and no interrupted write explains the difference"
    )
    return RecoveryNeededError(
        message,
        hint="run 'omnigraph repair', which compares both versions",
        code=ErrorCode.UNCOVERED_DRIFT,
        table_key=str(pin.key),
        pinned=pin.version,
        head=head,
    )
