"""Routes of history: tables at a commit, commits, differences, and the feed of changes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from typing import Annotated, Any, Final

from fastapi import APIRouter, Query, Request
from starlette.responses import Response, StreamingResponse

from omnigraph.changes import facts
from omnigraph.engine.budget import Cancellation
from omnigraph.errors import NotFoundError, OmnigraphError
from omnigraph.formats.cells import plain_value, to_json
from omnigraph.graph import Graph
from omnigraph.server import wire
from omnigraph.server.answers import (
    MediaType,
    answer_head,
    answer_json,
    choose_media_type,
    hidden_header,
)
from omnigraph.server.context import (
    AtPoint,
    Call,
    Cursor,
    GraphCall,
    Limit,
    Name,
    Words,
    actor_of,
    call_of,
    from_cursor,
    to_cursor,
)
from omnigraph.server.problems import request_id_of, to_problem
from omnigraph.server.routes.documents import gives
from omnigraph.wording import format_instant

router = APIRouter(prefix="/graphs/{graph}")

Point = Annotated[str, Query(max_length=1_000, description="A branch, a commit or a tag.")]
Rows = Annotated[bool, Query(description="Whether with every changed row.")]

EVENTS: Final = "text/event-stream"
_POLL_SECONDS: Final = 0.5
_BEAT_SECONDS: Final = 15.0


@router.get("/snapshot", responses=gives(wire.SnapshotAnswer))
async def snapshot(call: Call, at: AtPoint) -> Response:
    """The tables at one commit, and their numbers of rows."""

    def run(_: Cancellation) -> Response:
        shown = call.graph.snapshot(**at.names)
        return answer_head(shown.head.commit_id, shown.to_json())

    return await call.read(run)


@router.get("/commits", responses=gives(wire.CommitsAnswer))
async def commits(
    call: Call, branch: Name = None, limit: Limit = 100, cursor: Cursor = None
) -> Response:
    """A branch's commits, newest first."""

    def run(_: Cancellation) -> Response:
        after = from_cursor(cursor)
        if after is None:
            found = list(call.graph.commits.list(branch=branch, limit=limit + 1))
        else:
            # The cursor names the last commit that was delivered; its ancestors never change.
            found = list(call.graph.at(commit=after).commits.list(limit=limit + 2))[1:]
        page = found[:limit]
        gone = call.graph.commits.let_go(page)
        shown = [_commit_facts(commit, gone) for commit in page]
        following = to_cursor(page[-1].commit_id) if len(found) > limit else None
        return answer_json({"commits": shown, "cursor": following})

    return await call.read(run)


def _commit_facts(commit: Any, gone: dict[str, Any]) -> dict[str, Any]:
    found = gone.get(commit.commit_id)
    let_go = None if found is None else {"at": format_instant(found.at), "rule": found.rule}
    return {**commit.to_json(), "let_go": let_go}


@router.get("/history", responses=gives(wire.HistoryAnswer))
async def history(
    call: Call, branch: Name = None, limit: Limit = 100, cursor: Cursor = None
) -> Response:
    """The commits of every branch, or of one with what was merged into it, as one graph.

    Each commit precedes its parents, newer ones first, and has the branches that end at it and its
    tags. Pages fit together while commits are added: the cursor names the last commit before it.
    """

    def run(_: Cancellation) -> Response:
        after = from_cursor(cursor)
        found = call.graph.commits.every(branch=branch, after=after, limit=limit + 1)
        page = found[:limit]
        gone = call.graph.commits.let_go(page)
        tips, tags = _tips(call.graph), _tags(call.graph)
        shown = [
            {
                **_commit_facts(commit, gone),
                "branches": tips.get(commit.commit_id, []),
                "tags": tags.get(commit.commit_id, []),
            }
            for commit in page
        ]
        following = to_cursor(page[-1].commit_id) if len(found) > limit else None
        return answer_json({"commits": shown, "cursor": following})

    return await call.read(run)


def _tips(graph: Graph) -> dict[str, list[str]]:
    """The branches that end at a commit, by its id."""
    tips: dict[str, list[str]] = {}
    for name in sorted(graph.branches.list()):
        # A branch that is deleted meanwhile is left out.
        with suppress(NotFoundError):
            tips.setdefault(graph.snapshot(branch=name).head.commit_id, []).append(name)
    return tips


def _tags(graph: Graph) -> dict[str, list[str]]:
    tags: dict[str, list[str]] = {}
    for tag in graph.tags.list():
        tags.setdefault(tag.commit_id, []).append(str(tag.name))
    return tags


@router.get("/commits/{commit}", responses=gives(wire.CommitAnswer))
async def commit(call: Call, commit: str) -> Response:
    """One commit, by its id or a tag."""

    def run(_: Cancellation) -> Response:
        found = call.graph.commits.show(commit)
        return answer_json(_commit_facts(found, call.graph.commits.let_go([found])))

    return await call.read(run)


@router.get("/commits/{commit}/changes", responses=gives(wire.DifferenceAnswer, MediaType.NDJSON))
async def commit_changes(
    request: Request, call: Call, commit: str, *, rows: Rows = False
) -> Response:
    """What one commit changed against the one before it."""
    wanted = choose_media_type(request.headers.get("accept"))
    return await call.read(
        lambda _: _answer_diff(call.graph.commits.changes(commit), wanted, rows=rows)
    )


