"""Transitions of proposals: pure functions from one state to the next, or a refusal."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from datetime import datetime
from typing import Final

from omnigraph.errors import (
    ErrorCode,
    InvalidInputError,
    InvalidParameterError,
    LimitExceededError,
    NotAllowedError,
)
from omnigraph.limits import PROPOSAL_TEXT_LENGTH_MAX, PROPOSAL_TITLE_LENGTH_MAX
from omnigraph.model.arguments import require_text
from omnigraph.model.ids import CommitId
from omnigraph.model.proposals import (
    Approval,
    Comment,
    Ending,
    Proposal,
    ProposalState,
    RowPlace,
)

PROPOSAL_COMMENTS_MAX: Final = 1000
"""Comments on one proposal: every change of it writes them all."""


def require_title(title: object) -> str:
    """A title: one line that is not blank."""
    text = require_text(title, "title").strip()
    if not text or not text.isprintable():
        message = f"the title {text[:100]!r} is blank, or more than one line of text"
        raise InvalidParameterError(message, hint="say in one line what changes", name="title")
    return _require_length(text, "title", PROPOSAL_TITLE_LENGTH_MAX)


def require_remark(text: object, name: str) -> str:
    """A description or a comment of acceptable length."""
    remark = require_text(text, name)
    if not remark.isascii():
        try:
            remark.encode()
        except UnicodeEncodeError as cause:
            message = f"the {name} has invalid characters"
            raise InvalidParameterError(message, hint="write UTF-8", name=name) from cause
    return _require_length(remark, name, PROPOSAL_TEXT_LENGTH_MAX)


def _require_length(text: str, name: str, most: int) -> str:
    if len(text) > most:
        message = f"the {name} has {len(text)} characters; the limit is {most}"
        raise InvalidParameterError(message, hint="shorten it", name=name)
    return text


def require_open(proposal: Proposal) -> None:
    """Refuse to act on a proposal that has ended."""
    if proposal.state is not ProposalState.OPEN:
        message = f"proposal {proposal.number} is {proposal.state}, not open"
        hint = "make another proposal of the branch"
        raise InvalidInputError(message, hint=hint, code=ErrorCode.PROPOSAL_ENDED)


def approve(
    proposal: Proposal, actor: str, head: CommitId, now: datetime, *, writers: Collection[str]
) -> Proposal:
    """Consent of a reviewer to the source as it is; it replaces the reviewer's earlier one.

    Args:
        writers: The actors of the commits that would be merged.
    """
    require_open(proposal)
    did = "made" if actor == proposal.author else "wrote commits of" if actor in writers else None
    if did is not None:
        message = f"{actor} {did} proposal {proposal.number}, and cannot approve it"
        raise NotAllowedError(message, hint="ask another reviewer", code=ErrorCode.OWN_PROPOSAL)
    others = [each for each in proposal.approvals if each.actor != actor]
    return replace(proposal, approvals=(*others, Approval(actor, head, now)))


def withdraw_approval(proposal: Proposal, actor: str) -> Proposal:
    """The proposal without a reviewer's consent."""
    require_open(proposal)
    others = tuple(each for each in proposal.approvals if each.actor != actor)
    if len(others) == len(proposal.approvals):
        message = f"{actor} has not approved proposal {proposal.number}"
        raise InvalidInputError(message, hint="see 'omnigraph proposal show'")
    return replace(proposal, approvals=others)


def require_room(proposal: Proposal) -> None:
    """Refuse a remark on a proposal that has as many as it can hold."""
    if len(proposal.comments) >= PROPOSAL_COMMENTS_MAX:
        message = f"proposal {proposal.number} has {PROPOSAL_COMMENTS_MAX} comments, the limit"
        raise LimitExceededError(message, hint="make another proposal of the branch")


def comment(
    proposal: Proposal, actor: str, text: str, row: RowPlace | None, now: datetime
) -> Proposal:
    """The proposal with one more remark; a proposal that has ended takes remarks, too."""
    if not text.strip():
        message = "the comment is blank"
        raise InvalidParameterError(message, hint="write what you remark", name="text")
    require_room(proposal)
    remark = Comment(len(proposal.comments) + 1, actor, now, text, row)
    return replace(proposal, comments=(*proposal.comments, remark))


def close(proposal: Proposal, actor: str, now: datetime) -> Proposal:
    """The proposal, ended without a merge."""
    require_open(proposal)
    return replace(proposal, state=ProposalState.CLOSED, ending=Ending(actor, now))


def finish(proposal: Proposal, ending: Ending) -> Proposal:
    """The proposal, ended by a merge. A merge is a fact, also of one that was closed meanwhile."""
    if proposal.state is ProposalState.MERGED:
        return proposal
    return replace(proposal, state=ProposalState.MERGED, ending=ending)
