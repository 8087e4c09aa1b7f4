"""Embedding on Spark: executors embed parts of fragments, and write their rows again.

The driver gets the metadata of new files and the addresses of the rows that they replace, never
rows. A task that runs twice leaves files that nothing names.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Final

import pyarrow as pa
from pyspark.sql import SparkSession

from omnigraph.clock import SystemClock
from omnigraph.embedding.embedder import Embedder
from omnigraph.engine.spark.cores import core_count
from omnigraph.engine.spark.failures import report_errors
from omnigraph.engine.spark.jobs import Jobs
from omnigraph.engine.spark.messages import MESSAGE, collect_messages, to_message
from omnigraph.engine.spark.relations import pack
from omnigraph.limits import EMBEDDED_HELD_BYTES_MAX, EMBEDDED_PART_ROWS
from omnigraph.maintenance.embedding.fragments import (
    EmbeddedRows,
    FragmentRange,
    FragmentTask,
    combine,
    embed_fragments,
)
from omnigraph.maintenance.spark.indexes import read_numbers
from omnigraph.model.settings import EmbeddingSettings
from omnigraph.storage.scans import open_address
from omnigraph.storage.tables import Table, TableAddress

EMBEDDED_PARTS_PER_COMMIT: Final = 4
EMBEDDED_PARTS_PER_CORE: Final = 2
"""The pieces that a job on Spark embeds before it commits them: so many, or so many for each core
if these are more."""


@dataclass(frozen=True, slots=True)
class EmbedTask:
    """All an executor needs to embed rows: no session, no graph, and no key of a provider.

    Attributes:
        groups: The parts of fragments that each task embeds.
    """

    rows: FragmentTask
    address: TableAddress
    groups: tuple[tuple[FragmentRange, ...], ...]
    settings: EmbeddingSettings


@dataclass(frozen=True, slots=True)
class SparkBatches:
    """Embeds rows in executors, some parts of fragments for each commit."""

    session: SparkSession
    run_id: str
    settings: EmbeddingSettings

    def embed(
        self, task: FragmentTask, table: Table, parts: tuple[FragmentRange, ...]
    ) -> EmbeddedRows:
        """Embed the rows of the next parts that have any."""
        jobs = Jobs(self.session, f"omnigraph-{self.run_id}", "embedding")
        rows = EmbeddedRows()
        for batch in _batches(parts, core_count(self.session)):
            job = partial(embed_on_spark, self.session, task, table, batch, self.settings)
            rows = combine([rows, jobs.run(job)])
            if rows.count:
                break
        return rows

    def forget(self) -> None:
        """Do nothing: no vector is kept."""


def _batches(parts: tuple[FragmentRange, ...], cores: int) -> Iterator[tuple[FragmentRange, ...]]:
    """Parts for one commit each: work for every core, and no more than a kill may cost.

    >>> parts = tuple(FragmentRange(number, 0, EMBEDDED_PART_ROWS) for number in range(6))
    >>> [len(batch) for batch in _batches(parts, cores=1)]
    [4, 2]
    """
    rows_max = EMBEDDED_PART_ROWS * max(EMBEDDED_PARTS_PER_COMMIT, EMBEDDED_PARTS_PER_CORE * cores)
    batch: list[FragmentRange] = []
    row_count = 0
    for part in parts:
        if batch and row_count + part.row_count > rows_max:
            yield tuple(batch)
            batch, row_count = [], 0
        batch.append(part)
        row_count += part.row_count
    if batch:
        yield tuple(batch)


def embed_on_spark(
    session: SparkSession,
    rows: FragmentTask,
    table: Table,
    batch: tuple[FragmentRange, ...],
    settings: EmbeddingSettings,
) -> EmbeddedRows:
    """Embed the rows of these parts; small ones share a task."""
    sizes = [part.row_count for part in batch]
    packed = pack(sizes, core_count(session), rows_max=EMBEDDED_PART_ROWS)
    groups = tuple(tuple(batch[place] for place in group) for group in packed)
    task = EmbedTask(rows, table.address, groups, settings)
    numbers = session.range(0, len(groups), 1, numPartitions=len(groups))
    messages = numbers.mapInArrow(partial(embed_groups, task), MESSAGE)
    return combine(collect_messages(messages))


def embed_groups(task: EmbedTask, numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Embed the parts of these groups. Runs in an executor; safe to run twice."""
    with report_errors():
        for number in read_numbers(numbers):
            embedder = Embedder(task.settings, SystemClock(), EMBEDDED_HELD_BYTES_MAX)
            table = open_address(task.address)
            yield to_message(embed_fragments(task.rows, table, task.groups[number], embedder))
