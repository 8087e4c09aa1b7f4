"""Which Python runs what is sent to Spark's workers."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession


@pytest.fixture
def marked(spark: SparkSession, tmp_path: Path) -> Iterator[str]:
    """A program that runs our Python with a mark in its variables; afterwards all is as before."""
    program = tmp_path / "python"
    program.write_text(f'#!/bin/sh\nMARK=here exec "{sys.executable}" "$@"\n')
    program.chmod(0o755)
    before = spark.sparkContext.pythonExec
    yield str(program)
    spark.sparkContext.pythonExec = before


def marks(session: SparkSession) -> DataFrame:
    def report(batches):
        import os

        import pyarrow as pa

        for _ in batches:
            yield pa.record_batch({"mark": [os.environ.get("MARK", "")]})

    return session.range(0, 1, 1, 1).mapInArrow(report, "mark string")


def test_a_function_runs_on_the_python_that_its_context_named_when_it_was_made_in_spark(
    spark: SparkSession, marked: str
) -> None:
    before = marks(spark)
    spark.sparkContext.pythonExec = marked
    after = marks(spark)
    assert [row.mark for row in before.union(after).collect()] == ["", "here"]
