"""The sweep: finds interrupted writes and rolls each forward or back.

It is a writer like any other: before it touches a table it claims it with a sidecar of its own,
because a restore is the one commit that Lance never rejects. It may be killed anywhere, and run
again.
"""

from __future__ import annotations

import logging
import threading
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final

from omnigraph.clock import Clock
from omnigraph.errors import (
    BranchNotFoundError,
    CommitNotFoundError,
    ConflictError,
    OmnigraphError,
    RecoveryNeededError,
)
from omnigraph.failpoints import Failpoint, hit
from omnigraph.manifest.branches import Branch
from omnigraph.manifest.deletions import finish_deletion
from omnigraph.manifest.drafts import AddHistory, CommitDraft, PinTable, SetSchema
from omnigraph.manifest.lifecycle import write_schema_text
from omnigraph.manifest.publisher import publish
from omnigraph.manifest.reader import Manifest, OpenManifest
from omnigraph.manifest.requirements import BranchIs, Requirement, SchemaIs, TableAt
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.model.commits import RECOVERY_ACTOR, Commit, OperationKind
from omnigraph.model.ids import CommitId, OperationId
from omnigraph.model.names import MAIN, BranchName
from omnigraph.model.tables import TablePin
from omnigraph.recovery.audit import Audit
from omnigraph.recovery.claims import claim, release_on_failure
from omnigraph.recovery.classify import (
    Decision,
    Observation,
    TableFinding,
    classify,
    decide,
    mode_of,
)
from omnigraph.recovery.entries import RecoveryEntry, RecoveryKind, TableMove
from omnigraph.recovery.intents import Intent, TableIntent
from omnigraph.recovery.owners import this_process, track_operation
from omnigraph.recovery.pending import Pending, Unreadable
from omnigraph.recovery.sidecars import Sidecars, SidecarSet, is_live, sidecar_path
from omnigraph.storage import heads
from omnigraph.storage.tables import Table

RESOLVE_ATTEMPTS_MAX: Final = 5
"""Times a recovery starts over because the branch moved while it decided."""


_log: Final = logging.getLogger(__name__)

_locks: Final[defaultdict[str, threading.Lock]] = defaultdict(threading.Lock)
"""Threads of one process take turns; processes exclude each other by their sidecars."""


@dataclass(frozen=True, slots=True)
class _TableState:
    """The current state of one table of an interrupted write."""

    intent: TableIntent
    pin: TablePin
    head: Table

    @property
    def requirement(self) -> TableAt:
        return TableAt(self.pin.key, self.pin.version, self.pin.ref)


@dataclass(frozen=True, slots=True)
class _Outcome:
    kind: RecoveryKind
    commit: Commit | None = None
    tables: tuple[TableMove, ...] = ()


