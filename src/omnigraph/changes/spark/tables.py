"""Comparing two versions of one table on Spark: counted at once, shown part by part."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from functools import cache, partial
from typing import Final

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import SparkSession
from pyspark.sql import functions as sql

from omnigraph.changes.lifts import LiftPair, unlike_columns
from omnigraph.changes.records import TableChanges
from omnigraph.changes.rows import Chunk
from omnigraph.changes.spark.rows import ChangedRows, Versions
from omnigraph.changes.tables import compare_rows
from omnigraph.choices import Op
from omnigraph.engine.local.execute import LocalEngine
from omnigraph.engine.protocol import Data
from omnigraph.engine.spark.execute import SparkEngine
from omnigraph.engine.spark.failures import report_errors, translate_errors
from omnigraph.engine.spark.jobs import Jobs
from omnigraph.engine.spark.messages import MESSAGE, collect_messages, to_message
from omnigraph.engine.spark.pieces import PART, PIECES, ROWS, by_one, collect_parts, unpack
from omnigraph.errors import InternalError
from omnigraph.model.counts import Counts
from omnigraph.model.tables import TableKey
from omnigraph.schema.arrow import table_schema
from omnigraph.schema.catalog import SchemaType
from omnigraph.storage.tables import Table

_OPS: Final = (Op.INSERT, Op.UPDATE, Op.DELETE)
_ACTION: Final = "the comparison"


@dataclass(frozen=True, slots=True)
class SparkChanges:
    """How one table's rows differ between two versions; Spark has the rows."""

    type: SchemaType
    counts: Counts
    changed: ChangedRows
    session: SparkSession

    def chunks(self, ops: Collection[Op]) -> Iterator[Chunk]:
        """The rows to which one of these happened: inserts, updates, deletions.

        The driver holds a few partitions of them at a time.
        """
        pieces = self.changed.in_order(self.session).mapInArrow(
            partial(show_changes, self.type), PIECES
        )
        # Kept for its three readers: comparing reads and shuffles all that differs.
        pieces = pieces.persist(StorageLevel.MEMORY_AND_DISK)
        try:
            for number, op in enumerate(_OPS):
                if op in ops and self._count(op):
                    rows = pieces.where(sql.col(PART) == number).select(ROWS)
                    with translate_errors(_ACTION):
                        for row in rows.toLocalIterator(prefetchPartitions=True):
                            yield _chunk(self.type, op, unpack(row[0]))
        finally:
            pieces.unpersist()

    def _count(self, op: Op) -> int:
        counts = {
            Op.INSERT: self.counts.inserted,
            Op.UPDATE: self.counts.updated,
            Op.DELETE: self.counts.deleted,
        }
        return counts[op]


def compare_on_spark(
    type_: SchemaType,
    before: Table | None,
    after: Table | None,
    engine: SparkEngine,
    lifts: LiftPair | None = None,
) -> SparkChanges:
    """How the rows of a type differ between two versions of its table, as `compare_tables` says."""
    versions = Versions.of(before, after, lifts or LiftPair.identity(type_))
    changed = ChangedRows.of(type_, [versions])
    session = engine.session
    if versions.only_adds:
        # Every one of them was inserted, and files know how many rows they have.
        return SparkChanges(type_, Counts(versions.size.row_count), changed, session)
    if versions.only_removes:
        return SparkChanges(type_, Counts(deleted=versions.size.row_count), changed, session)

    def count() -> list[Counts]:
        rows = changed.by_id(session)
        return collect_messages(rows.mapInArrow(partial(count_changes, type_), MESSAGE))

    jobs = Jobs(session, f"omnigraph-diff-{versions.after}", _ACTION)
    return SparkChanges(type_, sum(jobs.run(count), Counts()), changed, session)


def count_changes(type_: SchemaType, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Count what differs in a bucket. Runs in an executor; safe to run twice."""
    with report_errors():
        for parts in collect_parts(batches).values():
            yield to_message(compare_parts(type_, parts.get).counts)


def show_changes(type_: SchemaType, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Pieces of what differs in a bucket. Runs in an executor; safe to run twice."""
    with report_errors():
        for parts in collect_parts(batches).values():
            changes = compare_parts(type_, parts.get)
            images = (changes.inserted, _beside(changes.before, changes.after), changes.deleted)
            for number, rows in enumerate(images):
                yield from by_one(rows, number)


def compare_parts(
    type_: SchemaType, part: Callable[[int], pa.Table | None], first: int = 0
) -> TableChanges:
    """How the rows of two parts of a bucket differ: the first one, and the next."""
    names = table_schema(type_).names
    nothing = table_schema(type_).empty_table()
    old, new = (
        nothing if (rows := part(place)) is None else rows.select([*names, *unlike_columns(rows)])
        for place in (first, first + 1)
    )
    return compare_rows(type_, old, new, local_engine(), no_data())


@cache
def local_engine() -> LocalEngine:
    """The engine that tasks of this process compare with."""
    return LocalEngine()


def no_data() -> Data:
    """What tasks compare on: the rows they are given, and no table."""
    return Data(_no_table)


def _no_table(key: TableKey) -> Table:
    message = f"a task was to read {key}, and has rows alone"
    raise InternalError(message)


def _beside(before: pa.Table, after: pa.Table) -> pa.Table:
    """The rows as they were beside the rows as they are, distinguished by place."""
    columns = [*before.columns, *after.columns]
    return pa.Table.from_arrays(columns, [str(place) for place in range(len(columns))])


def _chunk(type_: SchemaType, op: Op, rows: pa.Table) -> Chunk:
    if op is Op.INSERT:
        return Chunk(op, None, rows)
    if op is Op.DELETE:
        return Chunk(op, rows, None)
    schema = table_schema(type_)
    sides = (rows.columns[: len(schema)], rows.columns[len(schema) :])
    before, after = (pa.Table.from_arrays(columns, schema=schema) for columns in sides)
    return Chunk(op, before, after)
