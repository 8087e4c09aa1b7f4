"""Optimize on both engines: every type of value survives, on any branch, after schema changes."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count
from pathlib import Path
from typing import Final

import pytest

import omnigraph
from omnigraph.engine.spark import relations
from omnigraph.graph import Graph
from omnigraph.model.tables import TableKey
from omnigraph.schema.resolve import catalog_of
from omnigraph.storage.indexes import IndexSpec, covered_fragments
from omnigraph.storage.tables import Table
from tests.contract.export.graphs import EVERY
from tests.contract.spark.builders import every_type
from tests.support.graphs import add_rows, graph_with

_numbers = count()


@pytest.fixture(params=["local", "spark"])
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "spark":
        request.getfixturevalue("spark")
        # Even a small table is rewritten and indexed by several tasks.
        monkeypatch.setattr(relations, "SPARK_PARTITION_ROWS_MIN", 1)
    return str(request.param)


def lines(graph: Graph, folder: Path) -> list[str]:
    """Every row with every value, in the order of the lines."""
    target = folder / f"{next(_numbers)}.jsonl"
    graph.export(target, engine="local")
    return sorted(target.read_text().splitlines())


def table(graph: Graph, key: str, branch: str = "main") -> Table:
    pin = graph.snapshot(branch=branch).pin(TableKey.parse(key))
    return graph._store.tables.open_pin(pin)


def row_ids(graph: Graph, key: str, branch: str = "main") -> Mapping[str, int]:
    """By id, the number that Lance keeps for a row."""
    rows = table(graph, key, branch).handle.to_table(columns=["id"], with_row_id=True)
    return dict(zip(rows["id"].to_pylist(), rows["_rowid"].to_pylist(), strict=True))


def test_every_type_of_value_survives(tmp_path, engine):
    rows = every_type()
    graph = graph_with(tmp_path / "graph", catalog_of(EVERY), {"Every": rows.slice(0, 2)})
    graph.settings.set("maintenance.optimize", "off")
    for first in range(2, rows.num_rows, 2):
        add_rows(graph, {"Every": rows.slice(first, 2)})
    before = graph.snapshot().head.commit_id
    exported, numbers = lines(graph, tmp_path), row_ids(graph, "node:Every")
    assert table(graph, "node:Every").count_fragments() > 2

    result = graph.optimize(engine=engine)

    assert (result.engine, result.tables["Every"].fragments_after) == (engine, 1)
    assert result.tables["Every"].rows_rewritten == rows.num_rows
    assert lines(graph, tmp_path) == exported
    assert row_ids(graph, "node:Every") == numbers
    assert lines(graph.at(commit=before), tmp_path) == exported
    assert not graph.diff(before, "main").counts
    assert not graph.check(history=True).findings


PEOPLE: Final = """
node Person { name: String @key  age: I32? @index  note: String?  motto: String? }
edge Knows: Person -> Person { since: Date? }
"""
RESHAPED: Final = """
node Human @rename_from("Person") {
    name: String @key
    years: I64? @index @rename_from("age")
    motto: String?
    kind: String @default("old")
    mail: String?
}
edge Knows: Human -> Human { since: Date?  weight: F64? }
"""
INSERT: Final = """
query q($n: String) { insert Person { name: $n, age: 7, note: "a note", motto: $n } }
"""
LATER: Final = 'query q($n: String) { insert Human { name: $n, years: 8, mail: "m" } }'
BEFRIEND: Final = "query q($a: String, $b: String) { insert Knows { from: $a, to: $b } }"


def grown(place: Path) -> Graph:
    graph = omnigraph.init(place, PEOPLE)
    graph.settings.set("maintenance.optimize", "off")
    for name in ("ada", "bob", "cid", "dan"):
        graph.mutate(INSERT, {"n": name})
    for source, target in (("ada", "bob"), ("bob", "cid"), ("cid", "dan")):
        graph.mutate(BEFRIEND, {"a": source, "b": target})
    return graph


def test_tables_whose_schema_changed_are_rewritten_with_the_columns_of_now(tmp_path, engine):
    graph = grown(tmp_path / "graph")
    graph.schema.apply(RESHAPED)
    graph.mutate(LATER, {"n": "eva"})
    graph.mutate('query q() { update Human set { years: 9 } where name = "bob" }')
    graph.mutate('query q() { delete Human where name = "dan" }')
    before = graph.snapshot().head.commit_id
    exported = lines(graph, tmp_path)
    numbers = {key: row_ids(graph, key) for key in ("node:Human", "edge:Knows")}

    result = graph.optimize(engine=engine)

    assert {name: each.fragments_after for name, each in result.tables.items()} == {
        "Human": 1,
        "Knows": 1,
    }
    assert lines(graph, tmp_path) == lines(graph.at(commit=before), tmp_path) == exported
    assert {key: row_ids(graph, key) for key in numbers} == numbers
    [fragment] = table(graph, "node:Human").fragments()
    assert len(fragment.files) == 1, "no file has a column that was added or dropped later"
    assert not graph.check(history=True).findings
    graph.mutate('query q() { update Human set { motto: "x" } where name = "ada" }')
    assert graph.optimize(engine=engine).tables["Human"].fragments_after == 1


def test_a_branch_rewrites_and_indexes_what_it_inherited(tmp_path, engine):
    graph = grown(tmp_path / "graph")
    graph.ensure_indices()
    draft = graph.branches.create("draft")
    draft.mutate('query q() { update Person set { age: 9 } where name = "bob" }')
    draft.mutate(INSERT, {"n": "eva"})
    inner = graph.branches.create("inner", branch="draft")
    inner.mutate('query q() { delete Person where name = "cid" }')
    handles = {"main": graph, "draft": draft, "inner": inner}
    exported = {name: lines(each, tmp_path) for name, each in handles.items()}
    numbers = {name: row_ids(graph, "node:Person", name) for name in handles}
    fragments = table(graph, "node:Person").fragments()

    for name in ("inner", "draft"):
        result = handles[name].optimize(engine=engine)
        assert result.tables["Person"].fragments_after == 1, name
        assert "Knows" in result.shared or name == "inner"
    assert table(graph, "node:Person").fragments() == fragments, "main's table is as it was"
    graph.optimize(engine=engine)

    for name, each in handles.items():
        assert lines(each, tmp_path) == exported[name]
        assert row_ids(graph, "node:Person", name) == numbers[name]
        people = table(graph, "node:Person", name)
        every = {fragment.id for fragment in people.fragments()}
        for column in ("id", "name", "age"):
            assert covered_fragments(people, IndexSpec(column)) >= every, (name, column)
        found = each.query('query q() { match { $p: Person { name: "ada" } } return { $p.age } }')
        assert [*found.rows()] == [{"p.age": 7}]
    assert not graph.check(history=True).findings
    graph.merge("inner", into="draft")
    everyone = "query q() { match { $p: Person } return { $p.name } order { $p.name } }"
    names = [row["p.name"] for row in draft.query(everyone).rows()]
    assert names == ["ada", "bob", "dan", "eva"]
