"""Compaction on Spark: executors rewrite groups of fragments, and index the new ones.

The driver gets the metadata of new fragments: files that nothing refers to until they are
committed. A task that runs twice leaves files that nothing names; so does an interrupted run.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import pyarrow as pa
from pyspark.sql import SparkSession

from omnigraph.engine.spark.cores import core_count
from omnigraph.engine.spark.failures import report_errors
from omnigraph.engine.spark.jobs import Follow, Jobs
from omnigraph.engine.spark.messages import MESSAGE, collect_messages, to_message
from omnigraph.engine.spark.relations import pack
from omnigraph.maintenance.optimize import TableRewrite
from omnigraph.maintenance.spark.indexes import build_on_spark, read_numbers
from omnigraph.storage.compaction import Rewrite, rewrite_fragments
from omnigraph.storage.indexes import Gap, Segment
from omnigraph.storage.scans import open_address
from omnigraph.storage.tables import Table, TableAddress


@dataclass(frozen=True, slots=True)
class RewriteTask:
    """All an executor needs to rewrite fragments.

    Attributes:
        rewrites: Tables, and the fragments of each that are rewritten together.
        groups: Which of them each task does.
    """

    rewrites: tuple[tuple[TableAddress, tuple[int, ...]], ...]
    groups: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class SparkCompaction:
    """Rewrites and indexes fragments in executors."""

    session: SparkSession
    run_id: str
    follow: Follow | None = None

    def rewrite(self, rewrites: Sequence[TableRewrite]) -> list[Rewrite]:
        """Write the rows of each group to new files; the results in their order."""
        jobs = Jobs(self.session, f"omnigraph-{self.run_id}", "compacting")
        return jobs.run(partial(rewrite_groups, self.session, rewrites), self.follow)

    def index(self, table: Table, gaps: Sequence[Gap]) -> list[Segment]:
        """Index the fragments of each gap."""
        jobs = Jobs(self.session, f"omnigraph-{self.run_id}", "building indexes")
        return build_on_spark(jobs, {table.address: (table, tuple(gaps))}, self.follow)[
            table.address
        ]


def rewrite_groups(session: SparkSession, rewrites: Sequence[TableRewrite]) -> list[Rewrite]:
    """Rewrite each group, in their order; small ones share a task."""
    cores = core_count(session)
    groups = pack([rewrite.row_count for rewrite in rewrites], cores)
    places = tuple((rewrite.table.address, rewrite.fragment_ids) for rewrite in rewrites)
    task = RewriteTask(places, groups)
    numbers = session.range(0, len(groups), 1, numPartitions=len(groups))
    messages = numbers.mapInArrow(partial(rewrite_numbered, task), MESSAGE)
    results: dict[int, Rewrite] = dict(collect_messages(messages))
    return [results[place] for place in range(len(rewrites))]


def rewrite_numbered(
    task: RewriteTask, numbers: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Rewrite the fragments of these groups. Runs in an executor; safe to run twice."""
    with report_errors():
        for number in read_numbers(numbers):
            for place in task.groups[number]:
                address, fragment_ids = task.rewrites[place]
                yield to_message((place, rewrite_fragments(open_address(address), fragment_ids)))
