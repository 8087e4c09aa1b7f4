"""Results on their way: a line of JSON, and after it the rows, if there are any.

The line is padded with blanks, so that rows in Arrow's format begin where processors want them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from omnigraph.choices import EngineName
from omnigraph.documents.changes import Fetch, receive_changes, send_changes
from omnigraph.documents.values import from_document, to_document
from omnigraph.errors import ErrorCode, NotAllowedError
from omnigraph.graph import Graph

if TYPE_CHECKING:
    import pyarrow as pa

    from omnigraph.engine.spark.execute import Frame
    from omnigraph.formats.arrow_streams import Piece

MEDIA_TYPE: Final = "application/vnd.omnigraph.result"

_ALIGNMENT: Final = 64
_LINE_BYTES: Final = 1 << 16
"""Most lines end before this: not all rows are searched for their end."""


@dataclass(frozen=True, slots=True)
class QueryFacts:
    """All of the result of a query but its rows."""

    commit_id: str
    engine: EngineName
    why: str
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ResultBody:
    """A result to send.

    Attributes:
        value: What the line of JSON has.
        rows: What follows it.
    """

    value: object
    rows: pa.Table | None = None

    def pieces(self) -> Iterator[Piece]:
        """The line of JSON, and the rows in Arrow's format for streams."""
        yield document_line(self.value)
        if self.rows is not None:
            from omnigraph.formats.arrow_streams import arrow_pieces

            yield from arrow_pieces(self.rows)

    @property
    def size(self) -> int:
        """How many bytes the pieces have."""
        size = len(document_line(self.value))
        if self.rows is not None:
            from omnigraph.formats.arrow_streams import arrow_size

            size += arrow_size(self.rows)
        return size


def document_line(value: object) -> bytes:
    """A value as a document on one line, with blanks at its end.

    >>> len(document_line({"a": 1})), document_line({"a": 1})[:8]
    (64, b'{"a": 1}')
    """
    text = json.dumps(to_document(value)).encode()
    return text + b" " * (-(len(text) + 1) % _ALIGNMENT) + b"\n"


def pack(result: Any) -> ResultBody:
    """A result of a graph as it is sent."""
    from omnigraph.algorithms.results import AlgorithmResult
    from omnigraph.engine.query_results import QueryResult

    match result:
        case Graph():
            return ResultBody(result.target)
        case QueryResult():
            facts = QueryFacts(result.commit_id, result.engine, result.why, result.notes)
            return ResultBody(facts, result.arrow())
        case AlgorithmResult():
            return ResultBody(replace(result, rows=None), result.to_arrow())
        case _:
            return ResultBody(send_changes(result))


def unpack(line: bytes, rest: memoryview, fetch: Fetch) -> Any:
    """The result that was sent.

    Args:
        rest: What follows the line.
        fetch: Fetches changed rows that were too many: see `receive_changes`.
    """
    value = from_document(json.loads(line))
    if isinstance(value, QueryFacts):
        from omnigraph.engine.query_results import QueryResult

        facts = (value.commit_id, value.engine, value.why)
        return QueryResult(*facts, _read_rows(rest), _refuse_frame, value.notes)
    if type(value).__name__ == "AlgorithmResult":
        return replace(value, rows=_read_rows(rest))
    return receive_changes(value, fetch)


def _read_rows(rest: memoryview) -> pa.Table:
    import pyarrow as pa

    return pa.ipc.open_stream(pa.py_buffer(rest)).read_all()


def _refuse_frame() -> Frame:
    what = "a DataFrame of a query"
    raise spark_error(what)


def spark_error(what: str) -> NotAllowedError:
    """The error of what Spark would have to read from where the graph is stored."""
    message = f"{what} needs the storage of the graph, and a remote graph has only its address"
    hint = "open the graph where it is stored, or take the rows as Arrow"
    return NotAllowedError(message, hint=hint, code=ErrorCode.NOT_ALLOWED)


def split_line(data: memoryview | bytes) -> tuple[bytes, memoryview]:
    r"""The line of JSON, and what follows it.

    >>> line, rest = split_line(b'{} \nrows')
    >>> line, bytes(rest)
    (b'{} ', b'rows')
    """
    view = memoryview(data)
    end = bytes(view[:_LINE_BYTES]).find(b"\n")
    if end < 0:
        end = bytes(view).find(b"\n")
    return (bytes(view), view[:0]) if end < 0 else (bytes(view[:end]), view[end + 1 :])
