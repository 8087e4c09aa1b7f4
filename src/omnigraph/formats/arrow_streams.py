"""Arrow's format for streams, piece by piece as it is written."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any, Final

import pyarrow as pa

_BATCH_ROWS: Final = 1 << 16


def arrow_pieces(table: pa.Table) -> Iterator[bytes]:
    """A table in Arrow's format for streams, a batch at a time."""
    sink = PieceSink()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        yield from sink.take()
        for batch in table.to_batches(max_chunksize=_BATCH_ROWS):
            stream.write_batch(batch)
            yield from sink.take()
    yield from sink.take()


class PieceSink(io.RawIOBase):
    """Collects what Arrow writes until it is sent."""

    def __init__(self) -> None:
        super().__init__()
        self._pieces: list[bytes] = []

    def writable(self) -> bool:
        """Always."""
        return True

    def write(self, data: Any) -> int:
        """Keep a piece."""
        piece = bytes(data)
        self._pieces.append(piece)
        return len(piece)

    def take(self) -> Iterator[bytes]:
        """What was written since the last time, as one piece, or none."""
        pieces, self._pieces = self._pieces, []
        if pieces:
            yield b"".join(pieces)
