"""Reading the manifest: a branch as it is now, at a version or at a commit, and its history."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable, Iterator, Sequence, Sized
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, TypeVar

import pyarrow as pa

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
from omnigraph.manifest import rows
from omnigraph.manifest.branches import Branch, Branches
from omnigraph.manifest.copies import require_complete
from omnigraph.manifest.layout import IMPORTING, MANIFEST, SCHEMA_TEXT
from omnigraph.manifest.let_go import LetGoCommits, let_go_version_error
from omnigraph.manifest.lineage import Ancestry, History
from omnigraph.manifest.snapshot import Snapshot, by_key
from omnigraph.manifest.tags import Tags
from omnigraph.model.commits import Commit
from omnigraph.model.ids import CommitId
from omnigraph.model.names import MAIN, BranchName
from omnigraph.model.tags import Tag
from omnigraph.storage import filters
from omnigraph.storage.nearby import near_graph
from omnigraph.storage.store import Store
from omnigraph.storage.tables import Fragment, Table

KNOWN_PAGE_ROWS_MAX: Final = 8192
"""Commit rows of pages of lineage that a graph handle keeps in memory."""

KNOWN_COMMITS_MAX: Final = 32_768
"""Decoded commits of pages that a graph handle keeps, some 25 MB: decoding costs more than reading.
"""


Page = TypeVar("Page", bound=Sized)


@dataclass(frozen=True, slots=True)
class OpenManifest:
    """One manifest version, with the contents of its first fragment."""

    table: Table
    contents: rows.Contents

    @property
    def is_ended(self) -> bool:
        """Whether the branch has ended: nothing is published on its ref any more."""
        return self.contents.ended_ref is not None and (
            self.contents.ended_ref == self.table.address.ref
        )


class Manifest:
    """The read side of the manifest. Nothing here writes."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.names = Branches(store)
        self.tags = Tags(store)
        self.let_go = LetGoCommits(store.objects)
        self._states: dict[str, rows.Contents] = {}
        self._shown: dict[BranchName, tuple[Table, Snapshot]] = {}
        self._left: dict[BranchName, OpenManifest] = {}
        self._known_pages: dict[str, pa.Table] = {}
        self._known_commits: dict[str, tuple[Commit, ...]] = {}
        self._is_complete = False
        self._lock = threading.Lock()

    def branches(self) -> tuple[BranchName, ...]:
        """The names of all branches, main first."""
        self._require_graph()
        return self.names.names()

    def current(self, branch: BranchName) -> Snapshot:
        """The current state of the branch. Opens one data fragment, however long the history."""
        table = self._table(branch, None, None)
        with self._lock:
            shown = self._shown.get(branch)
        if shown is not None and shown[0] is table:
            return shown[1]
        opened = self._open_found(table, branch, None)
        snapshot = self.snapshot(opened, branch)
        with self._lock:
            while len(self._shown) >= MANIFEST_STATES_MAX:
                del self._shown[next(iter(self._shown))]
            self._shown[branch] = table, snapshot
        return snapshot

    def at_version(self, branch: BranchName, version: int) -> Snapshot:
        """The state of the branch at one of its manifest versions."""
        return self.snapshot(self.open(branch, version=version), branch)

    def at_commit(self, commit_id: CommitId, *, near: BranchName = MAIN) -> Snapshot:
        """The state of the graph at one commit, whichever branch it was made on.

        Args:
            near: The branch to search first.
        """
        return self.at(self.find(commit_id, near=near))

    def at(self, commit: Commit) -> Snapshot:
        """The state of the graph at a known commit, whether or not its branch still exists."""
        return _snapshot(self._open_commit(commit), commit.branch, commit)

    def _open_commit(self, commit: Commit) -> OpenManifest:
        """The manifest version that a commit made."""
        refs = (commit.ref,) if commit.has_known_ref else self.names.refs_of(commit.branch)
        for ref in refs:
            try:
                opened = self._open_table(self._table_at(ref, commit.manifest_version))
            except NotFoundError:
                continue
            except StorageError:
                # A handle that has opened the version before finds it, and its files are gone.
                self.let_go.require(commit)
                raise
            # In earlier releases, branches of one name could have the same version numbers.
            if opened.contents.head == commit.commit_id:
                return opened
        self.let_go.require(commit)
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
        excluding: BranchName | None = None,
        among_retired: bool = False,
    ) -> Commit:
        """One commit's row, searched on every branch, and then in the histories of tags.

        Args:
            near: The branch to search first.
            excluding: A branch that is not searched.
            among_retired: Whether deleted branches are searched, too.
        """
        unreadable: list[StorageError] = []
        for branch in self._search_order(near):
            if branch == excluding:
                continue
            try:
                commit = self.lookup(self.open(branch), commit_id)
            except BranchNotFoundError:
                # It was deleted during the search; commits that were merged are elsewhere, too.
                continue
            except StorageError as failure:
                unreadable.append(failure)
                continue
            if commit is not None:
                return commit
        for retired in self.names.retired_refs() if among_retired else ():
            with suppress(NotFoundError):
                opened = self._open_table(self._table_at(retired.ref, None))
                if commit := self.lookup(opened, commit_id):
                    return commit
        # A tag keeps the history of its commit when the branch is deleted.
        tagged = self.tags.survey()
        # Main has every commit that was made on it, and was searched.
        for tag in (tag for tag in tagged.tags if tag.ref is not None):
            with suppress(NotFoundError):
                if commit := self._lookup_tagged(tag, commit_id):
                    return commit
        unreadable += tagged.unreadable.values()
        if unreadable:
            raise unreadable[0]
        message = f"the graph {self.store.root.uri} has no commit {commit_id}"
        raise CommitNotFoundError(message, hint="see 'omnigraph commit list'")

    def find_tagged(self, tag: Tag) -> Commit:
        """The row of the commit that a tag names, where the tag says that it is."""
        with suppress(NotFoundError):
            if commit := self._lookup_tagged(tag, tag.commit_id):
                return commit
        message = (
            f"commit {tag.commit_id}, which tag {tag.name} names, cannot be read: version "
            f"{tag.manifest_version} of the manifest, of branch {tag.branch}, does not have it"
        )
        raise CommitNotFoundError(message, hint="see 'omnigraph commit list'")

    def _lookup_tagged(self, tag: Tag, commit_id: CommitId) -> Commit | None:
        """The commit, if it is in the history of a tag."""
        opened = self._open_table(self._table_at(tag.ref, tag.manifest_version))
        return self.lookup(opened, commit_id)

    def _search_order(self, near: BranchName) -> Iterator[BranchName]:
        self._require_graph()
        yield near
        yield from (branch for branch in self.branches() if branch != near)

    def lookup(self, opened: OpenManifest, commit_id: CommitId) -> Commit | None:
        """The commit, if it is in this manifest version's lineage."""
        return self.lookup_all(opened, [commit_id]).get(commit_id)

    def lookup_all(
        self, opened: OpenManifest, commit_ids: Collection[CommitId]
    ) -> dict[CommitId, Commit]:
        """Those of the given commits that are in this manifest version's lineage."""
        recent = opened.contents.recent
        known = _by_id(commit for commit in recent if commit.commit_id in commit_ids)
        pages = range(1, len(opened.table.fragments()))
        older = sorted(set(commit_ids) - known.keys())
        if not pages or not older:
            return known
        wanted = filters.text_in("object_id", older)
        rest = opened.table.read(filter_text=wanted, fragments=pages)
        return known | _by_id(rows.decode(rest, uri=self.store.root.uri).recent)

    def history(self, snapshot: Snapshot) -> History:
        """The commits up to a snapshot, for walks by `manifest.lineage`."""
        opened = self._open_table(self._table_at(snapshot.ref, snapshot.manifest_version))
        return self.history_of(opened)

    def history_of(self, opened: OpenManifest) -> History:
        """The commits in the lineage of a manifest version."""
        return History(opened.contents.recent, self._pages(opened.table))

    def contents_at(self, ref: str | None, version: int) -> rows.Contents:
        """The contents of the first fragment of a version of a ref, which no cache keeps."""
        table = self._table_at(ref, version)
        self._require_readable(table)
        return rows.decode(table.read(fragments=[0]), uri=str(table.address))

    def every_commit(self, opened: OpenManifest, known_pages: set[str]) -> Iterator[Commit]:
        """The commits in the lineage of a manifest version, possibly repeated.

        Args:
            known_pages: The names of pages that need not be read; those that are read are added.
        """
        yield from opened.contents.recent
        for position, fragment in enumerate(opened.table.fragments()):
            page = str(fragment.files[0].path)
            if position and page not in known_pages:
                known_pages.add(page)
                read = opened.table.read(fragments=[position])
                yield from rows.decode(read, uri=self.store.root.uri).recent

    def open_version(self, ref: str | None, version: int) -> OpenManifest:
        """A manifest version of a ref, whether a branch has it or not."""
        return self._open_table(self._table_at(ref, version))

    def ancestry(self, *snapshots: Snapshot) -> Ancestry:
        """The commits up to some snapshots, for merges."""
        return Ancestry(*map(self.history, snapshots))

    def _pages(self, table: Table) -> Iterator[Sequence[Commit]]:
        for position in reversed(range(1, len(table.fragments()))):
            yield self._commits_of(table, position)

    def _commits_of(self, table: Table, position: int) -> tuple[Commit, ...]:
        """The commits of a page of lineage, decoded once: branches share pages."""
        file = _file_of(table.fragments()[position])
        with self._lock:
            known = self._known_commits.get(file)
        if known is None:
            known = rows.decode(self.page(table, position), uri=self.store.root.uri).recent
            with self._lock:
                _keep_page(self._known_commits, file, known, rows_max=KNOWN_COMMITS_MAX)
        return known

    def page(self, table: Table, position: int) -> pa.Table:
        """The rows of a page of lineage, by its position; pages in memory are not read."""
        file = _file_of(table.fragments()[position])
        with self._lock:
            known = self._known_pages.get(file)
        if known is None:
            known = table.read(fragments=[position])
            with self._lock:
                _keep_page(self._known_pages, file, known, rows_max=KNOWN_PAGE_ROWS_MAX)
        return known

    def keep_page(self, written: Sequence[Fragment], page: pa.Table) -> None:
        """Cache a page that this process just wrote."""
        if len(written) == 1:
            file = _file_of(written[0])
            with self._lock:
                _keep_page(self._known_pages, file, page, rows_max=KNOWN_PAGE_ROWS_MAX)

    def open(
        self, branch: BranchName, *, version: int | None = None, found: Branch | None = None
    ) -> OpenManifest:
        """Open a manifest version, by default the newest, and read its first fragment.

        Args:
            found: The branch's record, if the caller has just read it.
        """
        return self._open_found(self._table(branch, version, found), branch, version)

    def _open_found(self, table: Table, branch: BranchName, version: int | None) -> OpenManifest:
        try:
            return self._open_table(table)
        except StorageError:
            require_complete(self.store)
            # A deletion removes the branch's name before its files: if the name is gone, say that.
            ref = self.names.ref_of(branch)
            if version is not None and (gone := self.let_go.find(ref, version)):
                raise let_go_version_error(branch, version, gone) from None
            raise

    def open_ref(self, ref: str) -> OpenManifest:
        """The newest manifest version of a ref, whether a branch has it or not."""
        return self._open_table(self._table_at(ref, None))

    def _open_table(self, table: Table) -> OpenManifest:
        self._require_readable(table)
        return self.open_unchecked(table)

    def open_unchecked(self, table: Table) -> OpenManifest:
        """A version of the manifest, also of a graph that is being imported."""
        contents = self._state(table)
        for pin in contents.pins:
            if pin.forks:
                self.store.tables.forks.learn(pin.location, pin.forks)
        return OpenManifest(table, contents)

    def _require_readable(self, table: Table) -> None:
        """Refuse a version of another format, and of a graph whose import has not ended."""
        manifest_format.stamp_of(table)
        if self._is_complete or not is_importing(table):
            return
        if is_importing(self._table_at(None, None)):
            message = f"{self.store.root.uri} does not hold a graph yet: its import was interrupted"
            hint = "run the same 'omnigraph import' again, which continues it"
            raise GraphNotFoundError(message, hint=hint)
        self._is_complete = True

    def _state(self, table: Table) -> rows.Contents:
        """The first fragment, read once: names of data files are unique."""
        file = _first_file(table)
        with self._lock:
            known = self._states.get(file)
        if known is None:
            known = rows.decode(table.read(fragments=[0]), uri=str(table.address))
            self._keep(file, known)
        return known

    def remember(self, branch: BranchName, table: Table, contents: rows.Contents) -> None:
        """Cache the contents that this process just published."""
        self._keep(_first_file(table), contents)
        with self._lock:
            self._left.pop(branch, None)
            while len(self._left) >= MANIFEST_STATES_MAX:
                del self._left[next(iter(self._left))]
            self._left[branch] = OpenManifest(table, contents)

    def left(self, branch: BranchName) -> Snapshot | None:
        """The branch as this process published it last; others may have moved it since."""
        with self._lock:
            opened = self._left.get(branch)
        return None if opened is None else self.snapshot(opened, branch)

    def _keep(self, file: str, contents: rows.Contents) -> None:
        with self._lock:
            while len(self._states) >= MANIFEST_STATES_MAX:
                del self._states[next(iter(self._states))]
            self._states[file] = contents

    def snapshot(self, opened: OpenManifest, branch: BranchName) -> Snapshot:
        """The snapshot that an open manifest version shows."""
        head_id = opened.contents.head
        for commit in reversed(opened.contents.recent):
            if commit.commit_id == head_id:
                return _snapshot(opened, branch, commit)
        message = f"the manifest {opened.table.address} does not hold its head commit {head_id}"
        raise rows.corruption_error(message)

    def _table(self, branch: BranchName, version: int | None, found: Branch | None) -> Table:
        ref = self._ref_of(branch) if found is None else found.ref
        try:
            return self._table_at(ref, version)
        except NotFoundError as cause:
            self._require_graph()
            if version is None:
                raise self._missing_ref_error(branch, ref) from cause
            if gone := self.let_go.find(ref, version):
                raise let_go_version_error(branch, version, gone) from cause
            message = f"branch {branch} has no manifest version {version}"
            raise NotFoundError(
                message, hint=cause.hint, code=cause.code, version=version
            ) from cause

    def _ref_of(self, branch: BranchName) -> str | None:
        try:
            return self.names.ref_of(branch)
        except BranchNotFoundError:
            self._require_graph()
            require_complete(self.store)
            raise

    def _missing_ref_error(self, branch: BranchName, ref: str | None) -> OmnigraphError:
        """The error for a branch whose ref is missing: it was deleted, or the graph is broken."""
        # Raises BranchNotFoundError if the branch was deleted meanwhile.
        self.names.ref_of(branch)
        message = f"branch {branch} names the ref {ref} of the manifest, which does not exist"
        return rows.corruption_error(message)

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
            require_complete(self.store)
            if had_manifest(self.store):
                raise lost_manifest_error(self.store) from cause
            message = f"there is no graph at {self.store.root.uri}"
            near = near_graph(self.store.root, MANIFEST)
            otherwise = "create one with 'omnigraph init', or check the path"
            hint = otherwise if near is None else f"did you mean {near}?"
            raise GraphNotFoundError(message, hint=hint) from cause


