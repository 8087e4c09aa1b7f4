"""Staging rows that wait in scratch: executors write files and deletions, the driver assembles.

An upsert joins only the ids of the load and of the table. Executors then read their scratch again
and distinguish rows that replace others, which keep their row ids, from new ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial, reduce
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

from omnigraph.engine.spark.failures import report_errors
from omnigraph.engine.spark.messages import MESSAGE, collect_messages, to_message
from omnigraph.engine.spark.pieces import (
    PIECES,
    bucket_count,
    by_key,
    by_place,
    collect_parts,
    empty_piece,
    of_frame,
    of_table,
    route_pieces,
    task_numbers,
)
from omnigraph.engine.spark.writing import RowWriter, fragment_groups, numbers_of
from omnigraph.integrity.deltas import POSITION
from omnigraph.limits import SPARK_PARTITION_ROWS_MAX
from omnigraph.load.positions import PLACE_BITS
from omnigraph.load.spark.intake import ScratchFile
from omnigraph.load.spark.keys import KeyRows
from omnigraph.load.spark.scratch import Scratch
from omnigraph.schema.arrow import table_schema, to_table
from omnigraph.schema.catalog import SchemaType
from omnigraph.storage.places import fragment_ids_of
from omnigraph.storage.scans import open_address
from omnigraph.storage.staging import (
    Deletions,
    StagedWrite,
    combine_deletions,
    delete_rows,
    stage_change,
    stage_whole,
)
from omnigraph.storage.tables import ROW_ADDRESS, ROW_ID, Fragment, Table, TableAddress

UNIT: Final = "@unit"
_SPLIT: Final = "@split"

_LEFT_OUT: Final = -1
"""In the place of a row id: the row is not written at all."""

_ROUTED: Final = pa.schema([(POSITION, pa.int64()), (ROW_ID, pa.int64())])
"""The columns that say which rows of a unit are replaced or left out; the others are new."""

_BROUGHT, _PLACES, _ROUTES, _DELETED = range(4)
"""Kinds of pieces: rows of the load, places of stored rows, and what follows from both."""


@dataclass(frozen=True, slots=True)
class StageTask:
    """All an executor needs to write rows of scratch into a table.

    Attributes:
        units: The files that each task reads.
        unit_of: The unit that the rows of a split are in.
        group_of: The group of each fragment whose rows may be replaced; groups are numbered after
            the units.
        replaces: Whether the files will be the whole contents of the table.
    """

    type: SchemaType
    address: TableAddress
    scratch: Scratch
    units: tuple[tuple[str, ...], ...]
    unit_of: Mapping[int, int]
    group_of: Mapping[int, int]
    replaces: bool


@dataclass(frozen=True, slots=True)
class StoredFiles:
    """The files that a task wrote, which nothing refers to."""

    files: tuple[Fragment, ...] = ()
    deletions: Deletions = field(default_factory=Deletions)


def stage_scratch(
    rows: KeyRows, tasks: Mapping[int, int], table: Table, *, upserts: bool, replaces: bool
) -> StagedWrite:
    """Write the rows of scratch as files of a table, and find the rows that they replace.

    Args:
        tasks: The task that read each split.
        upserts: Whether a row replaces the one with its id; else all ids are new.
        replaces: Whether the rows are the whole contents of the table.
    """
    units = pack_files(rows.written.scratch)
    groups = fragment_groups(table) if upserts else {}
    task = StageTask(
        rows.type,
        table.address,
        rows.scratch,
        units=paths_of(units),
        unit_of=dict(_units_of(units, tasks)),
        group_of=groups,
        replaces=replaces,
    )
    results = _write_units(
        rows, task, [*_left_out_pieces(rows, units, tasks), *_match_pieces(rows, task, table)]
    )
    fragments = [file for part in results for file in part.files]
    if replaces:
        return stage_whole(table, fragments, schema=table_schema(rows.type))
    return stage_change(
        table, files=fragments, deletions=combine_deletions(result.deletions for result in results)
    )


def pack_files(files: Sequence[ScratchFile]) -> list[list[ScratchFile]]:
    """Files in groups, those of one task of the intake always together."""
    units: list[list[ScratchFile]] = []
    unit_rows = 0
    for file in files:
        is_same = bool(units) and units[-1][-1].task == file.task
        if not is_same and (not units or unit_rows + file.row_count > SPARK_PARTITION_ROWS_MAX):
            units.append([])
            unit_rows = 0
        units[-1].append(file)
        unit_rows += file.row_count
    return units


def paths_of(units: Sequence[Sequence[ScratchFile]]) -> tuple[tuple[str, ...], ...]:
    """The files of each unit."""
    return tuple(tuple(file.path for file in unit) for unit in units)


def unit_frame(
    session: SparkSession,
    rows: DataFrame,
    units: Sequence[Sequence[ScratchFile]],
    tasks: Mapping[int, int],
) -> DataFrame:
    """Rows that have a position, each with the unit that its scratch is in."""
    known = session.createDataFrame(list(_units_of(units, tasks)), f"`{_SPLIT}` int, `{UNIT}` int")
    split = sql.shiftright(POSITION, PLACE_BITS).cast("int")
    # A row for each split of the input.
    return rows.withColumn(_SPLIT, split).join(sql.broadcast(known), _SPLIT).drop(_SPLIT)


def _units_of(
    units: Sequence[Sequence[ScratchFile]], tasks: Mapping[int, int]
) -> Iterator[tuple[int, int]]:
    """Splits, each with the unit that its rows are in, if it has any."""
    numbers = {file.task: number for number, unit in enumerate(units) for file in unit}
    return ((split, numbers[task]) for split, task in tasks.items() if task in numbers)


def _left_out_pieces(
    rows: KeyRows, units: Sequence[Sequence[ScratchFile]], tasks: Mapping[int, int]
) -> list[DataFrame]:
    """Pieces for units: the rows that are left out."""
    if not rows.fault_count:
        return []
    left_out = unit_frame(rows.session, rows.faulty(), units, tasks)
    return [of_frame(left_out.select(UNIT, POSITION), cut_left_out)]


def cut_left_out(rows: pa.Table) -> Iterator[pa.RecordBatch]:
    """Pieces for the units of rows that are left out."""
    left_out = pa.table({POSITION: rows[POSITION], ROW_ID: pa.repeat(_LEFT_OUT, len(rows))})
    return by_place(left_out.cast(_ROUTED), rows[UNIT].to_numpy(), _ROUTES)


def _match_pieces(rows: KeyRows, task: StageTask, table: Table) -> list[DataFrame]:
    """Pieces for units and for fragments: rows that replace others, and the places of those."""
    if not task.group_of or not task.units:
        return []
    session = rows.session
    cores = session.sparkContext.defaultParallelism
    count = bucket_count(len(rows) + table.count_rows(), cores)
    brought = rows.pieces(["id", POSITION], partial(by_key, key="id", count=count, part=_BROUGHT))
    places = of_table(
        session,
        table,
        ["id", ROW_ID, ROW_ADDRESS],
        partial(by_key, key="id", count=count, part=_PLACES),
    )
    return [
        route_pieces(brought.union(places), count).mapInArrow(partial(match_rows, task), PIECES)
    ]


def match_rows(task: StageTask, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Find the rows of a table that the load replaces. Runs in an executor; safe to run twice."""
    with report_errors():
        for parts in collect_parts(batches).values():
            if _BROUGHT in parts and _PLACES in parts:
                yield from _routes(task, parts[_BROUGHT], parts[_PLACES])


