"""Where Spark has the rows of a merge: decided in executors, or new fragments of the source."""

from __future__ import annotations

import pickle
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, Protocol

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.types import StructType

from omnigraph.changes.records import exclude_ids
from omnigraph.changes.tables import rows_of
from omnigraph.engine.spark.cores import core_count
from omnigraph.engine.spark.failures import report_errors
from omnigraph.engine.spark.messages import MESSAGE, collect_messages, to_message
from omnigraph.engine.spark.pieces import (
    PART,
    PIECES,
    ROWS,
    by_one,
    by_place,
    of_units,
    open_pieces,
    route_pieces,
    task_numbers,
    unpack,
)
from omnigraph.engine.spark.relations import pack
from omnigraph.engine.spark.types import spark_schema, to_crossing
from omnigraph.engine.spark.writing import (
    RowWriter,
    cut_deletions,
    fragment_groups,
    numbers_of,
)
from omnigraph.errors import LimitExceededError
from omnigraph.integrity.deltas import POSITION, delta_schema
from omnigraph.limits import MERGE_DECISIONS_MAX, ROWS_PER_FILE_MAX, SPARK_BATCH_BYTES_MAX
from omnigraph.merge.conflicts import Conflict
from omnigraph.merge.decisions import Merged, Survivors
from omnigraph.merge.spark.decisions import DecisionReport, Part
from omnigraph.model.counts import Counts
from omnigraph.schema.arrow import table_schema
from omnigraph.schema.catalog import SchemaType
from omnigraph.storage.differences import difference, read_parts
from omnigraph.storage.pairs import Pair, size_of
from omnigraph.storage.places import fragment_ids_of
from omnigraph.storage.scans import open_address, scan_batches
from omnigraph.storage.tables import ROW_ADDRESS, Fragment, Table, TableAddress

_UPSERTED: Final = (Part.ADDED, Part.REPLACED)
_REMOVED: Final = (Part.REPLACED, Part.DELETED)


@dataclass(frozen=True, slots=True)
class WantedRows:
    """Rows that are looked for: by their ids, or edges by the ids of their sources."""

    ids: pa.Array
    sources: pa.Array

    def among(self, rows: pa.Table) -> pa.Table:
        """Those of the rows."""
        is_wanted = pc.is_in(rows["id"], value_set=self.ids)
        if len(self.sources) and "src" in rows.column_names:
            is_wanted = pc.or_(is_wanted, pc.is_in(rows["src"], value_set=self.sources))
        return rows.filter(is_wanted)


class RowSource(Protocol):
    """What a merge does to one table, the rows where executors have them.

    Everywhere, `without` are the ids of rows that are not meant, since the driver has them.
    """

    @property
    def counts(self) -> Counts:
        """How many rows are inserted, updated and deleted."""
        ...

    @property
    def survivor_count(self) -> int:
        """How many rows are kept although one side deleted them."""
        ...

    def survivors(self) -> Survivors:
        """The rows that are kept although one side deleted them; the driver collects their ids."""
        ...

    def upserts(self, columns: Sequence[str], without: pa.Array) -> DataFrame:
        """Columns of rows that are inserted or updated, `POSITION` among them if it is wanted."""
        ...

    def deleted(self, without: pa.Array) -> DataFrame:
        """The ids of deleted rows."""
        ...

    def find(self, wanted: WantedRows) -> Merged:
        """What the merge does to some rows; they are collected by the driver."""
        ...

    def write(self, table: Table, without: pa.Array) -> list[Fragment]:
        """Have the rows written as files of a table."""
        ...

    def deletions(self, group_of: dict[int, int], without: pa.Array) -> DataFrame | None:
        """Pieces of the addresses of deleted and replaced rows, for groups of fragments."""
        ...