def is_importing(table: Table) -> bool:
    """Whether an import wrote this version of the manifest."""
    return IMPORTING.encode() in (table.schema.metadata or {})


def had_manifest(store: Store) -> bool:
    """Whether there ever was a manifest: the schema's text is written after its first version."""
    return store.objects.exists(SCHEMA_TEXT)


def lost_manifest_error(store: Store) -> StorageError:
    """The error for a graph without its manifest."""
    message = f"{store.root.uri} has tables of a graph, but {MANIFEST} is missing"
    hint = f"restore {MANIFEST} from a backup, and leave the rest as it is"
    return StorageError(message, hint=hint, code=ErrorCode.CORRUPTED)


def _snapshot(opened: OpenManifest, branch: BranchName, head: Commit) -> Snapshot:
    contents = opened.contents
    table = opened.table
    return Snapshot(
        branch,
        table.version,
        head,
        by_key(contents.pins),
        contents.tombstones,
        table.address.ref,
        # The others are streams of the branch that this one was created from.
        streams={
            record.batch.stream: record
            for record in contents.streams
            if record.ref == table.address.ref
        },
    )


def _keep_page(pages: dict[str, Page], file: str, page: Page, *, rows_max: int) -> None:
    """Cache a page by its file; the oldest ones make room."""
    pages[file] = page
    while sum(map(len, pages.values())) > rows_max:
        del pages[next(iter(pages))]


def _by_id(commits: Iterable[Commit]) -> dict[CommitId, Commit]:
    return {commit.commit_id: commit for commit in commits}


def _first_file(table: Table) -> str:
    fragments = table.fragments()
    if not fragments:
        message = f"the manifest {table.address} is empty"
        raise rows.corruption_error(message)
    return _file_of(fragments[0])


def _file_of(fragment: Fragment) -> str:
    return str(fragment.files[0].path)
