"""The indexes that schemas ask for: built by both engines, replaced and removed with the schema."""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any, Final

import pytest

import omnigraph
from omnigraph.choices import IndexKind
from omnigraph.engine.snapshots import data_at
from omnigraph.graph import Graph
from omnigraph.limits import INDEX_SEGMENTS_MAX
from omnigraph.storage.indexes import IndexSpec, find_gaps, read_indexes
from omnigraph.storage.selections import SELECTED_TABLE_ROWS_MIN
from omnigraph.storage.tables import Table
from tests.support.folding import eager_folds

SCHEMA: Final = """
interface Rated { score: F64? @index }
node Item implements Rated {
  name: String @key
  kind: enum(a, b, c)? @index
  on: Bool? @index
  i32: I32? @index
  u64: U64? @index
  day: Date? @index
  at: DateTime? @index
  text: String? @index
  face: Vector(2)? @index
  plain: I64?
}
edge Likes: Item -> Item { weight: F64? how: enum(much, little)? @index(weight, how) }
"""
BTREE = IndexKind.BTREE
INVERTED = IndexKind.INVERTED
WANTED: Final = {
    "Item": {
        "id": BTREE,
        "name": BTREE,
        "kind": BTREE,
        "on": BTREE,
        "i32": BTREE,
        "u64": BTREE,
        "day": BTREE,
        "at": BTREE,
        "text": INVERTED,
        "score": BTREE,
    },
    "Likes": {"id": BTREE, "src": BTREE, "dst": BTREE, "weight": BTREE, "how": BTREE},
}


@pytest.fixture(params=["local", "spark"])
def engine(request: pytest.FixtureRequest) -> str:
    if request.param == "spark":
        request.getfixturevalue("spark")
    return str(request.param)


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    return omnigraph.init(tmp_path / "graph", SCHEMA)


def item(number: int) -> dict[str, Any]:
    return {
        "name": f"n{number}",
        "kind": "abc"[number % 3],
        "on": number % 2 == 0,
        "i32": number,
        "u64": 2**64 - 1 - number,
        "day": date(2020, 1, 1 + number),
        "at": datetime(2020, 1, 1 + number, tzinfo=UTC),
        "score": number / 2,
        "text": f"the words of n{number}" if number % 2 else None,
        "face": [number, 1.0],
    }


def put(graph: Graph, *numbers: int, branch: str = "main") -> None:
    """Each item, and an edge from it to itself, in fragments of their own."""
    for number in numbers:
        name = f"n{number}"
        edge = {"from": name, "to": name, "weight": number / 4, "how": "much"}
        rows = {"Item": [item(number)], "Likes": [edge]}
        graph.load(rows, mode="append", branch=branch, index=False, engine="local")


def table_of(graph: Graph, type_name: str, branch: str = "main") -> Table:
    snapshot = graph.snapshot(branch=branch)
    [key] = [key for key in snapshot.pins if key.type_name == type_name]
    return data_at(graph._store, snapshot).table(key)


def kinds(graph: Graph, branch: str = "main") -> dict[str, dict[str, IndexKind]]:
    """The kind of each index that covers all rows, by type and column."""
    found: dict[str, dict[str, IndexKind]] = {}
    for name in ("Item", "Likes"):
        table = table_of(graph, name, branch)
        every = {fragment.id for fragment in table.fragments()}
        for index in read_indexes(table):
            assert index.spec is not None
            assert index.fragments == every, index
            found.setdefault(name, {})[index.spec.column] = index.spec.kind
    return found


def names(table: Table, filter_text: str) -> list[str]:
    """Who passes, by indexes alone."""
    found = table.read(["id"], filter_text=filter_text, indexed_only=True)["id"]
    return sorted(found.to_pylist())


def test_every_declaration_gets_the_index_of_its_kind(graph, engine):
    put(graph, 1, 2, 3)

    result = graph.ensure_indices(engine=engine)

    assert kinds(graph) == WANTED
    assert {name: set(columns) for name, columns in result.built.items()} == {
        name: set(columns) for name, columns in WANTED.items()
    }
    assert dict(result.waiting) == {"Item": ("face",)}
    items = table_of(graph, "Item")
    assert names(items, "kind = 'b'") == ["n1"]
    assert names(items, "kind = 'c' AND i32 >= 2") == ["n2"]
    assert names(items, "`on` = true") == ["n2"]
    assert names(items, "u64 <= 18446744073709551613") == ["n2", "n3"]
    assert names(items, "`at` > timestamp '2020-01-03T00:00:00Z'") == ["n3"]
    assert names(items, "score = 1.5 AND day = date '2020-01-04'") == ["n3"]
    weights = table_of(graph, "Likes").read(
        ["src"], filter_text="weight = 0.5 AND how = 'much'", indexed_only=True
    )
    assert weights["src"].to_pylist() == ["n2"]
    assert graph.ensure_indices(engine=engine).commit_id is None


def test_indexes_of_every_kind_are_extended_and_stay_few(graph, engine):
    for number in range(INDEX_SEGMENTS_MAX + 2):
        put(graph, number)
        graph.ensure_indices(engine="local" if number < INDEX_SEGMENTS_MAX else engine)

    assert kinds(graph) == WANTED
    items = table_of(graph, "Item")
    assert {len(index.segments) for index in read_indexes(items)} == {2}
    assert names(items, "kind = 'a'") == ["n0", "n3", "n6", "n9"]
    assert [names(items, f"i32 = {number}") for number in range(10)] == [
        [f"n{number}"] for number in range(10)
    ]


