"""Pieces of scratch: the rows of scratch files, on their way to other tasks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from omnigraph.engine.spark.failures import report_errors
from omnigraph.engine.spark.pieces import Cut, of_units, task_numbers
from omnigraph.load.spark.scratch import Scratch


def of_scratch(
    session: SparkSession,
    scratch: Scratch,
    paths: Sequence[str],
    columns: Sequence[str],
    cut: Cut,
) -> DataFrame:
    """Pieces of the named columns of files in scratch."""
    return of_units(
        session, len(paths), partial(cut_scratch, scratch, tuple(paths), tuple(columns), cut)
    )


def cut_scratch(
    scratch: Scratch,
    paths: tuple[str, ...],
    columns: tuple[str, ...],
    cut: Cut,
    numbers: Iterator[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    """Cut the files with these numbers. Runs in an executor; safe to run twice."""
    with report_errors():
        for number in task_numbers(numbers):
            yield from cut(scratch.read(paths[number], columns))
