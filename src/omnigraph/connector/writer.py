"""The writer behind `df.write.format("omnigraph")`: a load of rows that executors stored.

Executors write their rows beside the tables. When all of them are done, the process in which Spark
commits loads these rows with all checks, in one commit. That process has no Spark session, so it
loads by itself what one process can, and starts a Spark of its own for more.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from omnigraph.backends.registry import Backends
from omnigraph.choices import EmbedWhen, EngineName, Mode, OnDuplicate
from omnigraph.clock import Clock, SystemClock
from omnigraph.connector.failures import hide_frames
from omnigraph.connector.options import PinnedType, by_name, pin, read_access, read_request
from omnigraph.embedding.writes import WriteEmbedding
from omnigraph.engine.spark.failures import report_errors
from omnigraph.engine.spark.session import open_session
from omnigraph.errors import ErrorCode, InvalidParameterError, NotAllowedError
from omnigraph.limits import LOAD_HELD_BYTES_MAX, LOAD_LOCAL_BYTES_MAX, LOAD_LOCAL_ROWS_MAX
from omnigraph.load.duplicates import choose_on_duplicate
from omnigraph.load.loads import LoadRequest, Loads
from omnigraph.load.spark.scratch import Scratch
from omnigraph.manifest.reader import Manifest
from omnigraph.manifest.schemas import Catalogs
from omnigraph.manifest.settings import StoredSettings
from omnigraph.model.arguments import require_choice
from omnigraph.policy.authority import Access
from omnigraph.storage.store import Store
from omnigraph.transaction.commit import Transactions
from omnigraph.transaction.requests import Requests
from omnigraph.transaction.writes import WriteRequest


@dataclass(frozen=True, slots=True)
class SaveTask:
    """What to load when all rows are stored.

    Attributes:
        columns: Those of the frame.
        order: The commit that the load makes.
        mode: As a load's.
        scratch: Where executors store rows.
        access: Who writes, and under which policy.
        on_duplicate: Which of several rows of one id is loaded.
        order_by: The column that orders the rows.
    """

    type_name: str
    columns: StructType
    write: WriteRequest
    mode: str
    scratch: Scratch
    access: Access
    on_duplicate: OnDuplicate = OnDuplicate.REJECT
    order_by: str | None = None


@dataclass(frozen=True)
class PartitionRows(WriterCommitMessage):
    """The rows that one task stored: the files, in their order, and their size.

    Attributes:
        load_id: That of the scratch.
    """

    load_id: str
    paths: tuple[str, ...]
    rows: int
    bytes: int


class LoadWriter(DataSourceArrowWriter):
    """Makes one commit of all rows of a frame, or none."""

    def __init__(self, task: SaveTask) -> None:
        self._task = task

    def write(self, iterator: Iterator[pa.RecordBatch]) -> PartitionRows:
        """Store one partition's rows. Runs in an executor; safe to run twice."""
        return store_partition(self._task.scratch, iterator)

    @hide_frames()
    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Load the stored rows, and delete their files."""
        task = self._task
        with (
            task.scratch.hold(),
            open_stored(task.scratch, task.columns, messages) as (rows, engine),
        ):
            if rows is not None:
                self._load(rows, engine)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:  # noqa: ARG002
        """Delete the files with rows."""
        self._task.scratch.clear()

    def _load(self, rows: object, engine: EngineName) -> None:
        task = self._task
        request = LoadRequest(
            {task.type_name: rows},
            mode=task.mode,
            engine=engine,
            on_duplicate=task.on_duplicate,
            order_by=task.order_by,
        )
        manifest = Manifest(Store.open(task.scratch.root.uri))
        open_loads(manifest, SystemClock(), task.access).run(task.write, request)


def store_partition(scratch: Scratch, iterator: Iterator[pa.RecordBatch]) -> PartitionRows:
    """Store one partition's rows. Runs in an executor; safe to run twice."""
    context = TaskContext.get()
    part = 0 if context is None else context.partitionId()
    paths: list[str] = []
    batches: list[pa.RecordBatch] = []
    rows = size = batches_size = 0

    def store() -> None:
        name = f"part-{part:05}-{len(paths):05}"
        paths.append(scratch.write(name, pa.Table.from_batches(batches)))

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
    return PartitionRows(scratch.load_id, tuple(paths), rows, size)


@contextmanager
def open_stored(
    scratch: Scratch, columns: StructType, messages: Sequence[WriterCommitMessage | None]
) -> Iterator[tuple[object | None, EngineName]]:
    """The rows that executors stored, and the engine that loads them, or None.

    In the process that commits, which has no Spark session: it loads by itself what one process
    can, and starts a Spark of its own for more.
    """
    parts = [part for part in messages if isinstance(part, PartitionRows) and part.rows]
    # The order of tasks is that of the frame's partitions.
    paths = sorted(path for part in parts for path in part.paths)
    rows, size = sum(part.rows for part in parts), sum(part.bytes for part in parts)
    if rows <= LOAD_LOCAL_ROWS_MAX and size <= LOAD_LOCAL_BYTES_MAX:
        tables = [scratch.read(path) for path in paths]
        yield pa.concat_tables(tables) if tables else None, EngineName.LOCAL
        return
    # The session that writes cannot be reached from the process that commits.
    is_ours = SparkSession.getActiveSession() is None
    # The options of the JVM whose child this process is; a new one must not inherit them.
    os.environ.pop("SPARK_SUBMIT_OPTS", None)
    session = open_session()
    try:
        yield scratch.frame(session, paths, columns), EngineName.SPARK
    finally:
        if is_ours:
            session.stop()


def open_loads(manifest: Manifest, clock: Clock, access: Access) -> Loads:
    """The loads of a process that has no graph handle."""
    objects = manifest.store.objects
    authority = access.authority(manifest.store.root.uri)
    transactions = Transactions(manifest, clock, Catalogs(objects), authority)
    settings = StoredSettings(objects, clock)

    def begin_embedding(when: EmbedWhen) -> WriteEmbedding:
        return WriteEmbedding(when, lambda: settings.current().embedding, clock)

    requests = Requests(manifest, clock)
    return Loads(transactions, Backends().of, clock, begin_embedding, requests)


def open_writer(options: Mapping[str, str], columns: StructType, *, overwrites: bool) -> LoadWriter:
    """A writer that loads rows of a type."""
    given = by_name(options)
    if given.keys() & {"commit", "version"}:
        message = "a commit or version cannot be written to"
        raise NotAllowedError(message, hint="name a branch", code=ErrorCode.READ_ONLY)
    write, access = read_request(given), read_access(given)
    if "graph" in given:
        # Before anything is looked up: a refusal must not say what is there.
        access.authority(Store.open(given["graph"]).root.uri).admit(write)
    pinned = pin(given)
    if not isinstance(pinned, PinnedType):
        message = "no type was named to write to"
        raise InvalidParameterError(message, hint='.save("Person")', name="query")
    mode = require_choice(given.get("mode", "overwrite" if overwrites else "append"), Mode, "mode")
    if overwrites and mode is not Mode.OVERWRITE:
        message = f"the option mode is {mode}, and Spark's mode is overwrite"
        raise InvalidParameterError(message, hint='use .mode("append") with it', name="mode")
    task = SaveTask(
        pinned.type.name,
        columns,
        write,
        mode,
        Scratch(pinned.address.root, SystemClock().ulid()),
        access,
        choose_on_duplicate(given.get("onduplicate"), mode, is_ordered="orderby" in given),
        given.get("orderby"),
    )
    return LoadWriter(task)
