"""Answers: results in the form that a request accepts, streamed."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any, Final

import pyarrow as pa
from starlette.responses import JSONResponse, Response, StreamingResponse

from omnigraph.engine.query_results import QueryResult
from omnigraph.errors import ErrorCode, InvalidInputError
from omnigraph.formats.arrow_streams import Piece, arrow_pieces, arrow_size
from omnigraph.formats.row_texts import csv_texts, json_texts, line_texts

RESULT_HEADER: Final = "Omnigraph-Result"
"""What is known of a result besides its rows, as JSON, where the body has only rows."""

HIDDEN_HEADER: Final = "Omnigraph-Hidden"
"""The types that were left out, because the actor may not read them, where the body has rows."""

_ROWS_AT_ONCE_MAX: Final = 1_000
_SENT_BYTES_MAX: Final = 1 << 20


class MediaType(StrEnum):
    """The forms of a result."""

    JSON = "application/json"
    NDJSON = "application/x-ndjson"
    CSV = "text/csv"
    ARROW = "application/vnd.apache.arrow.stream"


ROW_TYPES: Final = (MediaType.NDJSON, MediaType.CSV, MediaType.ARROW)
"""The forms of rows besides JSON."""


def hidden_header(names: Sequence[str]) -> dict[str, str]:
    """The header that names the types which were left out; otherwise empty."""
    return {HIDDEN_HEADER: ", ".join(names)} if names else {}


def choose_media_type(accept: str | None) -> MediaType:
    """The form that a header `Accept` prefers: by its `q`, and of equal ones the first.

    >>> choose_media_type("text/csv;q=0.5, application/x-ndjson"), choose_media_type("*/*")
    (<MediaType.NDJSON: 'application/x-ndjson'>, <MediaType.JSON: 'application/json'>)
    """
    if accept is None or not accept.strip():
        return MediaType.JSON
    ranges = [_media_range(part) for part in accept.split(",")]
    for name, weight in sorted(ranges, key=lambda each: -each[1]):
        if weight > 0 and name in set(MediaType):
            return MediaType(name)
        if weight > 0 and name in ("*/*", "application/*"):
            return MediaType.JSON
    message = f"the header Accept has {accept[:100]!r}, which is not available"
    hint = f"use one of {', '.join(MediaType)}"
    raise InvalidInputError(message, hint=hint, code=ErrorCode.NOT_ACCEPTABLE)


def _media_range(text: str) -> tuple[str, float]:
    """One entry of `Accept`, and its weight; 1 where none can be read.

    >>> _media_range(" Text/CSV; header=present; q=0.3")
    ('text/csv', 0.3)
    """
    name, *parameters = (part.strip().lower() for part in text.split(";"))
    weights = [part.removeprefix("q=") for part in parameters if part.startswith("q=")]
    is_number = weights and weights[0].replace(".", "", 1).isdecimal()
    return name, float(weights[0]) if is_number else 1.0


def result_facts(result: QueryResult) -> dict[str, Any]:
    """All of a result but its rows."""
    return {
        "commit_id": result.commit_id,
        "engine": result.engine,
        "why": result.why,
        "notes": list(result.notes),
    }


def answer_query(result: QueryResult, wanted: MediaType) -> Response:
    """The rows of a query."""
    facts = result_facts(result)
    # The same query at the same commit has the same rows, in this form.
    headers = {RESULT_HEADER: json.dumps(facts), "Omnigraph-Commit": result.commit_id}
    table = result.arrow()
    if wanted is MediaType.ARROW and table.num_rows > _ROWS_AT_ONCE_MAX:
        return stream_arrow(arrow_pieces(table), arrow_size(table), wanted, headers)
    pieces: Iterator[Piece] = (
        _json_pieces(facts, table) if wanted is MediaType.JSON else _WRITERS[wanted](table)
    )
    if table.num_rows <= _ROWS_AT_ONCE_MAX:
        # Made in the thread of the query: each piece of a stream costs a thread and a packet.
        return Response(b"".join(pieces), media_type=wanted, headers=headers)
    return StreamingResponse(pieces, media_type=wanted, headers=headers)


def stream_arrow(
    pieces: Iterator[Piece], size: int, media_type: str, headers: Mapping[str, str] | None = None
) -> Response:
    """Rows in Arrow's format, of a size that is known.

    A client that is told the size can receive them into one piece of memory. Each piece is a part
    of the table, and takes no thread to make.
    """
    sent = {**(headers or {}), "Content-Length": str(size)}
    return StreamingResponse(_in_turns(pieces), media_type=media_type, headers=sent)


async def _in_turns(pieces: Iterator[Piece]) -> AsyncIterator[Piece]:
    """Pieces that are small enough to be copied quickly; between them, others have their turn."""
    for piece in pieces:
        for start in range(0, len(piece), _SENT_BYTES_MAX):
            yield piece[start : start + _SENT_BYTES_MAX]
            await asyncio.sleep(0)


def _json_pieces(facts: Mapping[str, Any], table: pa.Table) -> Iterator[bytes]:
    head = json.dumps({**facts, "columns": table.column_names})
    yield f'{head[:-1]}, "rows": '.encode()
    for piece in json_texts(table):
        yield piece.encode()
    yield b"}"


def _lines(table: pa.Table) -> Iterator[bytes]:
    return (piece.encode() for piece in line_texts(table))


def _csv(table: pa.Table) -> Iterator[bytes]:
    return (piece.encode() for piece in csv_texts(table))


_WRITERS: Final[Mapping[MediaType, Callable[[pa.Table], Iterator[Piece]]]] = {
    MediaType.NDJSON: _lines,
    MediaType.CSV: _csv,
    MediaType.ARROW: arrow_pieces,
}


def answer_json(value: object, status: int = 200, **headers: str) -> Response:
    """A small document."""
    return JSONResponse(value, status, headers=headers)


def answer_write(result: Mapping[str, Any]) -> Response:
    """What a write changed; the ETag is that of its branch afterwards."""
    commit_id = result["commit_id"]
    return answer_json(result) if commit_id is None else answer_head(commit_id, result)


def answer_head(commit_id: str, value: object, status: int = 200) -> Response:
    """A small document about the head of a branch, which is its ETag."""
    return answer_json(value, status, ETag=f'"{commit_id}"')
