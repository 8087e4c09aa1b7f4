"""Filters on every type reach the table, or are applied beside it: the rows are the same."""

from datetime import UTC, date, datetime
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from omnigraph.graph import Graph
from omnigraph.model.tables import TableKey
from tests.support.graphs import graph_with

SCHEMA = """
node V {
  k: String @key  b: Bool?  i32: I32?  i64: I64?  u32: U32?  u64: U64?  f32: F32?  f64: F64?
  d: Date?  t: DateTime?  e: enum(a, b)?  l: [String]?  li: [I32]?  v: Vector(2)?  bl: Blob?
}
"""
VALUES = {
    "b": (True, "true"),
    "i32": (7, "7"),
    "i64": (7, "7"),
    "u32": (7, "7"),
    "u64": (7, "7"),
    "f32": (0.5, "0.5"),
    "f64": (0.5, "0.5"),
    "d": (date(2020, 1, 1), 'date("2020-01-01")'),
    "t": (datetime(2020, 1, 1, tzinfo=UTC), 'datetime("2020-01-01T00:00:00Z")'),
    "e": ("a", '"a"'),
}
OTHERS = {"l": ["a"], "li": [1], "v": [1.0, 2.0], "bl": b"x"}
FULL = {name: value for name, (value, _) in VALUES.items()} | OTHERS


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    where: Path = tmp_path_factory.mktemp("pushed") / "graph"
    return graph_with(where, SCHEMA, {"V": [{"k": "full"} | FULL, {"k": "empty"}]})


def asked(graph: Graph, condition: str) -> list[str]:
    query = f"query q() {{ match {{ $v: V  $v.{condition} }} return {{ $v.k }} }}"
    return [row["v.k"] for row in graph.query(query, engine="local").rows()]


@pytest.mark.parametrize("name", VALUES)
def test_a_filter_on_any_type_finds_its_rows(graph: Graph, name: str) -> None:
    _, literal = VALUES[name]
    assert asked(graph, f"{name} = {literal}") == ["full"]
    assert asked(graph, f"{name} != {literal}") == []
    if name not in ("b", "e"):
        assert asked(graph, f"{name} >= {literal}") == ["full"]
        assert asked(graph, f"{name} < {literal}") == []


@pytest.mark.parametrize("name", FULL)
def test_a_null_test_on_any_type_finds_its_rows(graph: Graph, name: str) -> None:
    assert asked(graph, f"{name} is null") == ["empty"]
    assert asked(graph, f"{name} is not null") == ["full"]


@pytest.mark.parametrize("name", ["u32", "u64", "v"])
def test_lance_still_refuses_filters_on_this_type_from_duckdb(graph: Graph, name: str) -> None:
    """The day this fails, `engine/local/scans.py` can do with less."""
    pin = graph.snapshot().pin(TableKey.parse("node:V"))
    table = graph._store.tables.open(pin.location, ref=pin.ref, version=pin.version)
    with duckdb.connect() as connection:
        connection.register("r", table.handle)
        with pytest.raises(duckdb.Error, match=r"Substrait|FieldRef"):
            connection.sql(f'SELECT "k" FROM r WHERE "{name}" IS NULL').to_arrow_table()


def test_columns_beside_an_unfilterable_one_are_read_alike(graph: Graph) -> None:
    query = """query q() {
        match { $v: V  $v.i64 = 7  $v.u64 > 6 } return { $v.u64, $v.v, $v.k }
    }"""
    (row,) = graph.query(query, engine="local").rows()
    assert row == {"v.u64": 7, "v.v": [1.0, 2.0], "v.k": "full"}
    assert graph.query(query, engine="local").arrow().schema.field("v.u64").type == pa.uint64()


@pytest.mark.parametrize("kind", ["U32", "U64"])
def test_a_list_of_unsigned_integers_spoils_no_filter_on_other_columns(
    tmp_path: Path, kind: str
) -> None:
    schema = f"node V {{ k: String @key  n: I32?  l: [{kind}]? }}"
    graph = graph_with(
        tmp_path / "graph", schema, {"V": [{"k": "full", "n": 7, "l": [1]}, {"k": "x"}]}
    )
    assert asked(graph, "n = 7") == asked(graph, "n is not null") == ["full"]
    assert asked(graph, "l is null") == ["x"]
    assert not graph.check().findings
