"""Pieces: rows on their way from task to task, thousands of them as one row of Spark's.

Spark takes rows over from Python, shuffles them and hands them back one at a time. Where a task
only passes rows on to Python code, it sends pieces: Arrow, as bytes, with the number of the task
that they are for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Final

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from omnigraph.engine.local.buckets import buckets_of
from omnigraph.engine.spark.failures import reporting
from omnigraph.engine.spark.relations import pack
from omnigraph.limits import SPARK_BATCH_BYTES_MAX, SPARK_PARTITION_ROWS_MAX
from omnigraph.storage.scans import open_address, scan_batches
from omnigraph.storage.tables import Table, TableAddress

TO: Final = "@to"
PART: Final = "@part"
ROWS: Final = "@rows"

PIECES: Final = f"`{TO}` int, `{PART}` int, `{ROWS}` binary"
"""Whom a piece is for, what it is part of, and its rows."""

_SCHEMA: Final = pa.schema([(TO, pa.int32()), (PART, pa.int32()), (ROWS, pa.binary())])

Cut = Callable[[pa.Table], Iterator[pa.RecordBatch]]
"""Makes pieces of rows. Goes to executors, so it holds no handle."""

Arrived = Mapping[int, Mapping[int, pa.Table]]
"""By the number they are for, the parts, each with all its rows."""


def bucket_count(row_count: int, cores: int) -> int:
    """How many buckets keep each task busy and within its memory.

    >>> bucket_count(1_000, cores=8), bucket_count(100_000_000, cores=8)
    (8, 96)
    """
    return max(cores, -(-row_count // SPARK_PARTITION_ROWS_MAX))


def by_key(rows: pa.Table, key: str, count: int, part: int) -> Iterator[pa.RecordBatch]:
    """Pieces of rows, those with the same key for the same bucket."""
    return by_place(rows, buckets_of(rows[key], count), part)


def by_place(rows: pa.Table, places: np.ndarray, part: int) -> Iterator[pa.RecordBatch]:
    """Pieces of rows, each row for the task that `places` says."""
    if not rows.num_rows:
        return
    order = np.argsort(places, kind="stable")
    rows = rows.combine_chunks().take(pa.array(order))
    ends = np.flatnonzero(np.diff(places[order], append=-1)) + 1
    rows_max = max(1, SPARK_BATCH_BYTES_MAX * rows.num_rows // max(1, rows.nbytes))
    start = 0
    for end in ends.tolist():
        to = int(places[order[start]])
        for first in range(start, end, rows_max):
            yield _piece(to, part, rows.slice(first, min(rows_max, end - first)))
        start = end


def by_one(rows: pa.Table, part: int) -> Iterator[pa.RecordBatch]:
    """Pieces of rows that are for nobody in particular."""
    return by_place(rows, np.zeros(rows.num_rows, np.int32), part)


def of_table(session: SparkSession, table: Table, columns: Sequence[str], cut: Cut) -> DataFrame:
    """Pieces of the named columns of a pinned table."""
    cores = session.sparkContext.defaultParallelism
    groups = pack([each.num_rows for each in table.fragments()], cores)
    return of_units(
        session, len(groups), partial(cut_table, table.address, groups, tuple(columns), cut)
    )


def of_frame(frame: DataFrame, cut: Cut) -> DataFrame:
    """Pieces of rows that Spark has."""
    return frame.mapInArrow(partial(cut_batches, cut), PIECES)


def of_units(session: SparkSession, count: int, function: _Mapper) -> DataFrame:
    """The pieces that a function makes of numbers, each in a task of its own."""
    numbers = session.range(0, count, 1, numPartitions=max(1, count))
    return numbers.mapInArrow(function, PIECES)


_Mapper = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def cut_table(
    address: TableAddress,
    groups: tuple[tuple[int, ...], ...],
    columns: tuple[str, ...],
    cut: Cut,
    numbers: Iterator[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    """Cut the groups of fragments with these numbers. Runs in an executor; safe to run twice."""
    with reporting():
        for number in listed(numbers):
            found = scan_batches(
                open_address(address),
                columns,
                fragments=groups[number],
                batch_bytes=SPARK_BATCH_BYTES_MAX,
            )
            if batches := list(found):
                yield from cut(pa.Table.from_batches(batches))


def cut_batches(cut: Cut, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Cut a partition. Runs in an executor; safe to run twice."""
    with reporting():
        if found := list(batches):
            yield from cut(pa.Table.from_batches(found))


def listed(numbers: Iterator[pa.RecordBatch]) -> Iterator[int]:
    """The numbers that a task got."""
    return (each for batch in numbers for each in batch.column(0).to_pylist())


def call(to: int) -> pa.RecordBatch:
    """A piece without rows: the task with this number has something to do in any case."""
    return _batch(to, -1, None)


def sent(pieces: DataFrame, count: int) -> DataFrame:
    """The pieces, where those for one number are in one of so many partitions."""
    return pieces.repartitionById(count, TO)


def arrived(batches: Iterable[pa.RecordBatch]) -> Arrived:
    """What came for each number that a task has."""
    found: dict[int, dict[int, list[pa.Table]]] = {}
    for batch in batches:
        to, part, rows = batch.columns
        for number, kind, data in zip(to.to_pylist(), part.to_pylist(), rows, strict=True):
            parts = found.setdefault(number, {})
            if data.is_valid:
                parts.setdefault(kind, []).append(unpacked(data.as_buffer()))
    return {
        number: {kind: pa.concat_tables(tables) for kind, tables in parts.items()}
        for number, parts in sorted(found.items())
    }


def opened(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, pa.Table]]:
    """What each piece is part of, and its rows, one piece at a time."""
    for batch in batches:
        for part, data in zip(batch.column(PART).to_pylist(), batch.column(ROWS), strict=True):
            yield part, unpacked(data.as_buffer())


def unpacked(data: pa.Buffer | bytes) -> pa.Table:
    """The rows of a piece."""
    return pa.ipc.open_stream(data).read_all()


def _piece(to: int, part: int, rows: pa.Table) -> pa.RecordBatch:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as stream:
        stream.write_table(rows)
    return _batch(to, part, sink.getvalue())


def _batch(to: int, part: int, data: pa.Buffer | None) -> pa.RecordBatch:
    rows = None if data is None else data.to_pybytes()
    return pa.record_batch({TO: [to], PART: [part], ROWS: [rows]}, _SCHEMA)
