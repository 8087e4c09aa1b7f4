"""Routes of the schema: read it, plan a change, and apply one."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from omnigraph.engine.budget import Cancellation
from omnigraph.schema import codec
from omnigraph.server import wire
from omnigraph.server.answers import MediaType, answer_json
from omnigraph.server.context import AtPoint, Call, expected_head, read_json, refuse_key
from omnigraph.server.models import require_own_models
from omnigraph.server.routes.documents import gives, takes

router = APIRouter(prefix="/graphs/{graph}/schema")


@router.get("", responses=gives(wire.SchemaAnswer))
async def schema(call: Call, at: AtPoint) -> Response:
    """The schema at one commit, as text."""

    def run(_: Cancellation) -> Response:
        accepted = call.graph.schema.show(**at.names)
        return answer_json({"schema": accepted.text, "digest": accepted.digest})

    return await call.read(run)


@router.get("/catalog", responses=gives(wire.CatalogAnswer))
async def catalog(call: Call, at: AtPoint) -> Response:
    """The schema at one commit as a document: its types with their properties, keys and indexes."""

    def run(_: Cancellation) -> Response:
        text = codec.encode(call.graph.schema.show(**at.names).catalog)
        return Response(text, media_type=MediaType.JSON)

    return await call.read(run)


@router.post("/plan", openapi_extra=takes(wire.SchemaBody), responses=gives(wire.SchemaPlanAnswer))
async def plan_schema(request: Request, call: Call) -> Response:
    """The steps from a branch's schema to another one. Reads no rows."""
    body = await read_json(request, wire.SchemaBody)

    def run(_: Cancellation) -> Response:
        require_own_models(call.graph, _text(body), body.branch)
        return answer_json(call.graph.schema.plan(_text(body), **_change(body)).to_json())

    return await call.read(run)


@router.post(
    "/apply", openapi_extra=takes(wire.SchemaBody), responses=gives(wire.SchemaChangeAnswer)
)
async def apply_schema(request: Request, call: Call) -> Response:
    """Change the schema of a branch, and its rows with it, in one commit."""
    refuse_key(request, takes_condition=True)
    body = await read_json(request, wire.SchemaBody)
    head = expected_head(request, body.expect_head)

    def run() -> Response:
        require_own_models(call.graph, _text(body), body.branch)
        result = call.graph.schema.apply(
            _text(body),
            **_change(body),
            engine=body.engine,
            actor=call.actor,
            message=body.message,
            expect_head=head,
        )
        return answer_json(result.to_json())

    return await call.write(run)


def _text(body: wire.SchemaBody) -> str:
    """The schema, which is never taken for the name of a file on the server."""
    return f"{body.schema_text}\n"


def _change(body: wire.SchemaBody) -> dict[str, Any]:
    return {"branch": body.branch, "fill": body.fill, "convert": body.convert}
