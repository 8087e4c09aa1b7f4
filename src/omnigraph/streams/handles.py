"""Handles on streams that write to a graph."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Final, Protocol, Self

from omnigraph.errors import OmnigraphError

# Spark is imported when a stream is waited for: it runs by then.
if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

    from omnigraph.load.results import LoadResult

_ACTION: Final = "the stream"


class Receiver(Protocol):
    """What receives the batches of a stream: the newest result, and the error that ended it."""

    last: LoadResult | None
    failure: OmnigraphError | None


class Ingest:
    """A stream that writes to a graph, until it is stopped or fails.

    Attributes:
        query: Spark's own handle, with the progress of the stream.
        name: The name of the stream.
    """

    def __init__(self, query: StreamingQuery, name: str, receiver: Receiver) -> None:
        self.query = query
        self.name = name
        self._receiver = receiver

    @property
    def is_active(self) -> bool:
        """Whether the stream runs."""
        return bool(self.query.isActive)

    @property
    def last(self) -> LoadResult | None:
        """The result of the newest batch that this handle has written."""
        return self._receiver.last

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until the stream has ended, which is what this returns.

        Args:
            seconds: How long to wait; without end when None.

        Raises:
            IntegrityError: rows of a batch break rules. Nothing of the batch became visible, and a
                restart begins with it.
            StreamError: the checkpoint and the branch contradict each other.
            OmnigraphError: a batch failed for another reason. A restart begins with it.
        """
        from omnigraph.engine.spark.failures import translate_errors

        try:
            with translate_errors(_ACTION):
                # It takes fractions of seconds, too.
                ended = self.query.awaitTermination(seconds)  # type: ignore[arg-type]
        except OmnigraphError as failure:
            # Spark keeps the text of an error only.
            raise self._receiver.failure or failure from None
        return True if seconds is None else bool(ended)

    def stop(self) -> None:
        """Stop the stream, and wait until it has ended. A restart continues it.

        A batch that is being written either lands or does not; a restart finds out which.
        """
        from omnigraph.engine.spark.failures import translate_errors

        with translate_errors(_ACTION):
            self.query.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def __repr__(self) -> str:
        state = "active" if self.is_active else "ended"
        return f"Ingest({self.name!r}, {state})"
