"""Schema changes on real graphs: what becomes of rows, rules, names, branches and old commits."""

from typing import Any, Final

import pytest

from omnigraph.engine.spark import relations
from omnigraph.errors import MigrationRefusedError
from omnigraph.graph import Graph
from tests.contract.evolution.worlds import (
    apply_change,
    pins_by_name,
    read_all,
    read_rows,
    refused_rows,
    require_sound,
)
from tests.support.graphs import add_rows, graph_with

BEFORE: Final = """
interface Named { title: String }
node Item {
  code: String @key
  size: I32?
  name: String?
  colour: String
  tags: [String]?
  a: I64
  b: I64
}
node Loose { word: String  place: I32 }
node Untouched { name: String @key  photo: Blob?  meaning: Vector(2)? }
edge Near: Item -> Item { metres: F64? }
edge Likes: Item -> Untouched
"""
ROWS: Final[dict[str, list[dict[str, Any]]]] = {
    "Item": [
        {"code": "i1", "size": 3, "name": "one", "colour": "red", "tags": ["x"], "a": 1, "b": 10},
        {"code": "i2", "size": 5, "name": "two", "colour": "green", "tags": [], "a": 2, "b": 20},
        {"code": "i3", "size": 7, "name": "three", "colour": "red", "a": 3, "b": 10},
    ],
    "Loose": [
        {"id": "w1", "word": "w1", "place": 1},
        {"id": "w2", "word": "w2", "place": 1},
        {"id": "w3", "word": "other", "place": 2},
    ],
    "Untouched": [{"name": "u", "photo": b"bytes", "meaning": [0.5, 1.0]}],
    "Near": [
        {"id": "n1", "src": "i1", "dst": "i2", "metres": 1.5},
        {"id": "n2", "src": "i1", "dst": "i3"},
    ],
    "Likes": [{"id": "l1", "src": "i2", "dst": "u"}],
}


@pytest.fixture
def graph(tmp_path) -> Graph:
    """Three items in two fragments, two edges between them, and types to be left alone."""
    graph = graph_with(tmp_path / "graph", BEFORE, {**ROWS, "Item": ROWS["Item"][:2]})
    add_rows(graph, {"Item": ROWS["Item"][2:]})
    return graph


def changed(*replacements: tuple[str, str]) -> str:
    """The schema with other texts, each of which it has once."""
    text = BEFORE
    for old, new in replacements:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text


def items(**columns: list[Any]) -> dict[str, dict[str, Any]]:
    """The items by id, with the values of these columns in the place of those they had."""
    expected: dict[str, dict[str, Any]] = {}
    for number, row in enumerate(ROWS["Item"]):
        values = {"size": None, "name": None, "tags": None} | row
        new = {name: values_[number] for name, values_ in columns.items()}
        expected[row["code"]] = values | new
    return expected


def without(rows: dict[str, dict[str, Any]], *names: str) -> dict[str, dict[str, Any]]:
    return {
        id_: {name: value for name, value in row.items() if name not in names}
        for id_, row in rows.items()
    }


OTHERS: Final = ("Loose", "Untouched", "Near", "Likes")


