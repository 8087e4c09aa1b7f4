"""Topologies of real tables are what their rows say."""

from dataclasses import replace
from pathlib import Path

import pytest

import omnigraph
from omnigraph.engine.budget import Budget, Cancellation, Limit, LimitSource
from omnigraph.engine.local.topology import build
from omnigraph.engine.local.topology.topologies import Topologies
from omnigraph.errors import CancelledError
from tests.support.graphs import add_rows
from tests.support.topology import data_of, require_right, tables_of

SCHEMA = """
node Person { name: String @key  age: I32? }
node City { name: String @key }
edge Knows: Person -> Person { since: I32? }
edge LivesIn: Person -> City
"""
KNOWS = tables_of("Knows", "Person")
LIVES_IN = tables_of("LivesIn", "Person", "City")


def make(path: Path) -> omnigraph.Graph:
    graph = omnigraph.init(path / "graph.omni", SCHEMA)
    graph.settings.set("maintenance.optimize", "off")
    people = [f"p{number}" for number in range(12)]
    knows = [
        {"from": people[number], "to": people[number * number % 12]}
        for number in [*range(12), 3, 3, 4]
    ]
    graph.load(
        {
            "Person": [{"name": name, "age": 1} for name in people],
            "City": [{"name": "here"}, {"name": "there"}],
            "Knows": knows,
            "LivesIn": [{"from": name, "to": "here"} for name in people[::2]],
        },
        index=False,
    )
    return graph


@pytest.mark.parametrize("at_once", [0, 1 << 16], ids=["streamed", "at once"])
def test_arrays_are_what_the_rows_say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    monkeypatch.setattr(build, "NUMBERED_AT_ONCE_ROWS_MAX", at_once)
    graph = make(tmp_path)
    data, topologies = data_of(graph), Topologies()
    knows = require_right(topologies, data, KNOWS)
    lives_in = require_right(topologies, data, LIVES_IN)
    assert knows.sources is lives_in.sources, "one node type has one set of numbers"
    assert topologies.of(data, KNOWS) is topologies.peek(data, KNOWS)
    cost = topologies.cost(data, KNOWS)
    assert cost is not None
    assert cost.edge_count == 0


def test_an_edge_table_may_be_empty(tmp_path: Path) -> None:
    graph = omnigraph.init(tmp_path / "graph.omni", SCHEMA)
    topology = require_right(Topologies(), data_of(graph), KNOWS)
    assert topology.out.edge_count == 0


def test_what_does_not_fit_is_not_built(tmp_path: Path) -> None:
    data, topologies = data_of(make(tmp_path)), Topologies(bytes_max=100)
    assert topologies.of(data, KNOWS) is None
    assert topologies.cost(data, KNOWS) is None
    assert topologies.of(data, LIVES_IN) is not None


def test_a_budget_bounds_what_is_built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "NUMBERED_AT_ONCE_ROWS_MAX", 0)
    graph, topologies = make(tmp_path), Topologies()
    data = data_of(graph)
    little = Budget(memory=Limit(100, "100", LimitSource.CALL))
    assert topologies.of(replace(data, budget=little), KNOWS) is None
    cancellation = Cancellation()
    cancellation.cancel()
    with pytest.raises(CancelledError):
        topologies.of(replace(data, budget=Budget(cancellation=cancellation)), KNOWS)
    require_right(topologies, data, KNOWS)
    assert topologies.of(replace(data, budget=little), KNOWS) is not None


def test_edges_without_ends_have_no_topology(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = make(tmp_path)
    add_rows(graph, {"Knows": [{"src": "p1", "dst": "nobody"}]})
    for at_once in (0, 1 << 16):
        monkeypatch.setattr(build, "NUMBERED_AT_ONCE_ROWS_MAX", at_once)
        assert Topologies().of(data_of(graph), KNOWS) is None


def test_ids_that_two_nodes_have_make_no_topology(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build, "NUMBERED_AT_ONCE_ROWS_MAX", 0)
    graph = make(tmp_path)
    add_rows(graph, {"Person": [{"id": "p1", "name": "p1"}]})
    assert Topologies().of(data_of(graph), KNOWS) is None
