"""Sources: rows that executors read by themselves; many small ones share a task.

A frame of each source would make Spark plan, and start, as many tasks as there are sources. So a
job about many tables reads all of them in one frame, whose tasks have shares of like size.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial, reduce
from itertools import groupby
from operator import attrgetter
from typing import Final, Protocol

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from omnigraph.engine.local.key_joins import drop_known, join_known, keep_known
from omnigraph.engine.spark.cores import core_count
from omnigraph.engine.spark.failures import report_errors
from omnigraph.engine.spark.pieces import Cut, bucket_rows, of_units, task_numbers
from omnigraph.engine.spark.relations import pack
from omnigraph.limits import SPARK_BATCH_BYTES_MAX, SPARK_OPEN_ROWS
from omnigraph.storage import lookups
from omnigraph.storage.scans import open_address, scan_batches, scan_schema
from omnigraph.storage.tables import Table, TableAddress

HELD_ROWS_MIN: Final = 1 << 16
HELD_ROWS_MAX: Final = 1 << 22
HELD_BYTES_MAX: Final = 128 << 20
"""Keys that every worker may hold in memory, rather than shuffle what they are compared with; up to
the minimum it holds them in any case."""


class ReadableRows(Protocol):
    """Rows that any process can read. Small, hashable, and can be sent to executors."""

    @property
    def row_count(self) -> int:
        """How many there are; an estimate is enough."""
        ...

    def read(self, columns: Sequence[str]) -> pa.Table:
        """Columns of all of them, in this order."""
        ...


@dataclass(frozen=True, slots=True)
class TableSource:
    """Fragments of a pinned table, by their positions in `Table.fragments`."""

    address: TableAddress
    fragments: tuple[int, ...]
    row_count: int

    def read(self, columns: Sequence[str]) -> pa.Table:
        """See `ReadableRows.read`."""
        table = open_table(self.address)
        batches = scan_batches(
            table, columns, fragments=self.fragments, batch_bytes=SPARK_BATCH_BYTES_MAX
        )
        return pa.Table.from_batches(batches, scan_schema(table, columns))


def table_sources(table: Table, cores: int) -> list[TableSource]:
    """A table in shares for tasks that are neither tiny nor huge."""
    row_counts = [fragment.num_rows for fragment in table.fragments()]
    return [
        TableSource(table.address, group, sum(row_counts[place] for place in group))
        for group in pack(row_counts, cores)
    ]


Shape = Callable[[pa.Table], pa.Table]
"""Makes rows of others. It can be compared, and sent to executors."""


@dataclass(frozen=True, slots=True)
class HeldRows:
    """Rows that a worker keeps in memory while it reads larger ones, unless they are too large.

    Each worker reads them once; those with too many bytes it reads file by file at each use.

    Attributes:
        shape: Makes the rows that are kept of those that are read.
    """

    reads: tuple[tuple[ReadableRows, tuple[str, ...]], ...]
    shape: Shape

    @property
    def row_count(self) -> int:
        """How many rows are read."""
        return sum(source.row_count for source, _ in self.reads)

    def keep(self, rows: pa.Table, *, key: str) -> pa.Table:
        """Those of other rows whose key one of these has."""
        kept = []
        for held in self._parts():
            kept.append(keep_known(rows, held, key=key))
            # A key may be in several parts, and a row is kept once.
            rows = drop_known(rows, held, key=key) if kept[-1].num_rows else rows
        return pa.concat_tables(kept)

    def drop(self, rows: pa.Table, *, key: str) -> pa.Table:
        """Those of other rows whose key none of these has."""
        return reduce(partial(drop_known, key=key), self._parts(), rows)

    def join(self, rows: pa.Table, *, key: str) -> pa.Table:
        """Those of other rows whose key one of these has, with its other columns; keys differ."""
        return pa.concat_tables([join_known(rows, held, key=key) for held in self._parts()])

    def values(self, column: str) -> pa.ChunkedArray:
        """A column of all of them."""
        return pa.chunked_array([part[column].combine_chunks() for part in self._parts()])

    def _parts(self) -> Iterator[pa.Table]:
        held = _hold(self)
        if held is not None:
            yield held
            return
        for source, columns in self.reads:
            yield self.shape(source.read(columns))


# A task is about one table, and the next one of a worker mostly about the same.
@lru_cache(maxsize=2)
def _hold(held: HeldRows) -> pa.Table | None:
    """The rows; None if they have too many bytes."""
    tables = []
    byte_count = 0
    for source, columns in held.reads:
        tables.append(held.shape(source.read(columns)))
        byte_count += tables[-1].nbytes
        if byte_count > HELD_BYTES_MAX:
            return None
    return pa.concat_tables(tables).combine_chunks()


def is_held_cheaply(row_count: int, other_count: int, cores: int) -> bool:
    """Whether all workers should hold some rows, rather than send others to where those are."""
    if row_count > HELD_ROWS_MAX:
        return False
    return row_count <= HELD_ROWS_MIN or row_count * cores <= other_count


@dataclass(frozen=True, slots=True)
class LookupSource:
    """The rows of a pinned table that have one of the held keys in a text column.

    Attributes:
        column: The column of the table, and `key` that of the held rows.
    """

    address: TableAddress
    column: str
    held: HeldRows
    key: str
    row_count: int

    def read(self, columns: Sequence[str]) -> pa.Table:
        """See `ReadableRows.read`."""
        keys = self.held.values(self.key)
        return lookups.find(open_table(self.address), self.column, keys, columns=columns)


@dataclass(frozen=True, slots=True)
class SourceRead:
    """A source, the columns that are read of it, and what becomes of them."""

    source: ReadableRows
    columns: tuple[str, ...]
    cut: Cut


def of_sources(
    session: SparkSession, reads: Sequence[SourceRead], *, rows_max: int | None = None
) -> DataFrame:
    """Pieces of all the sources, in one frame.

    Args:
        rows_max: How many rows a task reads; by default so many that their pieces suit a shuffle.
    """
    weights = [read.source.row_count + SPARK_OPEN_ROWS for read in reads]
    rows_max = rows_max or bucket_rows(sum(weights))
    groups = pack(weights, core_count(session), rows_max=rows_max)
    units = tuple(tuple(reads[place] for place in group) for group in groups)
    return of_units(session, len(units), partial(cut_sources, units))


def cut_sources(
    units: tuple[tuple[SourceRead, ...], ...], numbers: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Cut the sources of the units with these numbers. Runs in an executor; safe to run twice."""
    with report_errors():
        for number in task_numbers(numbers):
            # What is cut alike is cut together, into fewer pieces.
            for (cut, _), reads in groupby(units[number], key=attrgetter("cut", "columns")):
                parts = [read.source.read(read.columns) for read in reads]
                if rows := [part for part in parts if part.num_rows]:
                    yield from cut(pa.concat_tables(rows))


@lru_cache(maxsize=64)
def open_table(address: TableAddress) -> Table:
    """The table at an address, opened once by each worker."""
    return open_address(address)