# fmt: off
RULES: Final = {
    # By what is added: the text it replaces, what rows keep, what they break, and the
    # offenders; of those that share a value of @unique, the first.
    "@unique":       ("b: I64", "b: I64  @unique(a)", "b: I64  @unique(b)",
                      {("unique", "Item", ("b",)): {"i1"}}),
    "@unique, two":  ("b: I64", "b: I64  @unique(a, b)", "b: I64  @unique(colour, b)",
                      {("unique", "Item", ("colour", "b")): {"i1"}}),
    "@range":        ("b: I64", "b: I64  @range(size, 3..7)", "b: I64  @range(size, 4..6)",
                      {("range", "Item", ("size",)): {"i1", "i3"}}),
    "@check":        ("b: I64", 'b: I64  @check(colour, "e")', 'b: I64  @check(colour, "^r")',
                      {("check", "Item", ("colour",)): {"i2"}}),
    "@length":       ("b: I64", "b: I64  @length(name, 3..5)", "b: I64  @length(name, ..4)",
                      {("length", "Item", ("name",)): {"i3"}}),
    "@length, list": ("b: I64", "b: I64  @length(tags, 0..1)", "b: I64  @length(tags, 1..)",
                      {("length", "Item", ("tags",)): {"i2"}}),
    "enum":          ("colour: String", "colour: enum(green, red)", "colour: enum(red, blue)",
                      {("enum", "Item", ("colour",)): {"i2"}}),
    "required":      ("tags: [String]?", "tags: [String]?  @length(tags, 0..)", "tags: [String]",
                      {("required", "Item", ("tags",)): {"i3"}}),
    "required, kept": ("size: I32?", "size: I32", "size: I32  @range(size, ..6)",
                      {("range", "Item", ("size",)): {"i3"}}),
    "@card, most":   ("Item -> Item", "Item -> Item @card(0..2)", "Item -> Item @card(0..1)",
                      {("cardinality", "Near", ("src",)): {"i1"}}),
    "@card, least":  ("Item -> Item", "Item -> Item @card(0..)", "Item -> Item @card(1..)",
                      {("cardinality", "Near", ("src",)): {"i2", "i3"}}),
    "@key":          ("place: I32 }", "place: I32?  @unique(word) }", "place: I32  @key(word) }",
                      {("type", "Loose", ("id",)): {"w3"}}),
    "edge, unique":  ("{ metres: F64? }", "{ metres: F64?  @unique(src, dst) }",
                      "{ metres: F64?  @unique(src) }",
                      {("unique", "Near", ("src",)): {"n1"}}),
    "new edge type": ("edge Likes:", "edge Has: Untouched -> Item @card(0..1) edge Likes:",
                      "edge Has: Untouched -> Item @card(1..1) edge Likes:",
                      {("cardinality", "Has", ("src",)): {"u"}}),
}
# fmt: on


@pytest.mark.parametrize(("old", "kept", "broken", "offences"), RULES.values(), ids=RULES.keys())
def test_a_rule_is_added_where_rows_keep_it_and_refused_with_those_that_break_it(
    graph, old, kept, broken, offences
):
    refused = refused_rows(graph, changed((old, broken)))
    assert {offence: set(ids) for offence, ids in refused.items()} == offences

    rows = read_all(graph)
    graph.schema.apply(changed((old, kept)), engine="local")
    assert {name: read_rows(graph, name) for name in rows} == rows
    assert graph.schema.plan(changed((old, kept))).is_empty


def test_all_rules_that_rows_keep_are_added_at_once(graph):
    members = [kept for old, kept, _, _ in RULES.values() if old == "b: I64"]
    body = members[0] + " ".join(member.removeprefix("b: I64") for member in members[1:])
    schema = changed(
        ("b: I64", body),
        ("size: I32?", "size: I32"),
        ("Item -> Item", "Item -> Item @card(0..2)"),
    )
    apply_change(
        graph, schema, {"Item": items()}, untouched=["Loose", "Untouched", "Near", "Likes"]
    )


def test_a_key_is_added_where_every_id_is_its_text(graph):
    graph.mutate('query q() { delete Loose where word = "other" }')
    schema = changed(("place: I32 }", "place: I32  @key(word) }"))
    apply_change(
        graph,
        schema,
        {"Loose": {"w1": {"word": "w1", "place": 1}, "w2": {"word": "w2", "place": 1}}},
        untouched=["Item", "Untouched", "Near", "Likes"],
    )
    graph.mutate('query q() { insert Loose { word: "w1", place: 9 } }')
    assert read_rows(graph, "Loose")["w1"] == {"word": "w1", "place": 9}


def test_an_interface_is_implemented_by_rows_that_have_its_properties(graph):
    promise = ("interface Named { title: String }", "interface Named { name: String }")
    schema = changed(promise, ("node Item {", "node Item implements Named {"), NAME)
    apply_change(graph, schema, {"Item": items()}, untouched=OTHERS)

    graph.mutate('query q() { update Item set { colour: "blue" } where code = "i3" }')
    narrower = schema.replace("name: String }", "name: enum(one, two) }")
    narrower = narrower.replace("  name: String\n", "  name: enum(one, two)\n")
    refused = refused_rows(graph, narrower)
    assert {offence: set(ids) for offence, ids in refused.items()} == {
        ("enum", "Item", ("name",)): {"i3"}
    }


