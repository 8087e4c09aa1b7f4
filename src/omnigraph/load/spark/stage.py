"""Staging rows that wait in scratch: executors write files and deletions, the driver assembles.

One job stages all types of a load. An upsert compares only the ids of the load and of the table.
Executors then read their scratch again, and distinguish new rows, rows that replace others and keep
their row ids, and rows that the table has already, value for value. Those are not written.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

from omnigraph.clock import SystemClock
from omnigraph.embedding.counts import EmbeddingCounts
from omnigraph.embedding.writes import RowEmbedding, TaskEmbedder
from omnigraph.engine.local.key_joins import join_known
from omnigraph.engine.spark.cores import core_count
from omnigraph.engine.spark.failures import report_errors
from omnigraph.engine.spark.messages import MESSAGE, collect_messages, to_message
from omnigraph.engine.spark.pieces import (
    PIECES,
    bucket_count,
    by_key,
    collect_parts,
    empty_piece,
    of_frame,
    route_pieces,
    split_by_place,
    task_numbers,
    to_piece,
)
from omnigraph.engine.spark.relations import pack
from omnigraph.engine.spark.sources import (
    HeldRows,
    SourceRead,
    is_held_cheaply,
    of_sources,
    open_table,
    table_sources,
)
from omnigraph.engine.spark.writing import RowWriter, fragment_groups, numbers_of
from omnigraph.integrity.deltas import POSITION
from omnigraph.limits import SPARK_OPEN_ROWS, SPARK_PARTITION_ROWS_MAX, SPARK_PARTITION_ROWS_MIN
from omnigraph.load.positions import PLACE_BITS
from omnigraph.load.spark.intake import ScratchFile
from omnigraph.load.spark.keys import KeyRows
from omnigraph.load.spark.replaced import (
    ReplacedRows,
    delete_replaced,
    delete_tasks,
    list_replaced,
)
from omnigraph.load.spark.scratch import Scratch
from omnigraph.model.tables import TableKey
from omnigraph.schema.arrow import table_schema, to_table
from omnigraph.schema.catalog import SchemaType
from omnigraph.schema.embeds import embedded_vectors
from omnigraph.storage import filters, lookups
from omnigraph.storage.replacements import find_unchanged
from omnigraph.storage.staging import (
    Deletions,
    StagedWrite,
    locate,
    stage_change,
    stage_whole,
)
from omnigraph.storage.tables import ROW_ADDRESS, ROW_ID, Fragment, Table, TableAddress

EMBEDDED_ROWS_HELD_MAX: Final = 1 << 14
"""Rows that a load on Spark gives vectors at once: scratch has files of many more without them."""


UNIT: Final = "@unit"
_SPLIT: Final = "@split"

_LEFT_OUT: Final = -1
"""In the place of a row id: the row is not written at all."""

_ROUTED: Final = pa.schema(
    [(POSITION, pa.int64()), (ROW_ID, pa.int64()), (ROW_ADDRESS, pa.uint64())]
)
"""The columns that say which rows of a unit replace others or are left out; all others are new."""

_BROUGHT, _PLACES = range(2)
"""Kinds of pieces that are matched by id: rows of the load, and places of stored rows."""

_KINDS: Final = 2


@dataclass(frozen=True, slots=True)
class StageTask:
    """All an executor needs to write rows of scratch into a table.

    Attributes:
        units: The files that are written together.
        unit_of: The unit that the rows of a split are in.
        group_of: The group of each fragment whose rows may be replaced.
        replaces: Whether the files will be the whole contents of the table.
        embedding: How texts get their vectors, where rows that are replaced have none of them.
        first: The number of its first unit; its units follow one another.
    """

    type: SchemaType
    address: TableAddress
    scratch: Scratch
    units: tuple[tuple[str, ...], ...]
    unit_of: Mapping[int, int]
    group_of: Mapping[int, int]
    replaces: bool
    embedding: RowEmbedding
    first: int = 0


@dataclass(frozen=True, slots=True)
class StageJob:
    """The tasks of all tables.

    Attributes:
        partition_of: By the number of a unit, the partition of Spark that writes it.
    """

    tasks: tuple[StageTask, ...]
    partition_of: tuple[int, ...]

    def task_of(self, number: int) -> StageTask:
        """The task that has a unit."""
        return self.tasks[bisect_right([task.first for task in self.tasks], number) - 1]

    def cut(self, rows: pa.Table, numbers: np.ndarray) -> Iterator[pa.RecordBatch]:
        """Pieces of rows, each row for the unit with its number."""
        for number, part in split_by_place(rows, numbers):
            yield to_piece(self.partition_of[number], number, part)


@dataclass(frozen=True, slots=True)
class StoredFiles:
    """The files that a task wrote, which nothing refers to.

    Attributes:
        replaced: By group of fragments, the rows to delete because others replace them.
        unchanged: Rows that it did not write, because the table has them already.
    """

    key: TableKey
    files: tuple[Fragment, ...]
    replaced: Mapping[int, ReplacedRows]
    embedding: EmbeddingCounts
    unchanged: int


@dataclass(frozen=True, slots=True)
class WaitingRows:
    """Rows of one type that wait in scratch, and the table that they are written to."""

    rows: KeyRows
    table: Table

    @property
    def key(self) -> TableKey:
        """Of the table."""
        return self.rows.type.table_key

    def is_found_by_index(self) -> bool:
        """Whether the rows are few enough to be looked up."""
        return self.rows.sources() is not None and lookups.uses_index(
            self.table, "id", len(self.rows)
        )

    def is_held(self, cores: int) -> bool:
        """Whether every worker should hold the ids of the load and read the table."""
        return self.rows.sources() is not None and is_held_cheaply(
            len(self.rows), self.table.count_rows(), cores
        )


def stage_waiting(
    session: SparkSession,
    waiting: Sequence[WaitingRows],
    tasks: Mapping[int, int],
    embedding: RowEmbedding,
    *,
    upserts: bool,
    replaces: bool,
) -> dict[TableKey, tuple[StagedWrite | None, EmbeddingCounts]]:
    """Write the rows of scratch as files of their tables, and delete the rows that they replace.

    Whatever the number of types, one job writes, and another one deletes if there is anything to
    delete. A table that has all rows already is not changed.

    Args:
        tasks: The task that read each split.
        embedding: How texts get their vectors.
        upserts: Whether a row replaces the one with its id; else all ids are new.
        replaces: Whether the rows are the whole contents of the tables.
    """
    cores = core_count(session)
    job = _plan_job(waiting, tasks, embedding, cores, upserts=upserts, replaces=replaces)
    pieces = [*_left_out_pieces(job, waiting, tasks, cores)]
    if upserts:
        pieces += _match_pieces(session, job, waiting)
    results: dict[TableKey, list[StoredFiles]] = {}
    for stored in _run_job(session, job, pieces):
        results.setdefault(stored.key, []).append(stored)
    deletions = delete_replaced(
        session,
        [
            task
            for part in waiting
            for task in delete_tasks(
                part.key,
                part.table.address,
                part.rows.scratch,
                [stored.replaced for stored in results.get(part.key, ())],
            )
        ],
    )
    return {
        part.key: _assemble(
            part, results.get(part.key, []), deletions.get(part.key), replaces=replaces
        )
        for part in waiting
    }


def _assemble(
    waiting: WaitingRows,
    results: Sequence[StoredFiles],
    deletions: Deletions | None,
    *,
    replaces: bool,
) -> tuple[StagedWrite | None, EmbeddingCounts]:
    fragments = [file for part in results for file in part.files]
    unchanged = sum(part.unchanged for part in results)
    counts = sum((part.embedding for part in results), EmbeddingCounts())
    if replaces:
        schema = table_schema(waiting.rows.type)
        return stage_whole(waiting.table, fragments, schema=schema), counts
    if unchanged == len(waiting.rows):
        return None, counts
    staged = stage_change(waiting.table, files=fragments, deletions=deletions)
    return replace(staged, unchanged=unchanged), counts


def _plan_job(
    waiting: Sequence[WaitingRows],
    tasks: Mapping[int, int],
    embedding: RowEmbedding,
    cores: int,
    *,
    upserts: bool,
    replaces: bool,
) -> StageJob:
    planned: list[StageTask] = []
    weights: list[int] = []
    for part in waiting:
        units = pack_files(part.rows.written.scratch, cores)
        task = StageTask(
            part.rows.type,
            part.table.address,
            part.rows.scratch,
            units=paths_of(units),
            unit_of=dict(_units_of(units, tasks)),
            group_of=fragment_groups(part.table) if upserts else {},
            replaces=replaces,
            embedding=embedding,
            first=len(weights),
        )
        planned.append(task)
        weights += (sum(file.row_count for file in unit) for unit in units)
    groups = pack([weight + SPARK_OPEN_ROWS for weight in weights], cores)
    partitions = [number for number, group in enumerate(groups) for _ in group]
    return StageJob(tuple(planned), tuple(partitions))


def pack_files(files: Sequence[ScratchFile], cores: int) -> list[list[ScratchFile]]:
    """Files in groups for tasks, those of one task of the intake always together."""
    share = -(-sum(file.row_count for file in files) // cores)
    rows_max = min(SPARK_PARTITION_ROWS_MAX, max(SPARK_PARTITION_ROWS_MIN, share))
    units: list[list[ScratchFile]] = []
    unit_rows = 0
    for file in files:
        is_same = bool(units) and units[-1][-1].task == file.task
        if not is_same and (not units or unit_rows + file.row_count > rows_max):
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
    job: StageJob, waiting: Sequence[WaitingRows], tasks: Mapping[int, int], cores: int
) -> Iterator[DataFrame]:
    """Pieces for units: the rows that are left out."""
    for place, part in enumerate(waiting):
        rows = part.rows
        if rows.fault_count:
            units = pack_files(rows.written.scratch, cores)
            left_out = unit_frame(rows.session, rows.faulty(), units, tasks)
            yield of_frame(left_out.select(UNIT, POSITION), partial(cut_left_out, job, place))


def cut_left_out(job: StageJob, place: int, rows: pa.Table) -> Iterator[pa.RecordBatch]:
    """Pieces for the units of rows that are left out."""
    count = len(rows)
    columns = (rows[POSITION], pa.repeat(_LEFT_OUT, count), pa.nulls(count))
    left_out = pa.table(dict(zip(_ROUTED.names, columns, strict=True)))
    numbers = rows[UNIT].to_numpy() + job.tasks[place].first
    return job.cut(left_out.cast(_ROUTED), numbers)


def _match_pieces(
    session: SparkSession, job: StageJob, waiting: Sequence[WaitingRows]
) -> Iterator[DataFrame]:
    """Pieces for units: which of their rows replace others, and the places of those."""
    cores = core_count(session)
    reads: list[SourceRead] = []
    shuffled: list[int] = []
    for place, part in enumerate(waiting):
        sources = part.rows.sources()
        if not part.table.count_rows() or not job.tasks[place].units:
            continue
        if sources is None:
            shuffled.append(place)
        elif part.is_found_by_index():
            cut = partial(cut_looked_up, job, place)
            reads += (SourceRead(source, ("id", POSITION), cut) for source in sources)
        elif part.is_held(cores):
            held = HeldRows(tuple((source, ("id", POSITION)) for source in sources), as_it_is)
            cut = partial(cut_scanned, job, place, held)
            reads += (
                SourceRead(source, ("id", ROW_ID, ROW_ADDRESS), cut)
                for source in table_sources(part.table, cores)
            )
        else:
            shuffled.append(place)
    if reads:
        yield of_sources(session, reads)
    if shuffled:
        yield _shuffle_ids(session, job, {place: waiting[place] for place in shuffled})


def as_it_is(rows: pa.Table) -> pa.Table:
    """The rows themselves."""
    return rows


def cut_looked_up(job: StageJob, place: int, brought: pa.Table) -> Iterator[pa.RecordBatch]:
    """Look up which stored rows some rows of the load replace."""
    places = locate(open_table(job.tasks[place].address), brought["id"])
    yield from _cut_routes(job, place, join_known(places, brought, key="id"))


def cut_scanned(
    job: StageJob, place: int, held: HeldRows, places: pa.Table
) -> Iterator[pa.RecordBatch]:
    """Find which of some stored rows the load replaces."""
    yield from _cut_routes(job, place, held.join(places, key="id"))


def _shuffle_ids(
    session: SparkSession, job: StageJob, waiting: Mapping[int, WaitingRows]
) -> DataFrame:
    """Match ids of the load and of tables where buckets of both are brought together."""
    cores = core_count(session)
    row_count = sum(len(part.rows) + part.table.count_rows() for part in waiting.values())
    count = bucket_count(row_count, cores)
    reads: list[SourceRead] = []
    frames: list[DataFrame] = []
    for place, part in waiting.items():
        brought = partial(by_key, key="id", count=count, part=place * _KINDS + _BROUGHT)
        columns = ("id", POSITION)
        sources = part.rows.sources()
        if sources is None:
            frames.append(of_frame(part.rows.select(columns), brought))
        reads += (SourceRead(source, columns, brought) for source in sources or ())
        places = partial(by_key, key="id", count=count, part=place * _KINDS + _PLACES)
        reads += (
            SourceRead(source, ("id", ROW_ID, ROW_ADDRESS), places)
            for source in table_sources(part.table, cores)
        )
    pieces = reduce(DataFrame.union, frames, of_sources(session, reads))
    return route_pieces(pieces, count).mapInArrow(partial(match_rows, job), PIECES)


def match_rows(job: StageJob, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Find the rows of tables that the load replaces. Runs in an executor; safe to run twice."""
    with report_errors():
        for parts in collect_parts(batches).values():
            for place in {part // _KINDS for part in parts}:
                brought = parts.get(place * _KINDS + _BROUGHT)
                places = parts.get(place * _KINDS + _PLACES)
                if brought is not None and places is not None:
                    yield from _cut_routes(job, place, join_known(places, brought, key="id"))


def _cut_routes(job: StageJob, place: int, matches: pa.Table) -> Iterator[pa.RecordBatch]:
    """Pieces for the units whose rows replace these stored rows, which have their positions."""
    task = job.tasks[place]
    if matches.num_rows:
        positions = matches[POSITION].to_numpy()
        numbers = numbers_of(positions >> PLACE_BITS, task.unit_of) + task.first
        yield from job.cut(matches.select(_ROUTED.names).cast(_ROUTED), numbers)


def _run_job(
    session: SparkSession, job: StageJob, pieces: Sequence[DataFrame]
) -> list[StoredFiles]:
    """Write every unit, in one job."""
    if not job.partition_of:
        return []
    count = job.partition_of[-1] + 1
    numbers = session.range(0, count, 1, numPartitions=count)
    if not pieces:
        return collect_messages(numbers.mapInArrow(partial(store_partitions, job), MESSAGE))
    # Units that no piece is about are written too.
    called = session.range(0, count, 1, numPartitions=1)
    every = reduce(DataFrame.union, pieces, of_frame(called, call_partitions))
    return collect_messages(route_pieces(every, count).mapInArrow(partial(store, job), MESSAGE))


def call_partitions(numbers: pa.Table) -> Iterator[pa.RecordBatch]:
    """A piece without rows for each of these partitions."""
    return map(empty_piece, numbers.column(0).to_pylist())


def store_partitions(job: StageJob, numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Write units as they are. Runs in an executor; safe to run twice."""
    with report_errors():
        for partition in task_numbers(numbers):
            yield from _store_units(job, partition, {})


def store(job: StageJob, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Write the rows of units as they are routed. Runs in an executor; safe to run twice."""
    with report_errors():
        for partition, parts in collect_parts(batches).items():
            yield from _store_units(job, partition, parts)


def _store_units(
    job: StageJob, partition: int, parts: Mapping[int, pa.Table]
) -> Iterator[pa.RecordBatch]:
    for number, its_partition in enumerate(job.partition_of):
        if its_partition == partition:
            routes = parts.get(number, _ROUTED.empty_table())
            yield to_message(_store_unit(job.task_of(number), number, routes))


def _store_unit(task: StageTask, number: int, routes: pa.Table) -> StoredFiles:
    table = open_table(task.address)
    writer = RowWriter(table, replaces=task.replaces)
    embedder = TaskEmbedder(task.embedding, SystemClock())
    vectors = embedded_vectors(task.type)
    unchanged = [pa.array([], pa.uint64())]
    for path in task.units[number - task.first]:
        rows = task.scratch.read(path)
        step = EMBEDDED_ROWS_HELD_MAX if vectors else max(1, len(rows))
        for first in range(0, len(rows), step):
            added, replacing = _split_rows(rows.slice(first, step), routes)
            if vectors:
                added, replacing = _embed_rows(embedder, table, task.type, added, replacing)
            replaced = to_table(replacing, task.type)
            is_unchanged = find_unchanged(table, replaced, replacing[ROW_ADDRESS])
            replaced = replaced.append_column(ROW_ID, replacing[ROW_ID])
            writer.take(to_table(added, task.type), replaced.filter(pa.array(~is_unchanged)))
            unchanged += replacing[ROW_ADDRESS].filter(pa.array(is_unchanged)).chunks
    kept = pa.concat_arrays(unchanged)
    found = routes.filter(pc.not_equal(routes[ROW_ID], _LEFT_OUT))[ROW_ADDRESS]
    replaced = list_replaced(
        task.scratch,
        f"replaced-{number}",
        found.filter(pc.invert(pc.is_in(found, value_set=kept))),
        task.group_of,
    )
    return StoredFiles(
        task.type.table_key, writer.finish(), replaced, embedder.counts, unchanged=len(kept)
    )


def _split_rows(rows: pa.Table, routes: pa.Table) -> tuple[pa.Table, pa.Table]:
    """New rows, and those that replace others, with the row ids and addresses of those."""
    is_left_out = pc.equal(routes[ROW_ID], _LEFT_OUT)
    left_out = routes.filter(is_left_out)[POSITION].combine_chunks()
    if len(left_out):
        rows = rows.filter(pc.invert(pc.is_in(rows[POSITION], value_set=left_out)))
    replacements = routes.filter(pc.invert(is_left_out))
    at = pc.index_in(rows[POSITION], value_set=replacements[POSITION].combine_chunks())
    is_new = pc.is_null(at)
    replacing = rows.filter(pc.invert(is_new))
    for name in (ROW_ID, ROW_ADDRESS):
        replacing = replacing.append_column(name, replacements[name].take(at.drop_null()))
    return rows.filter(is_new), replacing


def _embed_rows(
    embedder: TaskEmbedder, table: Table, type_: SchemaType, added: pa.Table, replaced: pa.Table
) -> tuple[pa.Table, pa.Table]:
    """The rows with vectors: those of the rows that they replace, where the text is the same."""

    def find(ids: pa.Array, columns: list[str]) -> pa.Table:
        at = pc.index_in(ids, value_set=replaced["id"].combine_chunks()).drop_null()
        if not len(at):
            return table.read(columns, filter_text=filters.NOTHING)
        row_ids = replaced[ROW_ID].take(at).to_pylist()
        return table.read(columns, filter_text=filters.number_in(ROW_ID, row_ids))

    vectors = embedded_vectors(type_)
    return embedder.complete(vectors, added), embedder.complete(vectors, replaced, find)
