"""Back-fill on Spark: executors compute the columns of groups of fragments and write the files.

The driver gets the names of files, counts and the first offenders. A task that runs twice leaves
files that nothing names; so does an interrupted run.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import pyarrow as pa
from pyspark.sql import SparkSession

from omnigraph.engine.spark.cores import core_count
from omnigraph.engine.spark.failures import report_errors
from omnigraph.engine.spark.jobs import Jobs
from omnigraph.engine.spark.messages import MESSAGE, collect_messages, to_message
from omnigraph.engine.spark.pieces import task_numbers
from omnigraph.engine.spark.relations import pack
from omnigraph.evolution.backfill import (
    FilledFragment,
    FilledTable,
    Follow,
    TableFill,
    fill_fragment,
    join_fragments,
)
from omnigraph.evolution.values import Recipe
from omnigraph.storage.column_files import TableColumn
from omnigraph.storage.scans import open_address
from omnigraph.storage.tables import Table, TableAddress


@dataclass(frozen=True, slots=True)
class FillTask:
    """All an executor needs to fill fragments of one table."""

    address: TableAddress
    recipes: tuple[Recipe, ...]
    copies: tuple[TableColumn, ...]


@dataclass(frozen=True, slots=True)
class FillTasks:
    """What the executors fill.

    Attributes:
        units: Fragments, each with the place of its table among the tables.
        groups: Which units each task fills, in table order.
    """

    tables: tuple[FillTask, ...]
    units: tuple[tuple[int, int], ...]
    groups: tuple[tuple[int, ...], ...]


def fill_on_spark(
    session: SparkSession, fills: Sequence[TableFill], run_id: str, follow: Follow | None = None
) -> list[FilledTable]:
    """Fill columns on executors, all tables at once."""
    tasks = plan_tasks(fills, core_count(session))
    filled: list[FilledFragment] = []
    if tasks.units:
        jobs = Jobs(session, f"omnigraph-{run_id}", "filling columns")
        filled = jobs.run(partial(run_tasks, session, tasks), follow)
    results = iter(filled)
    return [join_fragments(next(results) for _ in fill.table.fragments()) for fill in fills]


def plan_tasks(fills: Sequence[TableFill], cores: int) -> FillTasks:
    """Cut the fragments of all tables into groups that are neither tiny nor huge."""
    tables = tuple(FillTask(fill.table.address, fill.recipes, fill.copies) for fill in fills)
    fragments = [
        (place, fragment) for place, fill in enumerate(fills) for fragment in fill.table.fragments()
    ]
    groups = pack([fragment.num_rows for _, fragment in fragments], cores)
    return FillTasks(tables, tuple((place, each.id) for place, each in fragments), groups)


def run_tasks(session: SparkSession, tasks: FillTasks) -> list[FilledFragment]:
    """The result of each unit, in their order."""
    count = len(tasks.groups)
    numbers = session.range(0, count, 1, numPartitions=count)
    messages = numbers.mapInArrow(partial(fill_groups, tasks), MESSAGE)
    filled: dict[int, FilledFragment] = dict(collect_messages(messages))
    return [filled[unit] for unit in range(len(tasks.units))]


def fill_groups(tasks: FillTasks, numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Fill the groups with these numbers. Runs in an executor; safe to run twice."""
    opened: dict[int, Table] = {}
    with report_errors():
        for unit in (unit for number in task_numbers(numbers) for unit in tasks.groups[number]):
            place, fragment_id = tasks.units[unit]
            task = tasks.tables[place]
            if place not in opened:
                opened[place] = open_address(task.address)
            filled = fill_fragment(opened[place], fragment_id, task.recipes, task.copies)
            yield to_message((unit, filled))
