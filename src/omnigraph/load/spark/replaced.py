"""Replaced rows: tasks that write rows list those that they replace, and other tasks delete them.

A fragment has one deletion file, and rows of any task may replace its rows. The lists are files of
scratch and not shuffled: Spark aborts a job that lost shuffled rows of a task which, run again,
writes other files.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

from omnigraph.engine.spark.cores import core_count
from omnigraph.engine.spark.failures import report_errors
from omnigraph.engine.spark.messages import MESSAGE, collect_messages, to_message
from omnigraph.engine.spark.pieces import task_numbers
from omnigraph.engine.spark.sources import open_table
from omnigraph.engine.spark.writing import numbers_of
from omnigraph.limits import SPARK_SHUFFLE_PARTITIONS_PER_CORE
from omnigraph.load.spark.scratch import Scratch
from omnigraph.model.tables import TableKey
from omnigraph.storage.places import fragment_ids_of
from omnigraph.storage.staging import Deletions, combine_deletions, delete_rows
from omnigraph.storage.tables import ROW_ADDRESS, TableAddress


@dataclass(frozen=True, slots=True)
class ReplacedRows:
    """Addresses of rows of one group of fragments, in a part of a file of scratch."""

    path: str
    first: int
    count: int

    def read(self, scratch: Scratch) -> pa.ChunkedArray:
        """The addresses."""
        return scratch.read(self.path)[ROW_ADDRESS].slice(self.first, self.count)


@dataclass(frozen=True, slots=True)
class DeleteTask:
    """All an executor needs to delete rows of one group of fragments."""

    key: TableKey
    address: TableAddress
    scratch: Scratch
    rows: tuple[ReplacedRows, ...]


def list_replaced(
    scratch: Scratch, name: str, addresses: pa.ChunkedArray, group_of: Mapping[int, int]
) -> dict[int, ReplacedRows]:
    """Write addresses to scratch; where those of each group of fragments are.

    Args:
        name: A name that no other task of the load has.
        group_of: The number of the group of each fragment.
    """
    if not len(addresses):
        return {}
    places = np.sort(addresses.to_numpy())
    groups = numbers_of(fragment_ids_of(places), group_of)
    order = np.argsort(groups, kind="stable")
    path = scratch.write(name, pa.table({ROW_ADDRESS: places[order]}))
    numbers, firsts, counts = np.unique(groups[order], return_index=True, return_counts=True)
    parts = zip(numbers.tolist(), firsts.tolist(), counts.tolist(), strict=True)
    return {number: ReplacedRows(path, first, count) for number, first, count in parts}


def delete_tasks(
    key: TableKey,
    address: TableAddress,
    scratch: Scratch,
    replaced: Iterable[Mapping[int, ReplacedRows]],
) -> Iterator[DeleteTask]:
    """A task for each group of fragments of a table that has listed rows."""
    by_group: defaultdict[int, list[ReplacedRows]] = defaultdict(list)
    for rows_by_group in replaced:
        for group, rows in rows_by_group.items():
            by_group[group].append(rows)
    return (DeleteTask(key, address, scratch, tuple(rows)) for rows in by_group.values())


def delete_replaced(
    session: SparkSession, tasks: Sequence[DeleteTask]
) -> dict[TableKey, Deletions]:
    """Delete the listed rows of all tables, by one job; by none if there are no rows."""
    if not tasks:
        return {}
    count = min(len(tasks), core_count(session) * SPARK_SHUFFLE_PARTITIONS_PER_CORE)
    numbers = session.range(0, len(tasks), 1, numPartitions=count)
    messages = numbers.mapInArrow(partial(delete_listed, tuple(tasks)), MESSAGE)
    parts: defaultdict[TableKey, list[Deletions]] = defaultdict(list)
    for key, deletions in collect_messages(messages):
        parts[key].append(deletions)
    return {key: combine_deletions(deletions) for key, deletions in parts.items()}


def delete_listed(
    tasks: tuple[DeleteTask, ...], numbers: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Write deletions of groups of fragments. Runs in an executor; safe to run twice."""
    with report_errors():
        for number in task_numbers(numbers):
            task = tasks[number]
            parts = [rows.read(task.scratch) for rows in task.rows]
            addresses = pa.chunked_array([chunk for part in parts for chunk in part.chunks])
            deletions = delete_rows(open_table(task.address), addresses)
            yield to_message((task.key, deletions))
