"""Saving: what `df.write.format("omnigraph")` does, a load of rows that executors left for it.

Executors write their rows beside the tables; where all of them are done, the process that Spark
commits in loads these rows with all checks, in one commit. That process has no Spark, so it takes
what the local engine does; `graph.load` loads a DataFrame of any size.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage

from omnigraph.clock import SystemClock
from omnigraph.engine.local.execute import LocalEngine
from omnigraph.engine.protocol import EngineName
from omnigraph.engine.spark.failures import reporting
from omnigraph.errors import LimitExceededError
from omnigraph.limits import LOAD_LOCAL_BYTES_MAX, LOAD_LOCAL_ROWS_MAX
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
        mode: As a load's.
        scratch: Where executors leave rows.
    """

    type_name: str
    branch: BranchName
    mode: str
    scratch: Scratch
    actor: str | None = None
    message: str | None = None


@dataclass(frozen=True)
class Left(WriterCommitMessage):
    """The rows that one task left: the file, if it has any, and how many."""

    path: str | None
    rows: int
    bytes: int


class LoadWriter(DataSourceArrowWriter):
    """Makes one commit of all rows of a frame, or none."""

    def __init__(self, task: SaveTask) -> None:
        self._task = task

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Left:
        """Leave one partition's rows. Runs in an executor; safe to run twice.

        Raises:
            LimitExceededError: there are more than can be loaded here.
        """
        context = TaskContext.get()
        part = 0 if context is None else context.partitionId()
        held: list[pa.RecordBatch] = []
        rows = size = 0
        with reporting():
            for batch in iterator:
                held.append(batch)
                rows, size = rows + batch.num_rows, size + batch.nbytes
                require_small(self._task.type_name, rows, size)
            if not rows:
                return Left(None, 0, 0)
            path = self._task.scratch.write(f"part-{part:05}", pa.Table.from_batches(held))
        return Left(path, rows, size)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Load what was left, and clear it away.

        Raises:
            IntegrityError: rows break rules of the schema. Nothing became visible.
            ConflictError: others changed the same tables meanwhile. Nothing became visible.
            LimitExceededError: there are more rows than can be loaded here. Nothing became visible.
        """
        try:
            left = [each for each in messages if isinstance(each, Left) and each.path is not None]
            rows, size = sum(each.rows for each in left), sum(each.bytes for each in left)
            require_small(self._task.type_name, rows, size)
            if left:
                self._load(self._rows(left))
        finally:
            self._task.scratch.clear()

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:  # noqa: ARG002
        """Clear away what was left."""
        self._task.scratch.clear()

    def _rows(self, left: Iterable[Left]) -> pa.Table:
        paths = sorted(each.path for each in left if each.path is not None)
        return pa.concat_tables([self._task.scratch.read(each) for each in paths])

    def _load(self, rows: pa.Table) -> None:
        task, clock = self._task, SystemClock()
        store = Store.open(task.scratch.root.uri)
        transactions = Transactions(Manifest(store), clock, Catalogs(store.objects))
        order = Order(OperationKind.LOAD, task.branch, actor=task.actor, message=task.message)
        request = LoadRequest({task.type_name: rows}, mode=task.mode, engine=EngineName.LOCAL)
        Loads(transactions, LocalEngine(), clock).run(order, request)


def require_small(type_name: str, rows: int, size: int) -> None:
    """Refuse what the process that commits cannot hold.

    Raises:
        LimitExceededError: it is too large.
    """
    if rows > LOAD_LOCAL_ROWS_MAX or size > LOAD_LOCAL_BYTES_MAX:
        message = (
            f"Spark's writer loads at most {LOAD_LOCAL_ROWS_MAX:,} rows and "
            f"{LOAD_LOCAL_BYTES_MAX:,} bytes, and there are more"
        )
        hint = f'use graph.load({{"{type_name}": df}}), which takes any size'
        raise LimitExceededError(message, hint=hint)
