"""Commits: one immutable row of lineage each."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final

from omnigraph.model.ids import CommitId
from omnigraph.model.names import BranchName

RECOVERY_ACTOR: Final = "omnigraph:recovery"
RESERVED_ACTOR_PREFIX: Final = "omnigraph:"
"""Actors we speak as ourselves; a caller may not use them."""


class OperationKind(StrEnum):
    """What a writer does, in one word: in its commit, in its table transactions, in its sidecar."""

    INIT = "init"
    MUTATION = "mutation"
    LOAD = "load"
    MERGE = "merge"
    SCHEMA_APPLY = "schema_apply"
    INDEX = "index"
    OPTIMIZE = "optimize"
    RECOVERY = "recovery"
    MIGRATION = "migration"
    """Changes the manifest's format; makes no commit."""
    LEGACY = "legacy"
    """A commit written before the format recorded what it did."""


@dataclass(frozen=True, slots=True)
class Commit:
    """One point of a graph's history.

    Attributes:
        manifest_version: The version of the branch's manifest that made this commit visible.
        parent: The commit before it on its branch; None for the first commit of a graph.
        merged_parent: The tip of the branch that a merge brought in.
        schema_digest: The schema the commit's rows follow; names an object of `manifest.schemas`.
    """

    commit_id: CommitId
    branch: BranchName
    manifest_version: int
    parent: CommitId | None
    merged_parent: CommitId | None
    actor: str | None
    created_at: datetime
    operation: OperationKind
    message: str | None
    schema_digest: str

    @property
    def parents(self) -> tuple[CommitId, ...]:
        """The parents that exist, first parent first."""
        return tuple(each for each in (self.parent, self.merged_parent) if each is not None)
