"""NaN and the infinities are numbers of F32 and F64: by load, mutation and resolution alike."""

import json
import math
from pathlib import Path
from typing import Final

import pytest

import omnigraph
from omnigraph.errors import IntegrityError, InvalidInputError, InvalidParameterError
from omnigraph.graph import Graph

SCHEMA: Final = """
node Reading {
  name: String @key  f64: F64?  f32: F32?  list: [F64]?  share: F64?  face: Vector(2)?
  @range(share, 0.0..)
}
node Point { x: F64 @key }
"""
ADD: Final = """
query add($name: String, $f64: F64?, $f32: F32?, $list: [F64]?, $share: F64?, $face: Vector(2)?) {
  insert Reading {
    name: $name  f64: $f64  f32: $f32  list: $list  share: $share  face: $face
  }
}
"""
NUMBERS: Final = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    return omnigraph.init(tmp_path / "graph.omni", SCHEMA)


def values_of(graph: Graph, name: str) -> list[object]:
    row = graph.entity("Reading", name)
    assert row is not None
    return [row["f64"], row["f32"], *row["list"]]  # type: ignore[misc]  # it is a list


@pytest.mark.parametrize(("text", "number"), NUMBERS.items(), ids=NUMBERS)
def test_a_number_that_is_not_finite_is_stored_by_every_writer(
    graph: Graph, tmp_path: Path, text: str, number: float
) -> None:
    rows = {
        given: {"name": given, "f64": value, "f32": value, "list": [0.5, value]}
        for given, value in (("number", number), ("text", text))
    }
    lines = "\n".join(
        json.dumps({"type": "Reading", "data": {**row, "name": f"{name} of a line"}})
        for name, row in rows.items()
    )
    (tmp_path / "readings.jsonl").write_text(lines)
    for name, row in rows.items():
        graph.mutate(ADD, {**row, "name": f"{name} of a parameter"})
    graph.load({"Reading": [rows["number"]]})
    graph.load(tmp_path / "readings.jsonl")

    for name in ("number", "number of a line", "text of a line"):
        assert values_of(graph, name) == pytest.approx([number, number, 0.5, number], nan_ok=True)
    for name in ("number of a parameter", "text of a parameter"):
        assert values_of(graph, name) == pytest.approx([number, number, 0.5, number], nan_ok=True)
    assert graph.check().is_sound


@pytest.mark.parametrize(("text", "number"), NUMBERS.items(), ids=NUMBERS)
def test_a_resolution_may_give_a_number_that_is_not_finite(
    graph: Graph, text: str, number: float
) -> None:
    graph.mutate(ADD, {"name": "a", "f64": 0.0, "f32": 0.0, "list": []})
    update = 'query q($x: F64) { update Reading set { f64: $x } where name = "a" }'
    graph.branches.create("draft").mutate(update, {"x": 1.0})
    graph.mutate(update, {"x": 2.0})
    decision = {"type": "Reading", "id": "a", "property": "f64", "value": text}
    graph.merge("draft", resolve=json.dumps([decision]))

    assert values_of(graph, "a") == pytest.approx([number, 0.0], nan_ok=True)


@pytest.mark.parametrize("number", NUMBERS.values(), ids=NUMBERS)
def test_vectors_and_keys_are_finite_to_every_writer(graph: Graph, number: float) -> None:
    with pytest.raises(IntegrityError, match="finite"):
        graph.load({"Reading": [{"name": "a", "face": [1.0, number]}]})
    with pytest.raises(InvalidParameterError, match="2 finite numbers"):
        graph.mutate(ADD, {"name": "a", "face": [1.0, number]})
    with pytest.raises(IntegrityError, match="finite"):
        graph.load({"Point": [{"x": number}]})
    with pytest.raises(InvalidInputError, match="part of a key"):
        graph.mutate("query q($x: F64) { insert Point { x: $x } }", {"x": number})


def test_a_range_refuses_nan_from_every_writer(graph: Graph) -> None:
    with pytest.raises(IntegrityError, match="range"):
        graph.load({"Reading": [{"name": "a", "share": math.nan}]})
    with pytest.raises(IntegrityError, match="range"):
        graph.mutate(ADD, {"name": "a", "share": math.nan})
