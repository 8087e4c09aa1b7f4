"""Streams without Spark: batches of rows written to a graph as a driver would."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Final

import pyarrow as pa

from omnigraph.graph import Graph
from omnigraph.load.results import LoadResult
from omnigraph.model.commits import OperationKind
from omnigraph.model.streams import StreamBatch
from omnigraph.streams.batches import StreamSettings, StreamWriter

STREAM: Final = "people"
CHECKPOINT: Final = "one"


def batch_of(
    number: int, *, stream: str = STREAM, checkpoint: str = CHECKPOINT, read: str = ""
) -> StreamBatch:
    """A batch; one of the same number that has read something else has another digest."""
    return StreamBatch(stream, checkpoint, number, f"{number}{read}")


def writer_of(graph: Graph, branch: str | None = None, **settings: Any) -> StreamWriter:
    """A driver of a stream of Person; its handle is the graph's."""
    request = graph._request_write(OperationKind.LOAD, branch, None, None)
    chosen = StreamSettings(**({"name": STREAM, "of": "Person"} | settings))
    return StreamWriter(graph._manifest, graph._loads, graph._clock, request, chosen)


def people(*names: str) -> pa.Table:
    """Rows of Person; none without names."""
    return pa.table({"name": pa.array(names, pa.utf8())})


def write_people(graph: Graph, number: int, *names: str, **settings: Any) -> LoadResult | None:
    """Write a batch of people."""
    return writer_of(graph, **settings).write(batch_of(number), people(*names))


def names_in(graph: Graph, branch: str | None = None) -> Counter[str]:
    """How often each person is in the graph."""
    result = graph.query("query q() { match { $p: Person } return { $p.name } }", branch=branch)
    return Counter(row["name"] for row in rows_of(result))


def rows_of(result: Any) -> Iterable[Mapping[str, Any]]:
    """The rows of a result, by the last part of the names of their columns."""
    for row in result.rows():
        yield {name.rpartition(".")[2]: value for name, value in row.items()}


def batches_in(graph: Graph, branch: str | None = None) -> list[tuple[str, int]]:
    """The stream and the number of each commit of a stream, oldest first."""
    commits = graph.commits.list(branch=branch)[::-1]
    return [(each.stream.stream, each.stream.number) for each in commits if each.stream]
