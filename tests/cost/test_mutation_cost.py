"""What a whole one-row mutation asks of S3: the same in tables of any size.

For histories of any length see `test_request_budgets.py`.
"""

import pyarrow as pa
import pytest

import omnigraph
from tests.support.counting import Counted
from tests.support.graphs import add_rows

SCHEMA = """
node Person { name: String @key  age: I32? }
edge Knows: Person -> Person { since: Date? }
"""
NODE = "query q($n: String) { insert Person { name: $n, age: 1 } }"
EDGE = "query q($a: String, $b: String) { insert Knows { from: $a, to: $b } }"
NODE_REQUESTS_MAX = 12
EDGE_REQUESTS_MAX = 13


def warmed(graph: omnigraph.Graph, *names: str) -> omnigraph.Graph:
    """The handle after it has written one of each before."""
    for name in names:
        graph.mutate(NODE, {"n": name})
    graph.mutate(EDGE, {"a": names[0], "b": names[1]})
    graph.mutate(EDGE, {"a": names[1], "b": names[0]})
    return graph


def costs(graph: omnigraph.Graph, asked: Counted, mark: str) -> dict[str, int]:
    """What one node, then one edge from it to an old node, ask for."""
    asked.take()
    graph.mutate(NODE, {"n": f"new {mark}"})
    node = asked.take()
    graph.mutate(EDGE, {"a": f"new {mark}", "b": "b"})
    return {"node": node, "edge": asked.take()}


@pytest.mark.soak
def test_one_row_costs_the_same_after_five_hundred_commits(root: str, asked: Counted) -> None:
    graph = warmed(omnigraph.init(root, SCHEMA), "a", "b")
    for number in range(6):
        graph.mutate(NODE, {"n": f"p{number}"})
    shallow = costs(graph, asked, "at depth 10")
    for number in range(6, 496):
        graph.mutate(NODE, {"n": f"p{number}"})

    # Fragments were folded meanwhile. How a file is laid out is read once.
    costs(graph, asked, "at depth 500")
    assert costs(graph, asked, "at depth 502") == shallow
    assert shallow["node"] <= NODE_REQUESTS_MAX
    assert shallow["edge"] <= EDGE_REQUESTS_MAX


def large(root: str, rows: int) -> omnigraph.Graph:
    graph = omnigraph.init(root, SCHEMA)
    names = [f"n{number:07}" for number in range(rows)]
    people = pa.table({"id": names, "name": names, "age": pa.nulls(rows, pa.int32())})
    schema = pa.schema(
        [
            pa.field("id", pa.utf8(), nullable=False),
            pa.field("name", pa.utf8(), nullable=False),
            pa.field("age", pa.int32()),
        ]
    )
    add_rows(graph, {"Person": people.cast(schema)})
    graph.ensure_indices()
    return warmed(graph, "a", "b")


@pytest.mark.parametrize("rows", [100_000, pytest.param(1_000_000, marks=pytest.mark.soak)])
def test_one_row_costs_the_same_in_a_small_graph_and_in_a_large_one(
    root: str, asked: Counted, rows: int
) -> None:
    small = costs(large(f"{root}/small", 1_000), asked, "small")
    big = costs(large(f"{root}/large", rows), asked, "large")

    assert big == small
    assert small["node"] <= NODE_REQUESTS_MAX
    assert small["edge"] <= EDGE_REQUESTS_MAX
