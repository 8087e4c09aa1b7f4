"""Proposals: requests to merge a branch into another, with approvals and comments, as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Self

from omnigraph.model.brief import brief
from omnigraph.model.ids import CommitId
from omnigraph.model.names import BranchName
from omnigraph.wording import format_instant


class ProposalState(StrEnum):
    """Whether a proposal waits, and how it ended."""

    OPEN = "open"
    MERGED = "merged"
    CLOSED = "closed"


class ReviewAction(StrEnum):
    """What an actor can do to a proposal."""

    APPROVE = "approve"
    WITHDRAW_APPROVAL = "withdraw_approval"
    COMMENT = "comment"
    CLOSE = "close"
    MERGE = "merge"


@dataclass(frozen=True, slots=True)
class Approval:
    """One reviewer's consent to the source as it was at a commit.

    Attributes:
        commit_id: The head of the source that the reviewer approved. The approval counts while the
            source is there.
    """

    actor: str
    commit_id: CommitId
    at: datetime

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> Self:
        """The approval that JSON represents."""
        return cls(fields["actor"], CommitId.parse(fields["commit_id"]), _time(fields["at"]))


@dataclass(frozen=True, slots=True)
class RowPlace:
    """What a comment is about: a row, or one property of it."""

    type_name: str
    id: str
    property: str | None = None


@dataclass(frozen=True, slots=True)
class Comment:
    """One remark on a proposal.

    Attributes:
        number: Counts the proposal's comments from 1.
        row: The row that it is about; None for the proposal as a whole.
    """

    number: int
    actor: str
    at: datetime
    text: str
    row: RowPlace | None = None

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> Self:
        """The comment that JSON represents."""
        row = fields["row"]
        return cls(
            int(fields["number"]),
            fields["actor"],
            _time(fields["at"]),
            fields["text"],
            None if row is None else RowPlace(**row),
        )


@dataclass(frozen=True, slots=True)
class Ending:
    """How a proposal ended: who merged or closed it, and when.

    Attributes:
        commit_id: The commit that merged it; None if it was closed.
        source_commit: The commit of the source that was merged.
        base_commit: What the source was compared with: the changes are those between the two.
    """

    actor: str | None
    at: datetime
    commit_id: CommitId | None = None
    source_commit: CommitId | None = None
    base_commit: CommitId | None = None

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> Self:
        """The ending that JSON represents."""
        ids = {
            name: None if fields[name] is None else CommitId.parse(fields[name])
            for name in ("commit_id", "source_commit", "base_commit")
        }
        return cls(fields["actor"], _time(fields["at"]), **ids)


@brief
@dataclass(frozen=True, slots=True)
class Proposal:
    """A request to merge a branch into another.

    Attributes:
        number: Counts the graph's proposals from 1.
        source_ref: The ref of the source: a later branch of its name is another branch.
        approvals: The newest of each reviewer.
    """

    number: int
    title: str
    description: str
    source: BranchName
    target: BranchName
    source_ref: str | None
    author: str
    created_at: datetime
    state: ProposalState = ProposalState.OPEN
    approvals: tuple[Approval, ...] = ()
    comments: tuple[Comment, ...] = ()
    ending: Ending | None = None

    def approvals_of(self, head: CommitId | None) -> tuple[Approval, ...]:
        """The approvals of the source as it is at a commit."""
        return tuple(each for each in self.approvals if each.commit_id == head)

    def to_json(self) -> dict[str, Any]:
        """The public fields as plain values that JSON can represent."""
        fields = asdict(self)
        del fields["source_ref"]
        fields["created_at"] = format_instant(self.created_at)
        for part in (*fields["approvals"], *fields["comments"], fields["ending"] or {}):
            if part:
                part["at"] = format_instant(part["at"])
        return fields

    @classmethod
    def from_json(cls, fields: Mapping[str, Any], source_ref: str | None = None) -> Self:
        """The proposal that `to_json` was called for."""
        ending = fields["ending"]
        return cls(
            int(fields["number"]),
            fields["title"],
            fields["description"],
            BranchName.parse(fields["source"]),
            BranchName.parse(fields["target"]),
            source_ref,
            fields["author"],
            _time(fields["created_at"]),
            ProposalState(fields["state"]),
            tuple(map(Approval.from_json, fields["approvals"])),
            tuple(map(Comment.from_json, fields["comments"])),
            None if ending is None else Ending.from_json(ending),
        )


@brief
@dataclass(frozen=True, slots=True)
class Review:
    """Where a proposal stands now.

    Attributes:
        source_commit: The head of the source, or what was merged; None if the branch is gone.
        base_commit: What the source is compared with: the newest commit that both sides have.
        approvals: Those that count: of the source as it is now.
        approvals_needed: How many the target requires.
        actor: Who looks; None for an actor without a name.
        refusals: Why the actor may not do some of `ReviewAction`, by action. It may do the others.
    """

    proposal: Proposal
    source_commit: CommitId | None
    base_commit: CommitId | None
    approvals: tuple[Approval, ...]
    approvals_needed: int
    actor: str | None = None
    refusals: Mapping[str, str] = field(default_factory=dict)

    @property
    def stale_approvals(self) -> tuple[Approval, ...]:
        """The approvals of an earlier commit of the source, which count no more."""
        return tuple(each for each in self.proposal.approvals if each not in self.approvals)

    @property
    def is_approved(self) -> bool:
        """Whether it has the approvals that its target requires."""
        return len(self.approvals) >= self.approvals_needed

    def to_json(self) -> dict[str, Any]:
        """The review as plain values that JSON can represent."""
        return {
            **self.proposal.to_json(),
            "source_commit": self.source_commit,
            "base_commit": self.base_commit,
            "approved_by": [approval.actor for approval in self.approvals],
            "approvals_needed": self.approvals_needed,
            "is_approved": self.is_approved,
            "actor": self.actor,
            "may": {str(action): action not in self.refusals for action in ReviewAction},
            "refusals": dict(self.refusals),
        }

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> Self:
        """The review that `to_json` was called for."""
        proposal = Proposal.from_json(fields)
        head, base = (
            None if fields[name] is None else CommitId.parse(fields[name])
            for name in ("source_commit", "base_commit")
        )
        counted = set(fields["approved_by"])
        approvals = tuple(each for each in proposal.approvals if each.actor in counted)
        needed = int(fields["approvals_needed"])
        actor, refusals = fields.get("actor"), fields.get("refusals", {})
        return cls(proposal, head, base, approvals, needed, actor, refusals)


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)
