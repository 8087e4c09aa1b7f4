"""Relations: a pinned table, or given rows, as a DataFrame."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import LongType

from omnigraph.engine.shares import even_shares
from omnigraph.engine.spark.cores import core_count
from omnigraph.engine.spark.counting import COUNT, count_values
from omnigraph.engine.spark.failures import report_errors
from omnigraph.engine.spark.types import crossing_schema, spark_schema, to_crossing
from omnigraph.errors import ErrorCode, InvalidInputError
from omnigraph.limits import (
    SPARK_BATCH_BYTES_MAX,
    SPARK_PARTITION_ROWS_MAX,
    SPARK_PARTITION_ROWS_MIN,
)
from omnigraph.storage.scans import open_address, scan_batches, scan_schema
from omnigraph.storage.tables import Table, TableAddress

SPARK_PARTITIONS_PER_CORE_MIN: Final = 2
"""Partitions per core that a table with enough rows is cut into: the last ones even out."""


@dataclass(frozen=True, slots=True)
class ReadTask:
    """All an executor needs to read its part of a table: no session, no graph, no handle.

    Attributes:
        groups: Positions of the fragments that each partition reads.
        filter_text: Built with `storage.filters`; None reads every row.
        counted: Whether rows are counted by their values (`counting.COUNT`).
    """

    address: TableAddress
    columns: tuple[str, ...]
    groups: tuple[tuple[int, ...], ...]
    filter_text: str | None = None
    counted: bool = False


def table_frame(
    session: SparkSession,
    table: Table,
    columns: Sequence[str],
    *,
    filter_text: str | None = None,
    counted: bool = False,
) -> DataFrame:
    """The named columns of a pinned table, in this order; executors read them when it is used.

    Without columns the frame has as many empty rows as the table; nothing is read, and the filter
    is not applied.

    Args:
        counted: Whether rows are counted by their values, of one column at least, all of them
            texts. The frame has the column `counting.COUNT`, too.
    """
    if not columns:
        return _empty_rows(session, table.count_rows())
    schema = spark_schema(scan_schema(table, columns))
    if counted:
        schema = schema.add(COUNT, LongType(), nullable=False)
    cores = core_count(session)
    groups = pack([fragment.num_rows for fragment in table.fragments()], cores)
    task = ReadTask(table.address, tuple(columns), groups, filter_text, counted)
    # One number per partition, and each partition its own group of fragments.
    numbers = session.range(0, len(groups), 1, numPartitions=max(1, len(groups)))
    return numbers.mapInArrow(partial(read_fragments, task), schema)


def read_fragments(task: ReadTask, numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Stream the rows of the groups with these numbers. Runs in an executor; safe to run twice."""
    with report_errors():
        table = open_address(task.address)
        for number in (value for batch in numbers for value in batch.column(0).to_pylist()):
            batches = scan_batches(
                table,
                task.columns,
                fragments=task.groups[number],
                filter_text=task.filter_text,
                batch_bytes=SPARK_BATCH_BYTES_MAX,
            )
            yield from map(
                to_crossing, count_values(batches, task.columns) if task.counted else batches
            )


def given_frame(session: SparkSession, rows: pa.Table | DataFrame) -> DataFrame:
    """The given rows with all their values; unsigned integers and vectors in Spark's types.

    A DataFrame of the same session is returned as it is.
    """
    if isinstance(rows, DataFrame):
        return rows
    if not rows.num_columns:
        return _empty_rows(session, rows.num_rows)
    schema = spark_schema(rows.schema)
    if not rows.num_rows:
        return session.createDataFrame([], schema)
    crossing = _to_crossing_types(rows)
    # Spark makes a partition of each chunk and limits chunks by rows alone, so wide rows would
    # become tasks too large to send.
    rows_max = max(1, SPARK_BATCH_BYTES_MAX * crossing.num_rows // max(1, crossing.nbytes))
    batches = crossing.to_batches(max_chunksize=rows_max)
    chunked = pa.Table.from_batches(batches, schema=crossing.schema)
    return session.createDataFrame(chunked, schema)


def _to_crossing_types(rows: pa.Table) -> pa.Table:
    try:
        return rows.cast(crossing_schema(rows.schema), safe=True)
    except pa.ArrowInvalid as cause:
        message = f"a given value is not of its property's type: {cause}"
        raise InvalidInputError(message, code=ErrorCode.VALUE_OUT_OF_RANGE) from cause


def pack(
    row_counts: Sequence[int], cores: int, *, rows_max: int = SPARK_PARTITION_ROWS_MAX
) -> tuple[tuple[int, ...], ...]:
    """Group fragments, in order, into partitions that are neither tiny nor huge.

    A fragment is never divided: our own files are bounded in rows already.

    Args:
        rows_max: The rows of a partition of several fragments.

    >>> pack([10, 20, 30], cores=8)
    ((0, 1, 2),)
    >>> pack([1_000_000, 1_000_000, 100_000, 50_000], cores=2)
    ((0,), (1,), (2, 3))
    """
    share = sum(row_counts) // (cores * SPARK_PARTITIONS_PER_CORE_MIN)
    rows_max = max(SPARK_PARTITION_ROWS_MIN, min(rows_max, share))
    return even_shares(row_counts, cores, weight_min=SPARK_PARTITION_ROWS_MIN, weight_max=rows_max)


def _empty_rows(session: SparkSession, count: int) -> DataFrame:
    return session.range(count).select()
