"""The application: routes, problems, request ids, logs, and the life of the service."""

from __future__ import annotations

import json
import logging
import re
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from itertools import chain
from typing import Final

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response
from starlette.routing import Match
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from omnigraph import __version__
from omnigraph.documents.results import MEDIA_TYPE as RESULT_TYPE
from omnigraph.errors import (
    ErrorCode,
    InternalError,
    InvalidInputError,
    NotFoundError,
    OmnigraphError,
)
from omnigraph.server.context import service_of
from omnigraph.server.logs import write_fields
from omnigraph.server.problems import (
    MEDIA_TYPE,
    request_id_of,
    retry_after,
    status_of,
    to_problem,
)
from omnigraph.server.routes import (
    agents,
    calls,
    history,
    loads,
    names,
    operations,
    pages,
    permissions,
    proposals,
    rows,
    schemas,
    statements,
)
from omnigraph.server.routes.documents import PROBLEMS, describe, name_operation
from omnigraph.server.service import GraphService, until_sent, upkeep
from omnigraph.server.tracing import RequestSpan, Tracing

_log: Final = logging.getLogger("omnigraph.server")
_REQUEST_ID: Final = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_PIECE_BYTES: Final = 64 << 10

_ROUTERS: Final = (
    statements.router,
    rows.router,
    loads.router,
    names.router,
    permissions.router,
    proposals.router,
    history.router,
    schemas.router,
    agents.router,
    operations.router,
    calls.router,
    pages.router,
)


def make_app(service: GraphService) -> FastAPI:
    """The application that serves the graphs of a service, which is open."""

    @asynccontextmanager
    async def live(_: FastAPI) -> AsyncIterator[None]:
        async with upkeep(service):
            yield
            service.begin_stop()
        service.stop()

    app = FastAPI(
        title="Omnigraph",
        version=__version__,
        description="Branchable lakehouse graphs over HTTP.",
        lifespan=live,
        responses=PROBLEMS,
        generate_unique_id_function=name_operation,
        # A redirect would lead to whatever host the request names.
        redirect_slashes=False,
        docs_url=None,
        redoc_url=None,
    )
    app.state.service = service
    for router in _ROUTERS:
        app.include_router(router)
    app.openapi = partial(describe, app)  # type: ignore[method-assign]
    app.add_exception_handler(OmnigraphError, _answer_error)  # type: ignore[arg-type]
    app.add_exception_handler(RequestValidationError, _answer_invalid)  # type: ignore[arg-type]
    app.add_exception_handler(HTTPException, _answer_http)  # type: ignore[arg-type]
    app.add_exception_handler(Exception, _answer_bug)
    app.add_middleware(RequestLog, service=service)
    return app


async def _answer_error(request: Request, error: OmnigraphError) -> Response:
    if status_of(error) >= 500:
        described = {"request_id": request_id_of(request), "code": error.code.value}
        write_fields(_log, logging.WARNING, {**described, "message": str(error)})
    headers = {}
    if (seconds := retry_after(error)) is not None:
        headers["Retry-After"] = str(seconds)
    if error.code is ErrorCode.UNAUTHENTICATED:
        headers["WWW-Authenticate"] = "Bearer"
    if error.code is ErrorCode.RANGE_NOT_SATISFIABLE:
        headers["Content-Range"] = f"bytes */{error.details['size']}"
    typed = RESULT_TYPE in request.headers.get("accept", "")
    problem = to_problem(error, request_id_of(request), typed=typed)
    body = service_of(request).hide_places(json.dumps(problem))
    return Response(body, problem["status"], headers, MEDIA_TYPE)


async def _answer_invalid(request: Request, error: RequestValidationError) -> Response:
    faults = [f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors()]
    message = "\n".join(["the request is wrong", *(f"  {fault}" for fault in faults)])
    hint = "see /openapi.json"
    return await _answer_error(request, InvalidInputError(message, hint=hint, faults=faults))


