"""Embedding on Spark: executors embed whole fragments, and write their rows again.

The driver gets the metadata of new files and of deletions, never rows. A task that runs twice
leaves files that nothing names.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import pyarrow as pa
from pyspark.sql import SparkSession

from omnigraph.clock import SystemClock
from omnigraph.embedding.embedder import Embedder
from omnigraph.engine.spark.cores import core_count
from omnigraph.engine.spark.failures import report_errors
from omnigraph.engine.spark.jobs import Jobs
from omnigraph.engine.spark.messages import MESSAGE, collect_messages, to_message
from omnigraph.engine.spark.relations import pack
from omnigraph.limits import EMBEDDED_ROWS_PER_SPARK_COMMIT
from omnigraph.maintenance.embedding.fragments import (
    EmbeddedRows,
    FragmentTask,
    combine,
    embed_fragments,
)
from omnigraph.maintenance.spark.indexes import read_numbers
from omnigraph.model.settings import EmbeddingSettings
from omnigraph.storage.scans import open_address
from omnigraph.storage.tables import Table, TableAddress


@dataclass(frozen=True, slots=True)
class EmbedTask:
    """All an executor needs to embed rows: no session, no graph, and no key of a provider.

    Attributes:
        groups: The fragments that each task embeds.
    """

    rows: FragmentTask
    address: TableAddress
    groups: tuple[tuple[int, ...], ...]
    settings: EmbeddingSettings


@dataclass(frozen=True, slots=True)
class SparkBatches:
    """Embeds rows in executors, some fragments for each commit."""

    session: SparkSession
    run_id: str
    settings: EmbeddingSettings

    def embed(
        self, task: FragmentTask, table: Table, fragment_ids: tuple[int, ...]
    ) -> EmbeddedRows:
        """Embed the rows of the next fragments that have any."""
        jobs = Jobs(self.session, f"omnigraph-{self.run_id}", "embedding")
        rows = EmbeddedRows()
        for batch in _batches(table, fragment_ids):
            job = partial(embed_on_spark, self.session, task, table, batch, self.settings)
            rows = combine([rows, jobs.run(job)])
            if rows.count:
                break
        return rows

    def forget(self) -> None:
        """Do nothing: no vector is kept."""


def _batches(table: Table, fragment_ids: tuple[int, ...]) -> Iterator[tuple[tuple[int, int], ...]]:
    """Fragments for one commit each, with their numbers of rows."""
    wanted = set(fragment_ids)
    batch: list[tuple[int, int]] = []
    for fragment in table.fragments():
        if fragment.id not in wanted:
            continue
        rows = sum(size for _, size in batch)
        if batch and rows + fragment.num_rows > EMBEDDED_ROWS_PER_SPARK_COMMIT:
            yield tuple(batch)
            batch = []
        batch.append((fragment.id, fragment.num_rows))
    if batch:
        yield tuple(batch)


def embed_on_spark(
    session: SparkSession,
    rows: FragmentTask,
    table: Table,
    batch: tuple[tuple[int, int], ...],
    settings: EmbeddingSettings,
) -> EmbeddedRows:
    """Embed the rows of these fragments; small ones share a task."""
    cores = core_count(session)
    packed = pack([size for _, size in batch], cores)
    groups = tuple(tuple(batch[place][0] for place in group) for group in packed)
    task = EmbedTask(rows, table.address, groups, settings)
    numbers = session.range(0, len(groups), 1, numPartitions=len(groups))
    messages = numbers.mapInArrow(partial(embed_groups, task), MESSAGE)
    return combine(collect_messages(messages))


def embed_groups(task: EmbedTask, numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Embed the fragments of these groups. Runs in an executor; safe to run twice."""
    with report_errors():
        for number in read_numbers(numbers):
            embedder = Embedder(task.settings, SystemClock(), keeps=False)
            table = open_address(task.address)
            yield to_message(embed_fragments(task.rows, table, task.groups[number], embedder))
