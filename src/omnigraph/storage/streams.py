"""Streams: rows that are read after `storage` returned, with their failures still translated."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa

from omnigraph.storage.translate import translate_errors


def translate_stream(reader: pa.RecordBatchReader, action: str, where: str) -> pa.RecordBatchReader:
    """The same rows; failures while they are read are raised as by `translate_errors`."""

    def batches() -> Iterator[pa.RecordBatch]:
        with translate_errors(action, where):
            yield from reader

    return pa.RecordBatchReader.from_batches(reader.schema, batches())


class Relay:
    """Carries an exception past a stream consumer that keeps only its text.

    DuckDB and Lance read streams through Arrow's C interface, and raise an error of their own with
    the text of the stream's exception (docs/substrate.md, What Lance raises). Use one relay for one
    run of such a consumer.
    """

    def __init__(self) -> None:
        self._held: Exception | None = None

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Inside the consumer, in any thread: hold the exception that is raised."""
        try:
            yield
        except Exception as error:
            self._held = error
            raise

    def carry(self, reader: pa.RecordBatchReader) -> pa.RecordBatchReader:
        """The same rows, for the consumer to read."""

        def batches() -> Iterator[pa.RecordBatch]:
            with self.hold():
                yield from reader

        return pa.RecordBatchReader.from_batches(reader.schema, batches())

    @contextmanager
    def reraise(self) -> Iterator[None]:
        """Around the consumer: if it fails because a stream did, raise the stream's exception."""
        try:
            yield
        except Exception:
            if self._held is None:
                raise
            raise self._held from self._held.__cause__
