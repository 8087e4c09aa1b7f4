"""Decisions in merges of different schemas: what they change, and what they leave alone."""

import json

import pytest

from omnigraph.graph import Graph
from omnigraph.merge.conflicts import MergeConflictError
from tests.support.graphs import graph_with


def person(graph: Graph) -> dict[str, object]:
    [row] = graph.query(
        "query q() { match { $p: P } return { $p.name as name $p.s as s $p.n as n $p.d as d } }"
    ).rows()
    return row


def update(graph: Graph, name: str, value: int) -> None:
    graph.mutate(f'query u() {{ update P set {{ {name}: {value} }} where name = "x" }}')


def test_a_row_that_is_decided_for_theirs_keeps_properties_that_theirs_never_had(tmp_path):
    text = "node P { name: String @key  s: I32?  n: I32? %s }"
    graph = graph_with(tmp_path / "graph", text % "", {"P": [{"name": "x", "s": 1, "n": 1}]})
    draft = graph.branches.create("draft")
    draft.schema.apply(text % "@range(s, 0..10)")
    update(draft, "n", 5)
    graph.schema.apply(text % "d: I32?", fill="P.d=n*2")
    update(graph, "s", 50)

    decision = {"type": "P", "property": "s", "id": "x", "take": "theirs"}
    graph.merge("draft", resolve=json.dumps([decision]))

    assert person(graph) == {"name": "x", "s": 1, "n": 5, "d": 2}


@pytest.mark.parametrize("resolve", [None, "ours", "theirs"])
def test_a_property_that_both_added_with_different_defaults_is_not_guessed(tmp_path, resolve):
    text = "node P { name: String @key  s: I32?  n: I32? %s }"
    graph = graph_with(tmp_path / "graph", text % "", {"P": [{"name": "x", "s": 1, "n": 1}]})
    draft = graph.branches.create("draft")
    draft.schema.apply(text % "d: I32 @default(3)")
    graph.schema.apply(text % "d: I32 @default(2)")

    with pytest.raises(MergeConflictError) as refusal:
        graph.merge("draft", resolve=resolve)
    assert "P" in str(refusal.value)

    draft.schema.apply(text % "")
    graph.merge("draft")
    assert person(graph)["d"] == 2
