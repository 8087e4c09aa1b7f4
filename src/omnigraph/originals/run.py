"""Import of a graph of a Rust release: every commit is made again, with its rows.

Commits are made one after another, parents first, each by one version of the manifest, as a write
does. These versions carry a mark, and readers refuse them until the import has ended: the last step
is a version of main without the mark. Whatever an import makes has a name or a version that follows
from the source alone, so an import that was interrupted goes on where it stopped.

Commits whose rows were removed before are kept without rows, as commits that expired.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Final

from omnigraph.clock import Clock, encode_ulid
from omnigraph.engine.protocol import Engine
from omnigraph.errors import ErrorCode, NotFoundError
from omnigraph.failpoints import Failpoint, hit
from omnigraph.manifest import rows as manifest_rows
from omnigraph.manifest import schemas
from omnigraph.manifest.branches import Branch
from omnigraph.manifest.drafts import AddHistory, CommitDraft, PinTable
from omnigraph.manifest.format import CURRENT, IMPORTABLE, original_stamp, release_of
from omnigraph.manifest.layout import MANIFEST, SCHEMA_TEXT, manifest_schema
from omnigraph.manifest.publisher import end_import, publish_imported
from omnigraph.manifest.reader import Manifest, OpenManifest, is_importing
from omnigraph.model.commits import RECOVERY_ACTOR, Commit, OperationKind
from omnigraph.model.identities import TypeIdentity
from omnigraph.model.ids import CommitId, OperationId, TableId
from omnigraph.model.let_go import LetGo
from omnigraph.model.names import MAIN, BranchName
from omnigraph.model.tables import TableKey, TablePin, table_location
from omnigraph.originals.history import (
    OriginalBranch,
    OriginalCommit,
    OriginalHistory,
    OriginalPin,
    Pins,
    unproven_error,
)
from omnigraph.originals.records import ImportRecord
from omnigraph.originals.results import ImportResult
from omnigraph.originals.rows import RowChanges, require_columns
from omnigraph.originals.sidecars import classify, read_sidecars
from omnigraph.schema.accepted import AcceptedSchema
from omnigraph.schema.arrow import table_schema
from omnigraph.schema.catalog import SchemaType
from omnigraph.schema.parser import parse_schema
from omnigraph.storage import heads, staging
from omnigraph.storage.originals import OriginalTables
from omnigraph.storage.store import Store
from omnigraph.storage.tables import Table

_STAGED_SCHEMA: Final = f"{SCHEMA_TEXT}.staging"

_GONE: Final = 0
"""The version of the manifest of commits without rows: no manifest has it."""

_RULE: Final = "a cleanup before the import"


def import_graph(source: Store, target: Store, clock: Clock, engine: Engine) -> ImportResult:
    """Make the graph of a Rust release again, with its whole history. The source is only read."""
    with OriginalTables(source) as tables:
        manifest = tables.open(MANIFEST, ref=None)
        stamp = original_stamp(manifest)
        if stamp is None or stamp not in IMPORTABLE:
            what = "is not a graph of a Rust release"
            if stamp is not None:
                what = f"was written by {release_of(stamp)} (internal schema {stamp})"
            message = f"{source.root.uri} {what}"
            raise unproven_error(message)
        schema = _read_schema(source)
        history = OriginalHistory(tables, source.root.uri, stamp)
        now = clock.now()
        interrupted = tuple(_recover(source, tables, history, now)[1])
        newest = {
            name: branch.commits[-1].commit_id
            for name, branch in history.branches.items()
            if branch.commits
        }
        record = ImportRecord(source.root.uri, stamp, newest, interrupted, now).claim(target)
        hit(Failpoint.IMPORT_AFTER_RECORD)
        # Recoveries have the time of the first attempt.
        branches, recovered = _recover(source, tables, history, record.begun_at)
        _Import(target, tables, history, branches, schema, engine, now).bring()
        return ImportResult(
            target.root.uri,
            release_of(stamp),
            stamp,
            {name: len(branch.commits) for name, branch in branches.items()},
            recovered,
        )


def _read_schema(source: Store) -> AcceptedSchema:
    if source.objects.exists(_STAGED_SCHEMA):
        message = f"{source.root.uri} has a schema change that was interrupted, {_STAGED_SCHEMA}"
        raise unproven_error(message)
    stored = source.objects.read(SCHEMA_TEXT)
    if stored is None:
        message = f"the schema {SCHEMA_TEXT} of {source.root.uri} is missing"
        raise unproven_error(message)
    text = stored.data.decode()
    return AcceptedSchema(parse_schema(text, SCHEMA_TEXT), text)


def _recover(
    source: Store, tables: OriginalTables, history: OriginalHistory, now: datetime
) -> tuple[dict[BranchName, OriginalBranch], dict[str, str]]:
    """The branches with a commit for each interrupted write; and by operation id, its outcome."""
    branches = dict(history.branches)
    outcomes: dict[str, str] = {}
    for write in read_sidecars(source.objects, source.root.uri):
        branch = branches.get(write.branch)
        if branch is None:
            # The branch was deleted meanwhile: nothing shows what the write did.
            continue
        head = branch.commits[-1] if branch.commits else history.start_of(branch)
        assert head is not None, "only branches with a commit are found"
        outcome = classify(write, history.pins(head), tables)
        if outcome is None:
            continue
        outcomes[write.operation_id] = "rolled back" if outcome.is_rolled_back else "rolled forward"
        commit = OriginalCommit(
            CommitId(_minted(now, "recovery", write.operation_id)),
            branch.name,
            head.version,
            head.commit_id,
            None,
            RECOVERY_ACTOR,
            now,
            outcome.pins,
            outcome.is_rolled_back,
        )
        branches[branch.name] = replace(branch, commits=(*branch.commits, commit))
    return branches, outcomes


def _minted(time: datetime, *seed: str) -> str:
    """An id that follows from a seed, as if it was minted at a time."""
    digest = hashlib.sha256("\0".join(seed).encode()).digest()
    milliseconds = int(time.timestamp() * 1000)
    return encode_ulid(milliseconds << 80 | int.from_bytes(digest[:10]))


class _Import:
    """One import into one target."""

    def __init__(
        self,
        store: Store,
        tables: OriginalTables,
        history: OriginalHistory,
        branches: Mapping[BranchName, OriginalBranch],
        schema: AcceptedSchema,
        engine: Engine,
        now: datetime,
    ) -> None:
        self._store = store
        self._tables = tables
        self._history = history
        self._branches = branches
        self._schema = schema
        self._engine = engine
        self._now = now
        self._manifest = Manifest(store)
        self._types = {type_.table_key: type_ for type_ in schema.catalog.types}
        self._first = branches[MAIN].commits[0]
        self._made: dict[CommitId, Commit] = {}
        self._gone: dict[BranchName, list[Commit]] = defaultdict(list)
        self._tips: dict[BranchName, OpenManifest] = {}
        self._found: set[OriginalPin] = set()

    def bring(self) -> None:
        """Make every commit and every branch, and then the graph visible; once."""
        main = self._tip(self._branches[MAIN])
        if main is not None and not is_importing(main.table):
            return
        digest = schemas.keep(self._store.objects, self._schema)
        before = {name: self._history.start_of(each) for name, each in self._branches.items()}
        for commit in _in_order(self._branches, self._history):
            tip = self._tip(self._branches[commit.branch])
            made = self._made.get(commit.commit_id)
            if _is_gone(made) if made else not self._is_shown(commit):
                if made is None:
                    self._keep_gone(commit, digest)
                continue
            if made is None:
                self._make(commit, before[commit.branch], tip, digest)
                hit(Failpoint.IMPORT_AFTER_EACH_COMMIT)
            before[commit.branch] = commit
        if unshown := [name for name, rows in self._gone.items() if rows]:
            message = f"the rows of the newest commit of branch {unshown[0]} were removed"
            raise unproven_error(message)
        self._record_gone()
        for branch in self._branches.values():
            if branch.source is not None:
                self._register(branch)
                hit(Failpoint.IMPORT_AFTER_EACH_BRANCH)
        self._store.objects.put_if_absent(SCHEMA_TEXT, self._schema.text.encode())
        hit(Failpoint.IMPORT_AFTER_NAMES)
        end_import(self._tips[MAIN], OperationId(self._first.commit_id))
        hit(Failpoint.IMPORT_AFTER_END)

    def _is_shown(self, commit: OriginalCommit) -> bool:
        """Whether what a commit shows still exists; a cleanup may have removed it."""
        try:
            for pin in self._history.pins(commit).values():
                if pin not in self._found:
                    self._open(pin)
                    self._found.add(pin)
        except NotFoundError as missing:
            if missing.code is not ErrorCode.VERSION_NOT_FOUND:
                raise
            return False
        return True

    def _keep_gone(self, commit: OriginalCommit, digest: str) -> None:
        """Bring a commit without its rows; it is written with the next one of its branch."""
        row = self._commit(commit, _GONE, digest)
        self._made[row.commit_id] = row
        self._gone[commit.branch].append(row)

    def _record_gone(self) -> None:
        """Say of commits without rows that they expired."""
        let_go, run = self._manifest.let_go, OperationId(self._first.commit_id)
        refs = {commit.ref for commit in self._made.values() if _is_gone(commit)}
        unrecorded = [ref for ref in refs if let_go.find(ref, _GONE) is None]
        let_go.mark(run, {ref: [_GONE] for ref in unrecorded}, LetGo(self._now, _RULE))
        let_go.confirm(run, {})

    def _tip(self, branch: OriginalBranch) -> OpenManifest | None:
        """The newest version of a branch; None only for main, before its first commit."""
        if (tip := self._tips.get(branch.name)) is not None:
            return tip
        ref = self._ref(branch)
        if ref is None and not self._store.tables.exists(MANIFEST):
            return None
        if ref is not None and not self._store.refs.exists(MANIFEST, ref):
            start = self._start(branch)
            self._store.refs.mint(MANIFEST, ref, source=start.ref, version=start.manifest_version)
        opened = self._manifest.open_unchecked(self._store.tables.open_latest(MANIFEST, ref=ref))
        for commit in self._manifest.every_commit(opened, set()):
            self._made[commit.commit_id] = commit
        self._tips[branch.name] = opened
        return opened

    def _ref(self, branch: OriginalBranch) -> str | None:
        if branch.created_at is None:
            return None
        return _minted(branch.created_at, "branch", branch.name, self._first.commit_id)

    def _start(self, branch: OriginalBranch) -> Commit:
        """The commit that a branch starts at, which is made before any of its own."""
        start = self._history.start_of(branch)
        assert start is not None, "branches other than main start at a commit"
        made = self._made[start.commit_id]
        if _is_gone(made):
            message = (
                f"branch {branch.name} starts at commit {made.commit_id}, whose rows were removed"
            )
            raise unproven_error(message)
        return made

    def _register(self, branch: OriginalBranch) -> None:
        self._tip(branch)
        start, ref = self._start(branch), self._ref(branch)
        assert ref is not None, "main has no record"
        record = Branch(branch.name, ref, start.ref, start.commit_id, branch.created_at)
        self._manifest.names.register(record)

    def _make(
        self,
        commit: OriginalCommit,
        before: OriginalCommit | None,
        tip: OpenManifest | None,
        digest: str,
    ) -> None:
        """Make a commit as the next one of its branch."""
        old = {} if before is None else self._history.pins(before)
        new = self._history.pins(commit)
        self._require_types(commit, new)
        author = heads.Authorship(OperationId(commit.commit_id), OperationKind.LEGACY)
        if tip is None:
            pins = {key: self._create_table(type_, author) for key, type_ in self._types.items()}
        else:
            pins = {pin.key: pin for pin in tip.contents.pins}
        changed: dict[TableKey, TablePin] = {}
        for key in self._types:
            if old.get(key) != new[key]:
                moved = self._write(commit, pins[key], old.get(key), new[key], author)
                changed[key] = pins[key] if moved is None else moved
                hit(Failpoint.IMPORT_AFTER_EACH_TABLE)
        made = self._commit(commit, 1 if tip is None else tip.table.version + 1, digest)
        gone = self._gone.pop(commit.branch, [])
        if tip is None:
            every = tuple({**pins, **changed}.values())
            first = manifest_rows.Contents(every, (), made.commit_id, (*gone, made))
            table = manifest_rows.encode_contents(first, MAIN)
            table = table.cast(manifest_schema(CURRENT, importing=True))
            created = heads.apply(staging.stage_create(self._store.tables, MANIFEST, table), author)
            self._tips[MAIN] = self._manifest.open_unchecked(created)
        else:
            joining = AddHistory((*gone, *self._merged_lineage(commit, gone)))
            draft = CommitDraft(
                commit.branch,
                commit.commit_id,
                made.operation,
                changes=(*map(PinTable, changed.values()), joining),
            )
            self._tips[commit.branch] = publish_imported(self._manifest, tip, draft, made)
        self._made[made.commit_id] = made

    def _commit(self, commit: OriginalCommit, version: int, digest: str) -> Commit:
        parents = [self._made.get(each) for each in (commit.parent, commit.merged_parent) if each]
        generations = [parent.generation or 0 for parent in parents if parent is not None]
        parent = self._made[commit.parent] if commit.parent is not None else None
        rolled_back = commit.is_rolled_back and parent is not None
        return Commit(
            commit_id=commit.commit_id,
            branch=commit.branch,
            manifest_version=version,
            parent=commit.parent,
            merged_parent=commit.merged_parent,
            actor=commit.actor,
            created_at=commit.created_at,
            operation=OperationKind.RECOVERY if rolled_back else OperationKind.LEGACY,
            message=None,
            schema_digest=digest,
            ref=self._ref(self._branches[commit.branch]),
            generation=1 + max(generations, default=0),
            same_rows_as=parent.rows_from if rolled_back and parent is not None else None,
        )

    def _merged_lineage(self, commit: OriginalCommit, gone: Iterable[Commit]) -> list[Commit]:
        """The commits that a merge brings into the history of its branch, parents first."""
        if commit.merged_parent is None or commit.merged_parent not in self._made:
            # A merged branch that was deleted took its commits with it.
            return []
        own = self._ancestors(commit.parent, set()) | {each.commit_id for each in gone}
        merged = self._ancestors(commit.merged_parent, own)
        return sorted((self._made[each] for each in merged), key=lambda each: each.generation or 0)

    def _ancestors(self, start: CommitId | None, known: set[CommitId]) -> set[CommitId]:
        found: set[CommitId] = set()
        pending = [start] if start is not None else []
        while pending:
            commit_id = pending.pop()
            if commit_id not in known and commit_id not in found and commit_id in self._made:
                found.add(commit_id)
                pending += self._made[commit_id].parents
        return found

    def _require_types(self, commit: OriginalCommit, pins: Pins) -> None:
        if pins.keys() != self._types.keys():
            differing = ", ".join(sorted(map(str, pins.keys() ^ self._types.keys())))
            message = (
                f"commit {commit.commit_id} has another schema than the graph has now (differing: "
                f"{differing}), and the graph does not record earlier schemas"
            )
            raise unproven_error(message)

    def _create_table(self, type_: SchemaType, author: heads.Authorship) -> TablePin:
        key = type_.table_key
        seed = ("table", str(key), self._first.commit_id)
        table_id = TableId(_minted(self._first.created_at, *seed))
        location = table_location(key.kind, table_id)
        if not self._store.tables.exists(location):
            empty = table_schema(type_).empty_table()
            heads.apply(staging.stage_create(self._store.tables, location, empty), author)
        identity = TypeIdentity(key.type_name)
        return TablePin(table_id, key, location, 1, ref=None, row_count=0, identity=identity)

    def _write(
        self,
        commit: OriginalCommit,
        pin: TablePin,
        old: OriginalPin | None,
        new: OriginalPin,
        author: heads.Authorship,
    ) -> TablePin | None:
        """Change our table as the commit changed theirs; None if no row of it differs."""
        type_ = self._types[pin.key]
        after = self._open(new)
        require_columns(after, pin.key, type_, commit.commit_id)
        row_count = after.count_rows()
        ref = self._table_ref(commit.branch, pin)
        head = self._head(pin, ref)
        if head is not None and head.version > pin.version:
            # An attempt that was interrupted, or another process, got here before.
            is_same = head.version == pin.version + 1 and heads.author_of(head) == author
            if is_same and head.count_rows() == row_count:
                return pin.move(version=head.version, ref=ref, row_count=row_count)
            head = heads.restore(head, pin.version, author)
            pin = pin.move(version=head.version, ref=ref, row_count=pin.row_count)
        before = None if old is None else self._open(old)
        changes = RowChanges(type_, before, after, self._engine)
        staged = changes.stage(lambda: self._forked(pin, ref) if head is None else head)
        if staged is None:
            return pin if head is not None and head.version == pin.version else None
        if staged.row_count != row_count:
            message = (
                f"{pin.key} at commit {commit.commit_id} has {row_count} rows, and the changes up "
                f"to it make {staged.row_count}"
            )
            raise unproven_error(message)
        applied = heads.apply(staged, author)
        return pin.move(version=applied.version, ref=ref, row_count=row_count)

    def _table_ref(self, branch: BranchName, pin: TablePin) -> str | None:
        """The ref of a table that only this branch moves."""
        branch_ref = self._ref(self._branches[branch])
        if branch_ref is None or Branch(branch, branch_ref).owns(pin.ref):
            return pin.ref
        created_at = self._branches[branch].created_at or self._first.created_at
        return f"{branch_ref}/{_minted(created_at, 'fork', branch_ref, pin.table_id)}"

    def _head(self, pin: TablePin, ref: str | None) -> Table | None:
        """The newest version of a ref; None if it was not made yet."""
        if ref != pin.ref and not self._store.refs.exists(pin.location, str(ref)):
            return None
        return self._store.tables.open_latest(pin.location, ref=ref)

    def _forked(self, pin: TablePin, ref: str | None) -> Table:
        assert ref is not None, "main's table exists"
        return self._store.refs.start(pin.location, ref, source=pin.ref, version=pin.version)

    def _open(self, pin: OriginalPin) -> Table:
        return self._tables.open(pin.location, ref=pin.ref, version=pin.version)


def _is_gone(commit: Commit) -> bool:
    return commit.manifest_version == _GONE


def _in_order(
    branches: Mapping[BranchName, OriginalBranch], history: OriginalHistory
) -> Iterator[OriginalCommit]:
    """Every commit after those that it builds on."""
    waiting = {name: deque(branch.commits) for name, branch in branches.items()}
    before = {name: history.start_of(branch) for name, branch in branches.items()}
    known = {commit.commit_id for branch in branches.values() for commit in branch.commits}
    done: set[CommitId] = set()
    while any(waiting.values()):
        count = len(done)
        for name, queue in waiting.items():
            while queue:
                last, commit = before[name], queue[0]
                needs = {commit.parent, commit.merged_parent, last and last.commit_id}
                if not needs & known <= done:
                    break
                yield queue.popleft()
                done.add(commit.commit_id)
                before[name] = commit
        if len(done) == count:
            message = "some commits are their own ancestors"
            raise unproven_error(message)
