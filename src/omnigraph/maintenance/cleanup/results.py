"""The result of a cleanup: what was removed, or would be, for programs and for people."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Self

from omnigraph.model.brief import brief
from omnigraph.model.commits import Commit


@dataclass(frozen=True, slots=True)
class OrphanedRef:
    """A ref of a table, or of the manifest, that nothing refers to."""

    location: str
    ref: str

    @property
    def branch_ref(self) -> str:
        """The ref of the branch that it was created for."""
        return self.ref.partition("/")[0]


@dataclass(frozen=True, slots=True)
class Trouble:
    """Why a ref, all refs of a table, a table or scratch was not deleted; try again later."""

    location: str
    ref: str | None
    message: str


@dataclass(frozen=True, slots=True)
class LetGoCommit:
    """An expired commit: it stays in the log, and can no longer be read."""

    commit_id: str
    branch: str
    created_at: datetime
    operation: str
    message: str | None

    @classmethod
    def of(cls, commit: Commit) -> Self:
        """What is reported of a commit."""
        return cls(
            commit.commit_id, commit.branch, commit.created_at, commit.operation, commit.message
        )


@dataclass(frozen=True, slots=True)
class TableCleanup:
    """What is removed of a table that stays.

    Attributes:
        location: Its path below the graph's root.
        name: Its type, such as `node:Person`; empty for the graph's own tables.
        versions: How many versions that no kept commit reads.
        files: How many files that no other version names.
        size: The size of both, in bytes.
    """

    location: str
    name: str
    versions: int
    files: int
    size: int


@brief
@dataclass(frozen=True, slots=True)
class CleanupResult:
    """What a cleanup did, or would do.

    Attributes:
        rules: The rules that it went by; empty if every commit was kept.
        commits: The commits that expired, newest first.
        kept: How many commits can still be read.
        versions: What was removed of tables that stay, but not of hidden types.
        tables: Tables that were removed whole, as paths below the graph's root: dropped types that
            no kept commit reads, and tables that no commit had.
        refs: The deleted refs.
        schemas: The deleted schemas that no kept commit has, likewise.
        scratch: The deleted scratch folders, likewise.
        size: The size of all files that were removed, in bytes.
        troubles: What could not be checked or deleted. Everything else was.
        hidden: The types that the actor may not read, which are left out of `versions`.
    """

    rules: str = ""
    commits: tuple[LetGoCommit, ...] = ()
    kept: int = 0
    versions: tuple[TableCleanup, ...] = ()
    tables: tuple[str, ...] = ()
    refs: tuple[OrphanedRef, ...] = ()
    schemas: tuple[str, ...] = ()
    scratch: tuple[str, ...] = ()
    size: int = 0
    troubles: tuple[Trouble, ...] = ()
    hidden: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether there was nothing to remove, and no commit to expire."""
        parts = (self.commits, self.versions, self.tables, self.refs, self.schemas, self.scratch)
        return not any(parts) and not self.size
