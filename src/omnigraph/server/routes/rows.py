"""Routes of rows: one node or edge, its history, its bytes, and all rows of a commit."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from typing import Annotated, BinaryIO, Final

from fastapi import APIRouter, Query, Request
from starlette.responses import Response, StreamingResponse

from omnigraph.changes import facts
from omnigraph.engine.budget import Cancellation
from omnigraph.errors import ErrorCode, InvalidInputError, NotFoundError
from omnigraph.formats.cells import plain_value
from omnigraph.server import wire
from omnigraph.server.answers import MediaType, answer_json, hidden_header
from omnigraph.server.context import (
    AtPoint,
    Call,
    Cursor,
    GraphCall,
    Limit,
    Name,
    Words,
    from_cursor,
    to_cursor,
)
from omnigraph.server.routes.documents import PROBLEMS, gives, gives_bytes

router = APIRouter(prefix="/graphs/{graph}")

_BYTES: Final = "application/octet-stream"
_PIECE_BYTES: Final = 1 << 20
EntityId = Annotated[str, Query(alias="id", max_length=10_000, description="The id, as it is.")]


@router.get("/entities/{type_name}", responses=gives(wire.EntityAnswer))
async def entity_by_id(
    call: Call, type_name: str, entity_id: EntityId, at: Name = None
) -> Response:
    """One node or edge, by an id that may have any characters."""
    return await call.read(lambda _: _answer_entity(call, type_name, entity_id, at))


@router.get(
    "/entities/{type_name}/{entity_id:path}/history", responses=gives(wire.EntityHistoryAnswer)
)
async def entity_history(
    call: Call,
    type_name: str,
    entity_id: str,
    branch: Name = None,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> Response:
    """The commits that changed one node or edge, oldest first; looks at `limit` commits at most."""

    def run(_: Cancellation) -> Response:
        batch = call.graph.changes(
            after=from_cursor(cursor), branch=branch, limit=limit, types=[type_name]
        )
        found = [
            {"commit": each.commit.to_json(), **row}
            for each in batch.commits
            for row in facts.row_objects(each.diff)
            if row["id"] == entity_id
        ]
        following = None if batch.is_newest else to_cursor(batch.cursor)
        return answer_json({"changes": found, "cursor": following})

    return await call.read(run)


@router.get("/entities/{type_name}/{entity_id:path}", responses=gives(wire.EntityAnswer))
async def entity(call: Call, type_name: str, entity_id: str, at: Name = None) -> Response:
    """One node or edge, by its id."""
    return await call.read(lambda _: _answer_entity(call, type_name, entity_id, at))


def _answer_entity(call: GraphCall, type_name: str, entity_id: str, at: str | None) -> Response:
    row = call.graph.entity(type_name, entity_id, at=at)
    if row is None:
        message = f"{type_name} {entity_id[:200]!r} does not exist"
        raise NotFoundError(message, hint="ids are texts: that of a key, or one that was made")
    return answer_json(plain_value(row))


@router.get(
    "/blobs/{type_name}/{property_name}/{entity_id:path}",
    responses={
        **gives_bytes(_BYTES),
        **gives_bytes(_BYTES, 206),
        304: {"description": "The bytes are those of `If-None-Match`"},
        416: PROBLEMS[400],
    },
)
async def blob(
    request: Request,
    call: Call,
    type_name: str,
    property_name: str,
    entity_id: str,
    at: Name = None,
) -> Response:
    """The bytes of one property, or a range of them."""

    def run(_: Cancellation) -> Response:
        row = call.graph.entity(type_name, entity_id, at=at)
        value = None if row is None else row.get(property_name)
        if not isinstance(value, bytes):
            message = f"{type_name} {entity_id[:200]!r} has no bytes in {property_name[:200]!r}"
            raise NotFoundError(message, hint="blobs are properties of the type Blob")
        return _answer_blob(request, value)

    return await call.read(run)


def _answer_blob(request: Request, data: bytes) -> Response:
    tag = f'"{sha256(data).hexdigest()}"'
    # Bytes of users are never shown as a page of this server.
    headers = {"ETag": tag, "Accept-Ranges": "bytes", "Content-Disposition": "attachment"}
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers=headers)
    span = parse_range(request.headers.get("range"), len(data))
    if request.headers.get("if-range", tag) != tag or span is None:
        return Response(data, media_type=_BYTES, headers=headers)
    start, end = span
    if start >= end:
        message = f"the blob has {len(data)} bytes, and none of the range"
        raise InvalidInputError(message, code=ErrorCode.RANGE_NOT_SATISFIABLE, size=len(data))
    headers["Content-Range"] = f"bytes {start}-{end - 1}/{len(data)}"
    return Response(data[start:end], 206, media_type=_BYTES, headers=headers)


def parse_range(header: str | None, size: int) -> tuple[int, int] | None:
    """The bytes that a header asks for, from one to before the other; None is all.

    >>> parse_range("bytes=2-3", 10), parse_range("bytes=-4", 10), parse_range("bytes=20-", 10)
    ((2, 4), (6, 10), (20, 10))
    """
    if header is None or not header.startswith("bytes=") or "," in header:
        return None
    first, dash, last = header.removeprefix("bytes=").strip().partition("-")
    if not dash or not all(
        part == "" or (part.isascii() and part.isdigit()) for part in (first, last)
    ):
        return None
    if first == "":
        return None if last == "" else (max(0, size - int(last[:19])), size)
    end = size if last == "" else min(size, int(last[:19]) + 1)
    return int(first[:19]), end


@router.get("/export", responses=gives_bytes(MediaType.NDJSON))
async def export(call: Call, at: AtPoint, types: Words = None) -> Response:
    """All rows at one commit, as NDJSON that loads again with the same ids."""
    target = call.service.scratch / f"export-{call.service.clock.ulid()}.jsonl"

    def run(_: Cancellation) -> Response:
        try:
            handle = call.graph if at.is_own else call.graph.at(**at.names)
            done = handle.export(target, types=types, format="ndjson", engine="local")
            file = target.open("rb")
        finally:
            # What is open can be read, and nothing is left behind whatever happens to the client.
            target.unlink(missing_ok=True)
        headers = {"Omnigraph-Commit": done.commit_id, **hidden_header(done.hidden)}
        return StreamingResponse(_pieces(file), media_type=MediaType.NDJSON, headers=headers)

    return await call.read(run, is_timed=False)


def _pieces(file: BinaryIO) -> Iterator[bytes]:
    with file:
        while piece := file.read(_PIECE_BYTES):
            yield piece
