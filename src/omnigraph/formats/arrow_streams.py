"""Arrow's format for streams, piece by piece as it is written."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any, Final, TypeAlias

import pyarrow as pa

Piece: TypeAlias = bytes | memoryview
"""Some bytes of a stream, or the part of a table that has them."""

_BATCH_ROWS: Final = 1 << 16
_COPY_BYTES_MAX: Final = 1 << 12
"""What is smaller is copied into one piece with its neighbours."""


def arrow_pieces(table: pa.Table) -> Iterator[Piece]:
    """A table in Arrow's format for streams, a batch at a time; its columns are not copied."""
    sink = PieceSink()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        yield from sink.take()
        for batch in _batches(table):
            stream.write_batch(batch)
            yield from sink.take()
    yield from sink.take()


def arrow_size(table: pa.Table) -> int:
    """How many bytes `arrow_pieces` returns. Nothing is copied to count them.

    >>> table = pa.table({"name": ["Ada", "Bob", None]})
    >>> arrow_size(table) == len(b"".join(arrow_pieces(table)))
    True
    """
    sink = pa.MockOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        for batch in _batches(table):
            stream.write_batch(batch)
    return int(sink.size())


def _batches(table: pa.Table) -> list[pa.RecordBatch]:
    return table.to_batches(max_chunksize=_BATCH_ROWS)  # type: ignore[no-any-return]


class PieceSink(io.RawIOBase):
    """Collects what Arrow writes until it is sent."""

    def __init__(self) -> None:
        super().__init__()
        self._pieces: list[Piece] = []
        self._small: list[bytes] = []

    def writable(self) -> bool:
        """Always."""
        return True

    def write(self, data: Any) -> int:
        """Keep what is written: columns by reference, all that is small as a copy."""
        view = memoryview(data).cast("B")
        if len(view) > _COPY_BYTES_MAX and isinstance(data, pa.Buffer):
            # A buffer keeps its memory; of anything else, Arrow may write the next thing there.
            self._join_small()
            self._pieces.append(view)
        else:
            self._small.append(bytes(view))
        return len(view)

    def take(self) -> Iterator[Piece]:
        """What was written since the last time."""
        self._join_small()
        pieces, self._pieces = self._pieces, []
        yield from pieces

    def _join_small(self) -> None:
        if self._small:
            self._pieces.append(b"".join(self._small))
            self._small = []
