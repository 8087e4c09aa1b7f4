"""Frames: a type alone, and all nodes and edges as GraphFrames wants them."""

import pytest

from omnigraph.connector.frames import edges, type_frame, vertices
from omnigraph.errors import TypeNotFoundError
from omnigraph.transaction.view import view_at
from tests.support.graphs import graph_with

SCHEMA = """
node Person { name: String @key  age: I64?  type: String? }
node Company { name: String @key  age: String?  staff: I32? }
edge Knows: Person -> Person { since: I64 }
edge WorksAt: Person -> Company { since: I64 }
"""


@pytest.fixture
def view(tmp_path):
    graph = graph_with(
        tmp_path / "g",
        SCHEMA,
        {
            "Person": [{"name": "Ada", "age": 36, "type": "poet"}, {"name": "Bo"}],
            "Company": [{"name": "Ada", "age": "old", "staff": 3}],
            "Knows": [{"id": "k", "src": "Ada", "dst": "Bo", "since": 1}],
            "WorksAt": [{"id": "w", "src": "Bo", "dst": "Ada", "since": 2}],
        },
    )
    draft = graph.branches.create("draft")
    draft.mutate('query q() { insert Person { name: "Cy" } }')
    return view_at(graph._store, graph._catalogs, draft.snapshot())


def test_a_type_has_its_columns(view, spark):
    frame = type_frame(view, "Person", spark)

    assert frame.columns == ["id", "name", "age", "type"]
    assert set(frame.toArrow()["id"].to_pylist()) == {"Ada", "Bo", "Cy"}
    with pytest.raises(TypeNotFoundError):
        type_frame(view, "Persn", spark)


def test_all_nodes_have_the_properties_of_all_types(view, spark):
    frame = vertices(view, spark)

    assert frame.columns == [
        "id", "type", "Company.age", "Person.age", "name", "staff", "Person.type",
    ]  # fmt: skip
    rows = {(row["type"], row["id"]): row for row in frame.toArrow().to_pylist()}
    assert set(rows) == {("Person", "Ada"), ("Person", "Bo"), ("Person", "Cy"), ("Company", "Ada")}
    assert rows["Company", "Ada"] == {
        "id": "Ada", "type": "Company", "Company.age": "old", "Person.age": None, "name": "Ada",
        "staff": 3, "Person.type": None,
    }  # fmt: skip
    assert rows["Person", "Ada"]["Person.type"] == "poet"


def test_ids_that_types_share_can_be_told_apart(view, spark):
    nodes = vertices(view, spark, qualified=True).toArrow().to_pylist()
    found = edges(view, spark, qualified=True).select("src", "dst", "id", "type").toArrow()

    assert {row["id"] for row in nodes} == {"Person/Ada", "Person/Bo", "Person/Cy", "Company/Ada"}
    assert found.sort_by("type").to_pylist() == [
        {"src": "Person/Ada", "dst": "Person/Bo", "id": "Knows/k", "type": "Knows"},
        {"src": "Person/Bo", "dst": "Company/Ada", "id": "WorksAt/w", "type": "WorksAt"},
    ]


def test_types_can_be_chosen(view, spark):
    frame = edges(view, spark, types=["WorksAt"])

    assert frame.toArrow().to_pylist() == [
        {"src": "Bo", "dst": "Ada", "id": "w", "type": "WorksAt", "since": 2}
    ]
    assert edges(view, spark, types=[]).columns == ["src", "dst", "id", "type"]
    assert edges(view, spark, types=[]).count() == 0
