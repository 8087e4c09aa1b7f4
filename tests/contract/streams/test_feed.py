"""The source of changes, called as Spark calls it: offsets, groups of commits, and their rows."""

import json
import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import omnigraph
from omnigraph.engine.spark.failures import TaskFailedError
from omnigraph.errors import FeedGapError, InvalidParameterError, TypeNotFoundError
from omnigraph.graph import Graph
from omnigraph.streams.options import FeedOptions
from tests.support.clocks import LaterClock

pytest.importorskip("pyspark.sql.streaming.datasource", reason="needs Spark 4.2")

from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxFiles

from omnigraph.streams.source import FeedReader, feed_schema

SCHEMA = """
node Person { name: String @key  age: I32? }
edge Knows: Person -> Person
"""
ADA = {"id": "Ada", "name": "Ada"}


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    return omnigraph.init(tmp_path / "graph.omni", SCHEMA)


class Consumer:
    """Polls a source, and continues after what it has read."""

    def __init__(self, graph: Graph, **options: str) -> None:
        self.options = FeedOptions.parse({"graph": graph.uri, "changes": "true", **options})
        self.offset: Mapping[str, str] | None = None

    def poll(self) -> list[dict[str, Any]]:
        """The rows of the next batch; none if there is no next one."""
        reader = FeedReader(self.options)
        start = dict(self.offset or reader.initialOffset())
        self.offset = start
        end = reader.latestOffset(start, reader.getDefaultReadLimit())
        if end == start:
            return []
        rows: list[dict[str, Any]] = []
        for group in reader.partitions(start, end):
            # Executors have what pickles, and no more.
            task = pickle.loads(pickle.dumps((reader, group)))
            batches = list(task[0].read(task[1]))
            rows += pa.Table.from_batches(batches).to_pylist() if batches else []
        self.offset = end
        return rows


def in_short(rows: list[dict[str, Any]]) -> list[tuple[str, str, str]]:
    return [(row["type"], row["op"], row["id"]) for row in rows]


def insert(graph: Graph, name: str) -> str:
    graph.mutate(f'query q() {{ insert Person {{ name: "{name}" }} }}')
    return graph.baseline()


def set_age(graph: Graph, age: int, column: str = "age") -> None:
    graph.mutate(f'query q() {{ update Person set {{ {column}: {age} }} where name = "Ada" }}')


def test_each_consumer_gets_each_commit_once(graph: Graph) -> None:
    early, late = Consumer(graph), Consumer(graph)
    insert(graph, "Ada")
    assert in_short(early.poll()) == [("Person", "insert", "Ada")]
    assert early.poll() == []
    graph.load({"Knows": [{"from": "Ada", "to": "Ada", "id": "e1"}]}, index=False)
    set_age(graph, 36)
    both = [("Knows", "insert", "e1"), ("Person", "update", "Ada")]
    assert in_short(early.poll()) == both
    assert in_short(late.poll()) == [("Person", "insert", "Ada"), *both]
    assert early.poll() == late.poll() == []


def test_rows_say_their_commit_and_what_they_were(graph: Graph) -> None:
    insert(graph, "Ada")
    set_age(graph, 36)
    graph.mutate('query q() { delete Person where name = "Ada" }')
    rows = Consumer(graph, path="Person").poll()
    commits = [each for each in graph.commits.list()[::-1] if each.operation == "mutation"]
    assert [row["commit"] for row in rows] == [each.commit_id for each in commits]
    assert [row["version"] for row in rows] == [each.manifest_version for each in commits]
    assert [row["created_at"] for row in rows] == [each.created_at for each in commits]
    assert [(row["op"], row["before"], row["after"]) for row in rows] == [
        ("insert", None, {**ADA, "age": None}),
        ("update", {**ADA, "age": None}, {**ADA, "age": 36}),
        ("delete", {**ADA, "age": 36}, None),
    ]


def test_rows_of_all_types_are_envelopes_that_load_elsewhere(graph: Graph, tmp_path: Path) -> None:
    insert(graph, "Ada")
    graph.load({"Knows": [{"from": "Ada", "to": "Ada", "id": "e1"}]}, index=False)
    rows = Consumer(graph).poll()
    assert json.loads(rows[0]["after"]) == {"type": "Person", "data": {"name": "Ada", "age": None}}
    file = tmp_path / "copy.jsonl"
    file.write_text("".join(f"{row['after']}\n" for row in rows))
    copy = omnigraph.init(tmp_path / "copy.omni", SCHEMA)
    assert copy.load(file).inserted == 2
    assert copy.entity("Knows", "e1") == graph.entity("Knows", "e1")


def test_maintenance_is_no_offset(graph: Graph) -> None:
    for name in ("Ada", "Bob"):
        insert(graph, name)
    consumer = Consumer(graph)
    assert len(consumer.poll()) == 2
    graph.optimize()
    assert graph.commits.list()[0].is_maintenance
    before = consumer.offset
    assert consumer.poll() == []
    assert consumer.offset == before
    # A cursor may name it.
    after = Consumer(graph, after=graph.baseline())
    insert(graph, "Cy")
    assert in_short(after.poll()) == in_short(consumer.poll()) == [("Person", "insert", "Cy")]


