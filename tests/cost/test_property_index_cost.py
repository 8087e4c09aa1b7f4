"""What a filter on an indexed property reads: the rows it finds, and little else."""

from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pytest

import omnigraph
from omnigraph.graph import Graph

ROWS: Final = 100_000
SCHEMA: Final = """
node Item {
  name: String @key
  size: I64 @index  weight: F64 @index  code: U64 @index  day: Date @index
  kind: enum(often, seldom) @index  hot: Bool @index
  note: String  face: Vector(4)?
}
edge Near: Item -> Item { distance: F64 @index  rank: I32  way: enum(by_foot, by_boat) @index }
"""
PLAIN: Final = SCHEMA.replace(" @index", "")
ITEMS: Final = "query q() { match { $i: Item  %s } return { $i.name, $i.note } }"
EDGES: Final = "query q() { match { $i: Item  $j: Item  $i $e:near $j  %s } return { %s } }"
QUERIES: Final = {
    "equality": (ITEMS % "$i.size = 77777", 1),
    "a range": (ITEMS % "$i.size >= 10  $i.size < 15", 5),
    "a range of floats": (ITEMS % "$i.weight < 2.4", 5),
    "an unsigned number": (ITEMS % f"$i.code = {2**64 - 1 - 500}", 1),
    "a day": (ITEMS % '$i.day = date("2020-02-01")', 1),
    "a list": (
        "query q($n: [I64]) { match { $i: Item  $n contains $i.size } return { $i.note } }",
        2,
    ),
    "a vector beside it": ("query q() { match { $i: Item $i.size = 5 } return { $i.face } }", 1),
    "two indexes": (ITEMS % '$i.kind = "seldom"  $i.weight < 1000.0', 1),
    "an edge's property": (EDGES % ("$e.distance < 2.0", "$i.name, $j.name"), 4),
    "an edge's enum": (EDGES % ('$e.way = "by_boat"', "$i.name, $e.rank"), 5),
    "what an item leads to": (
        "query q() { match { $i: Item $i.size = 41 $i near $j $j near $k } return { $k.name } }",
        1,
    ),
}


def numbered(where: Path, schema: str) -> Graph:
    """Items in a random order, each with its number in every property, and a ring of edges."""
    graph = omnigraph.init(where, schema)
    order = np.random.default_rng(3).permutation(ROWS)
    names = pa.array([f"n{number}" for number in order])
    seldom = order % 20_000 == 7
    items = {
        "name": names,
        "size": pa.array(order, pa.int64()),
        "weight": pa.array(order / 2, pa.float64()),
        "code": pa.array((2**64 - 1 - order.astype(object)).tolist(), pa.uint64()),
        "day": pa.array(order.astype(np.int32), pa.int32()).cast(pa.date32()),
        "kind": pa.array(np.where(seldom, "seldom", "often")),
        "hot": pa.array(seldom),
        "note": pa.array([f"a note about {number}" for number in order]),
        "face": pa.FixedSizeListArray.from_arrays(pa.array(np.zeros(4 * ROWS, np.float32)), 4),
    }
    nears = {
        "from": names,
        "to": pa.array([f"n{(number + 1) % ROWS}" for number in order]),
        "distance": pa.array(order / 2, pa.float64()),
        "rank": pa.array(order, pa.int32()),
        "way": pa.array(np.where(seldom, "by_boat", "by_foot")),
    }
    graph.load({"Item": pa.table(items), "Near": pa.table(nears)}, engine="local")
    return graph


@pytest.fixture(scope="module")
def indexed(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    return numbered(tmp_path_factory.mktemp("indexed") / "graph", SCHEMA)


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    return numbered(tmp_path_factory.mktemp("plain") / "graph", PLAIN)


def parameters(query: str) -> dict[str, Any] | None:
    return {"n": [3, 33_333]} if "$n" in query else None


def bytes_read(graph: Graph, query: str, count: int) -> int:
    """What a query reads on a handle that has answered nothing but a query by id."""
    # A handle of its own: what other queries left in memory must not count as not read.
    fresh = omnigraph.open(graph.uri)
    fresh.query('query q() { match { $i: Item {name: "n1"} $i near $j } return { $j.name } }')
    fresh._store.meter.take()
    assert len(fresh.query(query, parameters(query)).rows()) == count
    return fresh._store.meter.take().bytes_read


def column_bytes(graph: Graph) -> int:
    """The size of all columns of all tables."""
    pins = graph.snapshot().pins.values()
    return sum(graph._store.tables.open_pin(pin).count_bytes() for pin in pins)


@pytest.mark.parametrize("label", QUERIES)
def test_a_filter_on_an_indexed_property_reads_less_than_a_scan(indexed, plain, label):
    query, count = QUERIES[label]

    read = bytes_read(indexed, query, count)

    assert 0 < read < bytes_read(plain, query, count) / 2
    assert read < column_bytes(indexed) / 25


def test_a_mutation_finds_its_rows_by_an_index(indexed):
    update = 'query q() { update Item set { note: "new" } where code = 18446744073709547373 }'
    handle = omnigraph.open(indexed.uri)
    handle.query('query q() { match { $i: Item {name: "n1"} } return { $i.note } }')
    handle._store.meter.take()

    assert handle.mutate(update).updated == 1
    assert handle._store.meter.take().bytes_read < column_bytes(indexed) / 25


def test_a_range_that_most_rows_pass_is_scanned_without_the_index(indexed, plain):
    query = ITEMS % "$i.weight >= 500.0"

    read = bytes_read(indexed, query, ROWS - 1000)

    # To learn that they are many, the index is read once.
    assert read < bytes_read(plain, query, ROWS - 1000) + 16 * ROWS
