"""One graph, reached twice: through its storage, and through a server on this machine."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import pytest

import omnigraph
from omnigraph import Graph, RemoteGraph
from tests.support.served import Served, serving, settings_for

SCHEMA = """
node Person {
  name: String @key
  age: I64?
  score: F64?
  born: Date?
  seen: DateTime?
  picture: Blob?
  tags: [String]?
}
node Badge { number: I32 @unique  level: enum(low, high)? }
edge Knows: Person -> Person { since: Date? }
"""

PEOPLE = [
    {"name": "Ada", "age": 2**60, "score": 0.1, "born": "1815-12-10", "picture": b"\x00\x01\xff"},
    {"name": "Bob", "age": -1, "seen": "2024-02-29T12:00:00.000001Z", "tags": ["a", "b c"]},
    {"name": 'Çelik, "Z"\n', "score": float("inf")},
    {"name": "Nan", "score": float("nan")},
]
KNOWS = [{"from": "Ada", "to": "Bob", "since": "2020-01-01"}, {"from": "Bob", "to": "Nan"}]

_numbers = count()


@dataclass(frozen=True)
class Pair:
    """The same graph by both ways."""

    embedded: Graph
    remote: RemoteGraph
    served: Served
    folder: Path


def fill(graph: Graph) -> None:
    """Give a graph a history with everything that has one."""
    graph.load({"Person": PEOPLE, "Knows": KNOWS, "Badge": [{"number": 1, "level": "low"}]})
    graph.tags.create("v1", message="first")
    draft = graph.branches.create("draft")
    draft.mutate('query u() { update Person set { age: 7 } where name = "Bob" }', message="seven")
    draft.mutate("query i() { insert Badge { number: 2 } }")
    graph.mutate('query d() { delete Person where name = "Nan" }')
    graph.merge("draft")
    graph.queries.put(
        'query people($least: I64) @description("Who is at least that old.") '
        "{ match { $p: Person  $p.age >= $least } return { $p.name } order { $p.name } }"
    )
    graph.schema.apply(SCHEMA.replace("number: I32", "number: I64") + _stored(graph))
    other = graph.branches.create("rival")
    other.mutate('query u() { update Person set { age: 8 } where name = "Bob" }')
    graph.mutate('query u() { update Person set { age: 9 } where name = "Bob" }')
    graph.settings.set("maintenance.keep_days", 30)


def _stored(graph: Graph) -> str:
    """The part of the schema that stored queries added."""
    return (
        "\n"
        + graph.schema.show().text.partition("\nnode StoredQuery")[1]
        + (graph.schema.show().text.partition("\nnode StoredQuery")[2])
    )


@pytest.fixture(scope="package")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    folder = tmp_path_factory.mktemp("pair")
    place = folder / "world"
    omnigraph.init(place, SCHEMA, actor="ada")
    fill(omnigraph.open(place, actor="ada"))
    # What wrote all this remembers some of it otherwise than it is stored.
    embedded = omnigraph.open(place, actor="ada")
    settings = settings_for(folder, {"world": str(place)}, limits={"direct_load_bytes": 20_000})
    with serving(settings) as served:
        remote = omnigraph.connect(f"{served.url}/graphs/world", served.token)
        yield Pair(embedded, remote, served, folder)
        remote.close()


@pytest.fixture(params=["embedded", "remote"])
def graph(pair: Pair, request: pytest.FixtureRequest) -> Graph | RemoteGraph:
    """A handle on a branch of its own, by either way."""
    handle: Graph | RemoteGraph = getattr(pair, request.param)
    return handle.branches.create(f"own/{next(_numbers)}", commit="v1")
