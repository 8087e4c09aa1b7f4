"""The route of permissions: what an actor may do to branches, decided as the action itself is."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, assert_never

from fastapi import APIRouter, Query
from starlette.responses import Response

from omnigraph.engine.budget import Cancellation
from omnigraph.errors import InvalidParameterError, OmnigraphError
from omnigraph.model.names import MAIN, BranchName
from omnigraph.policy.actions import Action
from omnigraph.server import wire
from omnigraph.server.answers import answer_json
from omnigraph.server.context import Call, GraphCall, Name
from omnigraph.server.routes.documents import gives

router = APIRouter(prefix="/graphs/{graph}")


class BranchAction(StrEnum):
    """What a page can offer to do to a branch."""

    MUTATE = "mutate"
    BRANCH_CREATE = "branch_create"
    BRANCH_DELETE = "branch_delete"
    PROPOSE = "propose"


AskedAction = Annotated[BranchAction, Query(description="What would be done.")]
Branches = Annotated[
    list[Annotated[str, Query(max_length=1_000)]] | None,
    Query(max_length=100, description="To which branches; main when left out."),
]
OfType = Annotated[
    str | None, Query(max_length=1_000, description="The type whose rows would change.")
]


@router.get("/permissions", responses=gives(wire.PermissionsAnswer))
async def permissions(
    call: Call,
    action: AskedAction,
    branch: Branches = None,
    type_name: Annotated[OfType, Query(alias="type")] = None,
    source: Name = None,
) -> Response:
    """Whether the actor may do something to branches, and if not, why. Nothing is done.

    `source` is the branch that a new branch starts at.
    """
    names = [BranchName.parse(name) for name in branch or [MAIN]]
    start = BranchName.parse(source or MAIN)

    def run(_: Cancellation) -> Response:
        refusals: dict[str, str] = {}
        for name in names:
            try:
                _require(call, action, name, type_name, start)
            except OmnigraphError as refusal:
                refusals[name] = refusal.message
        shown = {
            "actor": call.actor,
            "action": action,
            "may": {name: name not in refusals for name in names},
            "refusals": call.service.hide_places_in(refusals),
        }
        return answer_json(shown)

    return await call.read(run)


def _require(
    call: GraphCall,
    action: BranchAction,
    branch: BranchName,
    type_name: str | None,
    start: BranchName,
) -> None:
    """Refuse what the actor may not do to a branch."""
    authority = call.graph.authority
    call.graph.require_writable()
    match action:
        case BranchAction.MUTATE:
            types = () if type_name is None else (type_name,)
            authority.require(Action.MUTATE, branch=branch, types=types)
        case BranchAction.BRANCH_CREATE:
            call.graph.full_snapshot(branch=start)
            authority.require(Action.BRANCH_CREATE, branch=branch, source=start)
        case BranchAction.BRANCH_DELETE:
            call.graph.branches.delete(branch, dry_run=True)
        case BranchAction.PROPOSE:
            if call.actor is None:
                message = "a proposal needs an author, and this request has no actor"
                raise InvalidParameterError(message, hint="send a token", name="actor")
            call.graph.full_snapshot(branch=branch)
        case _:
            assert_never(action)
