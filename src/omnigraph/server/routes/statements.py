"""Routes that run queries: those of the request, and those that the graph stores."""

from __future__ import annotations

from dataclasses import asdict
from functools import partial

from fastapi import APIRouter, Request
from starlette.responses import Response

from omnigraph.engine.budget import Cancellation
from omnigraph.engine.query_results import QueryResult
from omnigraph.mutation.results import MutationResult
from omnigraph.server import wire
from omnigraph.server.answers import (
    ROW_TYPES,
    MediaType,
    answer_json,
    answer_query,
    answer_write,
    choose_media_type,
)
from omnigraph.server.context import (
    AtPoint,
    Call,
    Cursor,
    Limit,
    Name,
    budget_of,
    expected_head,
    page_of,
    read_json,
    refuse_key,
    request_key,
)
from omnigraph.server.routes.documents import gives, takes

router = APIRouter(prefix="/graphs/{graph}")


@router.post(
    "/query", openapi_extra=takes(wire.QueryBody), responses=gives(wire.QueryAnswer, *ROW_TYPES)
)
async def query(request: Request, call: Call) -> Response:
    """Run a read query on one commit."""
    wanted = choose_media_type(request.headers.get("accept"))
    body = await read_json(request, wire.QueryBody)
    spend = budget_of(request, body.timeout, body.memory, body.max_rows)

    def run(cancellation: Cancellation) -> Response:
        result = call.graph.query(
            body.query,
            body.params,
            name=body.name,
            engine=body.engine,
            exact=body.exact,
            embedding_model=body.embedding_model,
            cancel=cancellation,
            **body.point,
            **spend,
        )
        return answer_query(result, wanted)

    return await call.read(run)


@router.post("/explain", openapi_extra=takes(wire.ExplainBody), responses=gives(wire.ExplainAnswer))
async def explain(request: Request, call: Call) -> Response:
    """How a query would run. Runs nothing."""
    body = await read_json(request, wire.ExplainBody)
    memory = budget_of(request, memory=body.memory)["memory"]

    def run(_: Cancellation) -> Response:
        fields = body.model_dump() | {"memory": memory}
        explanation = call.graph.explain(fields.pop("query"), fields.pop("params"), **fields)
        return answer_json(asdict(explanation))

    return await call.read(run)


@router.post("/mutate", openapi_extra=takes(wire.MutateBody), responses=gives(wire.WriteAnswer))
async def mutate(request: Request, call: Call) -> Response:
    """Insert, update or delete as a query says, in one commit."""
    body = await read_json(request, wire.MutateBody)
    head = expected_head(request, body.expect_head)
    key = request_key(request, call.name, body.model_dump(exclude={"timeout"}), head)
    timeout = budget_of(request, body.timeout)["timeout"]

    def run() -> Response:
        result = call.graph.mutate(
            body.query,
            body.params,
            name=body.name,
            branch=body.branch,
            actor=call.actor,
            message=body.message,
            expect_head=head,
            timeout=timeout,
            embed=body.embed,
            key=key,
        )
        return answer_write(result.to_json())

    return await call.write(run)


@router.get("/queries", responses=gives(wire.StoredQueriesAnswer))
async def stored_queries(
    call: Call, at: AtPoint, limit: Limit = 100, cursor: Cursor = None
) -> Response:
    """The stored queries that the actor may run, by name."""

    def run(_: Cancellation) -> Response:
        every = {query.name: query for query in call.graph.queries.list(**at.names)}
        names, following = page_of(sorted(every), limit, cursor)
        shown = [asdict(every[name]) for name in names]
        return answer_json({"queries": shown, "cursor": following})

    return await call.read(run)


@router.post(
    "/queries",
    status_code=201,
    openapi_extra=takes(wire.StoreBody),
    responses=gives(wire.PutQueriesAnswer, status=201),
)
async def store_queries(request: Request, call: Call) -> Response:
    """Store the queries of a text by their names; one of the same name is replaced."""
    refuse_key(request)
    body = await read_json(request, wire.StoreBody)

    def run() -> Response:
        # Not the name of a file on the server, whatever it looks like.
        text = f"{body.query}\n"
        stored = call.graph.queries.put(
            text, branch=body.branch, actor=call.actor, message=body.message
        )
        return answer_json({"queries": [asdict(query) for query in stored]}, 201)

    return await call.write(run)


@router.get("/queries/{name}", responses=gives(wire.StoredQueryAnswer))
async def stored_query(call: Call, name: str, at: AtPoint) -> Response:
    """One stored query: its text and its parameters."""
    return await call.read(lambda _: answer_json(asdict(call.graph.queries.show(name, **at.names))))


@router.post(
    "/queries/{name}",
    openapi_extra=takes(wire.InvokeBody),
    responses=gives(wire.InvokeAnswer, *ROW_TYPES),
)
async def invoke_query(request: Request, call: Call, name: str) -> Response:
    """Run a stored query: the rows that it reads, or what it changed."""
    wanted = choose_media_type(request.headers.get("accept"))
    body = await read_json(request, wire.InvokeBody)
    head = expected_head(request, body.expect_head)
    described = body.model_dump(exclude={"timeout", "memory", "max_rows", "engine"})
    run = partial(
        call.graph.queries.run,
        name,
        body.params,
        engine=body.engine,
        actor=call.actor,
        message=body.message,
        expect_head=head,
        key=request_key(request, call.name, "invoke", name, described, head),
        **body.point,
        **budget_of(request, body.timeout, body.memory, body.max_rows),
    )

    def read(cancellation: Cancellation) -> Response | None:
        if call.graph.queries.show(name, **body.point).changes:
            return None
        refuse_key(request)
        return _answer(run(cancel=cancellation), wanted)

    answer = await call.read(read)
    if answer is None:
        # A write runs among the writes, and no client that leaves cancels it.
        answer = await call.write(lambda: _answer(run(), wanted))
    return answer


def _answer(result: QueryResult | MutationResult, wanted: MediaType) -> Response:
    if isinstance(result, QueryResult):
        return answer_query(result, wanted)
    return answer_write(result.to_json())


@router.delete("/queries/{name}", responses=gives(wire.DeletedQueryAnswer))
async def delete_query(
    request: Request, call: Call, name: str, branch: Name = None, message: Name = None
) -> Response:
    """Delete a stored query from a branch; earlier commits keep it."""
    refuse_key(request)

    def run() -> Response:
        call.graph.queries.delete(name, branch=branch, actor=call.actor, message=message)
        return answer_json({"query": name, "deleted": True})

    return await call.write(run)
