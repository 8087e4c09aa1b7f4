"""The write protocol, for every kind of writer: heal, plan, stage, claim, apply, publish, settle.

Nothing is visible before `publish`, and from `claim` on a sidecar says how to finish or undo the
write. A process may die after any line: the next writer's `heal` brings the graph to exactly the
state before or the state after (docs/decisions/0006).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final, Generic, TypeAlias

from omnigraph.clock import Clock, back_off, creation_time
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
from omnigraph.integrity.violations import IntegrityError
from omnigraph.limits import (
    EXCLUSION_BACKOFF_SECONDS_MAX,
    EXCLUSION_SECONDS_MAX,
    LEASE_SECONDS,
    STAGED_SECONDS_MAX,
)
from omnigraph.manifest.branches import Branch
from omnigraph.manifest.drafts import CommitDraft
from omnigraph.manifest.lifecycle import write_schema_text
from omnigraph.manifest.publisher import publish, record_batch
from omnigraph.manifest.reader import Manifest, OpenManifest
from omnigraph.manifest.removals import find_let_go
from omnigraph.manifest.requirements import (
    HeadIs,
    Requirement,
    StreamAt,
    branch_deleted_error,
    require,
)
from omnigraph.manifest.schemas import Catalogs
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.model.commits import MAINTENANCE_KINDS, Commit, OperationKind
from omnigraph.model.followups import FollowUpFailure, schema_text_failure
from omnigraph.model.ids import CommitId, OperationId
from omnigraph.model.names import BranchName
from omnigraph.model.tables import TableKey, TablePin
from omnigraph.recovery.claims import claim, release_on_failure, renew_lease
from omnigraph.recovery.classify import CONFIRMED_KINDS
from omnigraph.recovery.intents import Intent
from omnigraph.recovery.owners import track_operation
from omnigraph.recovery.sweep import Recovery
from omnigraph.storage import heads
from omnigraph.storage.staging import StagedWrite
from omnigraph.storage.tables import Table, ref_folder
from omnigraph.storage.turns import turns
from omnigraph.transaction.records import StagedPlan, draft_of, intent_of
from omnigraph.transaction.staging import Stager
from omnigraph.transaction.view import View, view_at
from omnigraph.transaction.writes import (
    Report,
    WriteOutcome,
    WritePlan,
    WritePolicy,
    WriteRequest,
)

QUEUE_SECONDS_MAX: Final = 10.0
"""How long a writer queues behind others on its machine before its sidecar races theirs."""

REPLANS_MAX: Final = 20
"""Times a write that only inserts is planned again because its tables moved."""


_log: Final = logging.getLogger(__name__)

AfterCommit: TypeAlias = (
    "Callable[[Transactions, WriteRequest, Mapping[TableKey, Table]], tuple[FollowUpFailure, ...]]"
)
"""Called after each commit with the tables that it changed; returns what failed. The commit has
landed, so it raises no error."""


@dataclass(frozen=True, slots=True)
class _Base:
    """A state of the branch that a write is planned on.

    Attributes:
        is_remembered: Whether this handle left the branch there, and others may have moved it.
    """

    view: View
    is_remembered: bool = False


@dataclass(frozen=True, slots=True)
class _Claim(Generic[Report]):
    """A write that holds its tables and may be applied.

    Attributes:
        opened: The branch's manifest, read while the tables were held.
        read_at: When that began.
    """

    write: StagedPlan[Report]
    draft: CommitDraft
    intent: Intent
    opened: OpenManifest
    read_at: datetime


class Transactions:
    """Runs the writes of one graph handle.

    Args:
        policy: Decides which writes are allowed, and what their actors may be told.
        after_commit: Follows each commit that changed tables, unless its plan is bulk.
    """

    def __init__(
        self,
        manifest: Manifest,
        clock: Clock,
        catalogs: Catalogs,
        policy: WritePolicy,
        after_commit: AfterCommit | None = None,
    ) -> None:
        self._manifest = manifest
        self._store = manifest.store
        self._clock = clock
        self._catalogs = catalogs
        self._after_commit = after_commit
        self._stager = Stager(self._store, clock)
        self._shared: set[BranchName] = set()
        self.policy = policy
        self.recovery = Recovery(manifest, clock)

    def run(
        self, request: WriteRequest, planner: Callable[[View], WritePlan[Report]]
    ) -> WriteOutcome[Report]:
        """Plan a write and make it visible in one commit, or leave the graph unchanged.

        A plan that only inserts rows is repeated when its tables moved before any effect.

        Args:
            planner: Computes and validates on one view of the graph. It writes nothing, and may be
                called several times.

        Raises:
            ConflictError: the branch is not at the expected commit, a table moved since the plan
                was made, or other writers kept it busy. Nothing became visible.
            BranchNotFoundError: the branch does not exist, or it was deleted meanwhile. A later
                branch of its name has nothing of this write.
            CommitLetGoError: what a merge brings in has expired meanwhile. Nothing became visible.
            NotAllowedError: the actor may not make this write. Nothing became visible.
            RecoveryNeededError: an earlier write needs an operator. Nothing became visible.
            OutcomeUnknownError: whether the commit landed could not be determined.
        """
        self.policy.admit(request)
        shown = self.policy.sight_of(request).limit_violations()
        with shown, self.policy.conceal(request.branch):
            outcome = self._commit(request, planner)
        if self._after_commit is None or not outcome.tables or request.kind in MAINTENANCE_KINDS:
            return outcome
        failures = self._after_commit(self, request, outcome.tables)
        return replace(outcome, warnings=(*outcome.warnings, *failures)) if failures else outcome

    def _commit(
        self, request: WriteRequest, planner: Callable[[View], WritePlan[Report]]
    ) -> WriteOutcome[Report]:
        """Run the protocol, on the state that this handle left the branch in if there is one.

        A remembered state saves reading the branch and the sidecars before the plan: the claim
        lists the sidecars in any case, and nothing is applied unless the branch is where the plan
        was made. A failure on it proves nothing, because the branch may have moved: then the write
        is planned on the current state.
        """
        begun_at = self._clock.now()
        base = self._remembered(request)
        first: StagedPlan[Report] | None = None
        attempt = 0
        with ExitStack() as queue:
            while True:
                base = base or self._current(request, begun_at)
                try:
                    write = self._plan(request, base, planner)
                except OmnigraphError:
                    if not base.is_remembered:
                        raise
                    base = None
                    continue
                if not write.changes_tables and base.is_remembered:
                    base = None
                    continue
                if not write.changes_tables:
                    return self._record(write, begun_at)
                if first is None:
                    # From the second attempt on, this writer plans while it holds its turns.
                    queue.enter_context(self._take_turns(write))
                    first = write
                else:
                    self._require_same_inserts(first, write, begun_at)
                try:
                    with (
                        self._on_branch(write.base),
                        self._claimed(write, begun_at) as claimed,
                    ):
                        return self._land(claimed)
                except (ConflictError, BranchNotFoundError) as failure:
                    if not base.is_remembered:
                        self._require_retry(write, failure, attempt)
                        back_off(self._clock, attempt, seconds_max=EXCLUSION_BACKOFF_SECONDS_MAX)
                        attempt += 1
                    elif failure.code is ErrorCode.TABLE_BUSY:
                        raise
                    base = None

    def _remembered(self, request: WriteRequest) -> _Base | None:
        """The state in which this handle left the branch, unless others write to it."""
        left = self._manifest.left(request.branch)
        if (
            request.kind is not OperationKind.MUTATION
            or left is None
            or request.branch in self._shared
        ):
            return None
        return _Base(self._view_at(request, left), is_remembered=True)

    def _current(self, request: WriteRequest, begun_at: datetime) -> _Base:
        """The branch as it is, once interrupted writes of it are resolved."""
        branch = request.branch
        found = self._heal(request)
        left = self._manifest.left(branch)
        self._require_not_replaced(left, found, begun_at)
        hit(Failpoint.WRITE_AFTER_HEAL)
        now = self._manifest.snapshot(self._manifest.open(branch, found=found), branch)
        if left is None or left.head.commit_id == now.head.commit_id:
            self._shared.discard(branch)
        else:
            # Others write to it: a plan on the state that this handle left would be in vain.
            self._shared.add(branch)
        return _Base(self._view_at(request, now))

    def _view_at(self, request: WriteRequest, snapshot: Snapshot) -> View:
        view = view_at(self._store, self._catalogs, snapshot)
        if not self.policy.is_limited:
            return view
        return replace(view, admit=partial(self.policy.admit, request))

    def _heal(self, request: WriteRequest) -> Branch | None:
        """Resolve interrupted writes of the branch, which may have to wait for others.

        Returns:
            The branch's record, if it was just read.
        """
        if request.waits:
            return self.recovery.heal_for_write(request.branch)
        if self.recovery.is_needed(request.branch):
            message = f"a write to branch {request.branch} was interrupted"
            hint = "the next write or read-write open completes it or rolls it back"
            raise ConflictError(message, hint=hint, code=ErrorCode.TABLE_BUSY)
        return None

    def _require_not_replaced(
        self, left: Snapshot | None, found: Branch | None, begun_at: datetime
    ) -> None:
        """Reject a branch that took the name of the one that this handle left, during a write."""
        if left is None or found is None or found.ref == left.ref:
            return
        if found.created_at is not None and found.created_at > begun_at:
            raise branch_deleted_error(left.branch)

    def _plan(
        self, request: WriteRequest, base: _Base, planner: Callable[[View], WritePlan[Report]]
    ) -> StagedPlan[Report]:
        view = base.view
        with self._on_branch(view.snapshot):
            conditions = tuple(self._conditions(request, view.snapshot))
            require(conditions, view.snapshot)
            try:
                plan = planner(view)
            except IntegrityError as refusal:
                # What rules say of a type's rows is for those who may write them.
                self.policy.admit(request, changes=refusal.types)
                raise
            is_limited = self.policy.is_limited and request.kind not in MAINTENANCE_KINDS
            if is_limited:
                self.policy.admit(request, changes=plan.touched_types)
            hit(Failpoint.WRITE_AFTER_PLAN)
            staged = self._stager.stage(plan, view)
            if plan.verify is not None:
                plan.verify(staged)
            if is_limited:
                after = self._stager.preview(plan, staged, view)
                self.policy.admit_result(request, plan, view, after)
            hit(Failpoint.WRITE_AFTER_STAGE)
        return StagedPlan(request, view, plan, staged, conditions)

    def _conditions(self, request: WriteRequest, now: Snapshot) -> Iterator[Requirement]:
        """What the caller requires of the branch."""
        expected = request.expect_head
        if expected is not None:
            yield HeadIs(expected, self._rows_from(expected, now))
        if request.stream is not None:
            yield StreamAt.before(request.stream)

    def _rows_from(self, expected: CommitId, now: Snapshot) -> CommitId:
        """The commit that made the rows of the expected one."""
        if expected == now.head.commit_id:
            return now.head.rows_from
        if expected == now.head.rows_from:
            return expected
        # The caller may name maintenance that other maintenance followed.
        named = self._manifest.lookup(self._manifest.open(now.branch), expected)
        return expected if named is None else named.rows_from

    def _record(self, write: StagedPlan[Report], begun_at: datetime) -> WriteOutcome[Report]:
        """Make the commit of a write that changes no table, if it belongs in the history.

        A batch of a stream that has nothing to say there is recorded without a commit.
        """
        plan, step = write.plan, write.request.stream
        commit = None
        if step is not None or plan.records:
            draft = draft_of(write, CommitId(self._clock.ulid()))
            self._require_source(write.request, begun_at)
            # Rejected rows are stated in a commit, also if no other rows are left.
            is_stated = step is not None and (step.after is None or bool(plan.note))
            if plan.records or is_stated:
                commit = publish(self._manifest, self._clock, draft)
            else:
                record_batch(self._manifest, self._clock, draft)
        return WriteOutcome(plan.report, write.view, commit)

    def _take_turns(self, write: StagedPlan[Any]) -> AbstractContextManager[None]:
        """Queue behind other writers of the branch and its tables; after a timeout, go on without.

        A branch that has no ref of a table yet makes one for this write, so the writers of the
        table that it shares so far do not matter.
        """
        base = write.base
        names = [
            ref_folder(pin.location, pin.ref if base.owns(pin) else base.ref)
            for pin in write.pins({*write.plan.changes, *write.plan.locks})
        ]
        seconds_max = QUEUE_SECONDS_MAX if write.request.waits else 0.0
        return turns(self._store.root, names, seconds_max=seconds_max)

    @contextmanager
    def _claimed(self, write: StagedPlan[Report], begun_at: datetime) -> Iterator[_Claim[Report]]:
        """Hold the tables from the first trace of a write to its last; a crash may interrupt it.

        Raises:
            ConflictError: before the block, if what the plan relied on has moved, or other writers
                kept the tables busy. Nothing was applied.
            BranchNotFoundError: before the block, if the branch was deleted. Nothing was applied.
        """
        attempt = write.request.attempt
        earlier = None if attempt is None else attempt.commit_id
        commit_id = earlier or CommitId(self._clock.ulid())
        draft = draft_of(write, commit_id)
        intent = intent_of(write, draft, OperationId(self._clock.ulid()), self._clock.now())
        with track_operation(intent.operation_id):
            self._claim(write.request, intent)
            read_at = self._clock.now()
            with release_on_failure(self.recovery.sidecars, intent):
                opened = self._require_unmoved(write, begun_at)
                # Once more: from now on the sidecar names it, so that no cleanup removes it.
                self._stager.keep_schema(write.plan)
                if attempt is not None:
                    counts = write.staged.row_counts()
                    attempt.keep(
                        WriteOutcome(write.plan.report, write.view, None, counts), commit_id
                    )
            hit(Failpoint.WRITE_AFTER_CHECK)
            yield _Claim(write, draft, intent, opened, read_at)

    def _claim(self, request: WriteRequest, intent: Intent) -> None:
        """Claim the tables exclusively, and resolve interrupted writes of the branch first."""
        seconds_max = EXCLUSION_SECONDS_MAX if request.waits else 0.0
        while True:
            sidecars = claim(self.recovery.sidecars, self._clock, intent, seconds_max=seconds_max)
            own = intent.operation_id
            others = [other for other in sidecars.intents if other.operation_id != own]
            if not self.recovery.interrupted(others, intent.branch):
                return
            self.recovery.sidecars.delete(intent.operation_id)
            self._heal(request)

    def _require_unmoved(self, write: StagedPlan[Any], begun_at: datetime) -> OpenManifest:
        """The branch's current manifest, if everything the plan relied on is unchanged.

        Raises:
            ConflictError: a published write moved the branch, or a recovery moved a head.
            RecoveryNeededError: a head moved, and no write accounts for it.
        """
        request, changes = write.request, write.staged.changes
        opened = self._open_again(write.base)
        self._require_not_landed(request, opened)
        now = self._manifest.snapshot(opened, request.branch)
        self._require_source(request, begun_at)
        self._require_young(write, begun_at)
        require(write.requirements(write.held_tables | write.plan.reads), now)
        # A ref that was just created for this write cannot be moved by others.
        pins = [pin for pin in write.pins(changes) if pin.ref == changes[pin.key].address.ref]
        current = [(pin, self._head(pin)) for pin in pins]
        ahead = [(pin, head) for pin, head in current if head != pin.version]
        if not ahead:
            return opened
        if all(self.recovery.is_stray(pin, head) for pin, head in ahead):
            message = "a stalled recovery rolled back tables of this write"
            raise ConflictError(message, hint="try again", code=ErrorCode.STRAY_RESTORE)
        raise _drift_error(request.branch, *ahead[0])

    def _open_again(self, planned_on: Snapshot) -> OpenManifest:
        """The current manifest of the branch that the plan was made on.

        Raises:
            BranchNotFoundError: the branch was deleted.
        """
        name, ref = planned_on.branch, planned_on.ref
        if ref is None:
            return self._manifest.open(name)
        # No other branch ever has its ref, so the name need not be read.
        opened = self._manifest.open(name, found=Branch(name, ref))
        if opened.is_ended:
            raise branch_deleted_error(name)
        return opened

    def _require_not_landed(self, request: WriteRequest, opened: OpenManifest) -> None:
        """Reject a repetition of a request whose commit has landed.

        The claim excludes other writes with the same commit id, so none lands from now on.
        """
        earlier = None if request.attempt is None else request.attempt.commit_id
        if earlier is None or self._manifest.lookup(opened, earlier) is None:
            return
        message = f"the request has landed as commit {earlier}"
        raise ConflictError(message, hint="nothing is left to do", code=ErrorCode.REQUEST_TAKEN)

    def _require_source(self, request: WriteRequest, begun_at: datetime) -> None:
        """Reject a merge of a branch that was deleted meanwhile.

        `cleanup` keeps the branch's files for longer than the publish can still take, and after
        that because the branch was merged.
        """
        source = request.source
        if source is None:
            return
        if self._clock.now() - begun_at > timedelta(seconds=LEASE_SECONDS):
            # Its sidecar is visible: a cleanup that marks the source from now on sees that.
            self._manifest.let_go.claim(source.head)
        if source.ref is None:
            return
        with suppress(BranchNotFoundError):
            if self._manifest.names.ref_of(source.branch) == source.ref:
                return
        message = f"branch {source.branch} was deleted while it was merged"
        raise BranchNotFoundError(message, hint="nothing was merged; see 'omnigraph branch list'")

    def _require_young(self, write: StagedPlan[Any], begun_at: datetime) -> None:
        """Reject files and tables that are so old that `cleanup` may soon consider them garbage."""
        age_max = timedelta(seconds=STAGED_SECONDS_MAX)
        created_at = (creation_time(pin.table_id) for pin in write.staged.created.values())
        if self._clock.now() - min((begun_at, *created_at)) > age_max:
            kind = write.request.kind
            message = f"this {kind} began more than {age_max} ago, and has not landed since"
            hint = "try again; what takes longer has to be done in several parts"
            raise ConflictError(message, hint=hint)

    def _head(self, pin: TablePin) -> int:
        return self._store.tables.head_version(pin.location, ref=pin.ref)

    def _land(self, claimed: _Claim[Report]) -> WriteOutcome[Report]:
        """Move the heads and publish them; if that fails, finish or undo it by recovery."""
        write, intent = claimed.write, claimed.intent
        plan, request, counts = write.plan, write.request, write.staged.row_counts()
        tables: dict[TableKey, Table] = {}
        try:
            author = heads.Authorship(intent.operation_id, intent.kind)
            for key in sorted(write.staged.changes):
                tables[key] = self._apply(key, write.staged.changes[key], author)
                hit(Failpoint.WRITE_AFTER_EACH_APPLY)
            if intent.kind in CONFIRMED_KINDS:
                intent = self._confirm(intent)
                hit(Failpoint.WRITE_AFTER_CONFIRM)
            commit = publish(
                self._manifest,
                self._clock,
                claimed.draft,
                opened=claimed.opened,
                read_at=claimed.read_at,
            )
            hit(Failpoint.WRITE_AFTER_PUBLISH)
        except OmnigraphError as failure:
            commit = self._resolve_failure(intent, failure)
            return WriteOutcome(plan.report, write.view, commit, counts)
        warnings = self._write_schema_text(write)
        self._settle(intent)
        hit(Failpoint.WRITE_AFTER_SETTLE)
        # The small batches of a stream would otherwise leave ever more small fragments.
        followed = {} if plan.is_bulk and request.stream is None else tables
        return WriteOutcome(plan.report, write.view, commit, counts, warnings, followed)

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

    def _confirm(self, intent: Intent) -> Intent:
        """Record that every head has moved: the write above the pins is complete."""
        tables = tuple(
            replace(table, confirmed_version=table.post_commit_pin) for table in intent.tables
        )
        confirmed = renew_lease(replace(intent, tables=tables), self._clock)
        self.recovery.sidecars.put(confirmed)
        return confirmed

    def _resolve_failure(self, intent: Intent, failure: OmnigraphError) -> Commit:
        """The commit, if recovery finds or finishes it; otherwise undo the write and raise."""
        commit_id = intent.draft.commit_id
        try:
            self.recovery.resolve(intent)
            landed = self._manifest.lookup(self._manifest.open(intent.branch), commit_id)
        except BranchNotFoundError:
            raise branch_deleted_error(intent.branch) from failure
        except OmnigraphError as second:
            # A later recovery may still find it complete, and publish it.
            message = f"{failure.message}; and undoing it failed: {second.message}"
            hint = (
                "the next write or read-write open completes it or rolls it back; look for the "
                "commit then, before writing again"
            )
            raise OutcomeUnknownError(message, hint=hint, commit_id=commit_id) from failure
        if landed is None:
            raise failure
        return landed

    def _write_schema_text(self, write: StagedPlan[Any]) -> tuple[FollowUpFailure, ...]:
        """Write the copy of main's schema that is for people; the commit has landed."""
        if write.plan.schema_change is None or not write.request.branch.is_main:
            return ()
        try:
            write_schema_text(self._manifest)
        except OmnigraphError as failure:
            return (schema_text_failure(failure),)
        return ()

    def _settle(self, intent: Intent) -> None:
        try:
            self.recovery.sidecars.delete(intent.operation_id)
        except OmnigraphError as failure:
            # The commit is published. The next writer deletes the sidecar.
            _log.warning("the sidecar of %s stays: %s", intent.operation_id, failure)

    def _require_retry(
        self, write: StagedPlan[Any], failure: ConflictError | BranchNotFoundError, attempt: int
    ) -> None:
        """Raise the failure of a write unless it may be planned again without asking the caller."""
        if attempt >= REPLANS_MAX or not isinstance(failure, ConflictError):
            raise failure
        if failure.code is ErrorCode.STRAY_RESTORE:
            pins = write.pins(write.staged.changes)
            self.recovery.restore_pins(write.request.branch, pins)
            return
        if not write.request.waits or isinstance(failure, StaleHeadError):
            raise failure
        if failure.code in (ErrorCode.TABLE_BUSY, ErrorCode.REQUEST_TAKEN):
            # A caller that waited that long for a busy table should know; and one whose request
            # another process runs looks for its result.
            raise failure
        if write.plan.can_replan and not write.replaced_tables:
            return
        # If only maintenance or a recovery moved the tables, the same plan is made again.
        now, before = self._manifest.current(write.request.branch), write.base
        if now.ref != before.ref or now.head.rows_from != before.head.rows_from:
            raise failure

    def _require_same_inserts(
        self, first: StagedPlan[Report], again: StagedPlan[Report], begun_at: datetime
    ) -> None:
        """Reject an insert that would replace a row which was committed since the caller asked.

        If nothing was committed since, the first plan was made on an older state that this handle
        remembered.
        """
        old, new = first.base, again.base
        overtaken = [
            key for key in again.replaced_tables if old.pin(key).place != new.pin(key).place
        ]
        if not overtaken or old.head.rows_from == new.head.rows_from:
            return
        opened = self._manifest.open(new.branch)
        newest = self._manifest.lookup(opened, new.head.rows_from)
        if newest is not None and newest.created_at <= begun_at:
            return
        key = min(overtaken)
        expected, actual = old.pin(key).version, new.pin(key).version
        message = (
            f"requirement failed: table {key} on branch {new.branch} is at version {actual}, "
            f"expected {expected}; a concurrent write inserted a row with the same key"
        )
        raise TableConflictError(
            message,
            hint="read the row, then insert again to replace it or update it",
            table_key=str(key),
            expected=expected,
            actual=actual,
        )

    @contextmanager
    def _on_branch(self, planned_on: Snapshot) -> Iterator[None]:
        """Distinguish a storage failure from a deleted branch, and from an expired commit."""
        try:
            yield
        except StorageError as failure:
            self._require_branch(planned_on)
            if (gone := find_let_go(self._store, planned_on)) is not None:
                message = f"branch {planned_on.branch} has moved on, and {gone.message}"
                raise ConflictError(message, hint="try again") from failure
            raise

    def _require_branch(self, planned_on: Snapshot) -> None:
        """Reject a branch that lost its name."""
        name = planned_on.branch
        if not name.is_main and self._manifest.names.ref_of(name) != planned_on.ref:
            raise branch_deleted_error(name)


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
