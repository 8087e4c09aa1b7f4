"""Histories of the Rust releases: branches, commits, and which table versions each commit shows.

Up to internal schema 3, commits and actors are datasets of their own; from 4 on, rows of the
manifest. A manifest has one row for each version of a table that it ever published.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Any, Final

from omnigraph.errors import ErrorCode, FormatError
from omnigraph.manifest.layout import MANIFEST
from omnigraph.model.ids import CommitId
from omnigraph.model.names import MAIN, BranchName
from omnigraph.model.tables import TableKey
from omnigraph.storage.originals import OriginalTables
from omnigraph.storage.pairs import files_of

COMMITS: Final = "_graph_commits.lance"
ACTORS: Final = "_graph_commit_actors.lance"
LINEAGE_IN_MANIFEST: Final = 4
"""The internal schema from which on commits are rows of the manifest."""

_RUN_PREFIX: Final = "__run__"
"""Prefix of staging branches that internal schema 2 could leave behind; 3 deleted them."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_COLUMNS: Final = (
    "object_id",
    "object_type",
    "location",
    "metadata",
    "table_key",
    "table_version",
    "table_branch",
)


@dataclass(frozen=True, slots=True)
class OriginalPin:
    """The version of a table that a commit shows."""

    location: str
    ref: str | None
    version: int


Pins = Mapping[TableKey, OriginalPin]


@dataclass(frozen=True, slots=True)
class OriginalCommit:
    """One commit.

    Attributes:
        version: The version of its branch's manifest that shows it.
        recovered: What it shows, for a commit that recovers an interrupted write; `is_rolled_back`
            says how.
    """

    commit_id: CommitId
    branch: BranchName
    version: int
    parent: CommitId | None
    merged_parent: CommitId | None
    actor: str | None
    created_at: datetime
    recovered: Pins | None = field(default=None, hash=False)
    is_rolled_back: bool = False


@dataclass(frozen=True, slots=True)
class OriginalBranch:
    """A branch and its own commits, oldest first.

    Attributes:
        source: The branch it started from; None for main.
        source_version: The version of the source's manifest that it started at.
        head_version: The newest version of its manifest.
    """

    name: BranchName
    ref: str | None
    source: BranchName | None
    source_version: int
    created_at: datetime | None
    head_version: int
    commits: tuple[OriginalCommit, ...]


class OriginalHistory:
    """The history of one graph."""

    def __init__(self, tables: OriginalTables, uri: str, stamp: int) -> None:
        self._tables = tables
        self._uri = uri
        self._stamp = stamp
        self._states: dict[str | None, _State] = {}

    @cached_property
    def branches(self) -> dict[BranchName, OriginalBranch]:
        """The branches by name, main first."""
        found = {MAIN: self._branch(MAIN, None, None, 0, None)}
        for name, ref in sorted(self._tables.refs(MANIFEST).items()):
            if not name.startswith(_RUN_PREFIX):
                source = BranchName.parse(ref.source or MAIN)
                own = BranchName.parse(name)
                found[own] = self._branch(own, name, source, ref.version, ref.created_at)
        for branch in found.values():
            if branch.source is not None and branch.source not in found:
                message = (
                    f"branch {branch.name} of {self._uri} started from {branch.source}, which does "
                    "not exist"
                )
                raise unproven_error(message)
        for branch in found.values():
            self._require_recorded(found, branch)
        return found

    def pins(self, commit: OriginalCommit) -> Pins:
        """The tables that a commit shows."""
        if commit.recovered is not None:
            return commit.recovered
        ref = None if commit.branch.is_main else str(commit.branch)
        return self._state(ref).at(commit.version)

    def start_of(self, branch: OriginalBranch) -> OriginalCommit | None:
        """The commit that a branch started at; None for main."""
        return _start_of(self.branches, branch)

    def _state(self, ref: str | None) -> _State:
        return self._states.setdefault(ref, _State(self._tables, ref))

    def _branch(
        self,
        name: BranchName,
        ref: str | None,
        source: BranchName | None,
        source_version: int,
        created_at: datetime | None,
    ) -> OriginalBranch:
        head = self._tables.head_version(MANIFEST, ref=ref)
        if self._stamp >= LINEAGE_IN_MANIFEST:
            state = self._state(ref)
            state.at(head)
            commits = [_commit(row) for row in state.commits.values()]
        else:
            commits = list(self._recorded_commits(ref))
        own = sorted((each for each in commits if each.branch == name), key=lambda c: c.version)
        return OriginalBranch(name, ref, source, source_version, created_at, head, tuple(own))

    def _recorded_commits(self, ref: str | None) -> Iterator[OriginalCommit]:
        for row in self._tables.open(COMMITS, ref=ref).read().to_pylist():
            commit_id = CommitId.parse(row["graph_commit_id"])
            yield OriginalCommit(
                commit_id,
                BranchName.parse(row["manifest_branch"] or MAIN),
                int(row["manifest_version"]),
                _commit_id(row["parent_commit_id"]),
                _commit_id(row["merged_parent_commit_id"]),
                self._actors.get(commit_id),
                row["created_at"].replace(tzinfo=UTC),
            )

    @cached_property
    def _actors(self) -> dict[str, str]:
        # Branches have no actors of their own: main's newest version has all of them.
        if not self._tables.exists(ACTORS):
            return {}
        rows = self._tables.open(ACTORS, ref=None).read(["graph_commit_id", "actor_id"])
        return {row["graph_commit_id"]: row["actor_id"] for row in rows.to_pylist()}

    def _require_recorded(
        self, branches: Mapping[BranchName, OriginalBranch], branch: OriginalBranch
    ) -> None:
        head = branch.commits[-1] if branch.commits else _start_of(branches, branch)
        newest = self._state(branch.ref).at(branch.head_version)
        if head is None or self.pins(head) != newest:
            message = f"branch {branch.name} of {self._uri} shows rows that no commit records"
            raise unproven_error(message)


