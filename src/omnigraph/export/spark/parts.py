"""Parts: an export in parallel on Spark, each partition a file, in the order of a single file.

Rows are split into ranges of ids at bounds that are sampled beforehand, so that no row is read
twice, sorted within, and written by executors, straight to where they stay. The driver gets
messages.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Final

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as spark

from omnigraph.choices import ExportFormat
from omnigraph.engine.local.sort import sorted_batches
from omnigraph.engine.results import cast_batch
from omnigraph.engine.spark.cores import core_count
from omnigraph.engine.spark.failures import report_errors, translate_errors
from omnigraph.engine.spark.relations import ReadTask, pack, read_fragments
from omnigraph.engine.spark.routing import route
from omnigraph.engine.spark.types import spark_schema
from omnigraph.export.files import write_file
from omnigraph.export.folders import ExportFolder
from omnigraph.export.plans import ExportFiles, ExportPlan
from omnigraph.export.targets import translate_disk_errors
from omnigraph.formats.compression import Compression, suffix_of
from omnigraph.schema.arrow import table_schema
from omnigraph.schema.catalog import SchemaType
from omnigraph.storage.scans import open_address, scan_schema
from omnigraph.storage.tables import Table, TableAddress

SAMPLES_PER_PART: Final = 64
"""Ids sampled for each part of a parallel export, to cut parts of similar size."""


_PART: Final = "part of the export"
"""The column with a row's part; no property has a name with spaces."""
_PART_FILE: Final = "part int, name string, rows long"
"""A message about a file that an executor wrote: the fields of `PartFile`."""


@dataclass(frozen=True, slots=True)
class PartTask:
    """All an executor needs to write its part of a type; `first` is the number of the first."""

    type: SchemaType
    folder: ExportFolder
    format: ExportFormat
    compression: Compression | None
    first: int

    def name_of(self, part: int) -> str:
        """The name of the file with a part: of NDJSON, the parts of all types are in one row."""
        suffix = f".{self.format.suffix}{suffix_of(self.compression)}"
        name = self.folder.to_name(f"part-{self.first + part:05}", suffix)
        is_alone = self.format is not ExportFormat.NDJSON
        return f"{self.type.name}{suffix}/{name}" if is_alone else name


def export_parts(session: SparkSession, plan: ExportPlan, folder: ExportFolder) -> ExportFiles:
    """Write the rows into a folder that driver and workers share."""
    rows: dict[str, int] = {}
    files: list[str] = []
    first = 0
    for type_ in plan.types:
        task = PartTask(type_, folder, plan.format, plan.compression, first)
        with translate_errors("the export"):
            parts = write_parts(session, plan.view.data.table(type_.table_key), task)
        if not parts and plan.format is not ExportFormat.NDJSON:
            parts = [_write_empty(task)]
        rows[type_.name] = sum(part.rows for part in parts)
        files += (part.name for part in parts)
        if plan.format is ExportFormat.NDJSON and parts:
            first += parts[-1].part + 1
    return ExportFiles(rows, tuple(files))


@dataclass(frozen=True, slots=True)
class PartFile:
    """A file that an executor wrote."""

    part: int
    name: str
    rows: int


def write_parts(session: SparkSession, table: Table, task: PartTask) -> list[PartFile]:
    """Write a table's rows as files that continue each other; their names and rows, in order."""
    columns = tuple(table_schema(task.type).names)
    cores = core_count(session)
    groups = pack([each.num_rows for each in table.fragments()], cores)
    if not groups:
        return []
    bounds = part_bounds(table, len(groups))
    if not bounds:
        # One task reads, sorts and writes: its rows need not pass through Spark.
        one = session.range(0, 1, 1, numPartitions=1)
        return _collect_files(one.mapInArrow(partial(write_whole, task, table.address), _PART_FILE))
    schema = spark_schema(scan_schema(table, columns)).add(_PART, spark.IntegerType(), False)  # noqa: FBT003
    numbers = session.range(0, len(groups), 1, numPartitions=len(groups))
    reading = ReadTask(table.address, columns, groups)
    parted = numbers.mapInArrow(partial(read_with_parts, reading, bounds), schema)
    ranged = route(parted, len(bounds) + 1, _PART).drop(_PART).sortWithinPartitions("id")
    return _collect_files(ranged.mapInArrow(partial(write_part, task), _PART_FILE))


def _collect_files(messages: DataFrame) -> list[PartFile]:
    # One small row for each file.
    return [PartFile(**row) for row in messages.toArrow().sort_by("part").to_pylist()]


def part_bounds(table: Table, parts: int) -> tuple[str, ...]:
    """Ids that cut the table into so many parts of like size, or fewer; sampled evenly."""
    rows = table.count_rows()
    if parts < 2 or not rows:
        return ()
    step = max(1, rows // (parts * SAMPLES_PER_PART))
    places = list(range(0, rows, step))
    sample = sorted(table.take(places, ["id"])["id"].to_pylist())
    cuts = {sample[number * len(sample) // parts] for number in range(1, parts)}
    return tuple(sorted(cuts))


def read_with_parts(
    task: ReadTask, bounds: tuple[str, ...], numbers: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """`read_fragments`, each row with the number of its part."""
    for batch in read_fragments(task, numbers):
        ids = batch.column("id").to_pylist()
        parts = pa.array([bisect_right(bounds, id_) for id_ in ids], pa.int32())
        field = pa.field(_PART, pa.int32(), nullable=False)
        yield pa.RecordBatch.from_arrays([*batch.columns, parts], schema=batch.schema.append(field))


def write_part(task: PartTask, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Write one partition as a file and report it. Runs in an executor; safe to run twice."""
    schema = table_schema(task.type)
    return _write_rows(task, (cast_batch(batch, schema) for batch in batches))


def write_whole(
    task: PartTask, address: TableAddress, numbers: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Write a whole table as one file and report it. Runs in an executor; safe to run twice."""
    for _ in numbers:
        with report_errors():
            table = open_address(address)
        yield from _write_rows(task, sorted_batches(table, table_schema(task.type), by="id"))


def _write_rows(task: PartTask, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    context = TaskContext.get()
    assert context is not None, "it runs in an executor"
    part = context.partitionId()
    with report_errors():
        first = next((batch for batch in batches if batch.num_rows), None)
        if first is None:
            return
        name, rows = _write(task, part, chain([first], batches))
    yield pa.record_batch(
        [pa.array([part], pa.int32()), pa.array([name]), pa.array([rows], pa.int64())],
        names=["part", "name", "rows"],
    )


def _write_empty(task: PartTask) -> PartFile:
    return PartFile(0, *_write(task, 0, ()))


def _write(task: PartTask, part: int, batches: Iterable[pa.RecordBatch]) -> tuple[str, int]:
    """Write a part; the name of its file, and how many rows it has."""
    name = task.name_of(part)
    with translate_disk_errors(f"rows of {task.type.name}"), task.folder.write(name) as file:
        rows = write_file(
            task.type, batches, file, format=task.format, compression=task.compression
        )
    return name, rows
