"""Copies a graph: files first, then versions, names, and last what makes the target a graph.

The target of a first copy cannot be opened until it is complete: the newest version of its manifest
is stored first, and the file with its state last, in one put. A later copy adds to a graph that can
be opened all the time: its tables are complete before a version of the manifest names them, and
commits appear one by one, none before those that it follows from.

Nothing is kept but the record of the run. A copy that was interrupted lists both places again and
goes on with what the target lacks (docs/decisions/0038).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime, timedelta
from os import PathLike
from typing import Final, Protocol

from omnigraph.clock import Clock
from omnigraph.engine.protocol import Engines
from omnigraph.errors import (
    AlreadyExistsError,
    ConflictError,
    ErrorCode,
    NotFoundError,
    OmnigraphError,
    StorageError,
)
from omnigraph.failpoints import Failpoint, hit
from omnigraph.limits import LEASE_SECONDS
from omnigraph.maintenance.checking.run import CheckOrder, check
from omnigraph.maintenance.copying.cut import MIRRORED, GraphCut, require_apart, take_cut
from omnigraph.maintenance.copying.plan import CopyPlan, TableCopy, plan_copy
from omnigraph.maintenance.copying.results import CopyResult
from omnigraph.manifest.branches import retired_path
from omnigraph.manifest.copies import CopyRecord, read_record, write_record
from omnigraph.manifest.layout import MANIFEST, RECOVERY, RETENTION, SCHEMA_TEXT, SETTINGS
from omnigraph.manifest.reader import Manifest
from omnigraph.model.ids import OperationId
from omnigraph.model.names import MAIN, BranchName
from omnigraph.recovery.owners import Owner, is_gone, this_process, track_operation
from omnigraph.recovery.sidecars import is_sidecar_path
from omnigraph.storage.inventory import take_inventory
from omnigraph.storage.objects import Entry
from omnigraph.storage.store import Store

COPY_ATTEMPTS_MAX: Final = 5
"""How often a copy reads its source anew, of which cleanups removed what it was about to copy."""

COPY_THREADS: Final = 16
"""Files that a copy transfers at once."""


_HINT: Final = "_versions/latest_version_hint.json"
"""Where Lance notes the newest version of a local table, for those who look for it."""

_RENEWAL: Final = timedelta(seconds=LEASE_SECONDS / 3)


class CopyProgress(Protocol):
    """Receives how far each stage of a copy is."""

    def __call__(self, stage: str, done: int, total: int | None) -> None:
        """Take it."""
        ...


@dataclass(frozen=True, slots=True)
class CopyOrder:
    """What to copy, and to where.

    Attributes:
        branches: The branches to copy besides main; all of them when empty.
    """

    source: str
    target: str | PathLike[str]
    branches: tuple[BranchName, ...] = ()
    progress: CopyProgress | None = None


def copy(order: CopyOrder, clock: Clock, engines: Engines) -> CopyResult:
    """Copy a graph, or what is new in it since the last copy, and check the target."""
    target = Store.open(order.target)
    require_apart(Store.open(order.source).root.uri, target.root.uri)
    run = OperationId(clock.ulid())
    with track_operation(run):
        work = _CopyRun(order, clock, target, run)
        cut = work.run()
    is_first = work.is_first
    checked = check(
        target.root.uri, clock, engines, CheckOrder(reads_rows=False, walks_history=is_first)
    )
    return CopyResult(
        Store.open(order.source).root.uri,
        target.root.uri,
        tuple(map(str, cut.branches)),
        work.commits,
        work.files,
        work.size,
        tuple(checked.findings),
    )


class _FileGoneError(Exception):
    """The source does not have a file any more: a cleanup removed it."""


@dataclass(slots=True)
class _CopyRun:
    """One run of a copy.

    Attributes:
        is_first: Whether the target was no graph when the run began.
    """

    order: CopyOrder
    clock: Clock
    target: Store
    run_id: OperationId
    is_first: bool = True
    commits: int = 0
    files: int = 0
    size: int = 0
    source: Store = field(init=False)
    record: CopyRecord = field(init=False)

    def run(self) -> GraphCut:
        names = Manifest(Store.open(self.order.source)).names
        for name in self.order.branches:
            names.ref_of(name)
        last: OmnigraphError | _FileGoneError | None = None
        for _ in range(COPY_ATTEMPTS_MAX):
            # New ones, which have cached nothing of the attempt before.
            self.source = Store.open(self.order.source)
            manifest = Manifest(self.source)
            try:
                cut = self._take_cut(manifest)
                hit(Failpoint.COPY_AFTER_CUT)
                self._claim(cut)
                plan = plan_copy(manifest, cut, self._sizes(), is_first=self.is_first)
                self._carry_out(cut, plan)
            except (NotFoundError, StorageError, _FileGoneError) as failure:
                # A cleanup, or the deletion of a branch, may have overtaken it.
                if not self._was_overtaken(failure):
                    raise
                last = failure
            else:
                self.commits = plan.commits
                return cut
        if isinstance(last, OmnigraphError):
            raise last
        message = f"cleanups of {self.order.source} kept removing what was being copied"
        raise ConflictError(message, hint="run the same command again") from last

    def _take_cut(self, manifest: Manifest) -> GraphCut:
        return take_cut(manifest, self.order.branches, self.clock.now())

    def _was_overtaken(self, failure: Exception) -> bool:
        """Whether the source may be read anew with another outcome."""
        if isinstance(failure, _FileGoneError):
            return True
        return isinstance(failure, OmnigraphError) and failure.code in (
            ErrorCode.BRANCH_NOT_FOUND,
            ErrorCode.NOT_FOUND,
            ErrorCode.STORAGE,
            ErrorCode.VERSION_NOT_FOUND,
        )

    def _sizes(self) -> dict[str, int]:
        return {entry.path: entry.size for entry in self.target.objects.entries("")}

    # The target: whose it is, and who copies to it.

    def _claim(self, cut: GraphCut) -> None:
        """Record that this run copies to the target, if it may."""
        objects = self.target.objects
        found = read_record(objects)
        record, stored = found or (CopyRecord(self.source.root.uri), None)
        if record.run not in (None, self.run_id) and not self._is_over(record):
            message = f"another copy to {self.target.root.uri} is in progress"
            raise ConflictError(message, hint="wait for it, then try again")
        has_manifest = self.target.tables.exists(MANIFEST)
        if found is None and not has_manifest and objects.holds_any():
            message = f"{self.target.root.uri} is not empty, and is not a copy"
            hint = "choose an empty or a new place"
            raise AlreadyExistsError(message, hint=hint, code=ErrorCode.FOREIGN_DIRECTORY)
        can_be_opened = record.completed_at is not None or (has_manifest and self._can_be_opened())
        self.is_first = not can_be_opened
        if has_manifest:
            self._require_descent(cut, record)
        ends = {ref: max(end, record.ends.get(ref, 0)) for ref, end in cut.ends.items()}
        self.record = replace(
            record,
            source=self.source.root.uri,
            ends={**record.ends, **ends},
            run=self.run_id,
            owner=_encode_owner(),
            lease_until=self._lease(),
        )
        if not write_record(objects, self.record, stored):
            message = f"another copy to {self.target.root.uri} has begun"
            raise ConflictError(message, hint="wait for it, then try again")
        hit(Failpoint.COPY_AFTER_CLAIM)

    def _lease(self) -> datetime:
        return self.clock.now() + timedelta(seconds=LEASE_SECONDS)

    def _is_over(self, record: CopyRecord) -> bool:
        assert record.run is not None, "asked of a record of a run"
        owner = None if record.owner is None else Owner(**record.owner)
        if is_gone(owner, OperationId(record.run)):
            return True
        return record.lease_until is None or record.lease_until < self.clock.now()

    def _renew(self) -> None:
        """Prolong the lease, in time for others."""
        assert self.record.lease_until is not None, "it was claimed"
        if self.record.lease_until - self.clock.now() < _RENEWAL * 2:
            self._change_record(replace(self.record, lease_until=self._lease()))

    def _change_record(self, changed: CopyRecord) -> None:
        found = read_record(self.target.objects)
        if found is None or found[0].run != self.run_id:
            message = f"another copy to {self.target.root.uri} took over"
            raise ConflictError(message, hint="wait for it, then try again")
        if not write_record(self.target.objects, changed, found[1]):
            message = f"another copy to {self.target.root.uri} took over"
            raise ConflictError(message, hint="wait for it, then try again")
        self.record = changed

    def _can_be_opened(self) -> bool:
        with suppress(OmnigraphError):
            Manifest(Store.open(self.target.root.uri)).current(MAIN)
            return True
        return False

    def _require_descent(self, cut: GraphCut, record: CopyRecord) -> None:
        """Refuse a target with history that the source does not have."""
        objects = self.target.objects
        if any(map(is_sidecar_path, objects.list(RECOVERY))):
            why = "a write was begun there"
            raise self._divergence_error(why)
        inventory = take_inventory(objects, MANIFEST)
        source = take_inventory(self.source.objects, MANIFEST)
        for ref in (None, *sorted(inventory.refs)):
            newest = max(inventory.versions(ref), default=0)
            end = max(cut.ends.get(ref, 0), record.ends.get(ref, 0))
            if newest > end:
                why = f"it has newer commits, on {ref or 'main'}"
                raise self._divergence_error(why)
            theirs, ours = (each.versions(ref).get(newest) for each in (source, inventory))
            if theirs is not None and ours is not None and not self._are_equal(ours.path):
                why = f"its history is another one, on {ref or 'main'}"
                raise self._divergence_error(why)
        manifest = Manifest(Store.open(self.target.root.uri))
        if not self.is_first and manifest.current(MAIN).head.commit_id not in cut.commits:
            why = "its history is another one"
            raise self._divergence_error(why)
        for branch in manifest.names.survey().branches:
            if branch.ref not in cut.known_refs and branch.ref not in record.ends:
                why = f"it has a branch of its own, {branch.name}"
                raise self._divergence_error(why)

    def _are_equal(self, path: str) -> bool:
        one, other = (each.objects.read(path) for each in (self.source, self.target))
        return one is None or other is None or one.data == other.data

    def _divergence_error(self, why: str) -> ConflictError:
        message = f"{self.target.root.uri} is not a copy of {self.source.root.uri}: {why}"
        return ConflictError(message, hint="copy to a new place, and write to one of the two only")

    # The work, in order.

    def _carry_out(self, cut: GraphCut, plan: CopyPlan) -> None:
        if self.is_first:
            # From now on the newest version of main's manifest is one without its state.
            self._transfer_one(plan.newest)
            hit(Failpoint.COPY_AFTER_SHUT)
        self._transfer("tables", [file for table in plan.tables for file in table.files])
        self._transfer("versions", [file for table in plan.tables for file in table.versions])
        self._transfer("names", [file for table in plan.tables for file in table.names])
        self._transfer("schemas", plan.schemas)
        hit(Failpoint.COPY_AFTER_TABLES)
        withheld = (plan.state.path, plan.newest.path) if self.is_first else ()
        files = [file for file in plan.manifest.files if file.path not in withheld]
        self._transfer("history", files)
        # Whoever finds a version missing in a moment finds here that it expired.
        self._put_records(cut, [RETENTION])
        versions = [each for each in plan.manifest.versions if each.path not in withheld]
        if self.is_first:
            self._transfer("commits", versions)
        else:
            self._withdraw_text(cut)
            for entry in versions:
                self._transfer_one(entry)
                hit(Failpoint.COPY_AFTER_EACH_VERSION)
        self._transfer("names", plan.manifest.names)
        self._tell_newest([*plan.tables, plan.manifest])
        self._put_records(cut, [folder for folder in (*MIRRORED, "") if folder != RETENTION])
        if self.is_first:
            self._transfer_one(plan.state)
        hit(Failpoint.COPY_AFTER_OPEN)
        self._change_record(
            replace(
                self.record, completed_at=self.clock.now(), run=None, owner=None, lease_until=None
            )
        )
        hit(Failpoint.COPY_AFTER_COMPLETE)

    def _transfer(self, stage: str, entries: Collection[Entry]) -> None:
        """Copy files, many at once; they are all there at the end."""
        waiting: set[Future[Entry]] = set()
        with ThreadPoolExecutor(COPY_THREADS) as pool:
            try:
                for done, entry in enumerate(entries):
                    if len(waiting) >= 2 * COPY_THREADS:
                        finished, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                        self._note(finished)
                        self._report(stage, done - len(waiting), len(entries))
                    waiting.add(pool.submit(self._fetch, entry))
                while waiting:
                    finished, waiting = wait(waiting, timeout=1.0, return_when=FIRST_COMPLETED)
                    self._note(finished)
            finally:
                for future in waiting:
                    future.cancel()
        if entries:
            self._report(stage, len(entries), len(entries))

    def _note(self, finished: Iterable[Future[Entry]]) -> None:
        self._renew()
        for future in finished:
            self._count(future.result())
            hit(Failpoint.COPY_AFTER_EACH_FILE)

    def _transfer_one(self, entry: Entry) -> None:
        self._renew()
        self._count(self._fetch(entry))

    def _fetch(self, entry: Entry) -> Entry:
        if not self.target.objects.copy_from(self.source.objects, entry):
            raise _FileGoneError(entry.path)
        return entry

    def _count(self, entry: Entry) -> None:
        self.files += 1
        self.size += entry.size

    def _report(self, stage: str, done: int, total: int) -> None:
        if self.order.progress is not None:
            self.order.progress(stage, done, total)

    def _tell_newest(self, tables: Iterable[TableCopy]) -> None:
        """Tell those who look for the newest version of a local table by counting."""
        if not self.target.root.is_local:
            return
        hints = set()
        for table in tables:
            for folder, version in (table.gaps or {}).items():
                self.target.tables.gaps.announce(folder, version)
            hints |= {_hint_of(entry) for entry in table.versions}
        self.target.objects.delete_all(sorted(hints))

    def _put_records(self, cut: GraphCut, folders: Collection[str]) -> None:
        """Make the small objects of these folders those of the cut; "" is the root itself."""
        objects = self.target.objects
        for folder in folders:
            wanted = {path: data for path, data in cut.records.items() if _top(path) == folder}
            had = objects.list(folder) if folder else [SETTINGS]
            surplus = set(had) - wanted.keys() if cut.is_complete else set()
            for path in (*wanted, *sorted(surplus)):
                stored, data = objects.read(path), wanted.get(path)
                if data is None:
                    objects.delete(path)
                elif stored is None or stored.data != data:
                    objects.put(path, data)
                hit(Failpoint.COPY_AFTER_EACH_RECORD)
        if not cut.is_complete:
            self._forget_retired(cut)

    def _withdraw_text(self, cut: GraphCut) -> None:
        """Remove the text of another schema than the one that main is about to have."""
        stored = self.target.objects.read(SCHEMA_TEXT)
        if stored is not None and stored.data != cut.records[SCHEMA_TEXT]:
            self.target.objects.delete(SCHEMA_TEXT)

    def _forget_retired(self, cut: GraphCut) -> None:
        """Take a branch that was left out of an earlier copy for the branch that it is."""
        for name in cut.branches:
            if not name.is_main:
                ref = Manifest(self.source).names.ref_of(name)
                path = retired_path(name, ref or name)
                if path not in cut.records:
                    self.target.objects.delete(path)


def _top(path: str) -> str:
    """The folder of the root that a path is in; empty for a file of the root."""
    return path.partition("/")[0] if "/" in path else ""


def _hint_of(version: Entry) -> str:
    return f"{version.path.rpartition('/_versions/')[0]}/{_HINT}"


def _encode_owner() -> dict[str, object] | None:
    owner = this_process()
    return None if owner is None else asdict(owner)
