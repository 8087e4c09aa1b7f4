"""The writer behind `df.write.format("omnigraph")`: a load of rows that executors stored.

Executors write their rows beside the tables. When all of them are done, the process in which Spark
commits loads these rows with all checks, in one commit. That process has no Spark session, so it
loads by itself what one process can, and starts a Spark of its own for more.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from omnigraph.backends.registry import Backends
from omnigraph.choices import EmbedWhen, EngineName
from omnigraph.clock import SystemClock
from omnigraph.connector.options import PinnedType, by_name, pin
from omnigraph.embedding.writes import WriteEmbedding
from omnigraph.engine.spark.failures import report_errors
from omnigraph.engine.spark.session import open_session
from omnigraph.errors import ErrorCode, InvalidParameterError, NotAllowedError
from omnigraph.limits import LOAD_HELD_BYTES_MAX, LOAD_LOCAL_BYTES_MAX, LOAD_LOCAL_ROWS_MAX
from omnigraph.load.loads import LoadRequest, Loads
from omnigraph.load.spark.scratch import Scratch
from omnigraph.manifest.reader import Manifest
from omnigraph.manifest.schemas import Catalogs
from omnigraph.manifest.settings import StoredSettings
from omnigraph.model.commits import OperationKind, require_actor, require_message
from omnigraph.model.names import MAIN, BranchName
from omnigraph.storage.store import Store
from omnigraph.transaction.protocol import Order, Transactions


@dataclass(frozen=True, slots=True)
class SaveTask:
    """What to load when all rows are stored.

    Attributes:
        columns: Those of the frame.
        mode: As a load's.
        scratch: Where executors store rows.
    """

    type_name: str
    columns: StructType
    branch: BranchName
    mode: str
    scratch: Scratch
    actor: str | None = None
    message: str | None = None


@dataclass(frozen=True)
class PartitionRows(WriterCommitMessage):
    """The rows that one task stored: the files, in their order, and their size."""

    paths: tuple[str, ...]
    rows: int
    bytes: int


class LoadWriter(DataSourceArrowWriter):
    """Makes one commit of all rows of a frame, or none."""

    def __init__(self, task: SaveTask) -> None:
        self._task = task

    def write(self, iterator: Iterator[pa.RecordBatch]) -> PartitionRows:
        """Store one partition's rows. Runs in an executor; safe to run twice."""
        context = TaskContext.get()
        part = 0 if context is None else context.partitionId()
        paths: list[str] = []
        batches: list[pa.RecordBatch] = []
        rows = size = batches_size = 0

        def store() -> None:
            name = f"part-{part:05}-{len(paths):05}"
            paths.append(self._task.scratch.write(name, pa.Table.from_batches(batches)))

        with report_errors():
            for batch in iterator:
                if batches and batches_size + batch.nbytes > LOAD_HELD_BYTES_MAX:
                    store()
                    batches, batches_size = [], 0
                batches.append(batch)
                rows, size = rows + batch.num_rows, size + batch.nbytes
                batches_size += batch.nbytes
            if batches:
                store()
        return PartitionRows(tuple(paths), rows, size)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Load the stored rows, and delete their files.

        Raises:
            IntegrityError: rows break rules of the schema. Nothing became visible.
            ConflictError: others changed the same tables meanwhile. Nothing became visible.
        """
        with self._task.scratch.hold():
            parts = [part for part in messages if isinstance(part, PartitionRows) and part.rows]
            # The order of tasks is that of the frame's partitions.
            paths = sorted(path for part in parts for path in part.paths)
            rows, size = sum(part.rows for part in parts), sum(part.bytes for part in parts)
            if rows > LOAD_LOCAL_ROWS_MAX or size > LOAD_LOCAL_BYTES_MAX:
                self._load_on_spark(paths)
            elif paths:
                table = pa.concat_tables([self._task.scratch.read(path) for path in paths])
                self._load(table, EngineName.LOCAL)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:  # noqa: ARG002
        """Delete the files with rows."""
        self._task.scratch.clear()

    def _load_on_spark(self, paths: Sequence[str]) -> None:
        # The session that writes cannot be reached from the process that commits.
        is_ours = SparkSession.getActiveSession() is None
        # The options of the JVM whose child this process is; a new one must not inherit them.
        os.environ.pop("SPARK_SUBMIT_OPTS", None)
        session = open_session()
        try:
            frame = self._task.scratch.frame(session, paths, self._task.columns)
            self._load(frame, EngineName.SPARK)
        finally:
            if is_ours:
                session.stop()

    def _load(self, rows: object, engine: EngineName) -> None:
        task, clock = self._task, SystemClock()
        store = Store.open(task.scratch.root.uri)
        transactions = Transactions(Manifest(store), clock, Catalogs(store.objects))
        order = Order(OperationKind.LOAD, task.branch, actor=task.actor, message=task.message)
        request = LoadRequest({task.type_name: rows}, mode=task.mode, engine=engine)
        settings = StoredSettings(store.objects, clock)

        def begin_embedding(when: EmbedWhen) -> WriteEmbedding:
            return WriteEmbedding(when, lambda: settings.current().embedding, clock)

        Loads(transactions, Backends().of, clock, begin_embedding).run(order, request)


def open_writer(options: Mapping[str, str], columns: StructType, *, overwrites: bool) -> LoadWriter:
    """A writer that loads rows of a type.

    Raises:
        InvalidParameterError: the options do not say where to, or contradict each other.
        NotAllowedError: they name the past.
    """
    given = by_name(options)
    if given.keys() & {"commit", "version"}:
        message = "the past cannot be written"
        raise NotAllowedError(message, hint="name a branch", code=ErrorCode.READ_ONLY)
    pinned = pin(given)
    if not isinstance(pinned, PinnedType):
        message = "rows are written to a type"
        raise InvalidParameterError(message, hint='.save("Person")', name="query")
    mode = given.get("mode", "overwrite" if overwrites else "append")
    if overwrites and mode != "overwrite":
        message = f"the option mode is {mode}, and Spark's mode is overwrite"
        raise InvalidParameterError(message, hint='use .mode("append") with it', name="mode")
    task = SaveTask(
        pinned.type.name,
        columns,
        BranchName.parse(given.get("branch", MAIN)),
        mode,
        Scratch(pinned.address.root, SystemClock().ulid()),
        actor=require_actor(given.get("actor")),
        message=require_message(given.get("message")),
    )
    return LoadWriter(task)
