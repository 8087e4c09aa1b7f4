"""What each route takes from its request: the graph, the actor, conditions and limits."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, TypeVar

from fastapi import Depends, Path, Query, Request
from pydantic import BaseModel, ValidationError

from omnigraph.engine.budget import Cancellation
from omnigraph.errors import (
    ErrorCode,
    InvalidInputError,
    InvalidParameterError,
)
from omnigraph.graph import Graph
from omnigraph.model.query_limits import require_max_rows, require_memory, require_timeout
from omnigraph.server.bodies import read_body
from omnigraph.server.origins import require_own_site
from omnigraph.server.service import GraphService, unknown_graph_error
from omnigraph.transaction.requests import RequestKey

Body = TypeVar("Body", bound=BaseModel)
T = TypeVar("T")


def service_of(request: Request) -> GraphService:
    """The service that the application was made with."""
    service = request.app.state.service
    assert isinstance(service, GraphService), "the application sets it"
    return service


async def actor_of(request: Request) -> str | None:
    """The actor that the request proves to be from."""
    require_own_site(request, service_of(request).settings)
    values = request.headers.getlist("authorization")
    if len(values) > 1:
        # Two parties on the way might believe different ones.
        message = "the request has several headers Authorization"
        raise InvalidInputError(message, hint="send one")
    actor = await service_of(request).identities.actor_of(values[0] if values else None)
    request.state.actor = actor
    return actor


Actor = Annotated[str | None, Depends(actor_of)]
GraphName = Annotated[str, Path(max_length=100, description="The name of a served graph.")]
Limit = Annotated[int, Query(ge=1, le=1_000, description="How many entries at most.")]
Cursor = Annotated[
    str | None, Query(max_length=500, description="Where to continue: `cursor` of an answer.")
]
Name = Annotated[str | None, Query(max_length=1_000)]
Words = Annotated[list[str] | None, Query()]
Version = Annotated[int | None, Query(ge=0, le=1 << 53)]


@dataclass(frozen=True, slots=True)
class GraphCall:
    """A request about a graph, by an actor.

    Attributes:
        graph: The graph as the actor may use it.
        name: The name under which it is served.
    """

    request: Request
    service: GraphService
    graph: Graph
    name: str
    actor: str | None

    async def read(self, work: Callable[[Cancellation], T], *, is_timed: bool = True) -> T:
        """Run a read in a thread; a client that leaves, and a server that stops, cancel it.

        Args:
            is_timed: Whether it may take as long as a query, and no longer.
        """
        return await self.service.read(self.request, self.actor, work, is_timed=is_timed)

    async def write(self, work: Callable[[], T]) -> T:
        """Run a write in a thread, to its end: no client that leaves interrupts it."""
        return await self.service.write(self.actor, work)


async def call_of(request: Request, graph: GraphName, actor: Actor) -> GraphCall:
    """The call that a request is, of the graph that its address names."""
    service = service_of(request)
    call = GraphCall(request, service, service.graph(graph, actor), graph, actor)
    if not service.shows_main(graph, actor):
        # Not `call.read`: to watch whether the client leaves would take the body from the route.
        shows = partial(service.shows, graph, actor)
        if not await service.read(None, actor, lambda _: shows()):
            raise unknown_graph_error(graph)
    return call


Call = Annotated[GraphCall, Depends(call_of)]


@dataclass(frozen=True, slots=True)
class PointQuery:
    """The parameters that name a point of history: a branch, a commit or a version of a branch."""

    branch: Name = None
    commit: Name = None
    version: Version = None

    @property
    def is_own(self) -> bool:
        """Whether it names none, so that it is where the handle is."""
        return (self.branch, self.commit, self.version) == (None, None, None)

    @property
    def names(self) -> dict[str, Any]:
        """Them as arguments of the facade."""
        return {"branch": self.branch, "commit": self.commit, "version": self.version}


AtPoint = Annotated[PointQuery, Depends()]


async def read_json(request: Request, shape: type[Body]) -> Body:
    """The body of a request, checked."""
    data = await receive_json(request)
    try:
        return shape.model_validate_json(data)
    except ValidationError as cause:
        faults = [
            f"{'.'.join(map(str, fault['loc'])) or 'the body'}: {fault['msg']}"
            for fault in cause.errors(include_url=False, include_context=False)
        ]
        message = "\n".join(["the body is wrong", *(f"  {fault}" for fault in faults)])
        hint = "see /openapi.json for the shape of this body"
        raise InvalidInputError(message, hint=hint, faults=faults) from cause


async def receive_json(request: Request) -> bytes:
    """The body of a request, which has to be JSON by its header."""
    limits = service_of(request).settings.limits
    kind = request.headers.get("content-type", "application/json").partition(";")[0].strip()
    if kind.lower() != "application/json":
        message = f"the body is {kind[:100]!r}, and has to be application/json"
        raise InvalidInputError(message, code=ErrorCode.UNSUPPORTED_MEDIA)
    return await read_body(
        request,
        bytes_max=limits.body_bytes,
        seconds_max=limits.body_seconds,
        expansion=limits.expansion,
    )


def expected_head(request: Request, given: str | None) -> str | None:
    """The commit that `If-Match` names, or the body."""
    header = request.headers.get("if-match")
    if header is None:
        return given
    tag = header.strip()
    if not (len(tag) > 2 and tag[0] == tag[-1] == '"' and "," not in tag):
        message = f"the header If-Match has {header[:100]!r}, and takes one ETag in quotes"
        raise InvalidInputError(message, hint="send the ETag of the branch")
    if given is not None and given != tag[1:-1]:
        message = "If-Match and expect_head name two commits"
        raise InvalidInputError(message, hint="give one of them")
    return tag[1:-1]


def request_key(request: Request, *requested: object) -> RequestKey | None:
    """The key that `Idempotency-Key` gives a request."""
    header = request.headers.get("idempotency-key")
    return None if header is None else RequestKey.parse(header, *requested)


def refuse_key(request: Request, *, takes_condition: bool = False) -> None:
    """Refuse a key, or a condition, where none is taken: ignoring it would break a promise.

    Args:
        takes_condition: Whether the route heeds `If-Match`.
    """
    if "if-match" in request.headers and not takes_condition:
        message = "this request takes no If-Match"
        raise InvalidInputError(message, hint="mutate, load, merge and schema/apply do")
    if "idempotency-key" in request.headers:
        message = "this request takes no Idempotency-Key"
        hint = "repeat it without: what it makes exists, or there is nothing left to do"
        raise InvalidInputError(message, hint=hint)


def budget_of(
    request: Request,
    timeout: str | float | None = None,
    memory: str | int | None = None,
    max_rows: int | None = None,
) -> dict[str, Any]:
    """What a query may spend: as requested, and at most as the server allows."""
    limits = service_of(request).settings.limits
    return {
        "timeout": _lower(timeout, limits.query_timeout, require_timeout, "timeout"),
        "memory": _lower(memory, limits.query_memory, require_memory, "memory"),
        "max_rows": _lower(max_rows, limits.query_max_rows, require_max_rows, "max_rows"),
    }


def _lower(requested: Any, allowed: Any, require: Any, name: str) -> Any:
    limit = require(allowed, name)
    if requested is None:
        return allowed
    wanted = require(requested, name)
    if wanted is None or (limit is not None and wanted > limit):
        return allowed
    return requested


def to_cursor(place: str) -> str:
    """A place in a list as an opaque text."""
    return base64.urlsafe_b64encode(place.encode()).decode()


def from_cursor(text: str | None) -> str | None:
    """The place that a cursor stands for."""
    if text is None:
        return None
    try:
        return base64.b64decode(text.encode(), b"-_", validate=True).decode()
    except (binascii.Error, ValueError) as cause:
        message = "the cursor is not valid"
        raise InvalidParameterError(message, hint="leave it out", name="cursor") from cause


def page_of(
    names: Sequence[str], limit: int, cursor: str | None, *, descending: bool = False
) -> tuple[Sequence[str], str | None]:
    """Some of a sorted list of names after a cursor, and the next cursor; None at the end.

    >>> page_of(["a", "b", "c"], 2, None)[0]
    ['a', 'b']
    >>> page_of(["c", "b", "a"], 2, to_cursor("b"), descending=True)
    (['a'], None)
    """
    after = from_cursor(cursor)
    rest = names
    if after is not None:
        rest = [name for name in names if (name < after if descending else name > after)]
    page = rest[:limit]
    return page, to_cursor(page[-1]) if len(rest) > limit else None
