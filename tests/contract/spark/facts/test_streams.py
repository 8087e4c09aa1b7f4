"""Streams of Spark: what a checkpoint says of a batch, and how sinks in Python are called."""

import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, Row, SparkSession, functions
from pyspark.sql.datasource import (
    DataSource,
    DataSourceStreamWriter,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType


@dataclass
class Seen:
    """What was seen of batches while they ran: number, entry of the checkpoint, rows."""

    checkpoint: Path
    ids: list[str] = field(default_factory=list)
    batches: list[tuple[int, bytes, list[str]]] = field(default_factory=list)

    def take(self, frame: DataFrame, number: int) -> None:
        self.ids.append(json.loads((self.checkpoint / "metadata").read_text())["id"])
        entry = (self.checkpoint / "offsets" / str(number)).read_bytes()
        self.batches.append((number, entry, [row.value for row in frame.collect()]))


@pytest.fixture(scope="module")
def seen(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> tuple[Seen, list[str]]:
    """A batch that runs, runs again because it was not recorded, and then from scratch."""
    folder = tmp_path_factory.mktemp("stream")
    (folder / "in").mkdir()
    (folder / "in" / "a.txt").write_text("one\n")
    seen = Seen(folder / "checkpoint")
    ids = []
    for again in (
        lambda: shutil.rmtree(seen.checkpoint / "commits"),
        lambda: shutil.rmtree(seen.checkpoint),
        lambda: None,
    ):
        frame = spark.readStream.text(str(folder / "in"))
        writer = frame.writeStream.foreachBatch(seen.take).trigger(availableNow=True)
        query = writer.option("checkpointLocation", str(seen.checkpoint)).start()
        query.awaitTermination()
        ids.append(str(query.id))
        # What came since is not part of a batch that was planned before.
        (folder / "in" / "b.txt").write_text("two\n")
        again()
    return seen, ids


def test_a_checkpoint_has_the_id_of_its_query(seen: tuple[Seen, list[str]]) -> None:
    found, ids = seen
    assert found.ids[0] == ids[0]
    assert found.ids[-1] == ids[-1]


def test_a_batch_is_planned_in_the_checkpoint_before_it_runs(
    seen: tuple[Seen, list[str]],
) -> None:
    assert all(entry for _, entry, _ in seen[0].batches)


def test_a_batch_that_is_not_done_runs_again_as_it_was(seen: tuple[Seen, list[str]]) -> None:
    first, second, *_ = seen[0].batches
    assert first == second
    assert first[0] == 0
    assert first[2] == ["one"]
    assert seen[1][0] == seen[1][1]


def test_a_checkpoint_that_is_made_again_has_another_id(seen: tuple[Seen, list[str]]) -> None:
    number, entry, rows = seen[0].batches[-1]
    assert number == 0
    assert sorted(rows) == ["one", "two"]
    assert entry != seen[0].batches[0][1]
    assert seen[1][-1] != seen[1][0]


class Token(WriterCommitMessage):
    def __init__(self, token: str) -> None:
        self.token = token


class TokenWriter(DataSourceStreamWriter):
    """Writes down the token of each writer: of the one that tasks have, and of the one here."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._token = os.urandom(8).hex()

    def write(self, iterator: Iterator[Row]) -> Token:
        list(iterator)
        return Token(self._token)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        tokens = {each.token for each in messages if isinstance(each, Token)}
        seen = {"batch": batchId, "tasks": sorted(tokens), "own": self._token}
        Path(self._path).write_text(json.dumps(seen))


class TokenSource(DataSource):
    @classmethod
    def name(cls) -> str:
        return "tokens"

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: FBT001, ARG002
        return TokenWriter(self.options["path"])


def test_a_sink_is_made_anew_to_commit(spark: SparkSession, tmp_path: Path) -> None:
    spark.dataSource.register(TokenSource)
    frame: Any = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 2).load()
    writer = frame.writeStream.format("tokens").trigger(availableNow=True)
    checkpoint = str(tmp_path / "checkpoint")
    writer.option("checkpointLocation", checkpoint).start(str(tmp_path / "seen")).awaitTermination()
    seen = json.loads((tmp_path / "seen").read_text())
    assert seen["batch"] == 0
    assert len(seen["tasks"]) == 1
    assert seen["tasks"] != [seen["own"]]


class NumberWriter(DataSourceStreamWriter):
    """Writes down the number of each batch, and how many rows it has."""

    def __init__(self, path: str) -> None:
        self._path = path

    def write(self, iterator: Iterator[Row]) -> Token:
        return Token(str(len(list(iterator))))

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        rows = sum(int(each.token) for each in messages if isinstance(each, Token))
        with Path(self._path).open("a") as file:
            file.write(f"{batchId} {rows}\n")


class NumberSource(DataSource):
    @classmethod
    def name(cls) -> str:
        return "numbers"

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: FBT001, ARG002
        return NumberWriter(self.options["path"])


@pytest.fixture
def one_partition(spark: SparkSession) -> Iterator[None]:
    """Each partition of a state takes its time."""
    name = "spark.sql.shuffle.partitions"
    before = spark.conf.get(name)
    spark.conf.set(name, "1")
    yield
    spark.conf.set(name, before or "1")


@pytest.mark.usefixtures("one_partition")
@pytest.mark.parametrize("way", ["function", pytest.param("sink", marks=pytest.mark.soak)])
def test_every_batch_is_given_to_its_sink_also_one_without_data(
    spark: SparkSession, tmp_path: Path, way: str
) -> None:
    spark.dataSource.register(NumberSource)
    (tmp_path / "in").mkdir()
    for minute in (0, 10):
        file = tmp_path / "in" / f"{minute}.json"
        file.write_text(f'{{"at": "2026-01-01T00:{minute:02}:00Z"}}')
        # Spark reads the oldest file first.
        os.utime(file, (minute, minute))
    given = spark.readStream.schema("at timestamp").option("maxFilesPerTrigger", 1)
    counts = (
        given.json(str(tmp_path / "in"))
        .withWatermark("at", "1 minute")
        .groupBy(functions.window("at", "1 minute"))
        .count()
        .select("count")
    )
    path = tmp_path / "seen"

    def take(frame: DataFrame, number: int) -> None:
        with path.open("a") as file:
            file.write(f"{number} {frame.count()}\n")

    writer = counts.writeStream.option("checkpointLocation", str(tmp_path / "checkpoint"))
    writer = writer.trigger(availableNow=True)
    if way == "function":
        writer.foreachBatch(take).start().awaitTermination()
    else:
        writer.format("numbers").start(str(path)).awaitTermination()
    seen = [tuple(map(int, line.split())) for line in path.read_text().splitlines()]
    planned = sorted(int(each.name) for each in (tmp_path / "checkpoint/offsets").glob("[0-9]*"))
    assert [number for number, _ in seen] == planned == list(range(len(seen)))
    # Two batches with a file each; then one for the window that ended, which has nothing to read.
    assert [rows for _, rows in seen] == [0, 0, 1]
