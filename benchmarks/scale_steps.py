"""Steps of the plan for large graphs, each measured once, in a process of its own.

python -m benchmarks.scale_steps ROWS STEP FOLDER

A step finds the graph as the step before left it, and prints what it cost as JSON.
"""

import json
import os
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
import obstore
import pyarrow.parquet as pq
from obstore.store import from_url
from pyspark.sql import SparkSession

from benchmarks import inputs, memory
from benchmarks.inputs import Size
from omnigraph import graph
from omnigraph.engine.spark import sources
from omnigraph.engine.spark.session import open_session
from omnigraph.graph import Graph
from omnigraph.integrity.proofs import by_key_counts
from omnigraph.integrity.proofs.by_key_counts import KeyCut
from tests.support.minio import find_minio, run_minio
from tests.support.spark_stages import last_job, stages_since

ROWS_PER_NODE: Final = 11
"""Ten edges for each node."""
UPSERTED_SHARE: Final = 100
"""One of so many people is upserted; half of those are new."""
RANK_ROUNDS: Final = 3

QUESTION: Final = """
query q() {
  match { $p: Person  $p follows $q }
  return { $q.city as city, count($p) as followers }
}
"""


@dataclass(frozen=True, slots=True)
class Cost:
    """What a step cost.

    Attributes:
        task_seconds: How long the tasks of Spark ran, together.
        pieces: Rows of Spark that were shuffled; most have thousands of rows of ours.
        result_bytes: What tasks sent to the driver.
        driver_bytes: The most that the driver's Python had, and `heap_bytes` what its Java held
            afterwards.
        files: How many files the step left, and `file_bytes` their size.
        requests: To S3, by what they ask for.
    """

    seconds: float
    jobs: int
    tasks: int
    task_seconds: float
    shuffled_bytes: int
    pieces: int
    spilled_bytes: int
    result_bytes: int
    driver_bytes: int
    heap_bytes: int
    worker_bytes: int
    files: int
    file_bytes: int
    requests: Mapping[str, int] = field(default_factory=dict)


def size_of(rows: int) -> Size:
    """The size of a graph with so many rows."""
    return Size(rows, ROWS_PER_NODE)


def load(rows: int, folder: Path) -> Callable[[], object]:
    """All rows, from Parquet, into a graph without rows and without indexes."""
    source = inputs.parquet(size_of(rows))
    made = graph.init(_graph(folder), inputs.SCHEMA)
    return lambda: made.load(source, engine="spark", index=False)


def index(rows: int, folder: Path) -> Callable[[], object]:  # noqa: ARG001  # as all steps
    """The indexes of ids and of ends of edges."""
    made = _opened(folder)
    return lambda: made.ensure_indices(engine="spark")


def upsert(rows: int, folder: Path) -> Callable[[], object]:  # noqa: ARG001  # as all steps
    """What `write_changes` has written."""
    made = _opened(folder)
    return lambda: made.load(_changes(folder), mode="merge", engine="spark", index=False)