def test_a_stream_starts_where_it_is_told(graph: Graph) -> None:
    first = insert(graph, "Ada")
    graph.tags.create("begun", commit=first)
    now = Consumer(graph, after="now")
    assert now.poll() == []
    insert(graph, "Bob")
    only_bob = [("Person", "insert", "Bob")]
    assert in_short(now.poll()) == only_bob
    assert in_short(Consumer(graph, after=first).poll()) == only_bob
    assert in_short(Consumer(graph, after="begun").poll()) == only_bob
    assert Consumer(graph, ops="update, delete").poll() == []


def test_a_batch_has_a_limited_number_of_commits(graph: Graph) -> None:
    for name in ("Ada", "Bob", "Cy"):
        insert(graph, name)
    consumer = Consumer(graph, maxCommits="2")
    # The first commit of all made the graph.
    assert [in_short(consumer.poll()) for _ in range(3)] == [
        [("Person", "insert", "Ada")],
        [("Person", "insert", "Bob"), ("Person", "insert", "Cy")],
        [],
    ]
    reader = FeedReader(consumer.options)
    start = reader.initialOffset()
    assert reader.latestOffset(start, ReadAllAvailable()) == consumer.offset
    assert reader.latestOffset(start, ReadMaxFiles(9)) == consumer.offset


def test_what_comes_later_is_not_available_now(graph: Graph) -> None:
    first = insert(graph, "Ada")
    reader = FeedReader(Consumer(graph).options)
    reader.prepareForTriggerAvailableNow()
    insert(graph, "Bob")
    assert reader.latestOffset(reader.initialOffset(), ReadAllAvailable()) == {"commit": first}


def test_commits_are_read_by_as_many_tasks_as_asked_for(graph: Graph) -> None:
    for number in range(5):
        insert(graph, f"p{number}")
    reader = FeedReader(Consumer(graph, parallelism="2").options)
    end = reader.latestOffset({"commit": ""}, ReadAllAvailable())
    assert [len(group.value) for group in reader.partitions({"commit": ""}, end)] == [3, 2]


def test_a_running_stream_keeps_its_columns(graph: Graph) -> None:
    insert(graph, "Ada")
    consumer = Consumer(graph, path="Person", after="now")
    assert consumer.poll() == []
    graph.schema.apply(
        SCHEMA.replace("age: I32?", 'years: I32? @rename_from("age")  mood: String?')
    )
    set_age(graph, 37, "years")
    assert [row["after"] for row in consumer.poll()] == [{**ADA, "age": 37}]
    renewed = Consumer(graph, path="Person")
    renewed.offset = consumer.offset
    set_age(graph, 38, "years")
    assert [row["after"] for row in renewed.poll()] == [{**ADA, "years": 38, "mood": None}]
    kind = feed_schema(renewed.options)["after"].dataType.simpleString()
    assert kind == "struct<id:string,name:string,years:int,mood:string>"


def test_a_value_that_the_columns_cannot_have_ends_the_stream(graph: Graph) -> None:
    consumer = Consumer(graph, path="Person", after="now")
    consumer.poll()
    graph.schema.apply(SCHEMA.replace("age: I32?", "age: String?"))
    graph.mutate('query q() { insert Person { name: "Ada", age: "old" } }')
    with pytest.raises(TaskFailedError, match="start the stream again"):
        consumer.poll()


def test_commits_that_were_let_go_are_a_gap(graph: Graph) -> None:
    insert(graph, "Ada")
    consumer = Consumer(graph)
    consumer.poll()
    for name in ("Bob", "Cy", "Dee"):
        insert(graph, name)
    omnigraph.open(graph.uri, clock=LaterClock(7200)).cleanup(keep_commits=1)
    with pytest.raises(TaskFailedError, match="FeedGapError"):
        consumer.poll()


def test_a_branch_that_was_made_again_is_a_gap(graph: Graph) -> None:
    draft = graph.branches.create("draft")
    insert(draft, "Ada")
    consumer = Consumer(graph, branch="draft")
    assert len(consumer.poll()) == 1
    graph.branches.delete("draft")
    insert(graph.branches.create("draft"), "Bob")
    with pytest.raises(FeedGapError, match="not in the history of branch draft"):
        consumer.poll()


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"since": "now"}, InvalidParameterError),
        ({"changes": "maybe"}, InvalidParameterError),
        ({"changes": "false"}, InvalidParameterError),
        ({"maxCommits": "0"}, InvalidParameterError),
        ({"ops": "upsert"}, InvalidParameterError),
        ({"path": "Persn"}, TypeNotFoundError),
    ],
)
def test_options_that_make_no_sense_are_refused(
    graph: Graph, options: dict[str, str], error: type[Exception]
) -> None:
    with pytest.raises(error):
        Consumer(graph, **options)
