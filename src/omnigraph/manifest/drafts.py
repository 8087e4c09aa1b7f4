"""Drafts: a commit before it lands, as the changes that it makes and what must hold for them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias, TypeVar

from omnigraph.manifest.requirements import BranchIs, Requirement
from omnigraph.model.commits import Commit, OperationKind
from omnigraph.model.ids import CommitId
from omnigraph.model.names import BranchName
from omnigraph.model.streams import StreamBatch
from omnigraph.model.tables import TablePin, Tombstone


@dataclass(frozen=True, slots=True)
class PinTable:
    """A table is at this pin: it moved, its type was renamed, or it is new."""

    pin: TablePin


@dataclass(frozen=True, slots=True)
class DropTable:
    """The type of a table is dropped."""

    tombstone: Tombstone


@dataclass(frozen=True, slots=True)
class SetSchema:
    """The branch gets another schema."""

    digest: str


@dataclass(frozen=True, slots=True)
class AddParent:
    """The commit merges another one."""

    commit_id: CommitId


@dataclass(frozen=True, slots=True)
class AddHistory:
    """Commits of another branch join the history of this one."""

    commits: tuple[Commit, ...]


@dataclass(frozen=True, slots=True)
class RecordBatch:
    """A batch of a stream is written."""

    batch: StreamBatch


@dataclass(frozen=True, slots=True)
class ForgetStream:
    """The record of a stream is removed."""

    stream: str


Change: TypeAlias = (
    PinTable | DropTable | SetSchema | AddParent | AddHistory | RecordBatch | ForgetStream
)
"""One thing that a commit changes."""

OneChange = TypeVar("OneChange", SetSchema, AddParent, RecordBatch)


@dataclass(frozen=True, slots=True)
class CommitDraft:
    """A commit before it lands. What it does not change stays as it is.

    Attributes:
        commit_id: Created once, before the first attempt. After a lost response, it identifies the
            commit.
        requires: What must hold of the branch when the commit lands.
    """

    branch: BranchName
    commit_id: CommitId
    kind: OperationKind
    actor: str | None = None
    message: str | None = None
    changes: tuple[Change, ...] = ()
    requires: tuple[Requirement, ...] = ()

    def the(self, kind: type[OneChange]) -> OneChange | None:
        """The change of a kind of which a commit has at most one."""
        return next((change for change in self.changes if isinstance(change, kind)), None)

    @property
    def pins(self) -> tuple[TablePin, ...]:
        """The new pins."""
        return tuple(change.pin for change in self.changes if isinstance(change, PinTable))

    @property
    def history(self) -> tuple[Commit, ...]:
        """The commits of other branches that join the history."""
        joined = (change.commits for change in self.changes if isinstance(change, AddHistory))
        return tuple(commit for commits in joined for commit in commits)

    @property
    def ref(self) -> str | None:
        """The ref of the branch that it was planned on."""
        refs = (each.ref for each in self.requires if isinstance(each, BranchIs))
        return next(refs, None)
