"""Routes for operators: life, readiness, counters, the served graphs, and interrupted writes."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import Response

from omnigraph import __version__
from omnigraph.engine.budget import Cancellation
from omnigraph.server import wire
from omnigraph.server.answers import answer_json
from omnigraph.server.context import (
    Actor,
    Call,
    Cursor,
    Limit,
    page_of,
    read_json,
    refuse_key,
    service_of,
)
from omnigraph.server.origins import require_own_site
from omnigraph.server.routes.documents import gives, gives_bytes, takes

router = APIRouter()


@router.get("/healthz", responses=gives(wire.StatusAnswer))
async def healthz() -> Response:
    """Whether the process lives."""
    return answer_json({"status": "alive"})


@router.get(
    "/readyz", responses={**gives(wire.StatusAnswer), **gives(wire.StatusAnswer, status=503)}
)
async def readyz(request: Request) -> Response:
    """Whether it takes requests."""
    ready = service_of(request).is_ready
    return answer_json({"status": "ready" if ready else "not ready"}, 200 if ready else 503)


@router.get("/metrics", responses=gives_bytes("text/plain"))
async def metrics(request: Request) -> Response:
    """Counters, for Prometheus."""
    service = service_of(request)
    for kind, gate in (("read", service.reads), ("write", service.writes)):
        service.metrics.running.labels(kind).set(gate.inside)
        service.metrics.waiting.labels(kind).set(gate.waiting)
    service.metrics.unsent_bytes.set(service.outbox.unsent_bytes)
    return Response(service.metrics.text(), media_type="text/plain; version=0.0.4")


@router.get("/session", responses=gives(wire.SessionAnswer))
async def session(request: Request, actor: Actor) -> Response:
    """Who the request is from, and which graphs that actor may read something of."""
    service = service_of(request)

    def run(_: Cancellation) -> Response:
        names = [name for name in service.graph_names if service.shows(name, actor)]
        return answer_json({"actor": actor, "graphs": names, "version": __version__})

    return await service.read(request, actor, run)


@router.post(
    "/session",
    status_code=201,
    openapi_extra=takes(wire.LoginBody),
    responses=gives(wire.LoginAnswer, status=201),
)
async def log_in(request: Request) -> Response:
    """A token for a code that the server gave to who started it; a code is good once."""
    refuse_key(request)
    service = service_of(request)
    require_own_site(request, service.settings)
    body = await read_json(request, wire.LoginBody)
    token, actor = await service.write(None, lambda: service.logins.redeem(body.code))
    return answer_json({"token": token, "actor": actor}, 201)


@router.get("/graphs", responses=gives(wire.GraphNamesAnswer))
async def graphs(request: Request, actor: Actor) -> Response:
    """The served graphs of which the actor may read something."""
    service = service_of(request)

    def run(_: Cancellation) -> Response:
        names = [name for name in service.graph_names if service.shows(name, actor)]
        return answer_json({"graphs": names})

    return await service.read(request, actor, run)


@router.get("/graphs/{graph}/recovery", responses=gives(wire.RecoveryAnswer))
async def recovery(call: Call, limit: Limit = 100, cursor: Cursor = None) -> Response:
    """Writes that run or were interrupted, and what became of earlier ones, newest first."""

    def run(_: Cancellation) -> Response:
        recoveries = call.graph.recoveries
        pending = recoveries.pending()
        every = {str(entry.recovery_id): entry for entry in recoveries.list()}
        page, following = page_of(sorted(every, reverse=True), limit, cursor, descending=True)
        return answer_json(
            {
                "live": [str(intent.operation_id) for intent in pending.live],
                "interrupted": [str(intent.operation_id) for intent in pending.interrupted],
                "unreadable": [each.path for each in pending.unreadable],
                "recoveries": [every[name].to_json() for name in page],
                "cursor": following,
            }
        )

    return await call.read(run)
