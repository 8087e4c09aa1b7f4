"""Streams through Spark: files into a graph and changes out of it, with restarts between."""

import json
import shutil
from collections import Counter
from collections.abc import Iterable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession, functions

import omnigraph
from omnigraph.engine.spark.failures import translate_errors
from omnigraph.errors import (
    ErrorCode,
    FeedGapError,
    IntegrityError,
    InvalidInputError,
    InvalidParameterError,
    StreamError,
    TypeNotFoundError,
)
from omnigraph.graph import Graph
from omnigraph.recovery.scratch import find_scratch
from tests.support.clocks import LaterClock
from tests.support.streams import batches_in, names_in

needs_stream_sources = pytest.mark.skipif(
    find_spec("pyspark.sql.streaming.datasource") is None, reason="needs Spark 4.2"
)
"""Of tests of `format("omnigraph")`; `graph.ingest` works with every Spark."""

SCHEMA = """
node Person { name: String @key  age: I32? }
edge Knows: Person -> Person
"""


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    return omnigraph.init(tmp_path / "graph.omni", SCHEMA)


class Inbox:
    """A directory of files with JSON, one of which is a batch."""

    def __init__(self, spark: SparkSession, path: Path) -> None:
        self._spark = spark
        self.path = path
        path.mkdir()
        self._count = 0

    def put(self, *rows: Mapping[str, Any]) -> None:
        self._count += 1
        # Spark lists hidden files not at all: no file is seen half written.
        hidden = self.path / f".{self._count}"
        hidden.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
        hidden.rename(self.path / f"{self._count:05}.json")

    def stream(self, columns: str = "name string, age int") -> DataFrame:
        reader = self._spark.readStream.schema(columns).option("maxFilesPerTrigger", 1)
        return reader.json(str(self.path))


@pytest.fixture
def inbox(spark: SparkSession, tmp_path: Path) -> Inbox:
    return Inbox(spark, tmp_path / "inbox")


def run_again(checkpoint: Path, number: int) -> None:
    """Leave the checkpoint as a driver does that dies before Spark records that a batch is done."""
    for name in (f"{number}", f".{number}.crc"):
        (checkpoint / "commits" / name).unlink()


def test_files_become_commits_exactly_once(graph: Graph, inbox: Inbox, tmp_path: Path) -> None:
    checkpoint = tmp_path / "checkpoint"
    inbox.put({"name": "Ada", "age": 36}, {"name": "Bob"})
    for is_new in (True, False):
        stream = inbox.stream()
        ingest = graph.ingest(stream, type="Person", checkpoint=checkpoint, available_now=True)
        assert ingest.wait()
        assert not ingest.is_active
        assert (ingest.last is not None) == is_new
        run_again(checkpoint, 0)
    assert batches_in(graph) == [(str(checkpoint), 0)]
    assert names_in(graph) == Counter(["Ada", "Bob"])


@pytest.mark.soak
def test_a_stream_that_stopped_goes_on(graph: Graph, inbox: Inbox, tmp_path: Path) -> None:
    checkpoint = tmp_path / "checkpoint"

    def drive(**options: Any) -> omnigraph.LoadResult | None:
        stream = inbox.stream()
        ingest = graph.ingest(
            stream, type="Person", checkpoint=checkpoint, available_now=True, **options
        )
        assert ingest.wait()
        return ingest.last

    inbox.put({"name": "Ada"})
    assert drive() is not None
    # A row that breaks a rule stops the stream, and nothing of its batch is there.
    inbox.put({"name": "Ada"}, {"name": "Dee"})
    with pytest.raises(IntegrityError, match="'Ada' already exists"):
        drive()
    assert names_in(graph) == Counter(["Ada"])
    # The next start begins with that batch.
    result = drive(on_error="quarantine", rejects=tmp_path / "rejects")
    assert result is not None
    assert (result.inserted, result.rejected) == (1, 1)
    assert names_in(graph) == Counter(["Ada", "Dee"])
    assert [batch for _, batch in batches_in(graph)] == [0, 1]
    shutil.rmtree(checkpoint)
    with pytest.raises(StreamError) as refusal:
        drive()
    assert refusal.value.code == ErrorCode.STREAM_REPLACED


def sink_of(frame: DataFrame, graph: Graph, checkpoint: Path, **options: str) -> Any:
    writer = frame.writeStream.format("omnigraph").option("graph", graph.uri)
    for name, value in options.items():
        writer = writer.option(name, value)
    return writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True)


def drain(query: Any) -> None:
    with translate_errors("the stream"):
        query.awaitTermination()


