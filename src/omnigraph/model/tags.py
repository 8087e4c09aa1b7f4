"""Tags: names for commits, as data."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from omnigraph.model.brief import brief
from omnigraph.model.ids import CommitId
from omnigraph.model.names import BranchName, TagName
from omnigraph.wording import format_instant


@brief
@dataclass(frozen=True, slots=True)
class Tag:
    """A name for a commit.

    Attributes:
        branch: The branch that the commit was made on.
        ref: The ref of the manifest that it was made on; None for main's.
        manifest_version: The version of that ref that made the commit visible.
        tag_id: Distinguishes it from earlier and later tags of its name.
    """

    name: TagName
    commit_id: CommitId
    created_at: datetime
    actor: str | None
    message: str | None
    branch: BranchName
    ref: str | None
    manifest_version: int
    tag_id: str

    def to_json(self) -> dict[str, str | None]:
        """The public fields as plain values that JSON can represent."""
        return {
            "tag": self.name,
            "commit_id": self.commit_id,
            "branch": self.branch,
            "created_at": format_instant(self.created_at),
            "actor": self.actor,
            "message": self.message,
        }
