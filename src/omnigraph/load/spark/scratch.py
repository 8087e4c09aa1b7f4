"""Scratch: rows that one stage of a load writes for the next, as Arrow files beside the tables.

They are below `__staging/<load>/` in the graph's own root, where every executor can read and write;
`recovery.scratch` records which load owns them.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Final

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from omnigraph.engine.spark.cores import core_count
from omnigraph.engine.spark.failures import report_errors
from omnigraph.engine.spark.pieces import task_numbers
from omnigraph.engine.spark.types import spark_schema, to_crossing
from omnigraph.errors import OmnigraphError, StorageError
from omnigraph.limits import SPARK_SHUFFLE_PARTITIONS_PER_CORE
from omnigraph.recovery.scratch import hold_scratch, scratch_folder
from omnigraph.storage.meter import Meter
from omnigraph.storage.objects import Objects
from omnigraph.storage.roots import Root

_log: Final = logging.getLogger(__name__)

SUFFIX: Final = ".arrow"
# Arrow's own format is written and read in half the time of Parquet, and read by columns like it.
_WRITING: Final = pa.ipc.IpcWriteOptions(compression="lz4")


@dataclass(frozen=True, slots=True)
class Scratch:
    """The folder of one load. Small, and can be sent to any process."""

    root: Root
    load_id: str

    @property
    def folder(self) -> str:
        """Its path below the root."""
        return scratch_folder(self.load_id)

    def write(self, name: str, rows: pa.Table) -> str:
        """Write a file under a name that no other task has; its path below the root."""
        context = TaskContext.get()
        attempt = 0 if context is None else context.taskAttemptId()
        path = f"{self.folder}/{name}-{attempt}{SUFFIX}"
        sink = pa.BufferOutputStream()
        with pa.ipc.new_file(sink, rows.schema, options=_WRITING) as file:
            file.write_table(rows)
        self._objects().put(path, memoryview(sink.getvalue()).cast("B"))
        return path

    def read(self, path: str, columns: Sequence[str] | None = None) -> pa.Table:
        """The rows of a file, with all columns or with these, in this order."""
        with self._open(path) as source:
            file = pa.ipc.open_file(source)
            if columns is None:
                return file.read_all()
            places = [file.schema.get_field_index(name) for name in columns]
            some = pa.ipc.IpcReadOptions(included_fields=sorted(places))
            return pa.ipc.open_file(source, options=some).read_all().select(list(columns))

    def _open(self, path: str) -> pa.NativeFile:
        if not self.root.is_local:
            return pa.BufferReader(self.take(path))
        try:
            return pa.memory_map(f"{self.root.uri}/{path}")
        except FileNotFoundError as cause:
            raise _missing_error(path) from cause

    def put(self, name: str, data: bytes) -> str:
        """Write bytes under a name; their path below the root."""
        path = f"{self.folder}/{name}"
        self._objects().put(path, data)
        return path

    def take(self, path: str) -> bytes:
        """The bytes that were written at a path."""
        stored = self._objects().read(path)
        if stored is None:
            raise _missing_error(path)
        return stored.data

    def frame(
        self, session: SparkSession, paths: Sequence[str], schema: pa.Schema | StructType
    ) -> DataFrame:
        """Some columns of some files as a DataFrame; executors read them when it is used."""
        columns = schema if isinstance(schema, StructType) else spark_schema(schema)
        if not paths:
            return session.createDataFrame([], columns)
        count = min(len(paths), core_count(session) * SPARK_SHUFFLE_PARTITIONS_PER_CORE)
        numbers = session.range(0, len(paths), 1, numPartitions=count)
        reader = partial(read_scratch, self, tuple(paths), tuple(schema.names))
        return numbers.mapInArrow(reader, columns)

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Keep the folder for this process in a block; at its end every file is deleted.

        Files that cannot be deleted are left to `cleanup`: the block may have landed a commit, or
        failed for another reason.
        """
        holding = ExitStack()
        holding.enter_context(hold_scratch(self._objects(), self.load_id))
        try:
            yield
        finally:
            try:
                holding.close()
            except OmnigraphError as failure:
                _log.warning("%s is left to a later cleanup: %s", self.folder, failure)

    def clear(self) -> None:
        """Delete every file of the load."""
        self._objects().clear(self.folder)

    def _objects(self) -> Objects:
        return Objects(self.root, Meter())


def read_scratch(
    scratch: Scratch,
    paths: tuple[str, ...],
    columns: tuple[str, ...],
    numbers: Iterator[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    """Stream the rows of the files with these numbers. Runs in an executor; safe to run twice."""
    with report_errors():
        for number in task_numbers(numbers):
            for batch in scratch.read(paths[number], columns).to_batches():
                yield to_crossing(batch)


def _missing_error(path: str) -> StorageError:
    message = f"{path}, which this load wrote, was deleted"
    return StorageError(message, hint="load again, and do not remove files meanwhile")