def write_changes(rows: int, folder: Path) -> None:
    """Some people, half of them new: by another process, whose memory is not measured."""
    people = size_of(rows).people
    count = max(2, people // UPSERTED_SHARE)
    numbers = np.arange(count) * (people // count)
    numbers[count // 2 :] = people + np.arange(count - count // 2)
    _changes(folder).mkdir()
    pq.write_table(inputs.people(numbers), _changes(folder) / "Person.parquet")


def query(rows: int, folder: Path) -> Callable[[], object]:  # noqa: ARG001  # as all steps
    """A join of all edges of a type with their nodes, and a few groups."""
    made = _opened(folder)
    return lambda: made.query(QUESTION, engine="spark").rows()


def rank(rows: int, folder: Path) -> Callable[[], object]:  # noqa: ARG001  # as all steps
    """Some rounds of PageRank over the largest type of edges."""
    made = _opened(folder)
    return lambda: made.algorithms.pagerank(
        edges="Follows", rounds=RANK_ROUNDS, engine="spark"
    ).first(1)


def export(rows: int, folder: Path) -> Callable[[], object]:  # noqa: ARG001  # as all steps
    """All rows as Parquet."""
    made = _opened(folder)
    return lambda: made.export(folder / "export", format="parquet", engine="spark")


def s3(rows: int, folder: Path) -> Callable[[], object]:  # noqa: ARG001  # as all steps
    """The load again, from a bucket of MinIO into it."""
    bucket = "s3://scale"
    source = inputs.parquet(size_of(rows))
    _upload(source, f"{bucket}/raw")
    made = graph.init(f"{bucket}/graph.omni", inputs.SCHEMA)
    return lambda: made.load(f"{bucket}/raw/*.parquet", engine="spark", index=False)


STEPS: Final[Mapping[str, Callable[[int, Path], Callable[[], object]]]] = {
    each.__name__: each for each in (load, upsert, index, query, rank, export, s3)
}


def measure(rows: int, name: str, folder: Path) -> Cost:
    """Run one step."""
    with ExitStack() as running:
        count_requests: Callable[[], Mapping[str, int]] = dict
        if name == "s3":
            program = find_minio()
            assert program is not None, "MinIO is needed: make minio"
            server = running.enter_context(run_minio(program))
            server.create_bucket("scale")
            os.environ.update(server.environment)
            count_requests = server.count_requests
        step = STEPS[name](rows, folder)
        spark = open_session()
        _share_no_rows(spark)
        files, sizes = _count_files(folder)
        before, job = count_requests(), last_job(spark)
        started = time.perf_counter()
        step()
        seconds = time.perf_counter() - started
        stages = stages_since(spark, job)
        after = count_requests()
        more_files, more_sizes = _count_files(folder)
        used = memory.used_by_spark()
        return Cost(
            seconds=seconds,
            jobs=last_job(spark) - job,
            tasks=sum(each.tasks for each in stages),
            task_seconds=sum(each.task_seconds for each in stages),
            shuffled_bytes=sum(each.shuffled_bytes for each in stages),
            pieces=sum(each.shuffled_records for each in stages),
            spilled_bytes=sum(each.spilled_bytes for each in stages),
            result_bytes=sum(each.result_bytes for each in stages),
            driver_bytes=used.driver,
            heap_bytes=used.heap,
            worker_bytes=used.worker,
            files=more_files - files,
            file_bytes=more_sizes - sizes,
            requests={api: after[api] - before.get(api, 0) for api in after},
        )


def _share_no_rows(session: SparkSession) -> None:
    """Shuffle what a graph of a billion nodes shuffles: so few nodes every worker could hold."""
    module: Any = sources
    module.HELD_ROWS_MAX = 0
    # Of so few nodes the edges of a task share most; of a billion hardly any.
    proofs: Any = by_key_counts
    proofs.KeyCut = lambda *given, is_distinct, **named: KeyCut(*given, **named)  # noqa: ARG005
    for name in ("autoBroadcastJoinThreshold", "adaptive.autoBroadcastJoinThreshold"):
        session.conf.set(f"spark.sql.{name}", "-1")


def _changes(folder: Path) -> Path:
    return folder / "changes"


def _graph(folder: Path) -> Path:
    return folder / "graph.omni"


def _opened(folder: Path) -> Graph:
    made = graph.open(_graph(folder))
    made.snapshot()
    return made


def _count_files(folder: Path) -> tuple[int, int]:
    sizes = [path.stat().st_size for path in folder.rglob("*") if path.is_file()]
    return len(sizes), sum(sizes)


def _upload(source: Path, target: str) -> None:
    store = from_url(target)
    for path in source.glob("*.parquet"):
        obstore.put(store, path.name, path)


if __name__ == "__main__":
    [_, row_count, step_name, place] = sys.argv
    found = measure(int(row_count), step_name, Path(place))
    print(json.dumps(asdict(found)))