@needs_stream_sources
def test_a_sink_routes_rows_and_writes_them_exactly_once(
    graph: Graph, inbox: Inbox, tmp_path: Path
) -> None:
    checkpoint = tmp_path / "checkpoint"
    columns = "kind string, name string, `from` string, to string"
    people = [{"kind": "Person", "name": name} for name in ("Ada", "Bob")]
    inbox.put(*people, {"kind": "Knows", "from": "Ada", "to": "Bob"})
    for _ in range(2):
        sink = sink_of(inbox.stream(columns), graph, checkpoint, router="kind", stream="events")
        drain(sink.start())
        run_again(checkpoint, 0)
    assert batches_in(graph) == [("events", 0)]
    assert names_in(graph) == Counter(["Ada", "Bob"])
    assert [pin.row_count for pin in graph.snapshot().pins.values()] == [2, 1]
    assert not find_scratch(graph._store.objects)


@needs_stream_sources
def test_a_sink_refuses_the_output_mode_complete(
    graph: Graph, inbox: Inbox, tmp_path: Path
) -> None:
    inbox.put({"name": "Ada"})
    counts = inbox.stream().groupBy("name").agg(functions.max("age").alias("age"))
    sink = sink_of(counts, graph, tmp_path / "checkpoint").outputMode("complete")
    with pytest.raises(StreamingQueryException, match="InvalidParameterError: the output mode") as (
        refusal
    ):
        sink.start("Person").awaitTermination()
    assert 'graph.ingest with mode="merge"' in str(refusal.value)
    assert names_in(graph) == {}


def test_streams_that_make_no_sense_are_refused(
    graph: Graph, inbox: Inbox, spark: SparkSession, tmp_path: Path
) -> None:
    stream, checkpoint = inbox.stream(), tmp_path / "checkpoint"
    with pytest.raises(TypeNotFoundError, match="Persn"):
        graph.ingest(stream, type="Persn", checkpoint=checkpoint)
    with pytest.raises(InvalidParameterError, match="instead of a stream"):
        graph.ingest(spark.range(1), type="Person", checkpoint=checkpoint)
    with pytest.raises(InvalidParameterError, match="every"):
        graph.ingest(stream, type="Person", checkpoint=checkpoint, every="1 second",
                     available_now=True)  # fmt: skip
    with pytest.raises(InvalidParameterError, match="is not an interval"):
        graph.ingest(stream, type="Person", checkpoint=checkpoint, every="often")
    counts = stream.groupBy("name").count()
    with pytest.raises(InvalidInputError, match="Spark refuses the stream"):
        graph.ingest(counts, type="Person", checkpoint=checkpoint)


@needs_stream_sources
def test_changes_that_make_no_sense_are_refused(graph: Graph, spark: SparkSession) -> None:
    with pytest.raises(AnalysisException, match="changes are read as a stream"):
        spark.read.format("omnigraph").options(graph=graph.uri, changes="true").load().count()
    with pytest.raises(AnalysisException, match="'since' is not a valid option"):
        feed_of(spark, graph, since="now")


def feed_of(
    spark: SparkSession, graph: Graph, type_: str | None = None, **options: str
) -> DataFrame:
    reader = spark.readStream.format("omnigraph").options(
        graph=graph.uri, changes="true", **options
    )
    return reader.load() if type_ is None else reader.load(type_)


class Consumer:
    """Reads what there is, whenever it is asked to, and keeps what each batch had."""

    def __init__(self, frame: DataFrame, checkpoint: Path) -> None:
        self._frame = frame
        self._checkpoint = checkpoint
        self.batches: list[list[Any]] = []

    def poll(self, frame: DataFrame | None = None) -> list[Any]:
        """The rows of the commits since the last time."""
        self.batches = []
        writer = (frame or self._frame).writeStream.foreachBatch(self._take)
        checkpointed = writer.option("checkpointLocation", str(self._checkpoint))
        drain(checkpointed.trigger(availableNow=True).start())
        return [row for batch in self.batches for row in batch]

    def _take(self, frame: DataFrame, _: int) -> None:
        self.batches.append(sorted(frame.collect(), key=lambda row: (row.version, row.id)))


def in_short(rows: Iterable[Any]) -> list[tuple[str, str, str]]:
    return [(row.type, row.op, row.id) for row in rows]


def insert(graph: Graph, name: str) -> str:
    graph.mutate(f'query q() {{ insert Person {{ name: "{name}" }} }}')
    return graph.baseline()