class Recovery:
    """Resolves the interrupted writes of one graph."""

    def __init__(self, manifest: Manifest, clock: Clock) -> None:
        self._manifest = manifest
        self._store = manifest.store
        self._clock = clock
        self.sidecars = Sidecars(self._store.objects)
        self.audit = Audit(self._store)

    def heal(self, branch: BranchName | None = None) -> tuple[RecoveryEntry, ...]:
        """Resolve every interrupted write, of one branch or of all. Live ones are left alone.

        An interrupted deletion of that branch is finished, too.
        """
        if branch is not None:
            finish_deletion(self._manifest, branch, self._clock.now())
        return self._resolve_interrupted(branch)

    def heal_for_write(self, branch: BranchName) -> Branch | None:
        """Like `heal`, for the next writer of a branch, which also needs the branch's record.

        Returns:
            The record as it was just read; None if it is main, or was changed here.
        """
        found = finish_deletion(self._manifest, branch, self._clock.now())
        self._resolve_interrupted(branch)
        return found

    def _resolve_interrupted(self, branch: BranchName | None) -> tuple[RecoveryEntry, ...]:
        if not self._find_interrupted(branch):
            return ()
        with _locks[self._store.root.uri]:
            return tuple(filter(None, map(self._resolve, self._find_interrupted(branch))))

    def is_needed(self, branch: BranchName) -> bool:
        """Whether a write of this branch was interrupted."""
        return bool(self._find_interrupted(branch))

    def pending(self) -> Pending:
        """The writes that are in flight or were interrupted; nothing is changed."""
        return self.sidecars.pending(self._clock)

    def resolve(self, intent: Intent) -> RecoveryEntry | None:
        """Resolve one write on behalf of its owner; None if another process did."""
        # Without the lock: a thread that waits for this very write may hold it.
        return self._resolve(intent)

    def restore_pins(self, branch: BranchName, pins: Sequence[TablePin]) -> RecoveryEntry | None:
        """Make the pinned rows of tables current again, whichever writer moved their heads.

        For restores of a recovery that outlived its own lease, and for writes that bypassed the
        graph.
        """
        with _locks[self._store.root.uri]:
            requires = (BranchIs(self._manifest.names.ref_of(branch)),)
            return self._resolve(self._intent(branch, map(_restore_intent, pins), requires))

    def is_stray(self, pin: TablePin, head: int) -> bool:
        """Whether all versions above the pin are restores by recoveries, which add no rows."""
        authors = self._authors(pin, range(pin.version + 1, head + 1))
        return head >= pin.version and all(
            author is not None and author.writer is OperationKind.RECOVERY for author in authors
        )

    def _authors(
        self, table: TablePin | TableIntent, versions: Iterable[int]
    ) -> Iterator[heads.Authorship | None]:
        for version in versions:
            opened = self._store.tables.open(table.location, ref=table.ref, version=version)
            yield heads.author_of(opened)

    def _find_interrupted(self, branch: BranchName | None) -> tuple[Intent, ...]:
        return self.interrupted(self.sidecars.find().require_readable(), branch)

    def interrupted(
        self, intents: Collection[Intent], branch: BranchName | None
    ) -> tuple[Intent, ...]:
        """Those of all writes in progress that a heal, of one branch or of all, would resolve."""
        here = [intent for intent in intents if branch is None or intent.branch == branch]
        dead = [intent for intent in here if not is_live(intent, self._clock.now())]
        # An interrupted recovery is repeated together with the write that it was to resolve.
        unresolved = {intent.operation_id for intent in intents}
        return tuple(intent for intent in dead if intent.resolves not in unresolved)

    def _resolve(self, intent: Intent) -> RecoveryEntry | None:
        requires = tuple(
            each for each in intent.draft.requires if isinstance(each, BranchIs | SchemaIs)
        )
        own = replace(
            self._intent(intent.branch, intent.tables, requires), resolves=intent.operation_id
        )
        with track_operation(own.operation_id):
            sidecars = claim(self.sidecars, self._clock, own, excluding=intent.operation_id)
            hit(Failpoint.RECOVERY_AFTER_CLAIM)
            if not sidecars.holds(intent.operation_id) and not _is_recovery(intent):
                # Another process resolved it before our claim.
                self.sidecars.delete(own.operation_id)
                return None
            with release_on_failure(self.sidecars, own):
                outcome = self._end(intent, own, _earlier_recoveries(sidecars, intent))
                self._write_schema_text(intent)
                entry = self._entry(intent, own, outcome)
                if entry is not None:
                    self.audit.record(entry)
                hit(Failpoint.RECOVERY_AFTER_AUDIT)
            self.sidecars.delete(intent.operation_id)
            hit(Failpoint.RECOVERY_AFTER_SETTLE)
            for earlier in _earlier_recoveries(sidecars, intent):
                self.sidecars.delete(earlier.operation_id)
            self.sidecars.delete(own.operation_id)
            hit(Failpoint.RECOVERY_AFTER_END)
            return entry

    def _intent(
        self,
        branch: BranchName,
        tables: Iterable[TableIntent],
        requires: tuple[Requirement, ...],
    ) -> Intent:
        draft = CommitDraft(
            branch,
            CommitId(self._clock.ulid()),
            OperationKind.RECOVERY,
            RECOVERY_ACTOR,
            requires=requires,
        )
        return Intent(
            OperationId(self._clock.ulid()),
            draft,
            self._clock.now(),
            tables=tuple(tables),
            owner=this_process(),
        )

    def _end(self, intent: Intent, own: Intent, earlier: Sequence[Intent]) -> _Outcome | None:
        """Make the branch and its heads agree; None if there was nothing to do."""
        for _ in range(RESOLVE_ATTEMPTS_MAX):
            try:
                opened = self._manifest.open(intent.branch)
            except BranchNotFoundError:
                return _Outcome(RecoveryKind.ORPHANED_BRANCH_DISCARDED)
            if opened.table.address.ref != intent.draft.ref or opened.is_ended:
                return _Outcome(RecoveryKind.ORPHANED_BRANCH_DISCARDED)
            with suppress(ConflictError, BranchNotFoundError):
                # The owner was stalled and published meanwhile: read the branch again.
                return self._attempt(intent, own, earlier, opened)
        message = f"branch {intent.branch} kept moving while {intent.operation_id} was recovered"
        raise ConflictError(message, hint="try again")

    def _attempt(
        self, intent: Intent, own: Intent, earlier: Sequence[Intent], opened: OpenManifest
    ) -> _Outcome | None:
        now = self._manifest.snapshot(opened, intent.branch)
        states = list(filter(None, (self._state(table, intent, now) for table in intent.tables)))
        ahead = [state for state in states if state.head.version > state.pin.version]
        if _is_recovery(intent):
            # The write it was to resolve is resolved. It may have restored a table again since.
            commit = self._restore(ahead, intent, own)
            moves = tuple(map(_move_back, ahead))
            return _Outcome(RecoveryKind.STRAY_RESTORE_UNDONE, commit, moves) if ahead else None
        if landed := self._find_landed(opened, [intent, *earlier, own]):
            self._restore(ahead, intent, own)
            return _outcome_of(landed, states)
        if not intent.tables:
            # It moved no head, and needed its sidecar only to exclude others.
            return None
        mode = mode_of(intent.kind)
        findings = [classify(mode, self._observe(state, intent)) for state in states]
        hit(Failpoint.RECOVERY_AFTER_CLASSIFY)
        match decide(findings):
            case Decision.ABORT:
                raise _broken_error(intent, states, findings)
            case Decision.ROLL_FORWARD if not _unmet(intent, now, states):
                moves = tuple(
                    TableMove(state.pin.key, state.pin.version, state.head.version)
                    for state in states
                )
                commit = self._roll_forward(intent, states)
                return _Outcome(RecoveryKind.ROLLED_FORWARD, commit, moves)
            case _:
                commit = self._restore(states, intent, own)
                return _Outcome(RecoveryKind.ROLLED_BACK, commit, tuple(map(_move_back, states)))

    def _state(self, intent: TableIntent, write: Intent, now: Snapshot) -> _TableState | None:
        """The table's current state; None if no branch uses the fork made for this write.

        The table may have another key by now: a schema change renamed its type, or dropped it.
        """
        pin = next((pin for pin in now.pins.values() if pin.location == intent.location), None)
        if pin is None and any(dead.location == intent.location for dead in now.tombstones):
            return None
        has_new_schema = write.schema_digest not in (None, now.schema_digest)
        if pin is None or (pin.key != intent.key and not has_new_schema):
            reason = f"it names {intent.key} at {intent.location}, not of branch {now.branch}"
            raise _unusable_error(write, reason)
        if intent.forks_from is not None and pin.ref not in (intent.ref, intent.pinned_ref):
            # Another first write of the branch landed on its own fork. Nothing refers to this one,
            # and the pin has moved, so its writer cannot publish it either.
            return None
        if pin.ref not in (intent.ref, intent.pinned_ref):
            reason = (
                f"it has {intent.key} on ref {intent.ref or MAIN}, and branch {now.branch} has it "
                f"on ref {pin.ref or MAIN}"
            )
            raise _unusable_error(write, reason)
        head = self._store.tables.open_latest(intent.location, ref=intent.ref)
        return _TableState(intent, pin, head)

    def _observe(self, state: _TableState, intent: Intent) -> Observation:
        head, pinned, table = state.head, state.pin.version, state.intent
        author = heads.author_of(head)
        is_ours = author is not None and author.operation_id == intent.operation_id
        if is_ours and (table.expected_version, table.post_commit_pin) == (pinned, head.version):
            # A foreign commit may be between them: Lance rebases some operations on others.
            between = self._authors(table, range(pinned + 1, head.version))
            is_ours = all(below == author for below in between)
        return Observation(
            head=head.version,
            pinned=pinned,
            expected=table.expected_version,
            post_commit=table.post_commit_pin,
            confirmed=table.confirmed_version,
            is_ours=is_ours,
            is_restored=author is not None and author.writer is OperationKind.RECOVERY,
        )

    def _find_landed(self, opened: OpenManifest, candidates: Iterable[Intent]) -> Commit | None:
        """The commit that already resolved this write: its own, or a recovery's."""
        for candidate in candidates:
            if commit := self._manifest.lookup(opened, candidate.draft.commit_id):
                return commit
        return None

    def _roll_forward(self, intent: Intent, states: Sequence[_TableState]) -> Commit:
        recorded = intent.draft
        pins = {pin.table_id: pin for pin in recorded.pins}
        for state in states:
            pin = pins.get(state.pin.table_id, state.pin)
            pins[pin.table_id] = pin.move(
                version=state.head.version,
                ref=state.intent.ref,
                row_count=state.head.count_rows(),
            )
        others = (change for change in recorded.changes if not isinstance(change, PinTable))
        draft = replace(
            recorded,
            actor=RECOVERY_ACTOR,
            changes=(
                *map(PinTable, pins.values()),
                *others,
                AddHistory(self._lineage(intent)),
            ),
            requires=(*(state.requirement for state in states), *recorded.requires),
        )
        commit = publish(self._manifest, self._clock, draft)
        hit(Failpoint.RECOVERY_AFTER_ROLL_FORWARD)
        return commit

    def _lineage(self, intent: Intent) -> tuple[Commit, ...]:
        """The commits that only the merged branch has; none if that branch is gone."""
        source_id = intent.merged_parent
        if source_id is None:
            return ()
        now = self._manifest.current(intent.branch)
        with suppress(CommitNotFoundError):
            source = self._manifest.at(self._manifest.find(source_id, among_retired=True))
            ancestry = self._manifest.ancestry(now, source)
            return ancestry.divergence([now.head.commit_id], source_id).theirs
        return ()

    def _restore(self, states: Sequence[_TableState], intent: Intent, own: Intent) -> Commit | None:
        """Make the pinned rows of every table current again, and publish that.

        Tables that did not move are restored too: Lance rejects transactions staged before a
        restore, so an owner that was only stalled can neither apply nor publish any more.
        """
        if not states:
            return None
        author = heads.Authorship(own.operation_id, OperationKind.RECOVERY)
        pins = []
        for state in states:
            table = heads.restore(state.head, state.pin.version, author)
            count = state.pin.row_count
            pins.append(
                state.pin.move(version=table.version, ref=state.intent.ref, row_count=count)
            )
            hit(Failpoint.RECOVERY_AFTER_EACH_RESTORE)
        draft = replace(
            own.draft,
            message=f"rolled back {intent.kind} {intent.operation_id}",
            changes=tuple(map(PinTable, pins)),
            requires=(BranchIs(intent.draft.ref), *(state.requirement for state in states)),
        )
        commit = publish(self._manifest, self._clock, draft)
        hit(Failpoint.RECOVERY_AFTER_ROLL_BACK)
        return commit

    def _write_schema_text(self, intent: Intent) -> None:
        """Do the last step of a schema change of main, whether it was published or not."""
        if intent.draft.the(SetSchema) is None or not intent.branch.is_main:
            return
        try:
            write_schema_text(self._manifest)
        except OmnigraphError as failure:
            # Nothing reads it for an answer, so it must not keep others from writing.
            _log.warning("the text of main's schema may be that of an earlier one: %s", failure)

    def _entry(self, intent: Intent, own: Intent, outcome: _Outcome | None) -> RecoveryEntry | None:
        if outcome is None:
            return None
        return RecoveryEntry(
            recovery_id=own.operation_id,
            recovered_at=self._clock.now(),
            kind=outcome.kind,
            operation_id=intent.operation_id,
            writer_kind=intent.kind,
            branch=intent.branch,
            recovery_for_actor=intent.draft.actor,
            commit_id=None if outcome.commit is None else outcome.commit.commit_id,
            tables=outcome.tables,
        )


