"""Reading the manifest: a branch as it is now, at a version or at a commit, and its history."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

from omnigraph.errors import (
    BranchNotFoundError,
    CommitNotFoundError,
    ErrorCode,
    GraphNotFoundError,
    NotFoundError,
    StorageError,
)
from omnigraph.limits import MANIFEST_STATES_MAX
from omnigraph.manifest import format as manifest_format
from omnigraph.manifest import legacy, rows
from omnigraph.manifest.branches import Branches
from omnigraph.manifest.layout import MANIFEST, SCHEMA_TEXT
from omnigraph.manifest.lineage import Divergence, divergence
from omnigraph.manifest.snapshot import Snapshot, by_key
from omnigraph.model.commits import Commit
from omnigraph.model.ids import CommitId
from omnigraph.model.names import BranchName
from omnigraph.storage import filters
from omnigraph.storage.nearby import near_graph
from omnigraph.storage.store import Store
from omnigraph.storage.tables import Table


@dataclass(frozen=True, slots=True)
class Opened:
    """One manifest version, with what its first fragment says."""

    table: Table
    stamp: int
    contents: rows.Contents


class History:
    """A branch's commits by id; older pages are read only when a walk reaches them."""

    def __init__(self, recent: Sequence[Commit], pages: Iterator[Sequence[Commit]]) -> None:
        self._known = {commit.commit_id: commit for commit in recent}
        self._pages = pages

    def find(self, commit_id: CommitId) -> Commit:
        """The commit of this id.

        Raises:
            CommitNotFoundError: the branch's history has no such commit.
        """
        while commit_id not in self._known:
            if not self.read_on():
                message = f"there is no commit {commit_id} in this history"
                raise CommitNotFoundError(message, hint="see 'omnigraph commit list'")
        return self._known[commit_id]

    def peek(self, commit_id: CommitId) -> Commit | None:
        """The commit of this id, if it is on a page that was read."""
        return self._known.get(commit_id)

    def every(self) -> Iterator[Commit]:
        """All commits, as many times as the history has them; older pages are read as they come."""
        yield from tuple(self._known.values())
        for page in self._pages:
            self._known.update((commit.commit_id, commit) for commit in page)
            yield from page

    def read_on(self) -> bool:
        """Read the next older page; False if there is none."""
        page = next(self._pages, None)
        if page is None:
            return False
        self._known.update((commit.commit_id, commit) for commit in page)
        return True