@router.get("/diff", responses=gives(wire.DifferenceAnswer, MediaType.NDJSON))
async def diff(
    request: Request,
    call: Call,
    *,
    before: Point,
    after: Point,
    kinds: Words = None,
    types: Words = None,
    ops: Words = None,
    rows: Rows = False,
) -> Response:
    """How two points of history differ: counts by type, or every row."""
    wanted = choose_media_type(request.headers.get("accept"))

    def run(_: Cancellation) -> Response:
        found = call.graph.diff(before, after, kinds=kinds, types=types, ops=ops, engine="local")
        return _answer_diff(found, wanted, rows=rows)

    return await call.read(run)


@router.get("/diff/rows", responses=gives(wire.ChangedRowsAnswer))
async def diff_rows(
    call: Call,
    *,
    before: Point,
    after: Point,
    types: Words = None,
    ops: Words = None,
    offset: Annotated[int, Query(ge=0, le=1 << 53, description="How many rows to skip.")] = 0,
    limit: Limit = 100,
) -> Response:
    """Some of the rows in which two points of history differ, by their position.

    Rows are ordered by type, by kind of change and by id. Commits never change, so that pages of
    two commits fit together; the server compares them once.
    """

    def run(_: Cancellation) -> Response:
        found = call.graph.diff(before, after, types=types, ops=ops, engine="local")
        counts = facts.counts(found)
        page = found.page(offset, limit)
        answer = {
            "before": found.before,
            "after": found.after,
            "offset": offset,
            "total": sum(sum(count.values()) for count in counts.values()),
            "changes": counts,
            "rows": list(facts.row_objects(page)),
            **facts.hidden_facts(found.hidden),
        }
        return Response(to_json(answer), media_type=MediaType.JSON)

    return await call.read(run)


def _answer_diff(diff: Any, wanted: MediaType, *, rows: bool) -> Response:
    head = {
        "before": diff.before,
        "after": diff.after,
        "engine": diff.engine,
        "why": diff.why,
        "schema": [step.to_json() for step in diff.schema],
        "changes": facts.counts(diff),
        **facts.hidden_facts(diff.hidden),
    }
    if not rows:
        return answer_json(head)
    if wanted is MediaType.NDJSON:
        lines = (f"{to_json(row)}\n".encode() for row in facts.row_objects(diff))
        headers = hidden_header(diff.hidden)
        return StreamingResponse(lines, media_type=MediaType.NDJSON, headers=headers)
    return StreamingResponse(_diff_pieces(head, diff), media_type=MediaType.JSON)


def _diff_pieces(head: dict[str, Any], diff: Any) -> Iterator[bytes]:
    yield f'{json.dumps(head)[:-1]}, "rows": ['.encode()
    separator = ""
    for row in facts.row_objects(diff):
        yield f"{separator}{to_json(row)}".encode()
        separator = ",\n"
    yield b"]}"


@router.get("/changes", responses=gives(wire.ChangesAnswer, EVENTS))
async def changes(
    request: Request,
    call: Call,
    *,
    after: Name = None,
    branch: Name = None,
    limit: Limit = 100,
    kinds: Words = None,
    types: Words = None,
    ops: Words = None,
    rows: Rows = False,
    wait: Annotated[float, Query(ge=0, le=60, description="Seconds to wait for a commit.")] = 0.0,
) -> Response:
    """The commits after a cursor: at once, after a wait, or as server-sent events."""

    def poll(graph: Graph, cursor: str | None) -> dict[str, Any]:
        batch = graph.changes(
            after=cursor, branch=branch, limit=limit, kinds=kinds, types=types, ops=ops
        )
        return facts.batch_facts(batch, rows=rows)

    async def ask(cursor: str | None) -> dict[str, Any]:
        # While a client waits, its token may be revoked or expire, and the policy may change.
        now = await call_of(request, call.name, await actor_of(request))
        return await now.read(lambda _: poll(now.graph, cursor))

    async def events(cursor: str | None) -> AsyncIterator[bytes]:
        place, silence = cursor, 0.0
        while not call.service.is_stopping and not await request.is_disconnected():
            try:
                batch = await ask(place)
            except OmnigraphError as error:
                if last := _last_event(call, error):
                    yield last
                return
            if batch["commits"]:
                silence = 0.0
                for commit in batch["commits"]:
                    data = to_json(plain_value(commit))
                    yield f"id: {commit['commit']['commit_id']}\ndata: {data}\n\n".encode()
            elif silence >= _BEAT_SECONDS:
                silence = 0.0
                yield b": still here\n\n"
            place = batch["cursor"]
            if batch["is_newest"]:
                await asyncio.sleep(_POLL_SECONDS)
                silence += _POLL_SECONDS

    if EVENTS in request.headers.get("accept", ""):
        # What cannot begin is answered as a problem, before the stream.
        start = request.headers.get("last-event-id", after)
        await ask(start)
        return StreamingResponse(events(start), media_type=EVENTS)
    batch = await ask(after)
    waited = 0.0
    while not batch["commits"] and waited < wait and not call.service.is_stopping:
        await asyncio.sleep(_POLL_SECONDS)
        waited += _POLL_SECONDS
        batch = await ask(batch["cursor"])
    return answer_json(json.loads(to_json(plain_value(batch))))


def _last_event(call: GraphCall, error: OmnigraphError) -> bytes:
    """What ends a stream whose status was sent; nothing if it is only that the server stops."""
    if call.service.is_stopping:
        return b""
    problem = json.dumps(to_problem(error, request_id_of(call.request)))
    return f"event: problem\ndata: {call.service.hide_places(problem)}\n\n".encode()