def _is_recovery(intent: Intent) -> bool:
    return intent.kind is OperationKind.RECOVERY


def _earlier_recoveries(sidecars: SidecarSet, intent: Intent) -> list[Intent]:
    """Interrupted recoveries of the same write."""
    return [other for other in sidecars.intents if other.resolves == intent.operation_id]


def _restore_intent(pin: TablePin) -> TableIntent:
    return TableIntent(pin.key, pin.location, pin.ref, pin.version, pin.version + 1)


def _move_back(state: _TableState) -> TableMove:
    return TableMove(state.pin.key, state.head.version, state.pin.version)


def _outcome_of(landed: Commit, states: Sequence[_TableState]) -> _Outcome:
    """What an earlier attempt did, from the commit it left."""
    if landed.operation is OperationKind.RECOVERY:
        # A restored head is right above the head that was rolled back.
        back = tuple(
            TableMove(state.pin.key, state.pin.version - 1, state.intent.expected_version)
            for state in states
        )
        return _Outcome(RecoveryKind.ROLLED_BACK, landed, back)
    forward = tuple(
        TableMove(state.pin.key, state.intent.expected_version, state.intent.post_commit_pin)
        for state in states
    )
    by_recovery = landed.actor == RECOVERY_ACTOR
    kind = RecoveryKind.ROLLED_FORWARD if by_recovery else RecoveryKind.ALREADY_PUBLISHED
    return _Outcome(kind, landed, forward)


def _unmet(intent: Intent, now: Snapshot, states: Sequence[_TableState]) -> bool:
    if len(states) < len(intent.tables):
        return True
    return any(requirement.unmet(now) for requirement in intent.draft.requires)


def _unusable_error(intent: Intent, reason: str) -> RecoveryNeededError:
    """The error for a sidecar and a branch that disagree about the branch's tables."""
    return Unreadable(sidecar_path(intent.operation_id), reason).refusal()


def _broken_error(
    intent: Intent, states: Sequence[_TableState], findings: Sequence[TableFinding]
) -> RecoveryNeededError:
    broken = [
        f"{state.pin.key} is pinned at {state.pin.version}, and its head is {state.head.version}"
        for state, finding in zip(states, findings, strict=True)
        if finding is TableFinding.INVARIANT_VIOLATION
    ]
    message = f"{intent.kind} {intent.operation_id} cannot be recovered: {'; '.join(broken)}"
    hint = "restore the graph's files from a backup, and report how this came about"
    return RecoveryNeededError(message, hint=hint, operation_id=intent.operation_id)
