"""The write protocol, for every kind of writer: heal, plan, stage, intend, apply, publish, settle.

Nothing is visible before `publish`, and from `intend` on a sidecar says how to finish or undo what
was begun. A process may die after any line: the next writer's `heal` brings the graph to exactly
before or exactly after (docs/decisions/0006).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Final

from omnigraph.clock import Clock, back_off
from omnigraph.errors import (
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
from omnigraph.limits import EXCLUSION_BACKOFF_SECONDS_MAX, QUEUE_SECONDS_MAX, REPLANS_MAX
from omnigraph.manifest.expectations import (
    BranchIs,
    Expectation,
    HeadIs,
    SchemaIs,
    TableAt,
    branch_deleted_error,
    require,
)
from omnigraph.manifest.migrations import migrate
from omnigraph.manifest.publisher import Publication, publish
from omnigraph.manifest.reader import Manifest, OpenManifest
from omnigraph.manifest.schemas import Catalogs
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.model.commits import Commit, OperationKind
from omnigraph.model.ids import CommitId, OperationId
from omnigraph.model.names import BranchName
from omnigraph.model.tables import TableKey, TablePin
from omnigraph.recovery.claims import claim, leased, unclaimed_on_failure
from omnigraph.recovery.classify import CONFIRMED_KINDS
from omnigraph.recovery.intents import ForkSource, Intent, TableIntent
from omnigraph.recovery.owners import this_process, working
from omnigraph.recovery.sweep import Recovery
from omnigraph.storage import heads
from omnigraph.storage.staging import Staged
from omnigraph.storage.tables import REF_FOLDER, Table
from omnigraph.storage.turns import turn
from omnigraph.transaction.view import View, view_of
from omnigraph.transaction.work import Landed, Report, Work

_log: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Order:
    """What a caller says of a write, whatever it does.

    Attributes:
        expect_head: The commit that the branch must be at for the write to happen.
        source: What a merge brings in.
    """

    kind: OperationKind
    branch: BranchName
    actor: str | None = None
    message: str | None = None
    expect_head: CommitId | None = None
    source: Snapshot | None = None

    @property
    def merged_parent(self) -> CommitId | None:
        """The commit that a merge brings in."""
        return None if self.source is None else self.source.head.commit_id


class Transactions:
    """Carries out the writes of one graph handle."""

    def __init__(self, manifest: Manifest, clock: Clock, catalogs: Catalogs) -> None:
        self._manifest = manifest
        self._store = manifest.store
        self._clock = clock
        self._catalogs = catalogs
        self.recovery = Recovery(manifest, clock)

    def run(self, order: Order, plan: Callable[[View], Work[Report]]) -> Landed[Report]:
        """Plan, and make what was planned visible in one commit, or leave the graph as it is.

        A plan that only adds rows is made again when its tables moved before any effect.

        Args:
            plan: Computes and validates on one view of the graph. It writes nothing, and may be
                called several times.

        Raises:
            ConflictError: the branch is not where it was expected, a table moved since the plan was
                made, or others kept it busy. Nothing became visible.
            BranchNotFoundError: there is no such branch, or it was deleted meanwhile. Another that
                was made under its name has nothing of this write.
            RecoveryNeededError: an earlier write left what needs a person.
            OutcomeUnknownError: whether the commit landed could not be found out.
        """
        with ExitStack() as queue:
            attempt = 0
            while True:
                self.recovery.heal(order.branch)
                hit(Failpoint.WRITE_AFTER_HEAL)
                view = self._view(order.branch)
                require(_conditions(order), view.snapshot)
                with self._on_branch(view.snapshot):
                    work = plan(view)
                    hit(Failpoint.WRITE_AFTER_PLAN)
                    staged = self._stage(view, work)
                hit(Failpoint.WRITE_AFTER_STAGE)
                if not staged:
                    return Landed(work.report, view, self._record(order, view.snapshot, work))
                if attempt == 0:
                    # From the second attempt on, this writer plans with its turn in hand.
                    queue.enter_context(self._queued(view.snapshot, work))
                try:
                    with self._on_branch(view.snapshot):
                        commit = self._land(order, view.snapshot, work, staged)
                except ConflictError as conflict:
                    is_stray = conflict.code is ErrorCode.STRAY_RESTORE
                    if is_stray and attempt < REPLANS_MAX:
                        self.recovery.restore_pins(order.branch, _pins(view.snapshot, staged))
                    elif not _may_plan_again(conflict, work, attempt):
                        raise
                    back_off(self._clock, attempt, seconds_max=EXCLUSION_BACKOFF_SECONDS_MAX)
                    attempt += 1
                else:
                    row_counts = {key: each.row_count for key, each in staged.items()}
                    return Landed(work.report, view, commit, row_counts)

    def _view(self, branch: BranchName) -> View:
        """The branch as it is now, in the newest format: older ones may count rows wrongly."""
        view = view_of(self._manifest, self._catalogs, branch)
        if view.snapshot.head.operation is not OperationKind.LEGACY:
            return view
        migrate(self._manifest, self._clock, branch)
        return view_of(self._manifest, self._catalogs, branch)

    def _land(
        self,
        order: Order,
        planned_on: Snapshot,
        work: Work[Report],
        staged: Mapping[TableKey, Staged],
    ) -> Commit:
        """From the first trace of the write to its last: what a crash can interrupt."""
        commit_id = CommitId(self._clock.ulid())
        intent = self._intent(order, planned_on, work, staged, commit_id)
        with working(intent.operation_id):
            self._claim(intent)
            with unclaimed_on_failure(self.recovery.sidecars, intent):
                opened = self._require_unmoved(order, planned_on, work, staged)
            hit(Failpoint.WRITE_AFTER_CHECK)
            try:
                author = heads.Authorship(intent.operation_id, intent.writer_kind)
                for key in sorted(staged):
                    self._apply(key, staged[key], author)
                    hit(Failpoint.WRITE_AFTER_EACH_APPLY)
                if intent.writer_kind in CONFIRMED_KINDS:
                    intent = self._confirmed(intent)
                    hit(Failpoint.WRITE_AFTER_CONFIRM)
                publication = _publication(order, planned_on, work, staged, commit_id)
                commit = publish(self._manifest, self._clock, publication, opened=opened)
                self._require_branch(planned_on)
                hit(Failpoint.WRITE_AFTER_PUBLISH)
            except OmnigraphError as failure:
                return self._landed_after_all(intent, failure)
            self._settle(intent)
            hit(Failpoint.WRITE_AFTER_SETTLE)
            return commit

    def _record(self, order: Order, planned_on: Snapshot, work: Work[Report]) -> Commit | None:
        """The commit of a write that changes no table and is history all the same."""
        if not work.is_history:
            return None
        commit_id = CommitId(self._clock.ulid())
        publication = _publication(order, planned_on, work, {}, commit_id)
        self._require_source(order)
        commit = publish(self._manifest, self._clock, publication)
        self._require_branch(planned_on)
        return commit

    @contextmanager
    def _on_branch(self, planned_on: Snapshot) -> Iterator[None]:
        """Tell failures of storage from those of a branch whose files went with it."""
        try:
            yield
        except StorageError:
            self._require_branch(planned_on)
            raise

    def _require_branch(self, planned_on: Snapshot) -> None:
        """Refuse to call a write done that nobody can see, since its branch was deleted before.

        A branch's name goes first, so as long as it is there the commit was on the branch.
        """
        name = planned_on.branch
        if not name.is_main and self._manifest.names.ref_of(name) != planned_on.ref:
            raise branch_deleted_error(name)

    def _require_source(self, order: Order) -> None:
        """Refuse to merge a branch that was deleted meanwhile.

        `cleanup` keeps what it had for longer than it takes to publish from here on, and from then
        on because it was merged.
        """
        source = order.source
        if source is None or source.ref is None:
            return
        with suppress(BranchNotFoundError):
            if self._manifest.names.ref_of(source.branch) == source.ref:
                return
        message = f"branch {source.branch} was deleted while it was merged"
        raise BranchNotFoundError(message, hint="nothing was merged; see 'omnigraph branch list'")

    def _confirmed(self, intent: Intent) -> Intent:
        """Write down that every head has moved: what lies above the pins is all of the write."""
        tables = tuple(
            replace(each, confirmed_version=each.post_commit_pin) for each in intent.tables
        )
        confirmed = leased(replace(intent, tables=tables), self._clock)
        self.recovery.sidecars.put(confirmed)
        return confirmed

    def _intent(
        self,
        order: Order,
        planned_on: Snapshot,
        work: Work[Report],
        staged: Mapping[TableKey, Staged],
        commit_id: CommitId,
    ) -> Intent:
        return Intent(
            operation_id=OperationId(self._clock.ulid()),
            writer_kind=order.kind,
            branch=order.branch,
            started_at=self._clock.now(),
            branch_ref=planned_on.ref,
            tables=tuple(_table_intent(planned_on.pin(key), staged[key]) for key in sorted(staged)),
            actor=order.actor,
            message=order.message,
            commit_id=commit_id,
            merge_source_commit_id=order.merged_parent,
            guards=tuple(sorted(work.guards)),
            schema_digest=planned_on.schema_digest,
            expect_head=order.expect_head,
            owner=this_process(),
        )

    def _claim(self, intent: Intent) -> None:
        """Be the only one at work on the tables, with nothing interrupted on them either."""
        while True:
            found = claim(self.recovery.sidecars, self._clock, intent)
            others = (each for each in found.intents if each.operation_id != intent.operation_id)
            if not any(each.overlaps(intent) for each in others):
                return
            # No live one overlaps, so these were interrupted.
            self.recovery.sidecars.delete(intent.operation_id)
            self.recovery.heal(intent.branch)

    def _require_unmoved(
        self,
        order: Order,
        planned_on: Snapshot,
        work: Work[Report],
        staged: Mapping[TableKey, Staged],
    ) -> OpenManifest:
        """The branch as it is now, if everything the plan relied on is still as it was.

        Raises:
            ConflictError: something moved, by a published write.
            RecoveryNeededError: a head moved, and nobody answers for it.
        """
        opened = self._manifest.open(order.branch)
        now = self._manifest.snapshot(opened, order.branch)
        self._require_source(order)
        keys = {*staged, *work.guards, *work.reads}
        require((*_expected(planned_on, keys), *_conditions(order)), now)
        # A ref that was just made for this write is nobody else's to move.
        pins = [each for each in _pins(planned_on, staged) if each.ref == _ref(staged[each.key])]
        found = [(each, self._head(each)) for each in pins]
        ahead = [(pin, head) for pin, head in found if head != pin.version]
        if not ahead:
            return opened
        if all(self.recovery.is_stray(pin, head) for pin, head in ahead):
            message = "a recovery that slept has restored tables of this write"
            raise ConflictError(message, hint="try again", code=ErrorCode.STRAY_RESTORE)
        raise _drift(order.branch, *ahead[0])

    def _head(self, pin: TablePin) -> int:
        return self._store.tables.head_version(pin.location, ref=pin.ref)

    def _apply(self, key: TableKey, staged: Staged, author: heads.Authorship) -> None:
        try:
            heads.apply(staged, author)
        except TableConflictError as cause:
            # Whoever moved it had to take this write for interrupted first, and fenced it off.
            pinned = staged.address
            head = self._store.tables.head_version(pinned.location, ref=pinned.ref)
            message = f"{key} moved from version {pinned.version} to {head} under this write"
            raise TableConflictError(
                message,
                hint="read the branch again and plan again",
                table_key=str(key),
                expected=pinned.version,
                actual=head,
            ) from cause

    def _landed_after_all(self, intent: Intent, failure: OmnigraphError) -> Commit:
        """The commit, if recovery finds or finishes it; else the write is undone and has failed."""
        try:
            self.recovery.resolve(intent)
            opened = self._manifest.open(intent.branch)
            assert intent.commit_id is not None, "this release gives every intent one"
            landed = self._manifest.lookup(opened, intent.branch, intent.commit_id)
        except BranchNotFoundError:
            raise branch_deleted_error(intent.branch) from failure
        except OmnigraphError as second:
            # Whoever recovers it may yet find it complete, and publish it.
            message = f"{failure.message}; and undoing it failed: {second.message}"
            hint = (
                "the next write or read-write open brings it to an end; look for the commit then, "
                "before writing again"
            )
            raise OutcomeUnknownError(message, hint=hint, commit_id=intent.commit_id) from failure
        if landed is None:
            raise failure
        return landed

    def _settle(self, intent: Intent) -> None:
        try:
            self.recovery.sidecars.delete(intent.operation_id)
        except OmnigraphError as failure:
            # The commit is published. The next writer removes what is left of it.
            _log.warning("the sidecar of %s stays: %s", intent.operation_id, failure)

    @contextmanager
    def _queued(self, planned_on: Snapshot, work: Work[Report]) -> Iterator[None]:
        """Queue behind other writers of the same tables; whoever waits too long goes on without."""
        with ExitStack() as turns:
            for pin in _pins(planned_on, {*work.changes, *work.guards}):
                own = turn(self._store.root, _folder(pin), seconds_max=QUEUE_SECONDS_MAX)
                turns.enter_context(own)
            yield

    def _stage(self, view: View, work: Work[Report]) -> dict[TableKey, Staged]:
        changes = {key: stage(self._own_table(view, key)) for key, stage in work.changes.items()}
        return {key: staged for key, staged in changes.items() if staged is not None}

    def _own_table(self, view: View, key: TableKey) -> Table:
        """The table at its pin, on a ref that only this branch moves.

        A branch gets its own ref of a table at its first write there. What is staged can only be
        committed where it was staged, so the ref comes first; until the publish nothing names it,
        and one that is left behind is never in anybody's way: its name is used once.
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


