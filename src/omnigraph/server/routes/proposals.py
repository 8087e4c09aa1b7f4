"""Routes of proposals: make, list, show, approve, comment on, close and merge them."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Annotated

from fastapi import APIRouter, Path, Query, Request
from starlette.responses import Response

from omnigraph.model.proposals import Proposal, ProposalState
from omnigraph.server import wire
from omnigraph.server.answers import answer_json
from omnigraph.server.context import (
    Call,
    Cursor,
    GraphCall,
    Limit,
    from_cursor,
    read_json,
    refuse_key,
    to_cursor,
)
from omnigraph.server.routes.documents import gives, takes

router = APIRouter(prefix="/graphs/{graph}/proposals")

Number = Annotated[int, Path(ge=1, le=1 << 53, description="The number of a proposal.")]
State = Annotated[
    ProposalState | None, Query(description="Which proposals; all when it is left out.")
]


@router.get("", responses=gives(wire.ProposalsAnswer))
async def proposals(
    call: Call,
    *,
    state: State = None,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> Response:
    """The proposals, newest first."""

    def run(_: object) -> Response:
        before = from_cursor(cursor)
        every = [
            proposal
            for proposal in call.graph.proposals.list(state=state)
            if before is None or proposal.number < _number(before)
        ]
        page = every[:limit]
        following = to_cursor(str(page[-1].number)) if len(every) > limit else None
        shown = [proposal.to_json() for proposal in page]
        return answer_json({"proposals": shown, "cursor": following})

    return await call.read(run)


def _number(place: str) -> int:
    # A cursor of another list holds no number, and is before every proposal.
    return int(place) if place.isdecimal() else 0


@router.post(
    "",
    status_code=201,
    openapi_extra=takes(wire.ProposalBody),
    responses=gives(wire.ProposalAnswer, status=201),
)
async def propose(request: Request, call: Call) -> Response:
    """Propose to merge a branch into another."""
    body = await read_json(request, wire.ProposalBody)

    def run() -> Proposal:
        return call.graph.proposals.create(
            body.source, body.title, into=body.into, description=body.description, actor=call.actor
        )

    return await _change(request, call, run, status=201)


@router.get("/{number}", responses=gives(wire.ProposalAnswer))
async def proposal(call: Call, number: Number) -> Response:
    """One proposal, and where it stands."""

    def run(_: object) -> Response:
        shown = call.graph.proposals.show(number, actor=call.actor).to_json()
        refusals = call.service.hide_places_in(shown["refusals"])
        return answer_json({**shown, "refusals": refusals})

    return await call.read(run)


@router.post(
    "/{number}/preview", openapi_extra=takes(wire.PreviewBody), responses=gives(wire.MergeAnswer)
)
async def preview(request: Request, call: Call, number: Number) -> Response:
    """What the merge of a proposal would do, and its conflicts. Nothing changes."""
    body = await read_json(request, wire.PreviewBody)

    def run(_: object) -> Response:
        outcome = call.graph.proposals.preview(number, resolve=_decisions(body.resolve))
        # `conflict_count` says how many there are.
        outcome = replace(outcome, conflicts=outcome.conflicts[: body.limit])
        return answer_json({**outcome.to_json(), "dry_run": True})

    return await call.read(run)


@router.post(
    "/{number}/approval",
    openapi_extra=takes(wire.ApprovalBody),
    responses=gives(wire.ProposalAnswer),
)
async def approve(request: Request, call: Call, number: Number) -> Response:
    """Approve a proposal as its source is now."""
    body = await read_json(request, wire.ApprovalBody)
    return await _change(
        request,
        call,
        lambda: call.graph.proposals.approve(number, commit=body.commit, actor=call.actor),
    )


@router.delete("/{number}/approval", responses=gives(wire.ProposalAnswer))
async def withdraw(request: Request, call: Call, number: Number) -> Response:
    """Take one's approval back."""
    return await _change(
        request, call, lambda: call.graph.proposals.withdraw_approval(number, actor=call.actor)
    )


@router.post(
    "/{number}/comments",
    status_code=201,
    openapi_extra=takes(wire.CommentBody),
    responses=gives(wire.ProposalAnswer, status=201),
)
async def comment(request: Request, call: Call, number: Number) -> Response:
    """Comment on a proposal, or on a row of it."""
    body = await read_json(request, wire.CommentBody)

    def run() -> Proposal:
        return call.graph.proposals.comment(
            number,
            body.text,
            type_name=body.type,
            id=body.id,
            property=body.property,
            actor=call.actor,
        )

    return await _change(request, call, run, status=201)


@router.post("/{number}/close", responses=gives(wire.ProposalAnswer))
async def close(request: Request, call: Call, number: Number) -> Response:
    """End a proposal without merging it."""
    return await _change(
        request, call, lambda: call.graph.proposals.close(number, actor=call.actor)
    )


@router.post(
    "/{number}/merge",
    openapi_extra=takes(wire.ProposalMergeBody),
    responses=gives(wire.MergeAnswer),
)
async def merge(request: Request, call: Call, number: Number) -> Response:
    """Merge a proposal exactly as it was approved, and end it. To repeat it does no harm."""
    refuse_key(request)
    body = await read_json(request, wire.ProposalMergeBody)

    def run() -> Response:
        outcome = call.graph.proposals.merge(
            number,
            commit=body.commit,
            resolve=_decisions(body.resolve),
            delete_branch=body.delete_branch,
            engine=body.engine,
            actor=call.actor,
            message=body.message,
        )
        return answer_json({**outcome.to_json(), "dry_run": False})

    return await call.write(run)


def _decisions(given: wire.Decisions) -> str | None:
    return json.dumps(given) if isinstance(given, list) else given


async def _change(
    request: Request, call: GraphCall, run: Callable[[], Proposal], *, status: int = 200
) -> Response:
    refuse_key(request)
    return await call.write(lambda: answer_json(run().to_json(), status))