def _routes(task: StageTask, brought: pa.Table, places: pa.Table) -> Iterator[pa.RecordBatch]:
    at = pc.index_in(places["id"], value_set=brought["id"].combine_chunks())
    places = places.filter(pc.is_valid(at))
    positions = brought[POSITION].take(at.drop_null()).to_numpy()
    routed = pa.table({POSITION: positions, ROW_ID: places[ROW_ID]}).cast(_ROUTED)
    yield from by_place(routed, numbers_of(positions >> PLACE_BITS, task.unit_of), _ROUTES)
    fragment_ids = fragment_ids_of(places[ROW_ADDRESS].to_numpy())
    to = numbers_of(fragment_ids, task.group_of) + len(task.units)
    yield from by_place(places.select([ROW_ADDRESS]), to, _DELETED)


def _write_units(rows: KeyRows, task: StageTask, pieces: Sequence[DataFrame]) -> list[StoredFiles]:
    """Write every unit and make every deletion, in one job."""
    if not task.units:
        return []
    # Units that no piece is about are written too.
    session = rows.session
    numbers = session.range(0, len(task.units), 1, numPartitions=len(task.units))
    if not pieces:
        return collect_messages(numbers.mapInArrow(partial(store_units, task), MESSAGE))
    every = reduce(DataFrame.union, pieces, of_frame(numbers, call_units))
    count = len(task.units) + len(set(task.group_of.values()))
    return collect_messages(route_pieces(every, count).mapInArrow(partial(store, task), MESSAGE))


def call_units(numbers: pa.Table) -> Iterator[pa.RecordBatch]:
    """A piece without rows for each of these units."""
    return map(empty_piece, numbers.column(0).to_pylist())


def store_units(task: StageTask, numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Write the units with these numbers as they are. Runs in an executor; safe to run twice."""
    with report_errors():
        for number in task_numbers(numbers):
            yield to_message(_store_unit(task, number, {}))


def store(task: StageTask, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Write units, and delete rows of fragments. Runs in an executor; safe to run twice."""
    with report_errors():
        for number, parts in collect_parts(batches).items():
            yield to_message(_store_unit(task, number, parts))


def _store_unit(task: StageTask, number: int, parts: Mapping[int, pa.Table]) -> StoredFiles:
    table = open_address(task.address)
    if number >= len(task.units):
        return StoredFiles(deletions=delete_rows(table, parts[_DELETED][ROW_ADDRESS]))
    writer = RowWriter(table, replaces=task.replaces)
    routes = parts.get(_ROUTES, _ROUTED.empty_table())
    for path in task.units[number]:
        _write_rows(writer, task.type, task.scratch.read(path), routes)
    return StoredFiles(writer.finish())


def _write_rows(writer: RowWriter, type_: SchemaType, rows: pa.Table, routes: pa.Table) -> None:
    """Write rows by their routes; rows without one are new."""
    is_left_out = pc.equal(routes[ROW_ID], _LEFT_OUT)
    left_out = routes.filter(is_left_out)[POSITION].combine_chunks()
    if len(left_out):
        rows = rows.filter(pc.invert(pc.is_in(rows[POSITION], value_set=left_out)))
    replacements = routes.filter(pc.invert(is_left_out))
    at = pc.index_in(rows[POSITION], value_set=replacements[POSITION].combine_chunks())
    is_new = pc.is_null(at)
    replaced = None
    if len(replacements):
        ids = replacements[ROW_ID].take(at.drop_null())
        replaced = to_table(rows.filter(pc.invert(is_new)), type_).append_column(ROW_ID, ids)
    writer.take(to_table(rows.filter(is_new), type_), replaced)