def _may_plan_again(conflict: ConflictError, work: Work[Report], attempt: int) -> bool:
    """Whether the write can be planned on the newer rows without asking the caller."""
    if attempt >= REPLANS_MAX or isinstance(conflict, StaleHeadError):
        return False
    # Whoever waited for a busy table that long should hear of it.
    return work.replans and conflict.code is not ErrorCode.TABLE_BUSY


def _pins(snapshot: Snapshot, keys: Iterable[TableKey]) -> list[TablePin]:
    return [snapshot.pin(key) for key in sorted(keys)]


def _conditions(order: Order) -> tuple[Expectation, ...]:
    return () if order.expect_head is None else (HeadIs(order.expect_head),)


def _expected(planned_on: Snapshot, keys: Iterable[TableKey]) -> Iterator[Expectation]:
    yield BranchIs(planned_on.ref)
    yield SchemaIs(planned_on.schema_digest)
    for pin in _pins(planned_on, keys):
        yield TableAt(pin.key, pin.version, pin.ref)


def _publication(
    order: Order,
    planned_on: Snapshot,
    work: Work[Report],
    staged: Mapping[TableKey, Staged],
    commit_id: CommitId,
) -> Publication:
    return Publication(
        order.branch,
        commit_id,
        order.kind,
        pins=tuple(_moved(planned_on.pin(key), each) for key, each in staged.items()),
        merged_parent=order.merged_parent,
        lineage=work.lineage,
        actor=order.actor,
        message=order.message,
        # Not what was only read: its writers claim the tables that this write has claimed.
        expecting=(*_expected(planned_on, {*staged, *work.guards}), *_conditions(order)),
    )


def _moved(pin: TablePin, staged: Staged) -> TablePin:
    return replace(pin, version=pin.version + 1, ref=_ref(staged), row_count=staged.row_count)


def _table_intent(pin: TablePin, staged: Staged) -> TableIntent:
    moves = TableIntent(pin.key, pin.location, _ref(staged), pin.version, pin.version + 1)
    return moves if moves.ref == pin.ref else replace(moves, forks_from=ForkSource(pin.ref))


def _ref(staged: Staged) -> str | None:
    return staged.address.ref


def _folder(pin: TablePin) -> str:
    return pin.location if pin.ref is None else f"{pin.location}/{REF_FOLDER}/{pin.ref}"


def _drift(branch: BranchName, pin: TablePin, head: int) -> RecoveryNeededError:
    message = (
        f"{pin.key} on branch {branch} is pinned at version {pin.version}, its head is {head}, "
        "and no write in progress answers for that"
    )
    return RecoveryNeededError(
        message,
        hint="see 'omnigraph repair'",
        code=ErrorCode.UNCOVERED_DRIFT,
        table_key=str(pin.key),
        pinned=pin.version,
        head=head,
    )