NAME: Final = ("name: String?\n", "name: String\n")


def test_types_that_edges_use_are_renamed_with_their_properties(graph):
    schema = """
    interface Named { title: String }
    node Thing @rename_from("Item") {
      code: String @key  extent: I32? @rename_from("size")  name: String?  colour: String
      tags: [String]?  a: I64  c: I64 @rename_from("b")
    }
    node Loose { place: I32  word: String }
    node Untouched { name: String @key  photo: Blob?  meaning: Vector(2)? }
    edge CloseTo: Thing -> Thing @rename_from("Near") { distance: F64? @rename_from("metres") }
    edge Likes: Thing -> Untouched
    """
    things = without(items(extent=[3, 5, 7], c=[10, 20, 10]), "size", "b")
    near: dict[str, dict[str, Any]] = {
        "n1": {"src": "i1", "dst": "i2", "distance": 1.5},
        "n2": {"src": "i1", "dst": "i3", "distance": None},
    }
    commit = apply_change(
        graph, schema, {"Thing": things, "CloseTo": near}, untouched=["Untouched", "Likes"]
    )
    assert {step.cost for step in graph.schema.plan(BEFORE_RENAMES).steps} <= {"metadata"}
    text = "query q() { match { $a: Thing  $b: Thing  $a closeTo $b } return { $a.code $b.code } }"
    assert sorted(tuple(row.values()) for row in graph.query(text).rows()) == [
        ("i1", "i2"),
        ("i1", "i3"),
    ]
    # The indexes, the ids of rows and the writers follow the new names.
    graph.ensure_indices(engine="local")
    graph.mutate('query q() { update Thing set { extent: 4, c: 99 } where code = "i1" }')
    assert read_rows(graph, "Thing")["i1"] == things["i1"] | {"extent": 4, "c": 99}
    back = graph.schema.apply(BEFORE_RENAMES, engine="local")
    assert back.commit_id is not None
    assert read_rows(graph, "Item")["i1"] == items()["i1"] | {"size": 4, "b": 99}
    assert pins_by_name(graph.snapshot().pins.values())["Item"].identity.properties == {}
    assert graph.schema.diff(graph.commits.show(commit).parents[0], "main").is_empty
    require_sound(graph)


BEFORE_RENAMES: Final = """
interface Named { title: String }
node Item @rename_from("Thing") {
  code: String @key
  size: I32? @rename_from("extent")
  name: String?
  colour: String
  tags: [String]?
  a: I64
  b: I64 @rename_from("c")
}
node Loose { word: String  place: I32 }
node Untouched { name: String @key  photo: Blob?  meaning: Vector(2)? }
edge Near: Item -> Item @rename_from("CloseTo") { metres: F64? @rename_from("distance") }
edge Likes: Item -> Untouched
"""


def test_names_are_swapped_by_three_renames_and_not_by_two_hints(graph):
    hints = changed(("a: I64\n", 'a: I64 @rename_from("b")\n'), ("  b: I64\n", SWAPPED))
    plan = graph.schema.plan(hints)
    assert [str(finding.code) for finding in plan.errors] == ["OG-RN-03"]
    assert "one by one" in plan.errors[0].hint
    with pytest.raises(MigrationRefusedError, match="take each other's names"):
        graph.schema.apply(hints)

    graph.ensure_indices(engine="local")
    for first, second in (
        ('c: I64 @rename_from("a")', "b: I64"),
        ("c: I64", 'a: I64 @rename_from("b")'),
        ('b: I64 @rename_from("c")', "a: I64"),
    ):
        schema = changed(("a: I64\n", f"{first}\n"), ("  b: I64\n", f"  {second}\n"))
        assert {step.cost for step in graph.schema.plan(schema).steps} == {"metadata"}
        graph.schema.apply(schema, engine="local")
    assert read_rows(graph, "Item") == items(a=[10, 20, 10], b=[1, 2, 3])
    identity = pins_by_name(graph.snapshot().pins.values())["Item"].identity
    assert identity.properties == {"a": "b", "b": "a"}
    # Now with values to write: a column of each name is in the files of both.
    schema = changed(("a: I64\n", "b: I64?\n"), ("  b: I64\n", "  a: I64  d: I32 @default(0)\n"))
    apply_change(graph, schema, {"Item": items(a=[10, 20, 10], b=[1, 2, 3], d=[0, 0, 0])})


