"""A program that uses a graph through Spark Connect, and prints what it saw as JSON."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import omnigraph

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from omnigraph.graph import Graph

SCHEMA = "node Person { name: String @key  age: I64 }\nedge Knows: Person -> Person"
SETTINGS = {"spark.sql.caseSensitive": "true", "spark.sql.session.timeZone": "UTC"}
FRIENDS = "query q() { match { $p: Person  $p knows $q } return { $p.name, $q.name } }"


def begin(spark: SparkSession, graph: Graph) -> dict[str, Any]:
    """Load and query."""
    people = [{"name": "Ada", "age": 36}, {"name": "Bob", "age": 7}]
    rows = {"Person": people, "Knows": [{"from": "Ada", "to": "Bob"}]}
    seen: dict[str, Any] = {"loaded": graph.load(rows, engine="spark").inserted}
    seen["friends"] = graph.query(FRIENDS, engine="spark").rows()
    seen["kind"] = type(spark).__module__
    return seen


def go_on(spark: SparkSession, graph: Graph, folder: Path) -> dict[str, Any]:
    """A refused row, branch, diff, merge, export, and the connector both ways."""
    seen: dict[str, Any] = {}
    frame = graph.frame("Person", spark=spark)
    try:
        graph.load({"Person": frame}, mode="append")
    except omnigraph.errors.IntegrityError as error:
        seen["refused"] = str(error.code)
    graph.branches.create("draft")
    draft = graph.at(branch="draft")
    older = frame.withColumn("age", frame.age + 1)
    seen["updated"] = draft.load({"Person": older}, mode="merge").updated
    difference = graph.diff("main", "draft", engine="spark")
    seen["differs"] = sorted(str(change.id) for change in difference.rows())
    # Otherwise the branch would only be moved.
    graph.load({"Person": [{"name": "Dan", "age": 1}]})
    graph.merge("draft", engine="spark")

    source = spark.read.format("omnigraph").option("graph", graph.uri)
    seen["read"] = sorted(map(list, source.load("Person").select("name", "age").collect()))
    more = spark.createDataFrame([("Cyd", 3)], "name string, age long")
    more.write.format("omnigraph").option("graph", graph.uri).mode("append").save("Person")
    joined = graph.vertices(spark=spark).join(more, "name").select("name", "type").collect()
    seen["joined"] = list(map(list, joined))

    exported = graph.export(folder / "out", engine="spark")
    texts = [(folder / "out" / name).read_text() for name in exported.files]
    lines = [json.loads(line) for text in texts for line in text.splitlines()]
    seen["exported"] = sorted(line["data"]["name"] for line in lines if "type" in line)
    return seen


def stream(spark: SparkSession, graph: Graph, folder: Path) -> dict[str, Any]:
    """A sink of Spark, the source of changes, and the way that is refused."""
    inbox = folder / "inbox"
    inbox.mkdir()
    (inbox / "1.json").write_text('{"name": "Eve", "age": 5}\n')
    arrivals = spark.readStream.schema("name string, age long").json(str(inbox))
    seen: dict[str, Any] = {}
    try:
        graph.ingest(arrivals, type="Person", checkpoint=folder / "refused")
    except omnigraph.errors.InvalidInputError as error:
        seen["ingest"] = str(error.code)
    for _ in range(2):
        sink = arrivals.writeStream.format("omnigraph").option("graph", graph.uri)
        sink = sink.option("checkpointLocation", str(folder / "people"))
        sink.trigger(availableNow=True).start("Person").awaitTermination()
    seen["streamed"] = [record.batch.number for record in graph.streams.list()]

    source = spark.readStream.format("omnigraph").option("graph", graph.uri)
    changes = source.option("changes", "true").load("Person").selectExpr("op", "id")
    feed = changes.writeStream.format("json").option("checkpointLocation", str(folder / "feed"))
    feed.trigger(availableNow=True).start(str(folder / "changes")).awaitTermination()
    followed = spark.read.schema("op string, id string").json(str(folder / "changes"))
    seen["followed"] = sorted(map(list, followed.where("id = 'Eve'").collect()))
    return seen


def maintain(graph: Graph) -> dict[str, Any]:
    """Algorithms and upkeep on Spark."""
    found = graph.algorithms.components(engine="spark").to_arrow()
    return {
        "components": len(set(found["component"].to_pylist())),
        "indexed": str(graph.ensure_indices(engine="spark").engine),
    }


def tour(address: str, folder: Path, *, is_long: bool) -> dict[str, Any]:
    """What a program sees: at first its session lacks the settings that plans rely on."""
    from pyspark.sql import SparkSession

    session = SparkSession.builder.remote(address).getOrCreate()
    graph = omnigraph.init(folder / "world.omni", SCHEMA)
    seen: dict[str, Any] = {}
    try:
        seen |= begin(session, graph)
    except omnigraph.errors.InvalidInputError as failure:
        seen["said"] = f"{failure.code} {failure}"
        if failure.code is not omnigraph.errors.ErrorCode.ENGINE_UNAVAILABLE:
            return seen
    for name, value in SETTINGS.items():
        session.conf.set(name, value)
    seen |= begin(session, graph)
    if is_long:
        seen |= go_on(session, graph, folder)
        seen |= stream(session, graph, folder)
        seen |= maintain(graph)
    return seen


if __name__ == "__main__":
    found = tour(sys.argv[1], Path(sys.argv[2]), is_long="long" in sys.argv[3:])
    sys.stdout.write(json.dumps(found))