@pytest.mark.soak
@needs_stream_sources
def test_consumers_get_each_commit_once(graph: Graph, spark: SparkSession, tmp_path: Path) -> None:
    first = insert(graph, "Ada")
    all_types = Consumer(feed_of(spark, graph), tmp_path / "all")
    # A branch of its own position, one type, one commit a batch, from one commit on.
    people = Consumer(
        feed_of(spark, graph, "Person", after=first, maxCommits="1"), tmp_path / "people"
    )
    insert(graph, "Bob")
    graph.load({"Knows": [{"from": "Ada", "to": "Bob", "id": "e1"}]})
    graph.mutate('query q() { update Person set { age: 36 } where name = "Ada" }')
    changes = all_types.poll()
    assert in_short(changes) == [
        ("Person", "insert", "Ada"),
        ("Person", "insert", "Bob"),
        ("Knows", "insert", "e1"),
        ("Person", "update", "Ada"),
    ]
    assert [row["commit"] for row in changes] == [
        each.commit_id for each in graph.commits.list()[::-1] if each.operation != "init"
        and not each.is_maintenance
    ]  # fmt: skip
    assert json.loads(changes[3].after) == {"type": "Person", "data": {"name": "Ada", "age": 36}}
    rows = people.poll()
    assert [[row.id for row in batch] for batch in people.batches] == [["Bob"], [], ["Ada"]]
    assert rows[0].before is None
    assert rows[1].before.asDict() == {"id": "Ada", "name": "Ada", "age": None}
    assert rows[1].after.asDict() == {"id": "Ada", "name": "Ada", "age": 36}
    # Maintenance changes no row, and makes no batch.
    graph.optimize()
    assert all_types.poll() == []
    assert all_types.batches == []
    # A property is renamed, and another one added: the running stream has the columns it had.
    graph.schema.apply(
        SCHEMA.replace("age: I32?", 'years: I32? @rename_from("age")  mood: String?')
    )
    graph.mutate('query q() { update Person set { years: 37, mood: "sunny" } where name = "Ada" }')
    [change] = people.poll()
    assert change.after.asDict() == {"id": "Ada", "name": "Ada", "age": 37}
    # One that starts now has the new ones.
    graph.mutate('query q() { update Person set { years: 38 } where name = "Ada" }')
    [change] = people.poll(feed_of(spark, graph, "Person", after=first, maxCommits="1"))
    assert change.after.asDict() == {"id": "Ada", "name": "Ada", "years": 38, "mood": "sunny"}
    assert [row.op for row in all_types.poll()] == ["update", "update"]


@pytest.mark.soak
@needs_stream_sources
def test_a_graph_follows_the_inserts_and_updates_of_another(
    graph: Graph, spark: SparkSession, tmp_path: Path
) -> None:
    replica = omnigraph.init(tmp_path / "replica.omni", SCHEMA)
    first = graph.baseline()
    people = [{"name": "Ada"}, {"name": "Bob"}]
    graph.load({"Person": people, "Knows": [{"from": "Ada", "to": "Bob"}]})
    graph.mutate('query q() { update Person set { age: 36 } where name = "Ada" }')
    graph.mutate('query q() { delete Person where name = "Bob" }')
    # A commit a batch: a row that several of them change would be twice in one.
    changes = feed_of(spark, graph, after=first, ops="insert,update", maxCommits="1")
    checkpoint = tmp_path / "checkpoint"
    ingest = replica.ingest(
        changes, envelope="after", mode="merge", checkpoint=checkpoint, available_now=True
    )
    assert ingest.wait()
    assert names_in(replica) == Counter(["Ada", "Bob"])
    assert replica.entity("Person", "Ada") == {"id": "Ada", "name": "Ada", "age": 36}
    assert [pin.row_count for pin in replica.snapshot().pins.values()] == [2, 1]
    # The deletion is a batch without rows: it is recorded, and makes no commit.
    assert [number for _, number in batches_in(replica)] == [0, 1]
    assert [record.batch.number for record in replica.streams.list()] == [2]


@pytest.mark.soak
@needs_stream_sources
def test_a_consumer_of_commits_that_are_gone_is_told(
    graph: Graph, spark: SparkSession, tmp_path: Path
) -> None:
    insert(graph, "Ada")
    consumer = Consumer(feed_of(spark, graph, ops="delete"), tmp_path / "consumer")
    assert consumer.poll() == []
    for name in ("Bob", "Cy", "Dee"):
        insert(graph, name)
    omnigraph.open(graph.uri, clock=LaterClock(7200)).cleanup(keep_commits=1)
    with pytest.raises(FeedGapError, match="cannot be read"):
        consumer.poll()
    later = Consumer(feed_of(spark, graph, after="now"), tmp_path / "later")
    assert later.poll() == []
    insert(graph, "Eve")
    assert in_short(later.poll()) == [("Person", "insert", "Eve")]
