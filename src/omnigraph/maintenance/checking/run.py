"""The check: walks a graph from its branches to its rows, and reports what does not hold.

It only reads, and reads from storage: no cache of a handle is used. It may run while others write;
what they move meanwhile is read again before it is reported as wrong.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial
from typing import Final

from omnigraph.choices import TableKind
from omnigraph.clock import Clock
from omnigraph.engine.choose import asked_engine
from omnigraph.engine.protocol import Engines
from omnigraph.errors import OmnigraphError
from omnigraph.integrity.rules import RuleSet
from omnigraph.maintenance.checking.embeddings import check_embeddings
from omnigraph.maintenance.checking.foreign import note_foreign_files
from omnigraph.maintenance.checking.history import check_branch, check_history
from omnigraph.maintenance.checking.indexes import check_arrays, check_indexes
from omnigraph.maintenance.checking.let_go import LetGoChecks
from omnigraph.maintenance.checking.past import Past
from omnigraph.maintenance.checking.report import BACKUP, CheckReport, Finding, Invariant, Notebook
from omnigraph.maintenance.checking.rules import Progress, RowChecks
from omnigraph.maintenance.checking.settings import check_settings
from omnigraph.maintenance.checking.tables import Files, check_head, check_table, check_types
from omnigraph.maintenance.checking.tags import check_tags
from omnigraph.maintenance.cleanup.refs import clean_refs
from omnigraph.manifest import schemas
from omnigraph.manifest.layout import RECOVERIES, RECOVERY, SCHEMA_TEXT, SCHEMAS
from omnigraph.manifest.reader import Manifest
from omnigraph.manifest.settings import StoredSettings
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.model.commits import Commit
from omnigraph.model.ids import CommitId
from omnigraph.model.names import BranchName
from omnigraph.model.tables import TableKey, TablePin
from omnigraph.recovery.pending import PendingWrite
from omnigraph.recovery.sweep import Recovery
from omnigraph.schema import codec
from omnigraph.schema.accepted import AcceptedSchema
from omnigraph.schema.catalog import SchemaType
from omnigraph.schema.parser import parse_schema
from omnigraph.storage.store import Store
from omnigraph.storage.tables import Table

_ROW_INVARIANTS: Final = (Invariant.ROW, Invariant.RULE)


@dataclass(frozen=True, slots=True)
class CheckOrder:
    """What to check.

    Attributes:
        branches: Only these; all of them when empty.
        reads_rows: Whether rows are read, too; without them, the work is small at any size.
        walks_history: Whether data of older commits is opened, too; the work grows with them.
        engine: `local`, `spark` or `auto`, for the rules about several rows.
        sees: Whether the actor may read a type on a branch; rows of others are neither read nor
            counted.
    """

    branches: tuple[BranchName, ...] = ()
    reads_rows: bool = True
    walks_history: bool = False
    engine: str | None = None
    progress: Progress | None = None
    sees: Callable[[str, str], bool] = lambda _branch, _type: True

    def asks(self, invariant: Invariant) -> bool:
        """Whether an invariant is checked."""
        if invariant is Invariant.PAST:
            return self.walks_history
        return self.reads_rows or invariant not in _ROW_INVARIANTS


def check(uri: str, clock: Clock, engines: Engines, order: CheckOrder) -> CheckReport:
    """Report which invariants hold of a graph. Nothing is written, and nothing is recovered.

    Memory is bounded: rows are read a batch at a time, rules about several rows are plans of an
    engine, and only the first offenders are kept. Only the list of one branch's commits grows with
    the graph.

    Args:
        engines: Engines of this check alone, which have cached nothing of the graph.
    """
    asked_engine(order.engine)
    manifest = Manifest(Store.open(uri))
    names = manifest.branches()
    for branch in order.branches:
        manifest.names.ref_of(branch)
    branches = order.branches or names
    notebook = Notebook()
    checks = _Check(manifest, Recovery(manifest, clock), clock, engines, order, notebook)
    checks.run(branches)
    invariants = [invariant for invariant in Invariant if order.asks(invariant)]
    report = notebook.report(manifest.store.root.uri, tuple(map(str, branches)), invariants)
    return replace(report, hidden=tuple(sorted(checks.hidden)))


@dataclass(slots=True)
class _Check:
    """The state of one check.

    Attributes:
        schemas: The schemas that were checked, by digest; None for an unreadable one.
        roots: The first commits of histories, with a branch that has each.
        pinned: The versions that were checked.
        hidden: The types that were left out.
    """

    manifest: Manifest
    recovery: Recovery
    clock: Clock
    engines: Engines
    order: CheckOrder
    notebook: Notebook
    schemas: dict[str, AcceptedSchema | None] = field(default_factory=dict)
    roots: dict[CommitId, BranchName] = field(default_factory=dict)
    pinned: set[TablePin] = field(default_factory=set)
    hidden: set[str] = field(default_factory=set)
    files: Files = field(init=False)
    let_go: LetGoChecks = field(init=False)
    past: Past = field(init=False)

    def __post_init__(self) -> None:
        self.files = Files(self.manifest.store.objects)
        self.let_go = LetGoChecks(self.manifest, self.notebook)
        self.past = Past(self.manifest, self.notebook, self.let_go)

    def run(self, branches: Sequence[BranchName]) -> None:
        order = self.order
        rows = RowChecks(self.notebook, self.engines, order.engine, order.progress)
        for name in branches:
            snapshot = check_branch(self.manifest, name, self.notebook)
            if snapshot is None:
                continue
            commits = self._check_history(snapshot)
            accepted = self._schema(snapshot.schema_digest)
            if accepted is None:
                continue
            if name.is_main:
                self._check_text(accepted)
            check_types(snapshot, accepted.catalog, self.notebook)
            tables = self._tables(snapshot, accepted)
            if self.order.walks_history:
                self._check_past(commits)
            if self.order.reads_rows:
                rows.run(snapshot, RuleSet.compile(accepted.catalog), tables)
        self._check_sidecars()
        self._check_recoveries()
        check_tags(self.manifest, self.notebook)
        check_settings(StoredSettings(self.manifest.store.objects, self.clock), self.notebook)
        self._note_orphans()
        note_foreign_files(self.manifest.store.objects, self.notebook)

    def _check_history(self, snapshot: Snapshot) -> dict[CommitId, Commit]:
        commits = check_history(self.manifest, snapshot, self.notebook)
        self.let_go.check_tip(snapshot)
        self.let_go.note_history(snapshot.branch, commits.values())
        kept = (commit for commit in commits.values() if not self.let_go.has(commit))
        for digest in sorted({commit.schema_digest for commit in kept}):
            self._schema(digest)
        roots = (commit.commit_id for commit in commits.values() if commit.parent is None)
        root = next(roots, None)
        if root is not None:
            self.roots.setdefault(root, snapshot.branch)
            first, *others = self.roots
            if root in others:
                problem = f"it starts at commit {root}, and {self.roots[first]} at {first}"
                subject = f"branch {snapshot.branch}"
                self.notebook.find(Finding(Invariant.HISTORY, subject, subject, problem, BACKUP))
        return commits

    def _schema(self, digest: str) -> AcceptedSchema | None:
        """A schema that commits name, if it can be read; each is checked once."""
        if digest not in self.schemas:
            self.notebook.count(Invariant.SCHEMA)
            self.schemas[digest] = self._read_schema(digest)
        return self.schemas[digest]

    def _read_schema(self, digest: str) -> AcceptedSchema | None:
        subject, place = f"schema {digest[:12]}", f"{SCHEMAS}/{digest}.json"
        objects = self.manifest.store.objects
        try:
            accepted = schemas.load(objects, digest)
        except OmnigraphError as failure:
            self.notebook.fail(Invariant.SCHEMA, subject, place, failure)
            return None
        if _declared_digest(accepted.text) != digest:
            problem = "its text does not mean what its catalog says"
            self.notebook.find(Finding(Invariant.SCHEMA, subject, place, problem, BACKUP))
        return accepted

    def _check_text(self, accepted: AcceptedSchema) -> None:
        """Check that the schema text that is kept for people is the graph's schema."""
        try:
            stored = self.manifest.store.objects.read(SCHEMA_TEXT)
        except OmnigraphError as failure:
            self.notebook.fail(Invariant.SCHEMA, SCHEMA_TEXT, SCHEMA_TEXT, failure)
            return
        if stored is None:
            problem = "it is not there"
            step = "nothing: the next command that writes makes it"
            self.notebook.note(Finding(Invariant.SCHEMA, SCHEMA_TEXT, SCHEMA_TEXT, problem, step))
        elif _declared_digest(stored.data.decode(errors="replace")) != accepted.digest:
            problem = "it was edited, and means something else than the graph's schema"
            step = "put back what 'omnigraph schema show' prints"
            self.notebook.find(Finding(Invariant.SCHEMA, SCHEMA_TEXT, SCHEMA_TEXT, problem, step))

    def _tables(self, snapshot: Snapshot, accepted: AcceptedSchema) -> dict[TableKey, Table]:
        """The pinned versions that can be read as their types."""
        tables = {}
        sees = partial(self.order.sees, snapshot.branch)
        self.hidden.update(key.type_name for key in snapshot.pins if not sees(key.type_name))
        types = {type_.table_key: type_ for type_ in accepted.catalog.types}
        for key, pin in snapshot.pins.items():
            if key in types and sees(key.type_name):
                is_new = pin not in self.pinned
                table = self._table(pin, types[key])
                if table is not None:
                    tables[key] = table
                    if is_new:
                        reads_rows = self.order.reads_rows
                        check_indexes(table, types[key], self.notebook, reads_rows=reads_rows)
                        if reads_rows:
                            check_embeddings(table, types[key], self.notebook)
                        if reads_rows and key.kind is TableKind.EDGE:
                            check_arrays(table, types[key], self.notebook)
            check_head(self.manifest, self.recovery, snapshot, pin, self.notebook)
        return tables

    def _table(self, pin: TablePin, type_: SchemaType) -> Table | None:
        self.pinned.add(pin)
        return check_table(self.manifest, self.files, pin, type_, self.notebook)

    def _check_past(self, commits: dict[CommitId, Commit]) -> None:
        """Check every version that an older commit pins; each is checked once."""
        for done, snapshot in enumerate(self.past.snapshots(commits)):
            if self.order.progress is not None:
                self.order.progress("history", done, len(commits))
            accepted = self._schema(snapshot.schema_digest)
            types = {} if accepted is None else {t.table_key: t for t in accepted.catalog.types}
            for key, pin in snapshot.pins.items():
                is_seen = self.order.sees(snapshot.branch, key.type_name)
                if key in types and is_seen and pin not in self.pinned:
                    self._table(pin, types[key])

    def _check_sidecars(self) -> None:
        try:
            pending = self.recovery.pending()
        except OmnigraphError as failure:
            self.notebook.fail(Invariant.SIDECAR, RECOVERY, RECOVERY, failure)
            return
        count = len(pending.live) + len(pending.interrupted) + len(pending.unreadable)
        self.notebook.count(Invariant.SIDECAR, count)
        for sidecar in pending.unreadable:
            problem = f"it cannot be processed: {sidecar.reason}"
            path = sidecar.path
            finding = Finding(Invariant.SIDECAR, path, path, problem, sidecar.next_step)
            self.notebook.find(finding)
        for write in pending.live:
            problem = "it is in progress, or may be until its lease expires"
            step = "nothing: check again when it is done"
            self.notebook.note(_write_finding(write, problem, step))
        for write in pending.interrupted:
            problem = "it was interrupted, and has not been recovered yet"
            step = "see 'omnigraph recovery list'; the next command that writes does it"
            self.notebook.find(_write_finding(write, problem, step))

    def _check_recoveries(self) -> None:
        try:
            entries = self.recovery.audit.entries()
        except OmnigraphError as failure:
            self.notebook.fail(Invariant.RECOVERY, "recoveries", RECOVERIES, failure)
            return
        self.notebook.count(Invariant.RECOVERY, len(entries))
        for operation_id, times in Counter(entry.operation_id for entry in entries).items():
            if times > 1:
                problem = f"it was recorded {times} times"
                subject = f"operation {operation_id}"
                finding = Finding(Invariant.RECOVERY, subject, RECOVERIES, problem, BACKUP)
                self.notebook.find(finding)

    def _note_orphans(self) -> None:
        """Note refs that nothing needs: of deleted branches, killed writers, or writes at work."""
        try:
            sidecars = self.recovery.sidecars
            orphans = clean_refs(
                self.manifest, sidecars, self.clock, dry_run=True, age_min=timedelta(0)
            )
        except OmnigraphError:
            # An earlier step has already reported the cause.
            return
        step = "nothing: 'omnigraph cleanup' removes it once nobody can be about to use it"
        for orphan in orphans.reclaimed:
            problem = (
                "no branch names it: its branch was deleted, a writer was killed or is in "
                "progress, "
                "or another program made it"
            )
            place, subject = orphan.location, f"ref {orphan.ref}"
            self.notebook.note(Finding(Invariant.BRANCH, subject, place, problem, step))


def _write_finding(write: PendingWrite, problem: str, step: str) -> Finding:
    subject = f"{write.writer_kind} {write.operation_id}"
    return Finding(Invariant.SIDECAR, subject, f"branch {write.branch}", problem, step)


def _declared_digest(text: str) -> str | None:
    """The digest of the schema that a text declares; None if it declares none."""
    try:
        return codec.digest(parse_schema(text))
    except OmnigraphError:
        return None
