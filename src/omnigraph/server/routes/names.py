"""Routes of branches and tags, and of merges."""

from __future__ import annotations

import json
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from omnigraph.engine.budget import Cancellation
from omnigraph.errors import NotFoundError
from omnigraph.graph import Graph
from omnigraph.server import wire
from omnigraph.server.answers import answer_head, answer_json
from omnigraph.server.context import (
    Call,
    Cursor,
    Limit,
    expected_head,
    page_of,
    read_json,
    refuse_key,
)
from omnigraph.server.routes.documents import gives, takes

router = APIRouter(prefix="/graphs/{graph}")


@router.get("/branches", responses=gives(wire.BranchesAnswer))
async def branches(call: Call, limit: Limit = 100, cursor: Cursor = None) -> Response:
    """The branches, each with its newest commit."""

    def run(_: Cancellation) -> Response:
        names, following = page_of(sorted(call.graph.branches.list()), limit, cursor)
        heads = [_head(call.graph, name) for name in names]
        return answer_json({"branches": [head for head in heads if head], "cursor": following})

    return await call.read(run)


def _head(graph: Graph, name: str) -> dict[str, Any] | None:
    try:
        return {"branch": name, "head": graph.snapshot(branch=name).head.to_json()}
    except NotFoundError:
        # It was deleted meanwhile.
        return None


@router.get("/branches/{branch:path}", responses=gives(wire.BranchAnswer))
async def branch(call: Call, branch: str) -> Response:
    """One branch; its ETag is its newest commit."""

    def run(_: Cancellation) -> Response:
        head = call.graph.snapshot(branch=branch).head
        return answer_head(head.commit_id, {"branch": branch, "head": head.to_json()})

    return await call.read(run)


@router.post(
    "/branches",
    status_code=201,
    openapi_extra=takes(wire.BranchBody),
    responses=gives(wire.BranchAnswer, status=201),
)
async def create_branch(request: Request, call: Call) -> Response:
    """Start a branch at the tip of another, or at a point of the past."""
    refuse_key(request)
    body = await read_json(request, wire.BranchBody)

    def run() -> Response:
        head = call.graph.branches.create(body.name, **body.point).snapshot().head
        return answer_head(head.commit_id, {"branch": body.name, "head": head.to_json()}, 201)

    return await call.write(run)


@router.delete("/branches/{branch:path}", responses=gives(wire.DeletedBranchAnswer))
async def delete_branch(
    request: Request, call: Call, branch: str, *, dry_run: Annotated[bool, Query()] = False
) -> Response:
    """Delete a branch, and the commits that only it has; with `If-Match`, only as it is."""
    refuse_key(request, takes_condition=True)
    head = expected_head(request, None)

    def run() -> Response:
        call.graph.branches.delete(branch, dry_run=dry_run, expect_head=head)
        return answer_json({"branch": branch, "deleted": not dry_run})

    return await call.write(run)


@router.post("/merge", openapi_extra=takes(wire.MergeBody), responses=gives(wire.MergeAnswer))
async def merge(request: Request, call: Call) -> Response:
    """Merge what one branch changed into another, in one commit.

    `If-Match` has the ETag of the branch that changes.
    """
    refuse_key(request, takes_condition=True)
    body = await read_json(request, wire.MergeBody)
    fields = {**body.model_dump(), "expect_head": expected_head(request, body.expect_head)}
    if isinstance(body.resolve, list):
        fields["resolve"] = json.dumps(body.resolve)

    def run() -> Response:
        outcome = call.graph.merge(fields.pop("source"), **fields, actor=call.actor)
        return answer_json({**outcome.to_json(), "dry_run": body.dry_run})

    return await call.write(run)


@router.get("/tags", responses=gives(wire.TagsAnswer))
async def tags(call: Call, limit: Limit = 100, cursor: Cursor = None) -> Response:
    """The tags, by name."""

    def run(_: Cancellation) -> Response:
        every = {str(tag.name): tag for tag in call.graph.tags.list()}
        names, following = page_of(sorted(every), limit, cursor)
        return answer_json({"tags": [every[name].to_json() for name in names], "cursor": following})

    return await call.read(run)


@router.get("/tags/{tag:path}", responses=gives(wire.TagAnswer))
async def tag(call: Call, tag: str) -> Response:
    """One tag."""
    return await call.read(lambda _: answer_json(call.graph.tags.show(tag).to_json()))


@router.post(
    "/tags",
    status_code=201,
    openapi_extra=takes(wire.TagBody),
    responses=gives(wire.TagAnswer, status=201),
)
async def create_tag(request: Request, call: Call) -> Response:
    """Name a commit, which is kept as long as it has the name."""
    refuse_key(request)
    body = await read_json(request, wire.TagBody)

    def run() -> Response:
        made = call.graph.tags.create(**body.model_dump(), actor=call.actor)
        return answer_json(made.to_json(), 201)

    return await call.write(run)


@router.delete("/tags/{tag:path}", responses=gives(wire.DeletedTagAnswer))
async def delete_tag(request: Request, call: Call, tag: str) -> Response:
    """Delete a tag; its commit stays in its branch."""
    refuse_key(request)

    def run() -> Response:
        call.graph.tags.delete(tag)
        return answer_json({"tag": tag, "deleted": True})

    return await call.write(run)
