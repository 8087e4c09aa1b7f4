"""The sink behind `df.writeStream.format("omnigraph")`: each micro-batch is one load.

Executors write their rows beside the tables. When all of them are done, the process in which Spark
commits loads these rows, as the writer of the connector does, unless the branch has the batch.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from omnigraph.clock import SystemClock
from omnigraph.connector.failures import hide_frames
from omnigraph.connector.writer import PartitionRows, open_loads, open_stored, store_partition
from omnigraph.engine.spark.types import arrow_schema
from omnigraph.errors import InvalidParameterError
from omnigraph.load.spark.scratch import Scratch
from omnigraph.manifest.reader import Manifest
from omnigraph.storage.store import Store
from omnigraph.streams.batches import StreamWriter
from omnigraph.streams.options import SinkOptions, parse_sink


@dataclass(frozen=True, slots=True)
class SinkTask:
    """What executors and the process that commits need.

    Attributes:
        columns: Those of the stream.
        scratch: Where executors store rows.
    """

    options: SinkOptions
    columns: StructType
    scratch: Scratch


class StreamSink(DataSourceStreamArrowWriter):
    """Makes one commit of each micro-batch, exactly once."""

    def __init__(self, task: SinkTask) -> None:
        self._task = task

    def write(self, iterator: Iterator[pa.RecordBatch]) -> PartitionRows:
        """Store one partition's rows. Runs in an executor; safe to run twice."""
        return store_partition(self._task.scratch, iterator)

    @hide_frames()
    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Load the stored rows unless the branch has the batch, and delete their files."""
        task, options = self._task, self._task.options
        scratch = self._scratch_of(messages)
        with (
            scratch.hold(),
            open_stored(scratch, task.columns, messages) as (rows, engine),
        ):
            batch = options.checkpoint.batch(options.settings.name, batchId)
            if rows is None:
                rows = arrow_schema(task.columns).empty_table()
            self._writer().write(batch, rows, engine)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: ARG002
        """Delete the files with rows."""
        self._scratch_of(messages).clear()

    def _scratch_of(self, messages: list[WriterCommitMessage | None]) -> Scratch:
        """Where the tasks of a batch stored their rows.

        Spark makes a sink for tasks and another one to commit (docs/substrate.md).
        """
        ids = {part.load_id for part in messages if isinstance(part, PartitionRows)}
        own = self._task.scratch
        return replace(own, load_id=ids.pop()) if len(ids) == 1 else own

    def _writer(self) -> StreamWriter:
        options, clock = self._task.options, SystemClock()
        manifest = Manifest(Store.open(options.graph))
        loads = open_loads(manifest, clock, options.access)
        return StreamWriter(manifest, loads, clock, options.write, options.settings)


def open_sink(
    options: Mapping[str, str], columns: StructType, *, overwrites: bool = False
) -> StreamSink:
    """A sink that loads the micro-batches of a stream.

    Args:
        overwrites: Whether each batch is to replace the one before, as in Spark's mode complete.
    """
    if overwrites:
        message = "the output mode complete gives all rows with every batch, and a batch adds rows"
        hint = (
            'use the output mode append; or graph.ingest with mode="merge", which writes the rows '
            "that an aggregation updates"
        )
        raise InvalidParameterError(message, hint=hint, name="outputMode")
    parsed = parse_sink(options)
    root = Store.open(parsed.graph).root
    return StreamSink(SinkTask(parsed, columns, Scratch(root, SystemClock().ulid())))