async def _answer_http(request: Request, error: HTTPException) -> Response:
    """What the framework refuses by itself: addresses and methods that do not exist."""
    failure: OmnigraphError = InvalidInputError(str(error.detail), hint="see /openapi.json")
    if error.status_code == 404:
        failure = NotFoundError("nothing has this address", hint="see /openapi.json")
    headers = dict(error.headers or {})
    if error.status_code == 405:
        # The framework names the methods of one route, and an address may have several.
        headers["Allow"] = ", ".join(sorted(_methods_of(request)))
    problem = {**to_problem(failure, request_id_of(request)), "status": error.status_code}
    return JSONResponse(problem, error.status_code, headers, MEDIA_TYPE)


def _methods_of(request: Request) -> set[str]:
    """The methods that the address of a request has."""
    every = chain(request.app.routes, *(router.routes for router in _ROUTERS))
    routes = [route for route in every if route.matches(request.scope)[0] is not Match.NONE]
    return {method for route in routes for method in getattr(route, "methods", None) or ()}


async def _answer_bug(request: Request, error: Exception) -> Response:
    # The log has the stack; the client gets no part of it.
    described = {"request_id": request_id_of(request), "message": "the request failed"}
    write_fields(_log, logging.ERROR, described, exc_info=error)
    message = "the server failed: this is a bug"
    hint = f"report it with the log of request {request_id_of(request)}"
    return await _answer_error(request, InternalError(message, hint=hint))


class RequestLog:
    """Gives each request an id and a span, and writes one line about it.

    Neither has a token or a body in it.
    """

    def __init__(self, app: ASGIApp, service: GraphService) -> None:
        self._app = app
        self._service = service
        self._tracing = Tracing()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, and log how it was answered."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = {
            name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]
        }
        given = headers.get("x-request-id", "")
        own = given if _REQUEST_ID.fullmatch(given) else self._service.clock.ulid()
        scope["omnigraph.request_id"] = own
        begun, status = time.monotonic(), 0

        async def send_with_id(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                sent = [*message["headers"], (b"x-request-id", own.encode())]
                message = {**message, "headers": [*sent, *_missing_headers(sent)]}
                self._count(scope, status, time.monotonic() - begun)
            elif len(message.get("body", b"")) > _PIECE_BYTES and not message.get("more_body"):
                # The last piece of an answer does not wait until those before it were received.
                await send({**message, "more_body": True})
                message = {"type": message["type"], "body": b""}
            await send(message)

        with self._tracing.request(scope["method"], headers) as span:
            try:
                with until_sent(scope):
                    await self._app(scope, receive, send_with_id)
            finally:
                self._write(scope, own, status, time.monotonic() - begun)
                _note(span, scope, own, status)

    def _count(self, scope: Scope, status: int, seconds: float) -> None:
        route = getattr(scope.get("route"), "path", "unknown")
        # A client may make methods up, and each label is kept for ever.
        method = scope["method"] if scope["method"] in _METHODS else "other"
        self._service.metrics.requests.labels(route, method, str(status)).inc()
        self._service.metrics.seconds.labels(route, method).observe(seconds)

    def _write(self, scope: Scope, own: str, status: int, seconds: float) -> None:
        state = scope.get("state") or {}
        line = {
            "request_id": own,
            "method": scope["method"],
            "path": scope["path"],
            "status": status,
            "seconds": round(seconds, 4),
            "actor": state.get("actor"),
            "client": (scope.get("client") or ("",))[0],
        }
        write_fields(_log, logging.INFO, line)


def _missing_headers(headers: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """The safe headers that a route has no other value for."""
    own = {name.lower() for name, _ in headers}
    return [header for header in _SAFE_HEADERS if header[0] not in own]


def _note(span: RequestSpan, scope: Scope, own: str, status: int) -> None:
    route = getattr(scope.get("route"), "path", "unknown")
    span.rename(f"{scope['method']} {route}")
    span.note(
        http__request__method=scope["method"],
        http__route=route,
        http__response__status_code=status,
        omnigraph__request_id=own,
        omnigraph__graph=(scope.get("path_params") or {}).get("graph"),
        enduser__id=(scope.get("state") or {}).get("actor"),
    )


_METHODS: Final = frozenset({"GET", "HEAD", "POST", "DELETE", "OPTIONS"})
"""Those of routes, and what browsers and probes try besides."""

_SAFE_HEADERS: Final = (
    (b"x-content-type-options", b"nosniff"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
)
