"""Staging rows that wait in scratch: executors write files and deletions, the driver assembles.

An upsert joins ids alone. Executors then read their scratch again and tell rows that take the place
of others, which keep their row ids, from new ones.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

from omnigraph.engine.spark.failures import reporting
from omnigraph.engine.spark.relations import table_frame
from omnigraph.limits import LOAD_HELD_BYTES_MAX, SPARK_PARTITION_ROWS_MAX
from omnigraph.pipeline.positions import PLACE_BITS, POSITION
from omnigraph.pipeline.spark.intake import MESSAGE, ScratchFile, to_table
from omnigraph.pipeline.spark.keys import KeyRows
from omnigraph.pipeline.spark.scratch import Scratch
from omnigraph.schema.arrow import table_schema
from omnigraph.schema.catalog import SchemaType
from omnigraph.storage.scans import open_address
from omnigraph.storage.staging import (
    Deletions,
    Staged,
    delete_rows,
    stage_change,
    stage_whole,
    write_files,
    write_whole,
)
from omnigraph.storage.tables import ROW_ADDRESS, ROW_ID, Fragment, Table, TableAddress

UNIT: Final = "@unit"
_SPLIT: Final = "@split"

_LEFT_OUT: Final = -1
"""In the place of a row id: the row is not written at all."""


@dataclass(frozen=True, slots=True)
class StageTask:
    """All an executor needs to write rows of scratch into a table.

    Attributes:
        units: The files that each task reads.
        replaces: Whether the files will be all that the table holds.
    """

    type: SchemaType
    address: TableAddress
    scratch: Scratch
    units: tuple[tuple[str, ...], ...]
    replaces: bool = False


def stage_scratch(
    rows: KeyRows, desks: Mapping[int, int], table: Table, *, upserts: bool, replaces: bool
) -> Staged:
    """Write the rows of scratch as files of a table, and find the rows they take the place of.

    Args:
        desks: The task that read each split.
        upserts: Whether rows whose id exists take its place; else all ids are new.
        replaces: Whether the rows are all that the table will hold.
    """
    files = packed(rows.written.scratch)
    task = StageTask(rows.type, table.address, rows.scratch, paths_of(files), replaces)
    gone = _gone(rows, files, desks)
    if not upserts or not table.count_rows():
        fragments = _fragments(_writing(rows.session, gone, task))
        if replaces:
            return stage_whole(table, fragments, schema=table_schema(rows.type))
        return stage_change(table, files=fragments)
    found = _matches(rows, files, desks, table)
    # Kept for its two readers: it has three numbers for each row that is replaced, and finding
    # them reads all ids of the table.
    found = found.persist(StorageLevel.MEMORY_AND_DISK)
    try:
        deletions = _together(_told(_deleting(found, table)))
        routed = found.select(UNIT, POSITION, ROW_ID)
        routed = routed if gone is None else routed.union(gone)
        fragments = _fragments(_writing(rows.session, routed, task))
    finally:
        found.unpersist()
    return stage_change(table, files=fragments, deletions=deletions)


def packed(files: Sequence[ScratchFile]) -> list[list[ScratchFile]]:
    """Files in groups, those of one task of the intake always together."""
    units: list[list[ScratchFile]] = []
    held = 0
    for file in files:
        is_same = bool(units) and units[-1][-1].desk == file.desk
        if not is_same and (not units or held + file.row_count > SPARK_PARTITION_ROWS_MAX):
            units.append([])
            held = 0
        units[-1].append(file)
        held += file.row_count
    return units


def paths_of(units: Sequence[Sequence[ScratchFile]]) -> tuple[tuple[str, ...], ...]:
    """The files of each unit."""
    return tuple(tuple(each.path for each in unit) for unit in units)


def unit_frame(
    session: SparkSession,
    rows: DataFrame,
    units: Sequence[Sequence[ScratchFile]],
    desks: Mapping[int, int],
) -> DataFrame:
    """Rows that have a position, each with the unit that its scratch is in."""
    numbers = {file.desk: number for number, unit in enumerate(units) for file in unit}
    splits = [(split, numbers[desk]) for split, desk in desks.items() if desk in numbers]
    known = session.createDataFrame(splits, f"`{_SPLIT}` int, `{UNIT}` int")
    split = sql.shiftright(POSITION, PLACE_BITS).cast("int")
    # A row for each split of the input.
    return rows.withColumn(_SPLIT, split).join(sql.broadcast(known), _SPLIT).drop(_SPLIT)


def _gone(
    rows: KeyRows, units: Sequence[Sequence[ScratchFile]], desks: Mapping[int, int]
) -> DataFrame | None:
    """The rows that are left out."""
    if not rows.fault_count:
        return None
    found = unit_frame(rows.session, rows.faulty(), units, desks)
    return found.select(UNIT, POSITION, sql.lit(_LEFT_OUT).cast("long").alias(ROW_ID))


def _matches(
    rows: KeyRows,
    units: Sequence[Sequence[ScratchFile]],
    desks: Mapping[int, int],
    table: Table,
) -> DataFrame:
    """Where the rows lie that others take the place of: unit, position, row id and address."""
    ours = rows.frame(["id", POSITION])
    theirs = table_frame(rows.session, table, ["id", ROW_ID, ROW_ADDRESS])
    found = ours.join(theirs, "id").select(
        sql.col(POSITION),
        sql.col(ROW_ID).cast("long").alias(ROW_ID),
        sql.col(ROW_ADDRESS).cast("long").alias(ROW_ADDRESS),
    )
    return unit_frame(rows.session, found, units, desks)


def _writing(session: SparkSession, routed: DataFrame | None, task: StageTask) -> DataFrame:
    count = len(task.units)
    # One row for each unit, so that units of which nothing is to be said are written too.
    numbers = session.range(0, count, 1, numPartitions=max(1, count))
    nothing = sql.lit(None).cast("long")
    every = numbers.select(
        sql.col("id").cast("int").alias(UNIT), nothing.alias(POSITION), nothing.alias(ROW_ID)
    )
    if routed is not None and count:
        every = every.union(routed).repartitionById(count, UNIT)
    return every.mapInArrow(partial(write_units, task), MESSAGE)


def _fragments(messages: DataFrame) -> list[Fragment]:
    return [each for found in _told(messages) for each in found]


def _deleting(found: DataFrame, table: Table) -> DataFrame:
    fragment = sql.shiftright(ROW_ADDRESS, 32)
    routed = found.select(ROW_ADDRESS).repartition(fragment)
    return routed.mapInArrow(partial(delete_places, table.address), MESSAGE)


def _told(messages: DataFrame) -> list[Any]:
    # Messages of tasks: metadata of files, no rows.
    return [pickle.loads(each.message) for each in messages.collect()]


def _together(found: Iterable[Deletions]) -> Deletions:
    updated: list[Fragment] = []
    removed: list[int] = []
    row_count = 0
    for each in found:
        updated += each.updated
        removed += each.removed
        row_count += each.row_count
    return Deletions(tuple(updated), tuple(removed), row_count)


def delete_places(
    address: TableAddress, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Write the deletions of whole fragments. Runs in an executor; safe to run twice."""
    with reporting():
        places = [each.column(0) for each in batches if each.num_rows]
        if places:
            yield _message(delete_rows(open_address(address), pa.chunked_array(places)))


