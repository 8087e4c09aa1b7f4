"""What a load on Spark costs: jobs do not follow its types, and shuffles follow its own rows."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from omnigraph.engine.spark import sources
from omnigraph.load.spark import stage
from tests.contract.load.loading import Loaded, changed, edge, loaded, node
from tests.support.spark_stages import last_job, stages_since

FEW: Final = 2
MANY: Final = 6
SMALL: Final = 2_000
LARGE: Final = 80_000
"""More than a task counts at once, so that what is read is reduced first."""

DELTA: Final = 400
SHUFFLED_BYTES_MAX: Final = 60_000
"""Keys of `DELTA` rows, however often they are sent; those of `LARGE` have far more."""


def schema_of(types: int) -> str:
    nodes = (f"node T{n} {{ name: String @key  mail: String? @unique }}" for n in range(types))
    edges = (f"edge E{n}: T{n} -> T{(n + 1) % types} @card(0..9)" for n in range(types))
    return "\n".join([*nodes, *edges])


def lines_of(types: int, names: Iterable[str], host: str = "x") -> list[dict[str, Any]]:
    lines = []
    for name in names:
        for n in range(types):
            lines.append(node(f"T{n}", name=name, mail=f"{name}@{host}"))
            lines.append(edge(f"E{n}", name, name))
    return lines


def count_jobs(folder: Path, spark: SparkSession, types: int) -> dict[str, int]:
    """The jobs of each step, with rows that are there before."""
    folder.mkdir()
    found = loaded(folder, schema_of(types))
    found.put(*lines_of(types, ["a", "b"]), engine="local")
    jobs = {}
    for step, mode, names, host in (
        ("append", "append", ["c"], "x"),
        ("merge", "merge", ["c", "d"], "x"),
        ("replace", "merge", ["c", "d"], "y"),
        ("overwrite", "overwrite", ["a", "d"], "x"),
    ):
        before = last_job(spark)
        found.put(*lines_of(types, names, host), mode=mode, engine="spark")
        jobs[step] = last_job(spark) - before
    for n in range(types):
        assert found.ids(f"T{n}") == {"a", "d"}
        assert found.ends(f"E{n}") == {("a", "a"), ("d", "d")}
    return jobs


def test_jobs_do_not_follow_the_number_of_types(tmp_path, spark):
    few = count_jobs(tmp_path / "few", spark, FEW)
    many = count_jobs(tmp_path / "many", spark, MANY)

    assert many == few
    # The intake; the keys of all types, which Spark runs as a job for each side of its shuffle;
    # for rows that are compared with stored ones, the same for staging; and one job that deletes
    # the rows that others replace.
    assert few == {"append": 3, "merge": 5, "replace": 6, "overwrite": 3}


def people(first: int, count: int, host: str = "x") -> pa.Table:
    names = [f"p{n:07}" for n in range(first, first + count)]
    return pa.table({"name": names, "mail": [f"{name}@{host}" for name in names]})


def shuffled_bytes(found: Loaded, spark: SparkSession, rows: pa.Table, mode: str) -> int:
    before = last_job(spark)
    result = found.load({"T0": rows}, mode, engine="spark")
    updated = DELTA // 2 if mode == "merge" else 0
    assert changed(result) == {"T0": (DELTA - updated, updated, 0)}
    return sum(each.shuffled_bytes for each in stages_since(spark, before))


def load_people(folder: Path, count: int) -> Loaded:
    folder.mkdir()
    found = loaded(folder, schema_of(1))
    found.load({"T0": people(0, count)}, engine="local")
    return found


def test_shuffles_follow_the_rows_of_the_load_and_not_those_of_the_table(tmp_path, spark):
    for count in (SMALL, LARGE):
        found = load_people(tmp_path / f"{count}", count)
        merged, appended = people(count - DELTA // 2, DELTA, "y"), people(2 * LARGE, DELTA)

        assert shuffled_bytes(found, spark, merged, "merge") < SHUFFLED_BYTES_MAX
        if count == LARGE:
            assert shuffled_bytes(found, spark, appended, "append") < SHUFFLED_BYTES_MAX


@pytest.mark.soak
def test_this_test_notices_ids_of_the_table_that_are_shuffled(tmp_path, spark, monkeypatch):
    monkeypatch.setattr(stage.WaitingRows, "is_held", lambda *_: False)
    monkeypatch.setattr(sources, "HELD_ROWS_MAX", 0)
    found = load_people(tmp_path / "large", LARGE)

    merged = people(LARGE - DELTA // 2, DELTA, "y")

    assert shuffled_bytes(found, spark, merged, "merge") > 2 * SHUFFLED_BYTES_MAX
