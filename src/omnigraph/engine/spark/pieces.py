"""Pieces: thousands of rows between two tasks, as one row of Spark.

Spark reads rows from Python, shuffles them and returns them one at a time. Where a task only passes
rows on to Python code, it sends pieces: Arrow, as bytes, with the number of the task that they are
for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from math import isqrt
from typing import Final

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from omnigraph.engine.local.buckets import buckets_of
from omnigraph.engine.spark.failures import report_errors
from omnigraph.engine.spark.routing import route
from omnigraph.limits import (
    SPARK_BATCH_BYTES_MAX,
    SPARK_BUCKET_ROWS_MAX,
    SPARK_PARTITION_ROWS_MAX,
    SPARK_PIECE_ROWS_MIN,
)

TO: Final = "@to"
PART: Final = "@part"
ROWS: Final = "@rows"

PIECES: Final = f"`{TO}` int, `{PART}` int, `{ROWS}` binary"
"""The number of the task that a piece is for, the part it belongs to, and its rows."""

_SCHEMA: Final = pa.schema([(TO, pa.int32()), (PART, pa.int32()), (ROWS, pa.binary())])

Cut = Callable[[pa.Table], Iterator[pa.RecordBatch]]
"""Makes pieces of rows. Runs in executors, so it holds no handle."""

PartsByTask = Mapping[int, Mapping[int, pa.Table]]
"""By the number of the task, its parts, each with all its rows."""


def bucket_count(row_count: int, cores: int) -> int:
    """How many buckets keep each task busy and within its memory.

    >>> bucket_count(1_000, cores=8), bucket_count(100_000_000, cores=8)
    (8, 96)
    >>> bucket_count(20_000_000_000, cores=800)
    4420
    """
    return max(cores, -(-row_count // bucket_rows(row_count)))


def bucket_rows(row_count: int) -> int:
    """How many rows a task sends, or receives, of a shuffle of so many.

    Each sender makes a piece for each receiver, so with twice the rows there are four times the
    pieces, unless tasks take more rows.

    >>> bucket_rows(100_000_000), bucket_rows(20_000_000_000)
    (1048576, 4525483)
    """
    wanted = isqrt(row_count * SPARK_PIECE_ROWS_MIN)
    return min(SPARK_BUCKET_ROWS_MAX, max(SPARK_PARTITION_ROWS_MAX, wanted))


def by_key(rows: pa.Table, key: str, count: int, part: int) -> Iterator[pa.RecordBatch]:
    """Pieces of rows, those with the same key for the same bucket."""
    return by_place(rows, buckets_of(rows[key], count), part)


def by_place(rows: pa.Table, places: np.ndarray, part: int) -> Iterator[pa.RecordBatch]:
    """Pieces of rows, each row for the task in `places`."""
    return (to_piece(place, part, share) for place, share in split_by_place(rows, places))


def split_by_place(rows: pa.Table, places: np.ndarray) -> Iterator[tuple[int, pa.Table]]:
    """The rows of each place, as many at a time as one piece may have."""
    if not rows.num_rows:
        return
    order = np.argsort(places, kind="stable")
    rows = rows.combine_chunks().take(pa.array(order))
    ends = np.flatnonzero(np.diff(places[order], append=-1)) + 1
    rows_max = max(1, SPARK_BATCH_BYTES_MAX * rows.num_rows // max(1, rows.nbytes))
    start = 0
    for end in ends.tolist():
        place = int(places[order[start]])
        for first in range(start, end, rows_max):
            yield place, rows.slice(first, min(rows_max, end - first))
        start = end


def by_one(rows: pa.Table, part: int) -> Iterator[pa.RecordBatch]:
    """Pieces of rows, all for task 0."""
    return by_place(rows, np.zeros(rows.num_rows, np.int32), part)


def of_frame(frame: DataFrame, cut: Cut) -> DataFrame:
    """Pieces of the rows of a frame."""
    return frame.mapInArrow(partial(cut_batches, cut), PIECES)


def of_units(session: SparkSession, count: int, function: _Mapper) -> DataFrame:
    """The pieces that a function makes of numbers, one number in each task."""
    numbers = session.range(0, count, 1, numPartitions=max(1, count))
    return numbers.mapInArrow(function, PIECES)


_Mapper = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def cut_batches(cut: Cut, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Cut a partition. Runs in an executor; safe to run twice."""
    with report_errors():
        if rows := list(batches):
            yield from cut(pa.Table.from_batches(rows))


def task_numbers(numbers: Iterator[pa.RecordBatch]) -> Iterator[int]:
    """The numbers that a task was given."""
    return (number for batch in numbers for number in batch.column(0).to_pylist())


def empty_piece(to: int) -> pa.RecordBatch:
    """A piece without rows, so that the task with this number runs in any case."""
    return _batch(to, -1, None)


def route_pieces(pieces: DataFrame, count: int) -> DataFrame:
    """Send the pieces to `count` partitions, those for one task to the same one."""
    return route(pieces, count, TO)


def collect_parts(batches: Iterable[pa.RecordBatch]) -> PartsByTask:
    """The parts of each task number in these batches."""
    tables: dict[int, dict[int, list[pa.Table]]] = {}
    for batch in batches:
        to, part, rows = batch.columns
        for number, kind, data in zip(to.to_pylist(), part.to_pylist(), rows, strict=True):
            parts = tables.setdefault(number, {})
            if data.is_valid:
                parts.setdefault(kind, []).append(unpack(data.as_buffer()))
    return {
        number: {kind: pa.concat_tables(pieces) for kind, pieces in parts.items()}
        for number, parts in sorted(tables.items())
    }


def open_pieces(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, pa.Table]]:
    """The part and the rows of each piece, one piece at a time."""
    for batch in batches:
        for part, data in zip(batch.column(PART).to_pylist(), batch.column(ROWS), strict=True):
            yield part, unpack(data.as_buffer())


def unpack(data: pa.Buffer | bytes) -> pa.Table:
    """The rows of a piece."""
    return pa.ipc.open_stream(data).read_all()


def to_piece(to: int, part: int, rows: pa.Table) -> pa.RecordBatch:
    """A piece of rows for the task with a number."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as stream:
        stream.write_table(rows)
    return _batch(to, part, sink.getvalue())


def _batch(to: int, part: int, data: pa.Buffer | None) -> pa.RecordBatch:
    rows = None if data is None else data.to_pybytes()
    return pa.record_batch({TO: [to], PART: [part], ROWS: [rows]}, _SCHEMA)