def write_units(task: StageTask, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Write the files of some units. Runs in an executor; safe to run twice."""
    with reporting():
        routed = pa.Table.from_batches(map(_unmarked, batches), _ROUTED)
        writer = _Writer(task, open_address(task.address))
        for number in sorted(set(routed[UNIT].to_pylist())):
            own = routed.filter(pc.equal(routed[UNIT], number)).drop_null()
            for path in task.units[number]:
                writer.take(task.scratch.read(path), own)
        yield _message(writer.finish())


_ROUTED: Final = pa.schema([(UNIT, pa.int32()), (POSITION, pa.int64()), (ROW_ID, pa.int64())])


def _unmarked(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The same rows; Spark promises of some columns that they have no nulls."""
    return pa.RecordBatch.from_arrays(batch.columns, schema=_ROUTED)


@dataclass(slots=True)
class _Writer:
    """Writes rows that take the place of others apart from new ones."""

    task: StageTask
    table: Table
    files: list[Fragment] = field(default_factory=list)
    added: list[pa.Table] = field(default_factory=list)
    replaced: list[pa.Table] = field(default_factory=list)

    def take(self, rows: pa.Table, found: pa.Table) -> None:
        is_gone = pc.equal(found[ROW_ID], _LEFT_OUT)
        gone = found.filter(is_gone)[POSITION].combine_chunks()
        if len(gone):
            rows = rows.filter(pc.invert(pc.is_in(rows[POSITION], value_set=gone)))
        found = found.filter(pc.invert(is_gone))
        at = pc.index_in(rows[POSITION], value_set=found[POSITION].combine_chunks())
        is_new = pc.is_null(at)
        self.added.append(self._typed(rows.filter(is_new)))
        if len(found):
            ids = found[ROW_ID].take(at.drop_null())
            replaced = self._typed(rows.filter(pc.invert(is_new)))
            self.replaced.append(replaced.append_column(ROW_ID, ids))
        if sum(each.nbytes for each in (*self.added, *self.replaced)) > LOAD_HELD_BYTES_MAX:
            self._write()

    def finish(self) -> tuple[Fragment, ...]:
        self._write()
        return tuple(self.files)

    def _typed(self, rows: pa.Table) -> pa.Table:
        return to_table(rows, self.task.type)

    def _write(self) -> None:
        if any(map(len, self.added)):
            added = pa.concat_tables(self.added)
            write = write_whole if self.task.replaces else write_files
            self.files += write(self.table, added)
        if any(map(len, self.replaced)):
            # Row ids in order take little room in the file's metadata.
            replaced = pa.concat_tables(self.replaced).sort_by(ROW_ID)
            row_ids = replaced[ROW_ID].to_pylist()
            self.files += write_files(self.table, replaced.drop_columns([ROW_ID]), row_ids=row_ids)
        self.added, self.replaced = [], []


def _message(told: object) -> pa.RecordBatch:
    return pa.record_batch({"message": pa.array([pickle.dumps(told)], pa.binary())})