def test_a_branch_extends_and_joins_what_it_inherited(graph, engine):
    for number in range(INDEX_SEGMENTS_MAX):
        put(graph, number)
        graph.ensure_indices(engine="local")
    graph.branches.create("draft")
    put(graph, 20, branch="draft")

    result = graph.ensure_indices(branch="draft", engine=engine)

    assert set(result.joined["Item"]) == set(WANTED["Item"])
    assert kinds(graph, "draft") == kinds(graph) == WANTED
    assert {len(each.segments) for each in read_indexes(table_of(graph, "Item", "draft"))} == {1}
    assert {len(each.segments) for each in read_indexes(table_of(graph, "Item"))} == {8}
    assert names(table_of(graph, "Item", "draft"), "kind = 'c'") == ["n2", "n20", "n5"]
    assert names(table_of(graph, "Item"), "kind = 'c'") == ["n2", "n5"]


Change = tuple[tuple[str, str], dict[str, IndexKind | None]]
# what is replaced in the schema, and the indexes that change
CHANGES: Final[dict[str, Change]] = {
    "a dropped declaration": (("i32: I32? @index", "i32: I32?"), {"i32": None}),
    "an enum that becomes a String": (
        ("kind: enum(a, b, c)? @index", "kind: String? @index"),
        {"kind": INVERTED},
    ),
    "an indexed property that becomes unique": (
        ("i32: I32? @index", "i32: I32? @index @unique"),
        {"i32": BTREE},
    ),
    "a new declaration": (("plain: I64?", "plain: I64? @index"), {"plain": BTREE}),
    "a renamed property": (
        ("kind: enum(a, b, c)?", 'sort: enum(a, b, c)? @rename_from("kind")'),
        {"kind": None, "sort": BTREE},
    ),
    "a dropped property": (("  on: Bool? @index\n", ""), {"on": None}),
}


@pytest.mark.parametrize("label", CHANGES)
def test_indexes_follow_a_change_of_the_schema(graph, label):
    (old, new), changed = CHANGES[label]
    put(graph, 1, 2)
    graph.ensure_indices(engine="local")
    assert old in SCHEMA
    graph.schema.apply(SCHEMA.replace(old, new))

    result = graph.ensure_indices(engine="local")

    wanted: dict[str, IndexKind | None] = {**WANTED["Item"], **changed}
    assert kinds(graph)["Item"] == {name: kind for name, kind in wanted.items() if kind}
    assert dict(result.waiting) == {"Item": ("face",)}
    assert graph.ensure_indices(engine="local").commit_id is None


NAMES: Final = "query q() {{ match {{ $i: Item  {} }} return {{ $i.name }} }}"


def test_filters_on_an_enum_and_a_truth_value_find_rows_that_were_updated_and_indexed_again(
    tmp_path,
):
    schema = "node Item { name: String @key  kind: enum(a, b) @index  on: Bool @index }"
    graph = omnigraph.init(tmp_path / "graph", schema)
    rows = [
        {"name": f"n{number:04}", "kind": "b" if number % 1000 else "a", "on": bool(number % 1000)}
        for number in range(SELECTED_TABLE_ROWS_MIN + 1)
    ]
    graph.load({"Item": rows}, engine="local")
    graph.mutate('query q() { update Item set { kind: "b", on: true } where name = "n1000" }')
    graph.ensure_indices(engine="local")

    for _ in range(2):
        counts = [
            len(graph.query(NAMES.format(test)).rows())
            for test in ('$i.kind = "a"', '$i.kind != "a"', "$i.on = false", "$i.on != false")
        ]
        assert counts == [4, len(rows) - 4] * 2
        graph.optimize(engine="local")


def test_a_table_with_an_indexed_enum_is_optimized_and_folded(tmp_path):
    schema = "node Item { name: String @key  kind: enum(a, b) @index  on: Bool? @index }"
    graph = omnigraph.init(tmp_path / "graph", schema)
    graph.load({"Item": [{"name": "first", "kind": "a"}]}, engine="local")
    with eager_folds():
        for number in range(6):
            graph.load({"Item": [{"name": f"n{number}", "kind": "b"}]}, index=False)
    graph.optimize(engine="local")

    table = table_of(graph, "Item")
    assert len(table.fragments()) == 1
    assert find_gaps(table, [IndexSpec("kind"), IndexSpec("on")]) == ()


def test_a_unique_enum_has_one_index(tmp_path):
    schema = "node Item { kind: enum(a, b) @index  size: I32  @unique(kind, size) }"
    graph = omnigraph.init(tmp_path / "graph", schema)
    graph.load({"Item": [{"kind": "a", "size": 1}]}, engine="local")

    [key] = graph.snapshot().pins
    specs = {each.spec for each in read_indexes(data_at(graph._store, graph.snapshot()).table(key))}
    assert specs == {IndexSpec("id"), IndexSpec("kind"), IndexSpec("size")}


def test_an_index_that_the_schema_gives_up_is_removed_in_a_commit_and_reported(graph):
    put(graph, 1)
    graph.ensure_indices(engine="local")
    graph.schema.apply(SCHEMA.replace("kind: enum(a, b, c)? @index", "kind: enum(a, b, c)?"))

    result = graph.ensure_indices(engine="local")

    assert (dict(result.built), dict(result.removed)) == ({}, {"Item": ("kind",)})
    assert graph.commits.show(result.commit_id).operation == "index"