class Manifest:
    """The readers' side of the manifest. Nothing here writes, whatever the format found."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.names = Branches(store)
        self._states: dict[str, rows.Contents] = {}
        self._lock = threading.Lock()

    def branches(self) -> tuple[BranchName, ...]:
        """Every branch people can name, main first."""
        self._require_graph()
        return self.names.names()

    def current(self, branch: BranchName) -> Snapshot:
        """The branch as it is now. Opens one data fragment, however long the history.

        Raises:
            GraphNotFoundError: there is no graph here.
            BranchNotFoundError: the graph has no such branch.
            FormatError: the graph is of a format this release does not read.
        """
        return self.snapshot(self.open(branch), branch)

    def at_version(self, branch: BranchName, version: int) -> Snapshot:
        """The branch as one of its manifest versions shows it.

        Raises:
            NotFoundError: the branch's manifest has no such version.
            StorageError: the version is there and cannot be read.
        """
        return self.snapshot(self.open(branch, version=version), branch)

    def at_commit(self, commit_id: CommitId) -> Snapshot:
        """The graph as one commit left it, whichever branch it was made on.

        Raises:
            CommitNotFoundError: no branch has such a commit, or its manifest is gone.
            StorageError: its manifest is there and cannot be read.
        """
        return self.at(self.find(commit_id))

    def at(self, commit: Commit) -> Snapshot:
        """The graph as a known commit left it.

        Raises:
            CommitNotFoundError: its manifest is gone.
            StorageError: its manifest is there and cannot be read.
        """
        return _snapshot(self._opened_at(commit), commit.branch, commit)

    def _opened_at(self, commit: Commit) -> Opened:
        """The manifest version that a commit made."""
        commit_id = commit.commit_id
        try:
            opened = self.open(commit.branch, version=commit.manifest_version)
        except NotFoundError as cause:
            message = f"commit {commit_id} cannot be read: {cause.message}"
            raise CommitNotFoundError(message, hint="see 'omnigraph commit list'") from cause
        # A branch that was deleted and made again counts its versions anew.
        if opened.contents.head not in (commit_id, None):
            message = f"commit {commit_id} cannot be read: its branch {commit.branch} was made anew"
            raise CommitNotFoundError(message, hint="see 'omnigraph commit list'")
        return opened

    def find(self, commit_id: CommitId) -> Commit:
        """One commit's row, looked for on every branch.

        Raises:
            CommitNotFoundError: no branch has such a commit.
        """
        for branch in self.branches():
            if found := self.lookup(self.open(branch), branch, commit_id):
                return found
        message = f"the graph {self.store.root.uri} has no commit {commit_id}"
        raise CommitNotFoundError(message, hint="see 'omnigraph commit list'")

    def lookup(self, opened: Opened, branch: BranchName, commit_id: CommitId) -> Commit | None:
        """The commit, if it is in the lineage that this manifest version carries."""
        if opened.stamp < manifest_format.CURRENT:
            known = {each.commit_id: each for each in legacy.commits(self.store, branch)}
            return known.get(commit_id)
        for commit in opened.contents.recent:
            if commit.commit_id == commit_id:
                return commit
        pages = range(1, len(opened.table.fragments()))
        wanted = filters.text_in("object_id", [commit_id])
        if not pages:
            return None
        found = opened.table.read(filter_text=wanted, fragments=pages)
        return next(iter(rows.decode(found, uri=self.store.root.uri).recent), None)

    def history(self, branch: BranchName) -> History:
        """The branch's commits, for walks by `manifest.lineage`."""
        opened = self.open(branch)
        if opened.stamp < manifest_format.CURRENT:
            return History(legacy.commits(self.store, branch), iter(()))
        return History(opened.contents.recent, self._pages(opened.table))

    def divergence(self, ours: Snapshot, theirs: CommitId) -> Divergence:
        """Where the history of a branch and that of a commit, of whatever branch, part."""
        histories = [self.history(ours.branch)]
        with suppress(BranchNotFoundError):
            histories.append(self.history(self.find(theirs).branch))

        def find(commit_id: CommitId) -> Commit:
            # Neither is read to its end for a commit that only the other one has.
            reading = True
            while reading:
                for each in histories:
                    if known := each.peek(commit_id):
                        return known
                reading = sum(each.read_on() for each in histories) > 0
            return self.find(commit_id)

        def is_readable(commit: Commit) -> bool:
            try:
                self._opened_at(commit)
            except NotFoundError:
                return False
            return True

        return divergence(ours.head.commit_id, theirs, find, is_readable=is_readable)

    def _pages(self, table: Table) -> Iterator[Sequence[Commit]]:
        for position in reversed(range(1, len(table.fragments()))):
            page = table.read(fragments=[position])
            yield rows.decode(page, uri=self.store.root.uri).recent

    def open(self, branch: BranchName, *, version: int | None = None) -> Opened:
        """A manifest version, the newest unless one is named, with its first fragment read."""
        table = self._table(branch, version)
        try:
            return self._opened(table)
        except StorageError:
            # Its files go when it is deleted, after its name.
            self.names.ref_of(branch)
            raise

    def open_ref(self, ref: str) -> Opened:
        """The newest manifest version of a ref, whether a branch has it or not."""
        return self._opened(self.store.tables.open_latest(MANIFEST, ref=ref))

    def _opened(self, table: Table) -> Opened:
        stamp = manifest_format.stamp_of(table)
        if stamp == manifest_format.CURRENT:
            return Opened(table, stamp, self._state(table))
        # Formats before lineage moved in have no order of fragments: every row is state.
        return Opened(table, stamp, rows.decode(table.read(), uri=str(table.address)))

    def _state(self, table: Table) -> rows.Contents:
        """The first fragment, read once: no two data files ever have one name."""
        file = _first_file(table)
        with self._lock:
            known = self._states.get(file)
        if known is None:
            known = rows.decode(table.read(fragments=[0]), uri=str(table.address))
            self._keep(file, known)
        return known

    def remember(self, table: Table, contents: rows.Contents) -> None:
        """Take the contents that this process just published for read."""
        self._keep(_first_file(table), contents)

    def _keep(self, file: str, contents: rows.Contents) -> None:
        with self._lock:
            while len(self._states) >= MANIFEST_STATES_MAX:
                del self._states[next(iter(self._states))]
            self._states[file] = contents

    def snapshot(self, opened: Opened, branch: BranchName) -> Snapshot:
        """What an opened manifest version shows."""
        if opened.stamp < manifest_format.CURRENT:
            head = legacy.head(self._legacy_commits(branch), version=opened.table.version)
            return _snapshot(opened, branch, head)
        head_id = opened.contents.head
        for commit in reversed(opened.contents.recent):
            if commit.commit_id == head_id:
                return _snapshot(opened, branch, commit)
        message = f"the manifest {opened.table.address} does not hold its head commit {head_id}"
        raise rows.corrupted(message)

    def _legacy_commits(self, branch: BranchName) -> Sequence[Commit]:
        newest = self.open(branch)
        if newest.stamp < manifest_format.CURRENT:
            return legacy.commits(self.store, branch)
        return [*newest.contents.recent, *(c for page in self._pages(newest.table) for c in page)]

    def _table(self, branch: BranchName, version: int | None) -> Table:
        self._require_graph()
        tables = self.store.tables
        ref = self.names.ref_of(branch)
        try:
            if version is None:
                return tables.open_latest(MANIFEST, ref=ref)
            return tables.open(MANIFEST, ref=ref, version=version)
        except StorageError as cause:
            # It may have been deleted while we looked for it.
            self.names.ref_of(branch)
            if version is None or tables.has_version(MANIFEST, ref=ref, version=version):
                raise
            message = f"branch {branch} has no manifest version {version}"
            hint = f"its newest is {tables.head_version(MANIFEST, ref=ref)}"
            code = ErrorCode.VERSION_NOT_FOUND
            raise NotFoundError(message, hint=hint, code=code, version=version) from cause

    def _require_graph(self) -> None:
        try:
            self.store.tables.main(MANIFEST)
        except NotFoundError as cause:
            if cause.code is ErrorCode.BUCKET_NOT_FOUND:
                raise
            if had_manifest(self.store):
                raise lost_manifest(self.store) from cause
            message = f"there is no graph at {self.store.root.uri}"
            near = near_graph(self.store.root, MANIFEST)
            otherwise = "create one with 'omnigraph init', or check the path"
            hint = otherwise if near is None else f"did you mean {near}?"
            raise GraphNotFoundError(message, hint=hint) from cause


def had_manifest(store: Store) -> bool:
    """Whether there was a manifest once: the schema's text is written after its first version."""
    return store.objects.exists(SCHEMA_TEXT)


def lost_manifest(store: Store) -> StorageError:
    """What to raise where a graph has lost the table that says what is in it."""
    message = f"{store.root.uri} has tables of a graph, and its {MANIFEST} is gone"
    hint = f"restore {MANIFEST} from a backup, and leave the rest as it is"
    return StorageError(message, hint=hint, code=ErrorCode.CORRUPTED)


def _snapshot(opened: Opened, branch: BranchName, head: Commit) -> Snapshot:
    contents = opened.contents
    table = opened.table
    pins = by_key(contents.pins)
    return Snapshot(branch, table.version, head, pins, contents.tombstones, table.address.ref)


def _first_file(table: Table) -> str:
    fragments = table.fragments()
    if not fragments:
        message = f"the manifest {table.address} is empty"
        raise rows.corrupted(message)
    return str(fragments[0].files[0].path)
