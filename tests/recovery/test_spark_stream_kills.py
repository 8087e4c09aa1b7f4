"""One stream through many drivers, each killed somewhere else: every row is there exactly once."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Final

import pytest
from pyspark.sql import DataFrame

import omnigraph
from omnigraph.failpoints import Failpoint
from omnigraph.graph import Graph
from tests.support import spark_drivers
from tests.support.crashes import Cut, at_rest
from tests.support.streams import batches_in, names_in

pytestmark = [pytest.mark.soak, pytest.mark.timeout(3600)]

SCHEMA = """
node Person { name: String @key  note: String? }
edge Knows: Person -> Person { note: String? }
"""
"""An edge has no key: one that is written twice is there twice, also in the mode merge."""
COLUMNS = "kind string, name string, note string, `from` string, to string"
ROWS = 20
"""Rows of each type in each file, which is a batch."""

POINTS = (
    Failpoint.STREAM_AFTER_LOOKUP,
    Failpoint.WRITE_AFTER_HEAL,
    Failpoint.WRITE_AFTER_PLAN,
    Failpoint.WRITE_AFTER_STAGE,
    Failpoint.CLAIM_AFTER_PUT,
    Failpoint.CLAIM_AFTER_LIST,
    Failpoint.WRITE_AFTER_CHECK,
    Failpoint.APPLY_AFTER_COMMIT,
    Failpoint.WRITE_AFTER_EACH_APPLY,
    Failpoint.PUBLISH_AFTER_READ,
    Failpoint.PUBLISH_AFTER_STAGE,
    Failpoint.PUBLISH_AFTER_COMMIT,
    Failpoint.WRITE_AFTER_PUBLISH,
    Failpoint.WRITE_AFTER_SETTLE,
    Failpoint.STREAM_AFTER_BATCH,
)
"""From the look-up of a batch to Spark's own record that it is done, in their order."""


def ingest(uri: str, inbox: str, checkpoint: str, mode: str) -> None:
    """A driver that reads what there is, a file at a time."""
    graph = omnigraph.open(uri)
    stream = arrivals_in(inbox)
    graph.ingest(stream, router="kind", checkpoint=checkpoint, mode=mode, available_now=True).wait()


def write_stream(uri: str, inbox: str, checkpoint: str, mode: str) -> None:
    """The same by the sink of Spark."""
    sink = arrivals_in(inbox).writeStream.format("omnigraph").option("graph", uri)
    sink = sink.option("checkpointLocation", checkpoint).option("mode", mode)
    sink.option("router", "kind").trigger(availableNow=True).start().awaitTermination()


def arrivals_in(inbox: str) -> DataFrame:
    """A stream whose batches are files."""
    from omnigraph.engine.spark.session import open_session

    reader = open_session().readStream.schema(COLUMNS)
    return reader.option("maxFilesPerTrigger", 1).json(inbox)


def kill_ingest(point: Failpoint, *arguments: str) -> None:
    spark_drivers.kill_at(Cut(point), ingest, *arguments)


def kill_sink(point: Failpoint, *arguments: str) -> None:
    spark_drivers.kill_with_sink(point, write_stream, *arguments)


WAYS: Final = {
    "ingest, append": (ingest, kill_ingest, "append"),
    "ingest, merge": (ingest, kill_ingest, "merge"),
    "sink, append": (write_stream, kill_sink, "append"),
}


def files(inbox: Path) -> Iterator[Path]:
    """Files with rows of their own, each put there whole when it is asked for."""
    inbox.mkdir()
    number = 0
    while True:
        number += 1
        names = [f"p{number:03}-{row:03}" for row in range(ROWS)]
        notes = [sha256(f"{number} {row}".encode()).hexdigest() for row in range(ROWS)]
        people = [
            {"kind": "Person", "name": name, "note": note}
            for name, note in zip(names, notes, strict=True)
        ]
        knows = [
            {"kind": "Knows", "from": name, "to": names[0], "note": note}
            for name, note in zip(names, notes, strict=True)
        ]
        rows = [*people, *knows]
        hidden = inbox / f".{number}"
        hidden.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
        yield hidden.rename(inbox / f"{number:03}.json")


def digest(rows: list[tuple[str, str]]) -> str:
    return sha256(repr(sorted(rows)).encode()).hexdigest()


def rows_in(graph: Graph, kind: str) -> list[tuple[str, str]]:
    """The rows of a type: for each its name, or the one that it starts at, and its note."""
    view = graph._view()
    rows = view.data.table(view.catalog.type_named(kind).table_key).read().to_pylist()
    return [(row["name" if kind == "Person" else "src"], row["note"]) for row in rows]


@pytest.mark.parametrize(("follow", "kill", "mode"), WAYS.values(), ids=WAYS)
def test_every_row_is_written_once_however_often_drivers_of_spark_are_killed(
    tmp_path: Path, follow: Callable[..., None], kill: Callable[..., None], mode: str
) -> None:
    graph = omnigraph.init(tmp_path / "graph.omni", SCHEMA)
    inbox = tmp_path / "inbox"
    arrivals = files(inbox)
    arguments = (graph.uri, str(inbox), str(tmp_path / "checkpoint"), mode)
    next(arrivals)
    for point in POINTS:
        # Each driver runs the last batch again, or skips it if it landed, and dies on its way.
        next(arrivals)
        kill(point, *arguments)
    with spark_drivers.run_driver() as drive:
        drive(follow, *arguments)
    texts = (file.read_text() for file in inbox.glob("*.json"))
    lines = [json.loads(line) for text in texts for line in text.splitlines()]
    graph = omnigraph.open(graph.uri)
    for kind, column in (("Person", "name"), ("Knows", "from")):
        given = [(row[column], row["note"]) for row in lines if row["kind"] == kind]
        stored = rows_in(graph, kind)
        assert len(stored) == len(given) == (1 + len(POINTS)) * ROWS
        assert digest(stored) == digest(given)
    assert set(names_in(graph).values()) == {1}
    assert [number for _, number in batches_in(graph)] == list(range(1 + len(POINTS)))
    at_rest(graph.uri)
