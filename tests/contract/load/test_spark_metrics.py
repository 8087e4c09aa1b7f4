"""What Spark and the system say of a load: no input is read twice, no frame comes to the driver."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from omnigraph.load import planning
from omnigraph.load.spark.load import SparkLoad
from tests.contract.load.loading import Loaded, changed, edge, loaded, node
from tests.support.spark_stages import Stage, last_job, stages_since
from tests.support.spark_traps import Work, wrap_work

SCHEMA: Final = """
node Person { name: String @key  text: String?  mail: String? @unique }
edge Knows: Person -> Person
"""
TEXT: Final = 400
"""Characters of each row: reading is then mostly reading of the input."""

FEW: Final = 2_000
MANY: Final = 20_000
BROADCAST_BYTES_MAX: Final = 16_000
"""What Spark may bring to the driver to send it to all executors; by default ten million."""

ANSWERS_BYTES_MAX: Final = 250_000
"""Messages of tasks and their metrics, whatever the number of rows; ids of `MANY` have more."""

TAIL_BYTES: Final = 70_000
"""What a task reads besides: the end of a line that was cut, or where a Parquet file ends."""

_numbers = count()


@dataclass(frozen=True, slots=True)
class Metered:
    """The work of an executor, which notes how many bytes it read from files."""

    work: Work
    name: str
    log: str

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        before = bytes_read()
        yield from self.work(batches)
        with Path(self.log).open("a") as log:
            log.write(json.dumps([self.name, bytes_read() - before]) + "\n")


def bytes_read() -> int:
    """What this process has read by system calls; what comes from Java is received, not read."""
    [line] = [each for each in Path("/proc/self/io").read_text().splitlines() if "rchar" in each]
    return int(line.split()[1])


def lines(size: int, first: int) -> list[dict[str, Any]]:
    """People of whom half are there already, from the second load on, and their edges."""
    mark = next(_numbers)
    people = [_person(n, mark) for n in range(first, first + size)]
    return [node("Person", **each) for each in people]


def _person(n: int, mark: int) -> dict[str, Any]:
    """A person whose text differs from that of every other mark."""
    return {"name": f"p{n:07}", "text": f"{mark}-{n:>{TEXT}}", "mail": f"p{n:07}@x"}


def as_lines(found: Loaded, spark: SparkSession, size: int, first: int) -> Any:  # noqa: ARG001
    return found.file(f"{next(_numbers)}.jsonl", *lines(size, first))


def as_parquet(found: Loaded, spark: SparkSession, size: int, first: int) -> Any:  # noqa: ARG001
    folder = found.folder / f"{next(_numbers)}"
    folder.mkdir()
    mark = next(_numbers)
    table = pa.Table.from_pylist([_person(n, mark) for n in range(first, first + size)])
    pq.write_table(table, folder / "Person.parquet", row_group_size=size // 8, compression="none")
    return str(folder / "Person.parquet")


def as_frame(found: Loaded, spark: SparkSession, size: int, first: int) -> Any:
    return {"Person": spark.read.parquet(as_parquet(found, spark, size, first))}


SOURCES: Final[dict[str, Callable[..., Any]]] = {
    "lines": as_lines,
    "Parquet": as_parquet,
    "a DataFrame": as_frame,
}


@pytest.fixture
def graph(tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Iterator[Loaded]:
    monkeypatch.setattr(planning, "LOAD_GROUP_BYTES_MIN", 100_000)
    names = (
        "spark.sql.autoBroadcastJoinThreshold",
        "spark.sql.adaptive.autoBroadcastJoinThreshold",
    )
    for name in names:
        spark.conf.set(name, str(BROADCAST_BYTES_MAX))
    found = loaded(tmp_path, SCHEMA)
    # So that merges have something to find, and workers have loaded all that they need.
    found.put(*lines(FEW, 0), edge("Knows", "p0000000", "p0000001"), engine="spark")
    yield found
    for name in names:
        spark.conf.unset(name)


def input_path(source: Any, folder: Path) -> Path:
    if isinstance(source, str):
        return Path(source)
    return max(folder.rglob("Person.parquet"), key=lambda each: each.stat().st_mtime_ns)


@dataclass(frozen=True, slots=True)
class Seen:
    """What was seen of a load."""

    input_bytes: int
    stages: list[Stage]
    bytes_read: dict[str, int]

    @property
    def result_bytes(self) -> int:
        return sum(each.result_bytes for each in self.stages)


def watched(
    graph: Loaded, spark: SparkSession, kind: str, mode: str, size: int, more: Any = None
) -> Seen:
    """Carry out a load of which the input vanishes once it has been taken in."""
    # Of a merge, some rows are there.
    first = graph.graph.snapshot().pins
    there = max(pin.row_count for pin in first.values())
    begin = there - FEW // 2 if mode == "merge" else there
    source = SOURCES[kind](graph, spark, size, begin)
    path = input_path(source, graph.folder)
    byte_count, before = path.stat().st_size, last_job(spark)
    log = graph.folder / f"{next(_numbers)}.log"
    log.touch()

    def follow(stage: str, done: int, total: int | None) -> None:  # noqa: ARG001
        if stage == "check":
            path.unlink(missing_ok=True)

    def metered(name: str, work: Work) -> Work:
        done = Metered(work, name, str(log))
        return done if more is None else more(name, done)

    with wrap_work(metered):
        result = graph.load(source, mode, engine="spark", progress=follow)
    assert not path.exists()
    replaced = FEW // 2 if mode == "merge" else 0
    assert changed(result) == {"Person": (size - replaced, replaced, 0)}
    read: dict[str, int] = {}
    for name, bytes_ in map(json.loads, log.read_text().splitlines()):
        read[name] = read.get(name, 0) + bytes_
    return Seen(byte_count, stages_since(spark, before), read)


def assert_read_once(seen: Seen, kind: str, size: int) -> None:
    """The intake, which comes first, read the input; nobody could read it later."""
    if kind == "a DataFrame":
        assert seen.stages[0].records_read == size
    else:
        tasks = seen.stages[0].tasks
        bytes_max = 1.1 * seen.input_bytes + tasks * TAIL_BYTES
        assert seen.input_bytes <= seen.bytes_read["take_splits"] < bytes_max
        assert seen.stages[0].records_read <= tasks


def assert_not_collected(few: Seen, many: Seen) -> None:
    """Ten times the rows are no more for the driver, but for more tasks that answer."""
    assert many.input_bytes > 9 * few.input_bytes
    assert few.result_bytes < ANSWERS_BYTES_MAX
    assert many.result_bytes < ANSWERS_BYTES_MAX
    tasks = sum(each.tasks for each in many.stages) / sum(each.tasks for each in few.stages)
    assert many.result_bytes < 2 * max(1, tasks) * few.result_bytes


@pytest.mark.soak
@pytest.mark.parametrize("mode", ["append", "merge"])
@pytest.mark.parametrize("kind", SOURCES)
def test_an_input_is_read_once_and_rows_do_not_come_to_the_driver(graph, spark, kind, mode):
    few = watched(graph, spark, kind, mode, FEW)
    many = watched(graph, spark, kind, mode, MANY)

    for seen, size in ((few, FEW), (many, MANY)):
        assert_read_once(seen, kind, size)
    assert_not_collected(few, many)


@dataclass(frozen=True, slots=True)
class Twice:
    """The work of an executor, done over again."""

    work: Work

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        held = list(batches)
        for _ in self.work(iter(held)):
            pass
        yield from self.work(iter(held))


@pytest.mark.soak
def test_these_tests_notice_an_input_that_is_read_twice(graph, spark):
    def twice(name: str, work: Work) -> Work:
        return Twice(work) if name == "take_splits" else work

    seen = watched(graph, spark, "lines", "append", FEW, twice)

    with pytest.raises(AssertionError):
        assert_read_once(seen, "lines", FEW)


@pytest.mark.soak
def test_these_tests_notice_ids_that_are_collected(graph, spark, monkeypatch):
    rows = SparkLoad.rows

    def collecting(load: SparkLoad, *given: Any) -> Any:
        found = rows(load, *given)
        for each in found.values():
            each.select(["id"]).collect()
        return found

    monkeypatch.setattr(SparkLoad, "rows", collecting)
    few = watched(graph, spark, "lines", "append", FEW)
    many = watched(graph, spark, "lines", "append", MANY)

    with pytest.raises(AssertionError):
        assert_not_collected(few, many)
