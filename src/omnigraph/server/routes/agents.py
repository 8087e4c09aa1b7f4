"""The route of agents: a graph as tools of the Model Context Protocol, over streamable HTTP."""

from __future__ import annotations

import re
from collections.abc import Callable
from hashlib import sha256
from typing import TYPE_CHECKING, Annotated, Final, TypeVar

from fastapi import APIRouter, Query, Request
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from omnigraph.agents.requirements import require_mcp
from omnigraph.server.context import Call, GraphCall, Name, budget_of, receive_json

if TYPE_CHECKING:
    from omnigraph.agents.workspace import Workspace

router = APIRouter(prefix="/graphs/{graph}")

T = TypeVar("T")


# The protocol describes its messages itself.
@router.post("/mcp", include_in_schema=False)
async def agent(
    request: Request,
    call: Call,
    base: Name = None,
    branch: Annotated[
        str | None, Query(max_length=200, description="The branch to write to; the actor's own.")
    ] = None,
    *,
    read_only: Annotated[bool, Query()] = False,
) -> Response:
    """A message of an agent: its tools read the graph, and write to one branch for review."""
    require_mcp()
    from omnigraph.agents.workspace import Workspace

    budget = budget_of(request)
    limits = {name: budget[name] for name in ("timeout", "memory")}
    name = branch_of(call.actor) if branch is None else branch

    def open_workspace() -> Workspace:
        handle = call.graph.acting_as(call.actor)
        if base is not None:
            handle = handle.at(branch=base)
        writes = not read_only and not handle.read_only
        return Workspace.open(handle, name, writes=writes, limits=limits)

    # Not `call.read`: to watch whether the client leaves would take the body from the protocol.
    workspace = await call.service.read(None, call.actor, lambda _: open_workspace())
    body = await receive_json(request)
    return _Answer(call, workspace, body)


def branch_of(actor: str | None) -> str:
    """The branch that an agent writes to unless it is named: one for each actor.

    >>> branch_of("ada"), branch_of(None)
    ('agent/ada', 'agent/anonymous')
    >>> branch_of("ada@example.com")
    'agent/ada-example.com-b5fc85e55755f9e0'
    """
    if actor is None:
        return _ANONYMOUS
    plain = re.sub(r"[^A-Za-z0-9._-]", "-", actor)[:80].strip(".-")
    named = f"agent/{plain}"
    if plain == actor and ".." not in plain and not _RESERVED.search(named):
        return named
    # Two actors must not share a branch because their names look alike without some letters, nor
    # may a name be that of another one's branch: what looks like one gets a digest, too.
    digest = sha256(actor.encode()).hexdigest()[:_DIGEST_LENGTH]
    return f"agent/{re.sub(r'[.]+', '.', plain)}-{digest}".replace("/-", "/")


_ANONYMOUS: Final = "agent/anonymous"
_DIGEST_LENGTH: Final = 16
_RESERVED: Final = re.compile(rf"^{_ANONYMOUS}$|[/-][0-9a-f]{{{_DIGEST_LENGTH}}}$")
"""Branches that are no plain name of an actor."""


class _Answer(Response):
    """The answer to one message, written by the protocol's own server."""

    def __init__(self, call: GraphCall, workspace: Workspace, body: bytes) -> None:
        super().__init__()
        self._call = call
        self._workspace = workspace
        self._message: Message | None = {"type": "http.request", "body": body}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        from omnigraph.agents.protocol import serve_request

        async def receive_again() -> Message:
            message, self._message = self._message, None
            return await receive() if message is None else message

        await serve_request(
            self._workspace,
            self._run,
            self._call.service.hide_places_in,
            scope=scope,
            receive=receive_again,
            send=send,
            bytes_max=self._call.service.settings.limits.body_bytes,
        )

    async def _run(self, call: Callable[[], T], *, writes: bool) -> T:
        """Run a tool among the other reads and writes of the server."""
        service, actor = self._call.service, self._call.actor
        if writes:
            return await service.write(actor, call)
        # The protocol's server watches whether the client leaves.
        return await service.read(None, actor, lambda _: call())
