"""Ingest: a streaming DataFrame whose micro-batches this process writes to a graph."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any, Self

from pyspark.errors import AnalysisException, PySparkException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

from omnigraph.choices import EngineName, Mode
from omnigraph.engine.spark.connect import is_connect
from omnigraph.engine.spark.failures import silence_loggers
from omnigraph.errors import (
    ErrorCode,
    InvalidInputError,
    InvalidParameterError,
    OmnigraphError,
)
from omnigraph.load.results import LoadResult
from omnigraph.model.arguments import require_text
from omnigraph.streams.batches import StreamWriter
from omnigraph.streams.checkpoints import Checkpoint
from omnigraph.streams.handles import Ingest


@dataclass(frozen=True, slots=True)
class Trigger:
    """When batches are made.

    Attributes:
        every: How often, such as `10 seconds`; when None, as soon as the one before is done.
        is_available_now: Whether the stream ends when it has read what there is now.
    """

    every: str | None = None
    is_available_now: bool = False

    @classmethod
    def parse(cls, every: str | None, *, is_available_now: bool) -> Self:
        """Validate what a caller gave. Spark itself judges the interval."""
        if every is not None:
            require_text(every, "every")
            if is_available_now:
                message = "a stream that ends when it has read what there is now has no interval"
                hint = "give every or available_now"
                raise InvalidParameterError(message, hint=hint, name="every")
        return cls(every, is_available_now)

    def arguments(self) -> dict[str, Any]:
        """The arguments of Spark's trigger."""
        if self.is_available_now:
            return {"availableNow": True}
        return {} if self.every is None else {"processingTime": self.every}


class _Receiver:
    """Receives batches from Spark, in a thread of its own."""

    def __init__(self, writer: StreamWriter, checkpoint: Checkpoint) -> None:
        self._writer = writer
        self._checkpoint = checkpoint
        self._lock = threading.Lock()
        self.last: LoadResult | None = None
        self.failure: OmnigraphError | None = None

    def take(self, frame: DataFrame, number: int) -> None:
        """Write one batch. An exception ends the stream."""
        with self._lock:
            try:
                batch = self._checkpoint.batch(self._writer.settings.name, number)
                result = self._writer.write(batch, frame, EngineName.SPARK)
            except OmnigraphError as failure:
                self.failure = failure
                raise
            if result is None:
                # Spark has to run every batch: operators with state write their state with it.
                frame.write.format("noop").mode("overwrite").save()
            else:
                self.last = result


def start_ingest(
    stream: object, writer: StreamWriter, checkpoint: Checkpoint, trigger: Trigger
) -> Ingest:
    """Start to write the micro-batches of a stream, each in one commit."""
    if is_connect(stream):
        message = "this stream is one of Spark Connect, whose batches another process receives"
        hint = 'write it with stream.writeStream.format("omnigraph")'
        raise InvalidInputError(message, hint=hint, code=ErrorCode.ENGINE_UNAVAILABLE)
    if not (isinstance(stream, DataFrame) and stream.isStreaming):
        message = f"a {type(stream).__name__} was given instead of a stream"
        hint = "make it with spark.readStream; graph.load loads all other rows"
        raise InvalidParameterError(message, hint=hint, name="stream")
    silence_loggers()
    receiver = _Receiver(writer, checkpoint)
    settings = writer.settings
    sink = (
        stream.writeStream.foreachBatch(receiver.take)
        .option("checkpointLocation", checkpoint.location)
        # Rows that an aggregation updates replace those of the batches before.
        .outputMode("update" if settings.mode is Mode.MERGE else "append")
    )
    if arguments := trigger.arguments():
        try:
            sink = sink.trigger(**arguments)
        except PySparkException as cause:
            message = f"every is {trigger.every!r}, which is not an interval: {cause}"
            raise InvalidParameterError(message, hint="such as 10 seconds", name="every") from cause
    try:
        query = sink.start()
    except (AnalysisException, StreamingQueryException) as cause:
        message = f"Spark refuses the stream: {str(cause).splitlines()[0]}"
        hint = "change the stream; rows that an aggregation updates need the mode merge"
        raise InvalidInputError(message, hint=hint) from cause
    return Ingest(query, settings.name, receiver)


def fetch_with(session: SparkSession, path: str) -> bytes | None:
    """What a small file holds, read by Spark, from wherever it can read, or None."""
    try:
        rows = session.read.format("binaryFile").load(path).select("content").collect()
    except AnalysisException:
        return None
    return bytes(rows[0][0]) if rows else None
