from __future__ import annotations

import pickle
from datetime import UTC, date, datetime

import pytest

from omnigraph.errors import NotFoundError, TypeNotFoundError
from omnigraph.model.tables import TableKey
from omnigraph.model.types import EnumType, ListType, Scalar, VectorType
from omnigraph.schema.catalog import (
    Annotation,
    Cardinality,
    EdgeType,
    Embed,
    Index,
    Interface,
    NodeType,
    Property,
    Range,
    TextOptions,
)
from omnigraph.schema.findings import InvalidSchemaError
from omnigraph.schema.resolve import catalog_of

NAME = Property("name", Scalar.STRING)
INDEX = Index("name")
PERSON = NodeType("Person", (NAME,), key=("name",))
KNOWS = EdgeType("Knows", "Person", "Person")


def codes(*declarations):
    with pytest.raises(InvalidSchemaError) as caught:
        catalog_of(*declarations)
    return [str(each.code) for each in caught.value.findings]


def test_types_come_nodes_first_and_in_order_of_name():
    catalog = catalog_of(KNOWS, EdgeType("Eats", "Zebra", "Zebra"), NodeType("Zebra"), PERSON)
    assert [each.name for each in catalog.types] == ["Person", "Zebra", "Eats", "Knows"]


def test_a_type_knows_its_table():
    catalog = catalog_of(PERSON, KNOWS)
    assert catalog.type_of(TableKey.parse("node:Person")) == PERSON
    assert catalog.type_of(TableKey.parse("edge:Knows")) == KNOWS
    assert [str(each.table_key) for each in catalog.types] == ["node:Person", "edge:Knows"]


@pytest.mark.parametrize("look", ["node_type", "type_named"])
def test_a_misspelt_type_is_answered_with_the_nearest(look):
    with pytest.raises(TypeNotFoundError, match="did you mean Person"):
        getattr(catalog_of(PERSON), look)("Persn")


def test_an_edge_is_not_found_among_nodes():
    catalog = catalog_of(PERSON, KNOWS)
    with pytest.raises(TypeNotFoundError):
        catalog.node_type("Knows")
    with pytest.raises(TypeNotFoundError):
        catalog.interface("Person")


def test_a_misspelt_property_is_answered_with_the_nearest():
    assert PERSON.property_named("name") == NAME
    with pytest.raises(NotFoundError, match="did you mean name"):
        PERSON.property_named("nmae")


def test_values_take_the_type_of_their_property():
    node = NodeType(
        "A",
        (
            Property("a", Scalar.F64, default=1),
            Property("b", Scalar.DATE, default="2024-01-02"),
            Property("c", Scalar.DATETIME, default=datetime(2024, 1, 2, tzinfo=UTC)),
            Property("d", Scalar.I32),
        ),
        ranges=(Range("d", 0, 9), Range("b", low=date(2024, 1, 1))),
    )
    made = catalog_of(node).node_type("A")
    assert [repr(each.default) for each in made.properties[:2]] == [
        "1.0",
        "datetime.date(2024, 1, 2)",
    ]
    assert [each.property for each in made.ranges] == ["b", "d"]


def test_what_has_no_order_of_its_own_gets_one():
    first = NodeType(
        "A",
        (NAME, Property("age", Scalar.I32)),
        uniques=(("age", "name"), ("name",)),
        indexes=(Index("age"), Index("name", TextOptions())),
        annotations=(Annotation("z"), Annotation("a")),
    )
    second = NodeType(
        "A",
        (NAME, Property("age", Scalar.I32)),
        uniques=(("name",), ("name", "age")),
        indexes=(Index("name"), Index("age")),
        annotations=(Annotation("a"), Annotation("z")),
    )
    assert catalog_of(first) == catalog_of(second)


def test_the_order_of_properties_and_of_a_key_is_kept():
    node = NodeType("A", (Property("b", Scalar.I32), Property("a", Scalar.I32)), key=("a", "b"))
    made = catalog_of(node).node_type("A")
    assert [each.name for each in made.properties] == ["b", "a"]
    assert made.key == ("a", "b")


def test_an_interface_gives_a_node_what_it_lacks():
    named = Interface("Named", (NAME,), key=("name",), uniques=(("name",),), indexes=(INDEX,))
    made = catalog_of(named, NodeType("A", implements=("Named",))).node_type("A")
    assert made.properties == (NAME,)
    assert (made.key, made.uniques, made.indexes) == (("name",), (("name",),), (INDEX,))


def test_a_property_the_node_declares_takes_no_constraint_from_an_interface():
    named = Interface("Named", (NAME,), key=("name",), indexes=(INDEX,))
    made = catalog_of(named, NodeType("A", (NAME,), implements=("Named",))).node_type("A")
    assert (made.key, made.indexes) == ((), ())


@pytest.mark.parametrize(
    ("code", "declaration"),
    [
        ("S002", EdgeType("E", "Person", "Nobody")),
        ("S003", NodeType("A", implements=("Nothing",))),
        ("S004", EdgeType("Person", "Person", "Person")),
        ("S008", NodeType("a")),
        ("S008", NodeType("A", (Property("B", Scalar.I32),))),
        ("S008", NodeType("A", (Property("a: I32\n b", Scalar.I32),))),
        ("S008", NodeType("A\n", ())),
        ("S010", NodeType("A", (Property("a", EnumType(())),))),
        ("S010", NodeType("A", (Property("a", EnumType(("b c",))),))),
        ("S011", NodeType("A", (Property("a", VectorType(0)),))),
        ("S013", NodeType("A", (Property("a", ListType(Scalar.I32)),), key=("a",))),
        ("S018", NodeType("A", (Property("a", Scalar.I32),), ranges=(Range("a"),))),
        ("S021", EdgeType("E", "Person", "Person", Cardinality(2, 1))),
        ("S021", EdgeType("E", "Person", "Person", Cardinality(-1))),
        ("S022", NodeType("A", (Property("a", Scalar.F64, default=float("nan")),))),
        ("S022", NodeType("A", (Property("a", Scalar.I32, default=True),))),
        ("S023", NodeType("A", (Property("a", VectorType(1), embed=Embed(("b",))),))),
        ("S026", NodeType("A", annotations=(Annotation("key", "x"),))),
        ("S026", NodeType("A", annotations=(Annotation("x", None, (("y", 1),)),))),
        ("S028", NodeType("A", description="\ud800")),
        ("S028", NodeType("A", annotations=(Annotation("x", float("inf")),))),
        ("S029", NodeType("A", (NAME,), uniques=((),))),
        (
            "S029",
            Interface("I", (NAME, Property("b", Scalar.I32)), uniques=(("name", "b"),)),
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else repr(value)[:60],
)
def test_a_schema_built_by_hand_obeys_the_same_rules(code, declaration):
    assert codes(PERSON, declaration) == [code]


def test_every_error_is_reported_and_warnings_are_not():
    node = NodeType("a", (Property("id", Scalar.I32),), annotations=(Annotation("note"),))
    assert codes(node) == ["S008", "S007"]


def test_the_error_survives_pickling():
    with pytest.raises(InvalidSchemaError) as caught:
        catalog_of(NodeType("a"))
    again = pickle.loads(pickle.dumps(caught.value))
    assert (str(again), again.findings) == (str(caught.value), caught.value.findings)
