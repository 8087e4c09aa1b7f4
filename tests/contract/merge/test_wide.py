"""Vectors and blobs in merges and diffs: compared by digest, read where they lie, never all."""

import json
from typing import Any

import pyarrow as pa
import pytest

from omnigraph.changes import wide
from omnigraph.changes.wide import WideValues, given_value, read_columns, reference_schema
from omnigraph.errors import InvalidInputError
from omnigraph.graph import Graph
from omnigraph.merge.conflicts import MergeConflictError
from omnigraph.model.tables import TableKey
from omnigraph.schema.arrow import table_schema
from omnigraph.storage.tables import Table
from tests.contract.merge.worlds import change, rows_of, use, world

SCHEMA = "node T { name: String @key  n: I32?  v: Vector(2)?  b: Blob? }"
COUNT = 40


def row(name: str, n: int | None, v: list[float] | None, b: bytes | None) -> dict[str, Any]:
    return {"id": name, "name": name, "n": n, "v": v, "b": b}


def rows(seed: float = 0.0) -> dict[str, Any]:
    """Rows of which some have no vector, and others no blob or an empty one.

    All rows of one seed differ from those of another.
    """
    return {
        f"r{number:02}": row(
            f"r{number:02}",
            number + int(2 * seed),
            None if number % 5 == 0 else [number + seed, -seed],
            (None, b"", b"%d" % number * number)[number % 3],
        )
        for number in range(COUNT)
    }


@pytest.fixture(autouse=True)
def few_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wide, "WIDE_BATCH_BYTES", 64)
    monkeypatch.setattr(wide, "_FIRST_ROWS", 3)


@pytest.fixture
def local(tmp_path) -> Graph:
    return world(tmp_path / "graph", {"T": rows()}, SCHEMA)


@pytest.fixture
def graph(local, engine) -> Graph:
    return use(local, engine)


def table_of(graph: Graph, branch: str = "main") -> Table:
    pin = graph.snapshot(branch=branch).pin(TableKey.parse("node:T"))
    return graph._store.tables.open(pin.location, ref=pin.ref, version=pin.version)


def test_rows_that_refer_to_values_of_several_tables_become_whole_again(local):
    local.branches.create("draft")
    change(local, {"T": rows(0.5)}, branch="draft")
    schema = table_schema(local.schema.show().catalog.type_named("T"))
    tables = table_of(local), table_of(local, "draft")
    values = WideValues(*tables)
    main, draft = (
        values.refer(schema, table, table.read(read_columns(schema))) for table in tables
    )
    assert main.schema == reference_schema(schema)
    mixed = pa.concat_tables([main.slice(5), draft.slice(0, 20)]).take(list(range(54, -1, -1)))

    batches = list(values.complete(schema, mixed))
    assert len(batches) > 5
    expected = [*list(rows().values())[5:], *list(rows(0.5).values())[:20]][::-1]
    assert pa.Table.from_batches(batches).to_pylist() == expected
    ordered = values.complete(schema, values.in_order(mixed)).read_all()
    assert sorted(map(str, ordered.to_pylist())) == sorted(map(str, expected))


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (pa.list_(pa.float32(), 2), [1.0, 2.0]),
        (pa.list_(pa.float32(), 2), None),
        (pa.large_binary(), b"ab"),
        (pa.large_binary(), None),
    ],
)
def test_a_value_of_no_table_is_held_by_its_reference(kind, value):
    schema = pa.schema([pa.field("x", kind)])
    rows = pa.Table.from_arrays([given_value(kind, value)], schema=reference_schema(schema))
    assert WideValues().complete(schema, rows).read_all().to_pylist() == [{"x": value}]


def test_each_side_keeps_the_wide_values_that_it_changed(graph):
    graph.branches.create("draft")
    ours = {name: {**each, "b": b"ours " + name.encode()} for name, each in rows().items()}
    theirs = {name: {**each, "v": [1.0, 2.0], "n": -1} for name, each in rows().items()}
    change(graph, {"T": ours})
    change(graph, {"T": {**theirs, "new": row("new", 1, [3.0, 4.0], b"new")}}, branch="draft")
    change(graph, {"T": {"r07": None}}, branch="draft")
    change(graph, {"T": {"r07": rows()["r07"]}})

    graph.merge("draft")

    expected = {name: {**ours[name], "v": [1.0, 2.0], "n": -1} for name in rows() if name != "r07"}
    assert rows_of(graph)["T"] == {**expected, "new": row("new", 1, [3.0, 4.0], b"new")}
    images = {
        each.id: each for each in graph.diff(graph.commits.list()[1].commit_id, "main").rows()
    }
    assert images["r03"].before == ours["r03"]
    assert images["r03"].after == expected["r03"]
    assert images["new"].after == row("new", 1, [3.0, 4.0], b"new")


def apart(graph: Graph) -> None:
    """Both sides have changed the vector and the blob of one row; one has deleted another."""
    graph.branches.create("draft")
    change(graph, {"T": {"r01": row("r01", 1, [1.0, 1.0], b"one"), "r02": None}})
    theirs = {"r01": row("r01", 1, [2.0, 2.0], b"two"), "r02": row("r02", 2, [0.0, 9.0], b"")}
    change(graph, {"T": theirs}, branch="draft")


def test_conflicts_show_the_values(graph):
    apart(graph)
    with pytest.raises(MergeConflictError) as caught:
        graph.merge("draft")
    found = {(each.id, each.property): each for each in caught.value.conflicts}
    assert set(found) == {("r01", "v"), ("r01", "b"), ("r02", None)}
    vector, blob, whole = found["r01", "v"], found["r01", "b"], found["r02", None]
    assert (vector.base, vector.ours, vector.theirs) == ([1.0, 0.0], [1.0, 1.0], [2.0, 2.0])
    assert (blob.base, blob.ours, blob.theirs) == (b"", b"one", b"two")
    assert whole.base == rows()["r02"]
    assert whole.ours is None
    assert whole.theirs == row("r02", 2, [0.0, 9.0], b"")


def test_decisions_take_values_of_either_side_or_of_neither(graph):
    apart(graph)
    at = {"type": "T", "id": "r01"}
    decisions = [
        {**at, "property": "v", "value": [7, 8.5]},
        {**at, "property": "b", "take": "theirs"},
        {"type": "T", "id": "r02", "take": "theirs"},
    ]
    graph.merge("draft", resolve=json.dumps(decisions))
    after = rows_of(graph)["T"]
    assert after["r01"] == row("r01", 1, [7.0, 8.5], b"two")
    assert after["r02"] == row("r02", 2, [0.0, 9.0], b"")


@pytest.mark.parametrize("value", ["[1]", "[1, 2, 3]", "[1, 1e400]", "[1, null]", '[1, "a"]', "1"])
def test_a_decision_for_a_vector_must_be_one(local, value):
    apart(local)
    others = '{"type": "T", "id": "r01", "property": "b", "take": "ours"}'
    others += ', {"type": "T", "id": "r02", "take": "ours"}'
    given = f'{{"type": "T", "id": "r01", "property": "v", "value": {value}}}'
    before = rows_of(local)
    with pytest.raises(InvalidInputError, match="the resolutions give"):
        local.merge("draft", resolve=f"[{given}, {others}]")
    assert rows_of(local) == before
