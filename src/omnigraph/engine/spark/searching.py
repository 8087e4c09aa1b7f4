"""Searches of a plan on Spark: executors analyse every text and compute every distance.

The statistics that bm25 needs are gathered first, a few numbers from each task. What is found are
rows of Spark; of a ranking of which only the best matter, each task keeps the best of its part. The
driver never holds any of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, assert_never

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from omnigraph.engine.search_parts import (
    are_best,
    columns_of,
    measure_distances,
    rows_that_pass,
)
from omnigraph.engine.spark.cores import core_count
from omnigraph.engine.spark.failures import report_errors
from omnigraph.engine.spark.messages import MESSAGE, collect_messages, to_message
from omnigraph.engine.spark.relations import pack
from omnigraph.limits import SPARK_BATCH_BYTES_MAX
from omnigraph.relational.plans import SearchRows
from omnigraph.relational.searches import SCORE, Nearness, Relevance, Search, TextSearch
from omnigraph.search.analysis import analyse, analyse_column
from omnigraph.search.bm25 import TextStatistics, scores
from omnigraph.search.words import count_words, measure, terms_of
from omnigraph.storage.scans import open_address, scan_batches
from omnigraph.storage.tables import Table, TableAddress

_FOUND: Final = "id string"
_RANKED: Final = f"id string, {SCORE} double"
_RANKED_ROWS: Final = pa.schema([("id", pa.string()), (SCORE, pa.float64())])


@dataclass(frozen=True, slots=True)
class SearchTask:
    """All an executor needs to search its part of a table.

    Attributes:
        groups: Positions of the fragments that each task reads.
        best: How many rows of a ranking matter; None for all.
        statistics: Those of all texts, for bm25; None before they are known.
    """

    address: TableAddress
    groups: tuple[tuple[int, ...], ...]
    search: Search
    best: int | None
    statistics: TextStatistics | None = None


def search_frame(session: SparkSession, relation: SearchRows, table: Table) -> DataFrame:
    """The rows that a search finds, and their scores if it ranks; executors search when it is used.

    For bm25, a job gathers the statistics at once.
    """
    cores = core_count(session)
    groups = pack([fragment.num_rows for fragment in table.fragments()], cores)
    task = SearchTask(table.address, groups, relation.search, relation.best)
    if isinstance(relation.search, Relevance):
        task = replace(task, statistics=_gather_statistics(session, task))
    schema = _FOUND if isinstance(relation.search, TextSearch) else _RANKED
    return _numbers(session, task).mapInArrow(partial(search_groups, task), schema)


def _gather_statistics(session: SparkSession, task: SearchTask) -> TextStatistics:
    messages = _numbers(session, task).mapInArrow(partial(measure_groups, task), MESSAGE)
    return sum(collect_messages(messages), start=TextStatistics())


def _numbers(session: SparkSession, task: SearchTask) -> DataFrame:
    """One number per partition, and each partition its own group of fragments."""
    return session.range(0, len(task.groups), 1, numPartitions=max(1, len(task.groups)))


def measure_groups(task: SearchTask, numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The statistics of some groups. Runs in an executor; safe to run twice."""
    assert isinstance(task.search, Relevance), "nothing else has statistics"
    with report_errors():
        terms = _terms(task.search)
        statistics = TextStatistics()
        for batch in _read(task, numbers):
            column = analyse_column(task.search.analyzer, batch.column(1))
            statistics += measure(column, terms, count_words(column, terms))
        yield to_message(statistics)


def search_groups(task: SearchTask, numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """What is found in some groups. Runs in an executor; safe to run twice."""
    with report_errors():
        found = (_find(task, *batch.columns) for batch in _read(task, numbers))
        yield from found if task.best is None else _keep_best(found, task.search, task.best)


def _find(
    task: SearchTask, ids: pa.Array, values: pa.Array, notes: pa.Array | None = None
) -> pa.RecordBatch:
    match task.search:
        case TextSearch() as search:
            rows = rows_that_pass(search, analyse_column(search.analyzer, values))
            return pa.record_batch({"id": ids.take(pa.array(rows))})
        case Relevance() as search:
            assert task.statistics is not None, "they were gathered before"
            terms = _terms(search)
            counts = count_words(analyse_column(search.analyzer, values), terms)
            rows = counts.rows
            ranked = scores(terms, counts.counts, counts.lengths, task.statistics)
        case Nearness() as search:
            every = measure_distances(search, values, notes)
            rows = np.flatnonzero(~np.isnan(every))
            ranked = every[rows]
        case _:
            assert_never(task.search)
    return pa.record_batch([ids.take(pa.array(rows)), pa.array(ranked)], schema=_RANKED_ROWS)


def _terms(search: Relevance) -> tuple[str, ...]:
    return terms_of(analyse(search.analyzer, search.query))


def _keep_best(
    found: Iterator[pa.RecordBatch], search: Search, best: int
) -> Iterator[pa.RecordBatch]:
    """The best of all, and those as good as the last of them; few rows are held at a time."""
    kept = _RANKED_ROWS.empty_table()
    for batch in found:
        kept = pa.concat_tables([kept, pa.Table.from_batches([batch])])
        ranked = kept[SCORE].to_numpy()
        kept = kept.filter(
            pa.array(are_best(ranked, best, descending=isinstance(search, Relevance)))
        )
    yield from kept.combine_chunks().to_batches()


def _read(task: SearchTask, numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The ids and the searched column of the groups with these numbers."""
    table = open_address(task.address)
    for number in (value for batch in numbers for value in batch.column(0).to_pylist()):
        yield from scan_batches(
            table,
            ("id", *columns_of(task.search)),
            fragments=task.groups[number],
            batch_bytes=SPARK_BATCH_BYTES_MAX,
        )