class _State:
    """The manifest of one branch, read version after version: only new fragments are read."""

    def __init__(self, tables: OriginalTables, ref: str | None) -> None:
        self._tables = tables
        self._ref = ref
        self._forget()

    def _forget(self) -> None:
        self._version = 0
        self._seen: set[tuple[str, ...]] = set()
        self._locations: dict[str, str] = {}
        self._newest: dict[str, tuple[int, str | None]] = {}
        self._ended: dict[str, int] = {}
        self.commits: dict[str, dict[str, Any]] = {}

    def at(self, version: int) -> Pins:
        """The newest version of each table without a tombstone at or above it."""
        if version < self._version:
            self._forget()
        if version > self._version:
            self._read(version)
        pins = {
            TableKey.parse(key): OriginalPin(self._locations[key], ref, newest)
            for key, (newest, ref) in self._newest.items()
            if newest > self._ended.get(key, 0)
        }
        return dict(sorted(pins.items()))

    def _read(self, version: int) -> None:
        table = self._tables.open(MANIFEST, ref=self._ref, version=version)
        places = {files_of(fragment): at for at, fragment in enumerate(table.fragments())}
        if not self._seen <= places.keys():
            # Something else than a commit rewrote the manifest.
            self._forget()
        fresh = [place for files, place in places.items() if files not in self._seen]
        if fresh:
            for row in table.read(list(_COLUMNS), fragments=fresh).to_pylist():
                self._take(row)
        self._seen |= places.keys()
        self._version = version

    def _take(self, row: dict[str, Any]) -> None:
        key = row["table_key"]
        match row["object_type"]:
            case "table":
                self._locations[key] = row["location"]
            case "table_version":
                number = int(row["table_version"])
                if number >= self._newest.get(key, (0, None))[0]:
                    self._newest[key] = number, row["table_branch"]
            case "table_tombstone":
                self._ended[key] = max(int(row["table_version"]), self._ended.get(key, 0))
            case "graph_commit":
                self.commits[row["object_id"]] = row
            case "graph_head":
                pass
            case unknown:
                message = f"the manifest has a row of the unknown type {unknown!r}"
                raise unproven_error(message)


def unproven_error(message: str) -> FormatError:
    """The refusal of something that no sample of a Rust release shows."""
    hint = "nothing was imported: open and write to the graph once with its own release, or load "
    return FormatError(message, hint=f"{hint}an export of it", code=ErrorCode.FORMAT)


def _start_of(
    branches: Mapping[BranchName, OriginalBranch], branch: OriginalBranch
) -> OriginalCommit | None:
    while branch.source is not None:
        version, branch = branch.source_version, branches[branch.source]
        before = [commit for commit in branch.commits if commit.version <= version]
        if before:
            return before[-1]
    return None


def _commit(row: Mapping[str, Any]) -> OriginalCommit:
    facts = json.loads(row["metadata"])
    return OriginalCommit(
        CommitId.parse(row["object_id"]),
        BranchName.parse(row["table_branch"] or MAIN),
        int(row["table_version"]),
        _commit_id(facts.get("parent_commit_id")),
        _commit_id(facts.get("merged_parent_commit_id")),
        facts.get("actor_id"),
        _EPOCH + timedelta(microseconds=facts["created_at"]),
    )


def _commit_id(text: str | None) -> CommitId | None:
    return CommitId.parse(text) if text else None
