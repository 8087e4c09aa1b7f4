"""Serving: the application on uvicorn, until it is told to stop."""

from __future__ import annotations

import gc
import logging
import math
import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Final

import uvicorn

from omnigraph.errors import InvalidInputError
from omnigraph.policy.authority import ACTOR_VARIABLE, POLICY_VARIABLE
from omnigraph.server.app import make_app
from omnigraph.server.identity import require_safe_address
from omnigraph.server.logs import JsonLines
from omnigraph.server.opening import open_app
from omnigraph.server.service import GraphService
from omnigraph.server.settings import ServerSettings

_HEADER_BYTES_MAX: Final = 32 << 10
_IDLE_SECONDS: Final = 30
_SPARE_SECONDS: Final = 5


def serve(
    settings: ServerSettings, *, started: Callable[[str], None], open_for: str | None = None
) -> None:
    """Serve until SIGINT or SIGTERM; then finish what has begun, within the time to stop.

    Args:
        started: Called with the server's address, right before it takes requests.
        open_for: Show the web app in a browser, to this actor.
    """
    require_safe_address(settings)
    # The server itself is bound by no policy, and is no actor: its requests are.
    policy = os.environ.pop(POLICY_VARIABLE, None)
    os.environ.pop(ACTOR_VARIABLE, None)
    if policy and settings.policy is None:
        settings = settings.model_copy(update={"policy": Path(policy)})
    if not settings.graphs:
        message = "there is no graph to serve"
        raise InvalidInputError(message, hint="name one, or some in the file of --config")
    service = GraphService(settings)
    with listen(settings.host, settings.port) as listener:
        service.open()
        _log_to_standard_error()
        host, port = listener.getsockname()[:2]
        address = f"http://{f'[{host}]' if ':' in host else host}:{port}"
        started(address)
        if open_for is not None:
            open_app(service, address, open_for)
        _run(GraphServer(service), listener)
    if not service.has_ended:
        # Python would wait for the threads of writes that have no time left, however long they run.
        logging.shutdown()
        os._exit(0)


class GraphServer(uvicorn.Server):
    """uvicorn with the application of a service, which stops as soon as it is asked to."""

    def __init__(self, service: GraphService) -> None:
        super().__init__(configure(service))
        self._service = service

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Let requests end, within the time to stop."""
        self._service.begin_stop()
        await super().shutdown(sockets)


def _run(server: uvicorn.Server, listener: socket.socket) -> None:
    # What is there now stays: collections of garbage, which halt all requests, need not look at it.
    gc.collect()
    gc.freeze()
    try:
        server.run(sockets=[listener])
    except KeyboardInterrupt:
        # It raises the signal again that it has obeyed: to stop when asked to is no failure.
        if not server.should_exit:
            raise
    finally:
        gc.unfreeze()


def configure(service: GraphService) -> uvicorn.Config:
    """How uvicorn runs the application of a service."""
    return uvicorn.Config(
        make_app(service),
        http="h11",
        # One beyond gets 503.
        limit_concurrency=service.settings.limits.connections + 1,
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        h11_max_incomplete_event_size=_HEADER_BYTES_MAX,
        timeout_keep_alive=_IDLE_SECONDS,
        # Requests are answered, and connections closed, before this is over.
        timeout_graceful_shutdown=math.ceil(service.settings.stop_seconds) + _SPARE_SECONDS,
        lifespan="on",
    )


def _log_to_standard_error() -> None:
    """One line of JSON for each request; warnings, of uvicorn too, are such lines beside them."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonLines())
    for name in ("omnigraph", "uvicorn"):
        logging.getLogger(name).addHandler(handler)
    logging.getLogger("omnigraph.server").setLevel(logging.INFO)


def listen(host: str, port: int) -> socket.socket:
    """A socket that takes connections."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        # With the protocol named, asyncio sends small answers at once, and not after 40 ms.
        listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
    except OSError as cause:
        message = f"cannot listen on {host}:{port}: {cause.strerror or cause}"
        raise InvalidInputError(message, hint="choose another --host or --port") from cause
    return listener