SWAPPED: Final = '  b: I64 @rename_from("a")\n'


def test_a_property_and_a_type_that_are_dropped_and_added_again_are_new_ones(graph):
    first = graph.snapshot().head.commit_id
    dropped = changed(("  name: String?\n", ""), ("edge Likes: Item -> Untouched\n", ""))
    apply_change(graph, dropped, {"Item": without(items(), "name")}, untouched=OTHERS[:3])
    apply_change(graph, BEFORE, {"Item": items(name=[None] * 3), "Likes": {}}, untouched=OTHERS[:3])
    pins = pins_by_name(graph.snapshot().pins.values())
    assert pins["Item"].identity.properties == {"name": "name~2"}
    assert pins["Likes"].identity.origin == "Likes~2"
    # Rows are compared by what the later schema has: none had a value of the new property.
    differing = graph.diff(first, "main").rows()
    assert sorted((str(row.op), row.type_name, row.id) for row in differing) == [
        ("delete", "Likes", "l1"),
    ]


def test_values_are_filled_while_names_and_nullability_change(graph):
    # Lance's Merge rejects another nullability of a stored column, so those are copied.
    graph.ensure_indices(engine="local")
    schema = changed(
        ("size: I32?", "size: I64"),
        ("name: String?", 'label: String @rename_from("name")  full: String'),
        ("colour: String", "colour: String?"),
        ("  b: I64\n", '  c: I64? @rename_from("b")  level: F32 @default(0.5)  note: String?\n'),
        ("tags: [String]?", 'tags: [String]?  kind: String? @default("k")'),
        ("{ metres: F64? }", "{ metres: F64?  weight: U32 @default(7) }"),
    )
    rows = items(
        label=["one", "two", "three"],
        full=["red-1", "green-2", "red-3"],
        c=[10, 20, 10],
        level=[0.5, 0.5, 0.5],
        note=[None, None, None],
        kind=["k", "k", "k"],
    )
    rows = without(rows, "b", "name")
    near: dict[str, dict[str, Any]] = {
        "n1": {"src": "i1", "dst": "i2", "metres": 1.5, "weight": 7},
        "n2": {"src": "i1", "dst": "i3", "metres": None, "weight": 7},
    }
    apply_change(
        graph,
        schema,
        {"Item": rows, "Near": near},
        untouched=["Loose", "Untouched", "Likes"],
        fill={"Item.full": "colour || '-' || cast(a as String)"},
    )
    point = 'query q() { match { $i: Item { code: "i2" } } return { $i.full } }'
    assert graph.query(point).rows() == [{"i.full": "green-2"}]
    graph.ensure_indices(engine="local")
    assert graph.query(point).rows() == [{"i.full": "green-2"}]


def test_a_fill_that_has_no_value_for_a_row_is_refused_with_it(graph):
    schema = changed(("b: I64", "b: I64  first: String  half: I32"))
    fills = ["Item.first=nullif(name, 'two')", "Item.half=b / a"]
    refused = refused_rows(graph, schema, fill=fills)
    assert {offence: set(ids) for offence, ids in refused.items()} == {
        ("required", "Item", ("first",)): {"i2"},
        ("type", "Item", ("half",)): {"i3"},
    }


def test_blobs_vectors_and_lists_stay_and_are_added(graph):
    schema = changed(
        ("photo: Blob?", 'image: Blob? @rename_from("photo")  other: Blob?'),
        ("meaning: Vector(2)? }", "meaning: Vector(2)  more: Vector(3)?  numbers: [I32]? }"),
        ("metres: F64? }", "metres: F64?  proof: Blob?  shape: Vector(2)? }"),
    )
    row = {"name": "u", "image": b"bytes", "other": None, "meaning": [0.5, 1.0]}
    row |= {"more": None, "numbers": None}
    apply_change(graph, schema, {"Untouched": {"u": row}}, untouched=["Item", "Loose", "Likes"])
    new = {"name": "v", "image": b"1", "other": b"2", "meaning": [1.0, 2.0]}
    new |= {"more": [1.0, 2.0, 3.0], "numbers": [1, 2]}
    graph.load({"Untouched": _arrow([new])}, engine="local")
    assert read_rows(graph, "Untouched") == {"u": row, "v": new}
    require_sound(graph)