@dataclass(frozen=True, slots=True)
class DecidedRows:
    """Rows that executors decided about, as the pieces they left; `frame` is kept by Spark."""

    session: SparkSession
    type: SchemaType
    frame: DataFrame
    reports: tuple[DecisionReport, ...]

    @property
    def counts(self) -> Counts:
        """How many rows are inserted, updated and deleted."""
        return sum((report.counts for report in self.reports), Counts())

    @property
    def conflict_count(self) -> int:
        """How many conflicts are undecided."""
        return sum(report.conflict_count for report in self.reports)

    def conflicts(self, limit: int) -> list[Conflict]:
        """The first of the undecided conflicts."""
        if not self.conflict_count:
            return []
        shown = self._parts([Part.CONFLICTS]).mapInArrow(
            unpack_conflicts, "id string, property string, kind string, conflict binary"
        )
        first = shown.orderBy("id", "property", "kind").limit(limit)
        return [pickle.loads(row.conflict) for row in first.select("conflict").collect()]

    @property
    def survivor_count(self) -> int:
        """How many rows are kept although one side deleted them."""
        return sum(report.survivor_count for report in self.reports)

    def survivors(self) -> Survivors:
        """The rows that are kept although one side deleted them."""
        if not self.survivor_count:
            return Survivors()
        if self.survivor_count > MERGE_DECISIONS_MAX:
            message = (
                f"{self.survivor_count:,} rows of {self.type.name} that one branch deleted are "
                f"kept; the limit is {MERGE_DECISIONS_MAX:,}"
            )
            raise LimitExceededError(message, hint="change a branch so that fewer rows conflict")
        return Survivors(self._ids(Part.RESTORED), self._ids(Part.RETAINED))

    def _ids(self, part: Part) -> pa.Array:
        unpack = partial(unpack_ids, pa.array([], pa.utf8()))
        ids = self._parts([part]).mapInArrow(unpack, "id string").toArrow()["id"]
        return ids.combine_chunks().cast(pa.utf8())

    def upserts(self, columns: Sequence[str], without: pa.Array) -> DataFrame:
        """Columns of rows that are inserted or updated."""
        unpack = partial(unpack_rows, self.type, tuple(columns), without)
        return self._parts(_UPSERTED).mapInArrow(unpack, _schema(self.type, columns))

    def deleted(self, without: pa.Array) -> DataFrame:
        """The ids of deleted rows."""
        unpack = partial(unpack_ids, without)
        return self._parts([Part.DELETED]).mapInArrow(unpack, "id string")

    def find(self, wanted: WantedRows) -> Merged:
        """What the merge does to some rows."""
        every = self._parts([*_UPSERTED, Part.DELETED])
        return _to_merged(self.type, every.mapInArrow(partial(find_pieces, wanted), PIECES))

    def write(self, table: Table, without: pa.Array) -> list[Fragment]:
        """Have the rows written as files of a table."""
        write = partial(write_pieces, table.address, without)
        files: list[Fragment] = []
        for rows in (self._added(), self._replaced(table)):
            written = [] if rows is None else collect_messages(rows.mapInArrow(write, MESSAGE))
            files += [file for files_of_task in written for file in files_of_task]
        return files

    def _added(self) -> DataFrame | None:
        count = self.counts.inserted
        if not count:
            return None
        cores = core_count(self.session)
        # Buckets are smaller than files should be.
        return self._parts([Part.ADDED]).coalesce(max(cores, -(-count // ROWS_PER_FILE_MAX)))

    def _replaced(self, table: Table) -> DataFrame | None:
        """Rows that lie near one another together: their row ids then take little room."""
        if not self.counts.updated:
            return None
        groups = fragment_groups(table)
        pieces = self._parts([Part.REPLACED]).mapInArrow(partial(cut_replaced, groups), PIECES)
        return route_pieces(pieces, len(set(groups.values())))

    def deletions(self, group_of: dict[int, int], without: pa.Array) -> DataFrame | None:
        """Pieces of the addresses of rows that go or are replaced."""
        if not self.counts.updated and not self.counts.deleted:
            return None
        cut = partial(cut_addresses, group_of, without)
        return self._parts(_REMOVED).mapInArrow(cut, PIECES)

    def _parts(self, parts: Collection[Part]) -> DataFrame:
        return self.frame.where(sql.col(PART).isin(*map(int, parts)))


@dataclass(frozen=True, slots=True)
class CopiedRows:
    """New rows of the source that are taken as they are: nothing is compared with them or joined.

    Attributes:
        groups: What each task reads: fragments that only the source has, or some of their rows.
    """

    session: SparkSession
    type: SchemaType
    address: TableAddress
    groups: tuple[tuple[Pair, ...], ...]
    row_count: int

    @classmethod
    def of(
        cls, session: SparkSession, type_: SchemaType, source: Table, added: Sequence[Pair]
    ) -> CopiedRows:
        """Some rows of a table, in shares for tasks that are neither tiny nor huge."""
        counts = [size_of(None, source, [pair]).row_count for pair in added]
        cores = core_count(session)
        packed = pack(counts, cores)
        groups = tuple(tuple(added[place] for place in group) for group in packed)
        return cls(session, type_, source.address, groups, sum(counts))

    @property
    def survivor_count(self) -> int:
        """How many rows are kept although one side deleted them: none."""
        return 0

    @property
    def counts(self) -> Counts:
        """How many rows are inserted."""
        return Counts(inserted=self.row_count)

    def survivors(self) -> Survivors:
        """The rows that are kept although one side deleted them: new rows are not among them."""
        return Survivors()

    def upserts(self, columns: Sequence[str], without: pa.Array) -> DataFrame:
        """Columns of rows that are inserted."""
        read = partial(read_copied, self, tuple(columns), without)
        return self._numbers().mapInArrow(read, _schema(self.type, columns))

    def deleted(self, without: pa.Array) -> DataFrame:  # noqa: ARG002  as of other sources
        """The ids of rows that go: none does."""
        return self.session.createDataFrame([], "id string")

    def find(self, wanted: WantedRows) -> Merged:
        """What the merge does to some rows."""
        find = partial(find_copied, self, wanted)
        return _to_merged(self.type, of_units(self.session, len(self.groups), find))

    def write(self, table: Table, without: pa.Array) -> list[Fragment]:
        """Have the rows written as files of a table, each fragment by a task that reads it."""
        write = partial(write_copied, self, table.address, without)
        written = collect_messages(self._numbers().mapInArrow(write, MESSAGE))
        return [file for files_of_task in written for file in files_of_task]

    def deletions(
        self,
        group_of: dict[int, int],  # noqa: ARG002  as of other sources
        without: pa.Array,  # noqa: ARG002
    ) -> DataFrame | None:
        """Pieces of the addresses of rows that go: none does."""
        return None

    def batches(self, number: int, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """The rows of a group, where a task reads them."""
        table, added = open_address(self.address), self.groups[number]
        whole = [pair.after for pair in added if pair.rows is None and pair.after is not None]
        if whole:
            yield from scan_batches(
                table, columns, fragments=whole, batch_bytes=SPARK_BATCH_BYTES_MAX
            )
        parts = difference(None, table, [pair for pair in added if pair.rows is not None]).after
        yield from read_parts(table, parts, columns)

    def _numbers(self) -> DataFrame:
        count = len(self.groups)
        return self.session.range(0, count, 1, numPartitions=max(1, count))

    def __reduce__(self) -> tuple[object, ...]:
        # It is sent to executors, without the session.
        return CopiedRows, (None, self.type, self.address, self.groups, self.row_count)


def _schema(type_: SchemaType, columns: Sequence[str]) -> StructType:
    own = delta_schema(type_)
    return spark_schema(pa.schema([own.field(name) for name in columns]))


def _to_merged(type_: SchemaType, pieces: DataFrame) -> Merged:
    """Pieces as what a merge does; the caller asked for few rows."""
    merged: dict[Part, list[pa.Table]] = {part: [] for part in Part}
    for row in pieces.select(PART, ROWS).collect():
        merged[Part(row[0])].append(unpack(row[1]))
    schema = table_schema(type_)
    added, replaced = (
        pa.concat_tables(rows.select(schema.names) for rows in merged[part])
        if merged[part]
        else schema.empty_table()
        for part in _UPSERTED
    )
    ids = [rows["id"].combine_chunks() for rows in merged[Part.DELETED]]
    deleted = pa.concat_arrays(ids) if ids else pa.array([], pa.utf8())
    return Merged(type_, added, replaced, deleted)


def unpack_conflicts(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Conflicts out of their pieces. Runs in an executor; safe to run twice."""
    for _, rows in open_pieces(batches):
        yield from rows.to_batches()


def unpack_rows(
    type_: SchemaType,
    columns: tuple[str, ...],
    without: pa.Array,
    batches: Iterator[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    """Columns of rows out of their pieces. Runs in an executor; safe to run twice."""
    with report_errors():
        for _, rows in open_pieces(batches):
            yield from _crossing(type_, columns, _rest(rows, without))


def unpack_ids(without: pa.Array, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Ids out of their pieces. Runs in an executor; safe to run twice."""
    for _, rows in open_pieces(batches):
        yield from _rest(rows, without).select(["id"]).to_batches()


def find_pieces(wanted: WantedRows, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Pieces of the rows that are wanted. Runs in an executor; safe to run twice."""
    for part, rows in open_pieces(batches):
        yield from by_one(wanted.among(rows), part)


def cut_addresses(
    group_of: dict[int, int], without: pa.Array, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Addresses for who deletes there. Runs in an executor; safe to run twice."""
    for _, rows in open_pieces(batches):
        yield from cut_deletions(_rest(rows, without), group_of)


def cut_replaced(
    group_of: dict[int, int], batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Rows for who writes those of their fragments. Runs in an executor; safe to run twice."""
    for part, rows in open_pieces(batches):
        fragment_ids = fragment_ids_of(rows[ROW_ADDRESS].to_numpy())
        yield from by_place(rows, numbers_of(fragment_ids, group_of), part)


def write_pieces(
    address: TableAddress, without: pa.Array, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Write rows as files of a table. Runs in an executor; safe to run twice."""
    with report_errors():
        writer = RowWriter(open_address(address))
        for part, piece in open_pieces(batches):
            rows = _rest(piece, without)
            if part == Part.ADDED:
                writer.take(added=rows)
            else:
                writer.take(replaced=rows.drop_columns([ROW_ADDRESS]))
        yield to_message(writer.finish())


def read_copied(
    copied: CopiedRows,
    columns: tuple[str, ...],
    without: pa.Array,
    numbers: Iterator[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    """Columns of fragments that are taken whole. Runs in an executor; safe to run twice."""
    with report_errors():
        read = list(dict.fromkeys(["id", *(name for name in columns if name != POSITION)]))
        for number in task_numbers(numbers):
            for batch in copied.batches(number, read):
                rows = _rest(pa.Table.from_batches([batch]), without)
                yield from _crossing(copied.type, columns, rows)


def find_copied(
    copied: CopiedRows, wanted: WantedRows, numbers: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Pieces of the rows that are wanted. Runs in an executor; safe to run twice."""
    with report_errors():
        for number in task_numbers(numbers):
            for rows in _typed(copied, number):
                yield from by_one(wanted.among(rows), Part.ADDED)


def write_copied(
    copied: CopiedRows,
    address: TableAddress,
    without: pa.Array,
    numbers: Iterator[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    """Write fragments anew in another place. Runs in an executor; safe to run twice."""
    with report_errors():
        writer = RowWriter(open_address(address))
        for number in task_numbers(numbers):
            for rows in _typed(copied, number):
                writer.take(added=_rest(rows, without))
        yield to_message(writer.finish())


def _typed(copied: CopiedRows, number: int) -> Iterator[pa.Table]:
    for batch in copied.batches(number, table_schema(copied.type).names):
        yield rows_of(copied.type, [batch])


def _rest(rows: pa.Table, without: pa.Array) -> pa.Table:
    return exclude_ids(rows, without) if len(without) else rows


def _crossing(
    type_: SchemaType, columns: tuple[str, ...], rows: pa.Table
) -> Iterator[pa.RecordBatch]:
    """Columns of a delta, as Spark takes them."""
    own = delta_schema(type_)
    nowhere = pa.nulls(rows.num_rows, pa.int64())
    arrays = [
        nowhere if name == POSITION else rows[name].cast(own.field(name).type) for name in columns
    ]
    schema = pa.schema([own.field(name) for name in columns])
    for batch in pa.Table.from_arrays(arrays, schema=schema).to_batches():
        yield to_crossing(batch)
