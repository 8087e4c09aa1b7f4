"""Saving: what `df.write.format("omnigraph")` does, a load of rows that executors left for it.

Executors write their rows beside the tables; where all of them are done, the process that Spark
commits in loads these rows with all checks, in one commit. That process has no session of Spark's,
so it loads by itself what one process can, and starts a Spark of its own for more.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from omnigraph.clock import SystemClock
from omnigraph.engine.local.execute import LocalEngine
from omnigraph.engine.protocol import EngineName
from omnigraph.engine.spark.failures import reporting
from omnigraph.engine.spark.session import open_session
from omnigraph.limits import LOAD_HELD_BYTES_MAX, LOAD_LOCAL_BYTES_MAX, LOAD_LOCAL_ROWS_MAX
from omnigraph.manifest.reader import Manifest
from omnigraph.manifest.schemas import Catalogs
from omnigraph.model.commits import OperationKind
from omnigraph.model.names import BranchName
from omnigraph.pipeline.load import LoadRequest, Loads
from omnigraph.pipeline.spark.scratch import Scratch
from omnigraph.storage.store import Store
from omnigraph.transaction.protocol import Order, Transactions


@dataclass(frozen=True, slots=True)
class SaveTask:
    """What to load, once it is there.

    Attributes:
        columns: Those of the frame.
        mode: As a load's.
        scratch: Where executors leave rows.
    """

    type_name: str
    columns: StructType
    branch: BranchName
    mode: str
    scratch: Scratch
    actor: str | None = None
    message: str | None = None


@dataclass(frozen=True)
class Left(WriterCommitMessage):
    """The rows that one task left: the files, in their order, and how much is in them."""

    paths: tuple[str, ...]
    rows: int
    bytes: int


class LoadWriter(DataSourceArrowWriter):
    """Makes one commit of all rows of a frame, or none."""

    def __init__(self, task: SaveTask) -> None:
        self._task = task

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Left:
        """Leave one partition's rows. Runs in an executor; safe to run twice."""
        context = TaskContext.get()
        part = 0 if context is None else context.partitionId()
        paths: list[str] = []
        held: list[pa.RecordBatch] = []
        rows = size = held_size = 0

        def leave() -> None:
            name = f"part-{part:05}-{len(paths):05}"
            paths.append(self._task.scratch.write(name, pa.Table.from_batches(held)))

        with reporting():
            for batch in iterator:
                if held and held_size + batch.nbytes > LOAD_HELD_BYTES_MAX:
                    leave()
                    held, held_size = [], 0
                held.append(batch)
                rows, size = rows + batch.num_rows, size + batch.nbytes
                held_size += batch.nbytes
            if held:
                leave()
        return Left(tuple(paths), rows, size)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Load what was left, and clear it away.

        Raises:
            IntegrityError: rows break rules of the schema. Nothing became visible.
            ConflictError: others changed the same tables meanwhile. Nothing became visible.
        """
        with self._task.scratch.held():
            left = [each for each in messages if isinstance(each, Left) and each.rows]
            # The order of tasks is that of the frame's partitions.
            paths = sorted(path for each in left for path in each.paths)
            rows, size = sum(each.rows for each in left), sum(each.bytes for each in left)
            if rows > LOAD_LOCAL_ROWS_MAX or size > LOAD_LOCAL_BYTES_MAX:
                self._load_on_spark(paths)
            elif paths:
                found = pa.concat_tables([self._task.scratch.read(each) for each in paths])
                self._load(found, EngineName.LOCAL)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:  # noqa: ARG002
        """Clear away what was left."""
        self._task.scratch.clear()

    def _load_on_spark(self, paths: Sequence[str]) -> None:
        # The session that writes cannot be reached from the process that commits.
        is_ours = SparkSession.getActiveSession() is None
        # How the other JVM was told to start, whose child this process is.
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
        Loads(transactions, LocalEngine(), clock).run(order, request)
