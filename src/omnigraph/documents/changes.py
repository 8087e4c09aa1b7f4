"""Changed rows on their way: few with the diff they are of, many when they are read."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from omnigraph.changes.diffs import Batch, CommitChanges, GraphDiff
from omnigraph.changes.rows import Changes, Chunk
from omnigraph.choices import Op
from omnigraph.limits import ROWS_PER_BATCH_MAX
from omnigraph.model.counts import Counts
from omnigraph.schema.catalog import SchemaType

# What prints counts of changes need not load Arrow.
if TYPE_CHECKING:
    import pyarrow as pa

    from omnigraph.formats.arrow_streams import Piece

SENT_ROWS_MAX: Final = 1000
SENT_SIZE_MAX: Final = 1 << 20
"""Changed rows of a type, and their bytes, that a server sends with a diff; more when read."""


_OP: Final = b"op"
_SIDE: Final = b"side"
_BEFORE: Final = b"before"
_AFTER: Final = b"after"


@dataclass(frozen=True, slots=True)
class RowsRequest:
    """The changed rows of one type between two commits.

    Attributes:
        place: Which of the tables of that name it is: a type that was dropped and one that was
            added may share a name.
    """

    before: str
    after: str
    type_name: str
    place: int = 0


Fetch = Callable[[RowsRequest, Collection[Op]], Iterator[Chunk]]
"""Fetches rows that were too many to be sent with a diff."""


@dataclass(frozen=True, slots=True)
class SentChanges:
    """The changes of one type, as a client has them.

    Attributes:
        rows: All changed rows, as `chunk_pieces` writes them; None where they are too many.
        fetch: Returns them where they were too many to be sent with the diff.
    """

    type: SchemaType
    counts: Counts
    rows: bytes | None = None
    fetch: Callable[[Collection[Op]], Iterator[Chunk]] | None = field(
        default=None, compare=False, repr=False
    )

    def chunks(self, ops: Collection[Op]) -> Iterator[Chunk]:
        """The rows with one of these kinds of change: inserted, then updated, then deleted."""
        import pyarrow as pa

        if self.rows is None:
            assert self.fetch is not None, "a received page knows its source"
            yield from self.fetch(ops)
            return
        for chunk in read_chunks(pa.ipc.open_stream(pa.py_buffer(self.rows))):
            if chunk.op in ops:
                yield chunk


def chunk_pieces(chunks: Iterable[Chunk]) -> Iterator[Piece]:
    """Chunks of one type in Arrow's format for streams: batches before changes, then after them."""
    import pyarrow as pa

    from omnigraph.formats.arrow_streams import PieceSink

    sink, writer = PieceSink(), None
    for chunk in chunks:
        for start in range(0, _row_count(chunk), ROWS_PER_BATCH_MAX):
            for side, rows in ((_BEFORE, chunk.before), (_AFTER, chunk.after)):
                if rows is None:
                    continue
                writer = writer or pa.ipc.new_stream(sink, rows.schema)
                some = rows.slice(start, ROWS_PER_BATCH_MAX).combine_chunks()
                facts = {_OP: str(chunk.op).encode(), _SIDE: side}
                writer.write_batch(some.to_batches()[0], custom_metadata=facts)
                yield from sink.take()
    if writer is not None:
        writer.close()
    yield from sink.take()


def _row_count(chunk: Chunk) -> int:
    rows = chunk.before if chunk.after is None else chunk.after
    assert rows is not None, "a change has rows before it or after it"
    return int(rows.num_rows)


def read_chunks(reader: pa.RecordBatchReader) -> Iterator[Chunk]:
    """The chunks that `chunk_pieces` wrote."""
    import pyarrow as pa

    before: pa.Table | None = None
    while True:
        try:
            batch, facts = reader.read_next_batch_with_custom_metadata()
        except StopIteration:
            return
        op, rows = Op(facts[_OP].decode()), pa.Table.from_batches([batch])
        if facts[_SIDE] == _BEFORE and op is not Op.DELETE:
            before = rows
        elif facts[_SIDE] == _BEFORE:
            yield Chunk(op, rows, None)
        else:
            yield Chunk(op, before, rows)
            before = None


def send_changes(result: Any) -> Any:
    """A result with its changed rows as they are sent: with it if they are few."""
    match result:
        case GraphDiff():
            tables = tuple(_send_table(table, result.ops) for table in result.tables)
            return replace(result, tables=tables)
        case Batch():
            return replace(result, commits=tuple(map(send_changes, result.commits)))
        case CommitChanges():
            return replace(result, diff=send_changes(result.diff))
        case _:
            return result


def _send_table(table: Changes, ops: Collection[Op]) -> SentChanges:
    counts = table.counts
    if counts.inserted + counts.updated + counts.deleted > SENT_ROWS_MAX:
        return SentChanges(table.type, counts)
    pieces, size = [], 0
    for piece in chunk_pieces(table.chunks(ops)):
        size += len(piece)
        if size > SENT_SIZE_MAX:
            return SentChanges(table.type, counts)
        pieces.append(piece)
    # Without a row of these kinds there is no stream, either.
    return SentChanges(table.type, counts, b"".join(pieces)) if pieces else _no_rows(table)


def _no_rows(table: Changes) -> SentChanges:
    import pyarrow as pa

    from omnigraph.schema.arrow import table_schema

    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table_schema(table.type)):
        pass
    return SentChanges(table.type, table.counts, sink.getvalue().to_pybytes())


def receive_changes(result: Any, fetch: Fetch) -> Any:
    """A received result whose changed rows are fetched when they are read."""
    match result:
        case GraphDiff():
            names: list[str] = []
            tables = []
            for table in result.tables:
                place = names.count(table.type.name)
                names.append(table.type.name)
                tables.append(_receive_table(result, table, place, fetch))
            return replace(result, tables=tuple(tables))
        case Batch():
            commits = tuple(receive_changes(each, fetch) for each in result.commits)
            return replace(result, commits=commits)
        case CommitChanges():
            return replace(result, diff=receive_changes(result.diff, fetch))
        case _:
            return result


def _receive_table(diff: GraphDiff, table: Changes, place: int, fetch: Fetch) -> Changes:
    if not isinstance(table, SentChanges) or table.rows is not None:
        return table

    def fetch_rows(ops: Collection[Op]) -> Iterator[Chunk]:
        return fetch(RowsRequest(diff.before, diff.after, table.type.name, place), ops)

    return replace(table, fetch=fetch_rows)


def find_changes(diff: GraphDiff, wanted: RowsRequest) -> Iterator[Chunk]:
    """The rows of a diff that were too many to be sent with it."""
    named = [table for table in diff.tables if table.type.name == wanted.type_name]
    return named[wanted.place].chunks(diff.ops) if wanted.place < len(named) else iter(())
