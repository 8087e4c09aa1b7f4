"""Rows that are read after `storage` returned: whoever consumes them, failures are ours."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa

from omnigraph.storage.translate import translating


def translated(reader: pa.RecordBatchReader, action: str, where: str) -> pa.RecordBatchReader:
    """The same rows; what fails while they are read is raised as `translating` raises it."""

    def batches() -> Iterator[pa.RecordBatch]:
        with translating(action, where):
            yield from reader

    return pa.RecordBatchReader.from_batches(reader.schema, batches())


class Relay:
    """Carries an error past a consumer of streams that keeps only its text.

    DuckDB and Lance read streams through Arrow's C interface, and raise an error of their own with
    the text of the one that the stream raised (tests/contract/lance/test_errors.py). Use one relay
    for one run of such a consumer.
    """

    def __init__(self) -> None:
        self._held: Exception | None = None

    @contextmanager
    def holding(self) -> Iterator[None]:
        """Hold what is raised inside of the consumer, in whatever thread that is."""
        try:
            yield
        except Exception as error:
            self._held = error
            raise

    def carry(self, reader: pa.RecordBatchReader) -> pa.RecordBatchReader:
        """The same rows, for the consumer to read."""

        def batches() -> Iterator[pa.RecordBatch]:
            with self.holding():
                yield from reader

        return pa.RecordBatchReader.from_batches(reader.schema, batches())

    @contextmanager
    def raising(self) -> Iterator[None]:
        """Around the consumer: if it fails because a stream did, raise what the stream raised."""
        try:
            yield
        except Exception:
            if self._held is None:
                raise
            raise self._held from self._held.__cause__
