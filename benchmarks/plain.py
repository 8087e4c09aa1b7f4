"""Plain Spark: the same input read and written as Parquet, without a check of any kind."""

import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as sql

from benchmarks import inputs
from benchmarks.rounds import Answer, timed
from omnigraph.engine.spark.session import open_session

DATA: Final = """\
name string, age bigint, gender string, city string, joined date, score double, bio string,
founded int, motto string, since date, note string, title string, salary double"""
ENVELOPE: Final = f"type string, edge string, `from` string, `to` string, data struct<{DATA}>"
"""What the lines of all types have between them, said beforehand: nothing is inferred."""

KIND: Final = "kind"


def lines_to_one_table(source: Path, target: Path) -> Callable[[], Answer]:
    """Envelopes as one table of all types: the least that Spark can do."""
    return _written(target, lambda: _envelopes(source).write.parquet(str(target)))


def lines_to_tables(source: Path, target: Path) -> Callable[[], Answer]:
    """Envelopes as a table per type, still in one pass."""

    def run() -> None:
        kinds = _envelopes(source).withColumn(KIND, sql.coalesce("type", "edge"))
        kinds.drop("type", "edge").write.partitionBy(KIND).parquet(str(target))

    return _written(target, run)


def columns_to_tables(source: Path, target: Path) -> Callable[[], Answer]:
    """A Parquet file of each type as a table of its own, all at once."""

    def copy(name: str) -> None:
        session = open_session()
        rows = session.read.parquet(str(source / f"{name}.parquet"))
        rows.write.parquet(str(target / f"{KIND}={name}"))

    def run() -> None:
        with ThreadPoolExecutor(len(inputs.TYPES)) as pool:
            list(pool.map(copy, inputs.TYPES))

    return _written(target, run)


def _envelopes(source: Path) -> DataFrame:
    lines = open_session().read.schema(ENVELOPE).json(str(source))
    return lines.select("type", "edge", "from", "to", "data.*")


def _written(target: Path, write: Callable[[], None]) -> Callable[[], Answer]:
    def run() -> Answer:
        found = timed(write, lambda _: [(_count(target),)])
        shutil.rmtree(target)
        return found

    return run


def _count(target: Path) -> int:
    return open_session().read.option("mergeSchema", "true").parquet(str(target)).count()
