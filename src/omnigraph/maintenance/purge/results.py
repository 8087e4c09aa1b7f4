"""The result of a purge: what was, or would be, rewritten, expired and removed."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from omnigraph.maintenance.cleanup.results import CleanupResult, LetGoCommit
from omnigraph.maintenance.retention import Reason
from omnigraph.model.brief import brief

_PASSING: Final = (Reason.GRACE, Reason.WRITE)
"""The reasons that end by themselves."""


@dataclass(frozen=True, slots=True)
class Need:
    """Why commits that hold what is purged are kept.

    Attributes:
        reason: What keeps them, as in a cleanup.
        commits: The commits, newest first.
        what: Who needs them, for people; `way` is what to do about it.
        until: When the need ends by itself, if that is known.
    """

    reason: Reason
    commits: tuple[str, ...]
    what: str
    way: str
    until: datetime | None = None

    @property
    def is_passing(self) -> bool:
        """Whether it ends by itself, within the grace of a cleanup."""
        return self.reason in _PASSING

    def __str__(self) -> str:
        count = len(self.commits)
        which = f"commit {self.commits[0]}" if count == 1 else f"{count:,} commits"
        return f"{self.what} ({which}): {self.way}"


@dataclass(frozen=True, slots=True)
class PurgeRewrite:
    """The rows of a type that are written to new files, without what is purged.

    Attributes:
        size: The size of the files that they are read from, in bytes.
        commit_id: The commit that did it; None in a preview.
    """

    branch: str
    type_name: str
    rows: int
    size: int
    commit_id: str | None = None


@dataclass(frozen=True, slots=True)
class HeldFiles:
    """The files of a table that hold what is purged: data, and indexes of it.

    Attributes:
        name: The table's type, such as `node:Person`.
        size: Their size in bytes.
    """

    name: str
    files: int
    size: int


@dataclass(frozen=True, slots=True)
class StagedFiles:
    """Files that no commit names, and that a write may have staged: they may hold values, too.

    Attributes:
        until: When a cleanup may remove the last of them.
    """

    files: int
    size: int
    until: datetime


@brief
@dataclass(frozen=True, slots=True)
class PurgeResult:
    """What a purge did, or would do.

    Attributes:
        dropped: What was dropped and is purged: `Person.email` is a property, `Draft` a type.
        rewrites: The tables whose rows are written to new files first.
        commits: The commits that hold it, which expire, newest first.
        held: By table, the files that hold it.
        waits: What has to end before anything can be removed, by itself.
        cleanup: What was removed, or would be; None while an earlier step is due.
        staged: Files of unfinished writes in these tables, or None.
        hidden: The types that the actor may not read, which are left out.
    """

    dropped: tuple[str, ...] = ()
    rewrites: tuple[PurgeRewrite, ...] = ()
    commits: tuple[LetGoCommit, ...] = ()
    held: tuple[HeldFiles, ...] = ()
    waits: tuple[Need, ...] = ()
    cleanup: CleanupResult | None = None
    staged: StagedFiles | None = None
    hidden: tuple[str, ...] = ()

    @property
    def is_done(self) -> bool:
        """Whether nothing is left that holds what was dropped, or may hold it."""
        is_clean = self.cleanup is None or not self.cleanup.troubles
        return is_clean and not self.held and self.staged is None

    @property
    def ready_at(self) -> datetime | None:
        """When the rest can be removed, as far as that is known."""
        return max((need.until for need in self.waits if need.until is not None), default=None)