def _arrow(rows: list[dict[str, Any]]) -> Any:
    import pyarrow as pa

    return pa.Table.from_pylist(rows)


def test_new_types_with_edges_between_old_and_new_nodes_take_rows_at_once(graph):
    schema = BEFORE + "node Place { name: String @key } edge In: Item -> Place @card(0..1)"
    apply_change(
        graph, schema, {"Place": {}, "In": {}, "Item": items()}, untouched=["Item", *OTHERS]
    )
    graph.mutate('query q() { insert Place { name: "p" } insert In { from: "i1", to: "p" } }')
    [edge] = read_rows(graph, "In").values()
    assert edge == {"src": "i1", "dst": "p"}
    at_least_one = schema.replace("@card(0..1)", "@card(1..1)")
    assert refused_rows(graph, at_least_one).keys() == {("cardinality", "In", ("src",))}


def test_a_change_of_a_branch_leaves_main_as_it_is(graph):
    graph.branches.create("draft")
    schema = changed(
        ("size: I32?", "size: I64?  level: I32 @default(1)"), ("name: String?", "name: String")
    )
    before, rows = graph.snapshot(), read_all(graph)
    apply_change(graph, schema, {"Item": items(level=[1, 1, 1])}, untouched=OTHERS, branch="draft")
    assert graph.snapshot().pins == before.pins
    assert graph.snapshot().head == before.head
    assert read_all(graph) == rows
    assert graph.schema.show().text == BEFORE
    graph.mutate('query q() { insert Item { code: "m", colour: "c", a: 4, b: 4 } }')
    new = '{ code: "d", size: 9999999999, name: "n", colour: "c", a: 4, b: 4 }'
    graph.mutate(f"query q() {{ insert Item {new} }}", branch="draft")
    assert read_rows(graph, "Item", branch="draft")["d"]["size"] == 9999999999
    assert "d" not in read_rows(graph, "Item")
    require_sound(graph)


@pytest.mark.usefixtures("spark")
def test_spark_fills_converts_and_checks_as_the_local_engine_does(graph, monkeypatch):
    monkeypatch.setattr(relations, "SPARK_PARTITION_ROWS_MIN", 1)
    schema = changed(
        ("size: I32?", "size: String"),
        ("name: String?", 'label: String @rename_from("name")  loud: String'),
        ("colour: String", "colour: enum(red, green)?"),
        ("  b: I64\n", "  b: I64  level: F32 @default(0.5)  @unique(a, b)  @range(b, 10..20)\n"),
        ("Item -> Item", "Item -> Item @card(0..2)"),
    )
    fill = "Item.loud=upper(name)"
    rows = items(
        size=["3", "5", "7"],
        level=[0.5, 0.5, 0.5],
        label=["one", "two", "three"],
        loud=["ONE", "TWO", "THREE"],
    )
    rows = without(rows, "name")
    broken = schema.replace("@unique(a, b)", "@unique(b)").replace("10..20", "11..20")
    refused = refused_rows(graph, broken, fill=fill, engine="spark")
    assert {offence: set(ids) for offence, ids in refused.items()} == {
        ("unique", "Item", ("b",)): {"i1"},
        ("range", "Item", ("b",)): {"i1", "i3"},
    }
    apply_change(graph, schema, {"Item": rows}, untouched=OTHERS, fill=fill, engine="spark")


def test_a_refusal_lists_nulls_misfits_and_broken_rules_of_all_types(graph):
    changed = BEFORE.replace("metres: F64?", "metres: F64")
    changed = changed.replace("word: String  place: I32", "word: I32  place: I32")
    changed = changed.replace("size: I32?", "size: I32? @range(size, 0..6)")
    assert refused_rows(graph, changed, convert="Loose.word") == {
        ("required", "Near", ("metres",)): {"n2": None},
        ("type", "Loose", ("word",)): {"w1": "w1", "w2": "w2", "w3": "other"},
        ("range", "Item", ("size",)): {"i3": 7},
    }
