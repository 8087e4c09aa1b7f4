"""What a query reads: an index decides, never the size of the tables."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from omnigraph.graph import Graph
from omnigraph.graph import open as open_graph
from tests.support.graphs import add_indexes, graph_with

SCHEMA = """
node Person { name: String @key  age: I32 }
edge Follows: Person -> Person
"""
ONE = "query q($n: String) { match { $p: Person {name: $n} } return { $p.age } }"
TWO_HOPS = """query q($n: String) {
    match { $p: Person {name: $n}  $p follows $q  $q follows $r } return { $r.name, $r.age }
}"""
WALK = """query q($n: String) {
    match { $p: Person {name: $n}  $p follows{1,2} $r } return { $r.name, $r.age }
}"""
BACKWARD = """query q($n: String) {
    match { $q: Person {name: $n}  $p: Person  $p follows $q } return { $p.name, $p.age }
}"""
NEGATED = """query q($n: String) {
    match { $p: Person {name: $n}  $p follows $q  not { $q follows $p } } return { $q.name }
}"""


def social(where: Path, people: int) -> Graph:
    """Ten follows a person, of others chosen at random, with the keys indexed."""
    names = pa.array([f"p{number}" for number in range(people)])
    ages = pa.array(np.arange(people) % 90, pa.int32())
    chosen = np.random.default_rng(1).integers(0, people, size=(2, 10 * people))
    follows = {
        "id": pa.array([f"f{number}" for number in range(10 * people)]),
        "src": names.take(pa.array(chosen[0])),
        "dst": names.take(pa.array(chosen[1])),
    }
    rows = {
        "Person": pa.table({"id": names, "name": names, "age": ages}),
        "Follows": pa.table(follows),
    }
    graph = graph_with(where, SCHEMA, rows)
    add_indexes(graph)
    return graph


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    return social(tmp_path_factory.mktemp("small") / "graph", 30_000)


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    return social(tmp_path_factory.mktemp("large") / "graph", 120_000)


def bytes_read(graph: Graph, query: str, name: str, *, after: str = ONE) -> int:
    """What a query reads on a handle that has only answered `after`, for somebody else."""
    # A handle of its own: what another query left in memory must not count as not read.
    fresh = open_graph(graph.uri, read_only=True)
    fresh.query(after, {"n": "p1"})
    fresh._store.meter.take()
    assert fresh.query(query, {"n": name}).rows()
    return fresh._store.meter.take().bytes_read


def edge_bytes(graph: Graph) -> int:
    (pin,) = [pin for key, pin in graph.snapshot().pins.items() if key.type_name == "Follows"]
    table = graph._store.tables.open(pin.location, ref=pin.ref, version=pin.version)
    return table.count_bytes()


@pytest.mark.parametrize("query", [TWO_HOPS, WALK, BACKWARD, NEGATED])
def test_a_query_from_one_key_scans_no_edge_table(large: Graph, query: str) -> None:
    read = bytes_read(large, query, "p77")
    assert 0 < read < edge_bytes(large) / 4


@pytest.mark.parametrize("query", [ONE, TWO_HOPS])
def test_a_query_from_one_key_costs_about_the_same_in_a_graph_four_times_as_large(
    small: Graph, large: Graph, query: str
) -> None:
    assert edge_bytes(large) > 3 * edge_bytes(small)
    # After the same query, so that the tops of the indexes, which do grow, are in memory.
    expected = bytes_read(small, query, "p77", after=query)
    assert bytes_read(large, query, "p77", after=query) < 2 * expected


def test_the_meter_can_tell_a_scan(large: Graph) -> None:
    large._store.meter.take()
    large.query("query q() { match { $p: Person $p follows $q } return { count($q) as n } }")
    assert large._store.meter.take().bytes_read > edge_bytes(large) / 4


def test_a_point_lookup_is_a_few_reads(large: Graph) -> None:
    large.query(ONE, {"n": "p5"})
    large._store.meter.take()
    assert large.query(ONE, {"n": "p6"}).rows() == [{"p.age": 6}]
    assert large._store.meter.take().reads <= 8
