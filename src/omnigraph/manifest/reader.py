"""Reading the manifest: a branch as it is now, at a version or at a commit, and its history."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

from omnigraph.errors import (
    BranchNotFoundError,
    CommitNotFoundError,
    ErrorCode,
    GraphNotFoundError,
    NotFoundError,
    OmnigraphError,
    StorageError,
)
from omnigraph.limits import MANIFEST_STATES_MAX
from omnigraph.manifest import format as manifest_format
from omnigraph.manifest import legacy, rows
from omnigraph.manifest.branches import Branches
from omnigraph.manifest.layout import MANIFEST, SCHEMA_TEXT
from omnigraph.manifest.lineage import Ancestry, History
from omnigraph.manifest.snapshot import Snapshot, by_key
from omnigraph.model.commits import Commit
from omnigraph.model.ids import CommitId
from omnigraph.model.names import MAIN, BranchName
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

    def at_commit(self, commit_id: CommitId, *, near: BranchName = MAIN) -> Snapshot:
        """The graph as one commit left it, whichever branch it was made on.

        Args:
            near: The branch that is looked at first.

        Raises:
            CommitNotFoundError: no branch has such a commit, or its manifest is gone.
            StorageError: its manifest is there and cannot be read.
        """
        return self.at(self.find(commit_id, near=near))

    def at(self, commit: Commit) -> Snapshot:
        """The graph as a known commit left it, whether its branch still exists or not.

        Raises:
            CommitNotFoundError: its manifest is gone.
            StorageError: its manifest is there and cannot be read.
        """
        return _snapshot(self._opened_at(commit), commit.branch, commit)

    def _opened_at(self, commit: Commit) -> Opened:
        """The manifest version that a commit made."""
        refs = (commit.ref,) if commit.has_known_ref else self.names.refs_of(commit.branch)
        for ref in refs:
            with suppress(NotFoundError):
                opened = self._opened(self._table_at(ref, commit.manifest_version))
                # Branches of earlier releases that had one name count their versions alike.
                if opened.contents.head in (commit.commit_id, None):
                    return opened
        message = (
            f"commit {commit.commit_id} cannot be read: branch {commit.branch}, which it was made "
            f"on, has no manifest version {commit.manifest_version} any more"
        )
        raise CommitNotFoundError(message, hint="see 'omnigraph commit list'")

    def find(
        self,
        commit_id: CommitId,
        *,
        near: BranchName = MAIN,
        besides: BranchName | None = None,
        among_retired: bool = False,
    ) -> Commit:
        """One commit's row, looked for on every branch.

        Args:
            near: The branch that is looked at first.
            besides: A branch that is not looked at.
            among_retired: Whether branches that were deleted are looked at, too.

        Raises:
            CommitNotFoundError: no branch has such a commit.
            StorageError: a branch that may have it cannot be read.
        """
        unreadable: list[StorageError] = []
        for branch in self._searched(near):
            if branch == besides:
                continue
            try:
                found = self.lookup(self.open(branch), branch, commit_id)
            except BranchNotFoundError:
                # It was deleted while we looked, and has nothing that others have not.
                continue
            except StorageError as failure:
                unreadable.append(failure)
                continue
            if found is not None:
                return found
        for retired in self.names.retired_refs() if among_retired else ():
            with suppress(NotFoundError):
                opened = self._opened(self._table_at(retired.ref, None))
                if found := self.lookup(opened, retired.name, commit_id):
                    return found
        if unreadable:
            raise unreadable[0]
        message = f"the graph {self.store.root.uri} has no commit {commit_id}"
        raise CommitNotFoundError(message, hint="see 'omnigraph commit list'")

    def _searched(self, near: BranchName) -> Iterator[BranchName]:
        self._require_graph()
        yield near
        yield from (each for each in self.branches() if each != near)

    def lookup(self, opened: Opened, branch: BranchName, commit_id: CommitId) -> Commit | None:
        """The commit, if it is in the lineage that this manifest version carries."""
        return self.lookup_all(opened, branch, [commit_id]).get(commit_id)

    def lookup_all(
        self, opened: Opened, branch: BranchName, commit_ids: Collection[CommitId]
    ) -> dict[CommitId, Commit]:
        """Those of some commits that are in the lineage that this manifest version carries."""
        if opened.stamp < manifest_format.CURRENT:
            commits: Iterable[Commit] = legacy.commits(self.store, branch)
            return {each.commit_id: each for each in commits if each.commit_id in commit_ids}
        recent = opened.contents.recent
        found = {each.commit_id: each for each in recent if each.commit_id in commit_ids}
        pages = range(1, len(opened.table.fragments()))
        older = sorted(set(commit_ids) - found.keys())
        if not pages or not older:
            return found
        wanted = filters.text_in("object_id", older)
        rest = opened.table.read(filter_text=wanted, fragments=pages)
        commits = rows.decode(rest, uri=self.store.root.uri).recent
        return found | {each.commit_id: each for each in commits}

    def history(self, snapshot: Snapshot) -> History:
        """The commits up to a snapshot, for walks by `manifest.lineage`."""
        if snapshot.is_legacy:
            return History(self._legacy_commits(snapshot.branch), iter(()))
        opened = self._opened(self._table_at(snapshot.ref, snapshot.manifest_version))
        return self.history_of(opened)

    def history_of(self, opened: Opened) -> History:
        """The commits that a manifest version of the newest format carries."""
        return History(opened.contents.recent, self._pages(opened.table))

    def ancestry(self, *snapshots: Snapshot) -> Ancestry:
        """The commits up to some snapshots, for merges."""
        return Ancestry(*map(self.history, snapshots))

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
        """The newest manifest version of a ref, whether a branch has it or not.

        Raises:
            NotFoundError: the manifest has no such ref.
        """
        return self._opened(self._table_at(ref, None))

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
        return tuple(self.history_of(newest).every())

    def _table(self, branch: BranchName, version: int | None) -> Table:
        self._require_graph()
        ref = self.names.ref_of(branch)
        try:
            return self._table_at(ref, version)
        except NotFoundError as cause:
            if version is None:
                raise self._without_ref(branch, ref) from cause
            message = f"branch {branch} has no manifest version {version}"
            raise NotFoundError(
                message, hint=cause.hint, code=cause.code, version=version
            ) from cause

    def _without_ref(self, branch: BranchName, ref: str | None) -> OmnigraphError:
        """What to raise for a branch whose ref is not there: it is gone, or its graph is broken."""
        # It may have been deleted while we looked for it.
        self.names.ref_of(branch)
        message = f"branch {branch} is carried by the ref {ref} of the manifest, which is not there"
        return rows.corrupted(message)

    def _table_at(self, ref: str | None, version: int | None) -> Table:
        tables = self.store.tables
        try:
            if version is None:
                return tables.open_latest(MANIFEST, ref=ref)
            return tables.open(MANIFEST, ref=ref, version=version)
        except StorageError as cause:
            if ref is not None and not self.store.refs.exists(MANIFEST, ref):
                message = f"the manifest has no ref {ref}"
                code = ErrorCode.VERSION_NOT_FOUND
                raise NotFoundError(message, code=code) from cause
            if version is None or tables.has_version(MANIFEST, ref=ref, version=version):
                raise
            message = f"the manifest has no version {version}"
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
    return Snapshot(
        branch,
        table.version,
        head,
        by_key(contents.pins),
        contents.tombstones,
        table.address.ref,
        is_legacy=opened.stamp < manifest_format.CURRENT,
    )


def _first_file(table: Table) -> str:
    fragments = table.fragments()
    if not fragments:
        message = f"the manifest {table.address} is empty"
        raise rows.corrupted(message)
    return str(fragments[0].files[0].path)
