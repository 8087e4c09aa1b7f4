"""Merges of branches with different schemas: one schema by identity, and rows of its types."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from omnigraph.choices import EngineName
from omnigraph.errors import InvalidInputError
from omnigraph.graph import Graph
from omnigraph.merge.conflicts import MergeConflictError
from omnigraph.merge.outcomes import Outcome
from omnigraph.schema.parser import parse_schema
from tests.contract.merge.conftest import open_backend
from tests.contract.merge.worlds import Changes, change, rows_of, use, world

P = "node P { name: String @key  a: I32?  b: String? }"
K = "edge K: P -> P { w: I32? }"
BASE = f"{P}\n{K}"
ONLY_P = f"// There are no edges.\n{P}"
Q = """
node Q @rename_from("P") { name: String @key  a: I32?  b: String? }
edge K: Q -> Q { w: I32? }
"""


def whole(text: str) -> str:
    """A schema with the edge type K, if it says nothing about edges."""
    return text if "edge" in text else f"{text}\n{K}"


def row(name: str, **values: Any) -> dict[str, Any]:
    return {"id": name, "name": name, **values}


ROWS: dict[str, dict[str, Any]] = {
    "P": {name: row(name, a=number, b="b") for number, name in enumerate("xyz", 1)},
    "K": {"e": {"id": "e", "src": "x", "dst": "y", "w": 1}},
}


@dataclass(frozen=True)
class Line:
    """A branch, to be changed."""

    graph: Graph
    branch: str

    def rows(self, changes: Changes) -> None:
        change(self.graph, changes, branch=self.branch)

    def schema(self, text: str, **requests: Any) -> None:
        self.graph.schema.apply(whole(text), branch=self.branch, **requests)


Act: TypeAlias = Callable[[Line], Any]


@dataclass(frozen=True)
class Case:
    """What two branches do, and what their merge has: the same, whichever is merged into which.

    Attributes:
        schema: The merged schema.
        rows: By type, the rows that are not those of the base; None for a row that is gone.
    """

    one: Act
    other: Act
    schema: str
    rows: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    types: tuple[str, ...] = ("P", "K")


def insert(type_name: str = "P", /, **rows: dict[str, Any] | None) -> Act:
    return lambda line: line.rows({type_name: rows})


def apply(text: str, *then: Act, **requests: Any) -> Act:
    def act(line: Line) -> None:
        line.schema(text, **requests)
        for each in then:
            each(line)

    return act


def p(text: str) -> str:
    """The type P with other properties behind its key."""
    return f"node P {{ name: String @key  {text} }}"


def with_all(**values: Any) -> dict[str, Any]:
    """The base's rows of P with further values."""
    return {name: {**ROWS["P"][name], **values} for name in "xyz"}


CASES = {
    "separate properties": Case(
        apply(p("a: I32?  b: String?  c: I64?"), insert(n=row("n", a=4, b=None, c=7))),
        apply(
            p("a: I32?  b: String?  d: Bool @default(true)"), insert(m=row("m", a=5, b="", d=False))
        ),
        p("a: I32?  b: String?  c: I64?  d: Bool @default(true)"),
        {
            "P": with_all(c=None, d=True)
            | {"n": row("n", a=4, b=None, c=7, d=True), "m": row("m", a=5, b="", c=None, d=False)}
        },
    ),
    "the same property": Case(
        apply(p("a: I32?  b: String?  c: I64?"), insert(n=row("n", a=4, b=None, c=7))),
        apply(p("a: I32?  b: String?  c: I64?"), insert(x=row("x", a=1, b="b", c=8))),
        p("a: I32?  b: String?  c: I64?"),
        {"P": with_all(c=None) | {"n": row("n", a=4, b=None, c=7), "x": row("x", a=1, b="b", c=8)}},
    ),
    "a rename and an update": Case(
        apply(p('size: I32? @rename_from("a")  b: String?')),
        insert(x=row("x", a=9, b="b"), n=row("n", a=4, b=None), z=None),
        p('size: I32? @rename_from("a")  b: String?'),
        {
            "P": {
                "x": row("x", size=9, b="b"),
                "y": row("y", size=2, b="b"),
                "n": row("n", size=4, b=None),
                "z": None,
            }
        },
    ),
    "names that are swapped, and updates": Case(
        apply(
            p('a: I32?  t: String? @rename_from("b")'),
            apply(p('b: I32? @rename_from("a")  t: String?')),
            apply(p('b: I32?  a: String? @rename_from("t")')),
        ),
        insert(x=row("x", a=9, b="b")),
        p('b: I32?  a: String? @rename_from("t")'),
        {"P": {name: row(name, b={"x": 9, "y": 2, "z": 3}[name], a="b") for name in "xyz"}},
    ),
    "a dropped property and updates of others": Case(
        apply(p("a: I32?")),
        insert(x=row("x", a=9, b="b"), n=row("n", a=4, b="new")),
        p("a: I32?"),
        {"P": {n: row(n, a=a) for n, a in (("x", 9), ("y", 2), ("z", 3), ("n", 4))}},
    ),
    "a wider type and new rows": Case(
        apply(p("a: I64?  b: String?"), insert(x=row("x", a=2**40, b="b"))),
        insert(n=row("n", a=4, b=None), y=row("y", a=2, b="c")),
        p("a: I64?  b: String?"),
        {
            "P": {
                "x": row("x", a=2**40, b="b"),
                "y": row("y", a=2, b="c"),
                "n": row("n", a=4, b=None),
            }
        },
    ),
    "numbers that become texts": Case(
        apply(p("a: String?  b: String?")),
        insert(n=row("n", a=4, b=None)),
        p("a: String?  b: String?"),
        {
            "P": {n: row(n, a=a, b="b") for n, a in (("x", "1"), ("y", "2"), ("z", "3"))}
            | {"n": row("n", a="4", b=None)}
        },
    ),
    "a new type with rows": Case(
        apply(
            f"{BASE}\nnode C {{ name: String @key }}\nedge In: P -> C {{ }}",
            insert("C", c={"id": "c", "name": "c"}),
            insert("In", i={"id": "i", "src": "x", "dst": "c"}),
        ),
        insert(n=row("n", a=4, b=None)),
        f"{BASE}\nnode C {{ name: String @key }}\nedge In: P -> C {{ }}",
        {
            "P": {"n": row("n", a=4, b=None)},
            "C": {"c": {"id": "c", "name": "c"}},
            "In": {"i": {"id": "i", "src": "x", "dst": "c"}},
        },
        ("P", "C", "K", "In"),
    ),
    "the same type on both sides": Case(
        apply(f"{BASE}\nnode C {{ name: String @key }}", insert("C", c={"id": "c", "name": "c"})),
        apply(
            f"{BASE}\nnode C {{ name: String @key  n: I32? }}",
            insert("C", d={"id": "d", "name": "d", "n": 1}),
        ),
        f"{BASE}\nnode C {{ name: String @key  n: I32? }}",
        {"C": {"c": {"id": "c", "name": "c", "n": None}, "d": {"id": "d", "name": "d", "n": 1}}},
        ("P", "C", "K"),
    ),
    "a dropped type": Case(
        apply(ONLY_P),
        insert(n=row("n", a=4, b=None)),
        ONLY_P,
        {"P": {"n": row("n", a=4, b=None)}},
        ("P",),
    ),
    "a renamed type and rows": Case(
        apply(Q),
        insert(n=row("n", a=4, b=None), z=None),
        Q,
        {"Q": {"x": ROWS["P"]["x"], "y": ROWS["P"]["y"], "n": row("n", a=4, b=None)}},
        ("Q", "K"),
    ),
    "filled values and updates": Case(
        apply(p("a: I32?  b: String?  c: I64"), fill="P.c=a * 10"),
        insert(x=row("x", a=9, b="b")),
        p("a: I32?  b: String?  c: I64"),
        {
            "P": {
                "x": row("x", a=9, b="b", c=10),
                "y": row("y", a=2, b="b", c=20),
                "z": row("z", a=3, b="b", c=30),
            }
        },
    ),
    "another property of the name and type of a dropped one, and new rows": Case(
        apply(p("b: String?"), apply(p("a: I32?  b: String?"), insert(x=row("x", a=7, b="b")))),
        insert(n=row("n", a=4, b=None)),
        P,
        {"P": with_all(a=None) | {"x": row("x", a=7, b="b"), "n": row("n", a=None, b=None)}},
    ),
    "a required property and rows that have it": Case(
        apply(p("a: I32  b: String?")),
        insert(n=row("n", a=4, b=None)),
        p("a: I32  b: String?"),
        {"P": {"n": row("n", a=4, b=None)}},
    ),
    "a tighter rule and rows that keep it": Case(
        apply(p("a: I32?  b: String? @range(a, 0..9)")),
        insert(n=row("n", a=4, b=None)),
        p("a: I32?  b: String? @range(a, 0..9)"),
        {"P": {"n": row("n", a=4, b=None)}},
    ),
}


def expected(case: Case) -> dict[str, dict[str, Any]]:
    rows: dict[str, dict[str, Any]] = {}
    for name in case.types:
        every = {**ROWS.get(name, {}), **case.rows.get(name, {})}
        rows[name] = {id_: own for id_, own in every.items() if own is not None}
    return rows


def begin(path: Path) -> Graph:
    graph = world(path / "graph", ROWS, BASE)
    graph.branches.create("draft")
    return graph


def schema_of(graph: Graph, branch: str = "main") -> tuple[str, Mapping[Any, Any]]:
    snapshot = graph.snapshot(branch=branch)
    identities = {str(key): pin.identity for key, pin in snapshot.pins.items()}
    return snapshot.schema_digest, identities


@pytest.mark.parametrize("flip", [False, True], ids=["", "flipped"])
@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_schemas_and_rows_merge_alike_in_both_directions(case, flip, tmp_path):
    graph = begin(tmp_path)
    ours, theirs = (case.other, case.one) if flip else (case.one, case.other)
    ours(Line(graph, "main"))
    theirs(Line(graph, "draft"))
    outcome = graph.merge("draft")
    assert outcome.outcome is Outcome.MERGED
    assert rows_of(graph) == expected(case)
    assert graph.schema.show().catalog == parse_schema(whole(case.schema))
    assert graph.check().findings == ()
    assert graph.merge("draft").outcome is Outcome.ALREADY_UP_TO_DATE
    # And back: the source becomes what the target is.
    assert graph.merge("main", into="draft").outcome is Outcome.FAST_FORWARD
    assert rows_of(graph, "draft") == rows_of(graph)
    assert schema_of(graph, "draft") == schema_of(graph)


@pytest.mark.parametrize("name", CASES)
def test_a_fast_forward_gives_exactly_the_schema_and_the_rows_of_the_source(name, tmp_path):
    graph = begin(tmp_path)
    case = CASES[name]
    case.one(Line(graph, "draft"))
    outcome = graph.merge("draft")
    assert outcome.outcome is Outcome.FAST_FORWARD
    assert schema_of(graph) == schema_of(graph, "draft")
    assert rows_of(graph) == rows_of(graph, "draft")
    assert graph.check().findings == ()


def refused(graph: Graph, resolve: str | None = None) -> MergeConflictError:
    before = graph.snapshot()
    with pytest.raises(MergeConflictError) as caught:
        graph.merge("draft", resolve=resolve)
    assert graph.snapshot() == before
    assert graph.merge("draft", resolve=resolve, dry_run=True).conflicts == caught.value.conflicts
    assert caught.value.conflict_count == len(caught.value.conflicts)
    return caught.value


def places(error: MergeConflictError) -> list[tuple[Any, ...]]:
    return [(str(each.kind), each.type_name, each.id, each.property) for each in error.conflicts]


def decisions(*entries: dict[str, Any]) -> str:
    return json.dumps(entries)


def diverge(path: Path, ours: Act, theirs: Act) -> Graph:
    graph = begin(path)
    ours(Line(graph, "main"))
    theirs(Line(graph, "draft"))
    return graph


def add_c(kind: str, **rows: Any) -> Act:
    return apply(p(f"a: I32?  b: String?  c: {kind}"), *([insert(**rows)] if rows else []))


def test_contradictory_properties_conflict_before_any_row_is_compared(tmp_path):
    ours = add_c("I64?", x=row("x", a=5, b="b", c=7))
    theirs = add_c("String?", x=row("x", a=6, b="b", c="8"))
    graph = diverge(tmp_path, ours, theirs)
    error = refused(graph)
    assert places(error) == [("schema", "P", None, "c")]
    [conflict] = error.conflicts
    assert conflict.facet == "type"
    assert (conflict.base, conflict.ours, conflict.theirs) == (None, "I64", "String")
    assert "schemas are decided first" in error.hint
    # With the schema decided, the rows conflict.
    decided = {"type": "P", "property": "c", "facet": "type", "take": "theirs"}
    rows = refused(graph, decisions(decided))
    assert places(rows) == [("divergent_update", "P", "x", name) for name in ("a", "c")]
    taken = [{"type": "P", "id": "x", "property": name, "take": "ours"} for name in ("a", "c")]
    graph.merge("draft", resolve=decisions(decided, *taken))
    assert rows_of(graph)["P"]["x"] == row("x", a=5, b="b", c="7")
    assert graph.schema.show().catalog == parse_schema(whole(p("a: I32?  b: String?  c: String?")))


def test_a_decision_for_one_side_decides_schemas_too(tmp_path):
    graph = diverge(tmp_path, add_c("I64?", n=row("n", a=1, b=None, c=7)), add_c("String?"))
    graph.merge("draft", resolve="theirs")
    assert rows_of(graph)["P"]["n"] == row("n", a=1, b=None, c="7")


@pytest.mark.parametrize("flip", [False, True], ids=["", "flipped"])
def test_a_value_that_does_not_convert_is_a_conflict_and_no_null(tmp_path, flip):
    sides = (
        add_c("I64?", n=row("n", a=1, b=None, c=7)),
        add_c("String?", m=row("m", a=1, b=None, c="many"), k=row("k", a=1, b=None, c="5")),
    )
    graph = diverge(tmp_path, *(reversed(sides) if flip else sides))
    numbers = "theirs" if flip else "ours"
    entry = {"type": "P", "property": "c", "facet": "type", "take": numbers}
    error = refused(graph, decisions(entry))
    assert places(error) == [("value_constraint_violation", "P", "m", "c")]
    assert "'many'" in error.message


@pytest.mark.parametrize("flip", [False, True], ids=["", "flipped"])
def test_a_property_is_not_dropped_while_the_other_side_changes_its_values(tmp_path, flip):
    drop, update = apply(p("a: I32?")), insert(x=row("x", a=1, b="new"), y=row("y", a=7, b="b"))
    graph = diverge(tmp_path, *((update, drop) if flip else (drop, update)))
    Line(graph, "draft" if flip else "main").rows({"P": {"z": row("z", a=8)}})
    assert places(refused(graph)) == [("schema", "P", None, "b")]
    dropping, keeping = ("theirs", "ours") if flip else ("ours", "theirs")
    place = {"type": "P", "property": "b", "facet": "presence"}
    dropped = graph.merge("draft", resolve=decisions({**place, "take": dropping}), dry_run=True)
    assert dropped.conflicts == ()
    graph.merge("draft", resolve=decisions({**place, "take": keeping}))
    # The side that dropped it has the values of the base again.
    assert rows_of(graph)["P"] == {
        "x": row("x", a=1, b="new"),
        "y": row("y", a=7, b="b"),
        "z": row("z", a=8, b="b"),
    }
    assert graph.schema.show().catalog == parse_schema(BASE)
    assert graph.check().findings == ()


@pytest.mark.parametrize("flip", [False, True], ids=["", "flipped"])
def test_a_type_is_not_dropped_while_the_other_side_changes_its_rows(tmp_path, flip):
    edge = {"id": "f", "src": "y", "dst": "z", "w": 2}
    drop, update = apply(ONLY_P), insert("K", f=edge)
    graph = diverge(tmp_path, *((update, drop) if flip else (drop, update)))
    error = refused(graph)
    assert places(error) == [("schema", "K", None, None)]
    assert "dropped by" in error.message
    dropping, keeping = ("theirs", "ours") if flip else ("ours", "theirs")
    place = {"type": "K", "facet": "presence"}
    dropped = graph.merge("draft", resolve=decisions({**place, "take": dropping}), dry_run=True)
    assert dropped.conflicts == ()
    graph.merge("draft", resolve=decisions({**place, "take": keeping}))
    assert rows_of(graph)["K"] == ROWS["K"] | {"f": edge}
    assert graph.check().findings == ()


@pytest.mark.parametrize("flip", [False, True], ids=["", "flipped"])
def test_a_rule_of_one_side_holds_for_new_rows_of_the_other(tmp_path, flip):
    rule = apply(p("a: I32?  b: String? @range(a, 0..9) @unique(a)"))
    rows = insert(n=row("n", a=10, b=None), m=row("m", a=1, b=None), k=row("k", a=7, b=None))
    graph = diverge(tmp_path, *((rows, rule) if flip else (rule, rows)))
    conflicts = {(kind, id_) for kind, _, id_, _ in places(refused(graph))}
    assert ("value_constraint_violation", "n") in conflicts
    assert {kind for kind, _ in conflicts} == {"value_constraint_violation", "unique_violation"}
    assert "k" not in {id_ for _, id_ in conflicts}


def test_conflicts_of_rows_of_values_and_of_new_rules_show_together(tmp_path):
    def ours(line: Line) -> None:
        line.rows({"P": {"x": row("x", a=5, b="b"), "k": row("k", a=20, b="kilo")}})

    def theirs(line: Line) -> None:
        line.rows({"P": {"x": row("x", a=6, b="7"), "y": row("y", a=7, b="8"), "z": None}})
        line.schema(p("a: I32?  b: I64? @range(a, 0..9)"), convert="P.b")

    graph = diverge(tmp_path, ours, theirs)
    error = refused(graph)
    assert ("divergent_update", "P", "x", "a") in places(error)
    messages = {(each.id, each.property): each.message for each in error.conflicts}
    assert "change b of this row on branch main" in messages["k", "b"]
    # One conflict a row: the other rule that this row breaks is a reason of it.
    [reason] = next(each.reasons for each in error.conflicts if each.id == "k")
    assert "change the row on branch main, or the rule on branch draft" in reason
    # Each says what helps, and that does.
    graph.mutate('query q() { update P set { a: 2, b: "3" } where id = "k" }')
    left = graph.merge("draft", resolve="theirs", dry_run=True)
    assert left.conflicts == ()
    graph.merge("draft", resolve="theirs")
    assert rows_of(graph)["P"]["k"] == row("k", a=2, b=3)
    assert graph.check().findings == ()


def test_a_row_that_the_source_deleted_need_not_keep_its_rules(tmp_path):
    def theirs(line: Line) -> None:
        line.rows({"P": {"z": None}})
        line.schema(p("a: I32?  b: String? @range(a, 0..2)"))

    graph = diverge(tmp_path, insert(n=row("n", a=1, b=None)), theirs)
    graph.merge("draft")
    assert set(rows_of(graph)["P"]) == {"x", "y", "n"}


@pytest.mark.parametrize("flip", [False, True], ids=["", "flipped"])
def test_rows_without_a_required_value_are_named(tmp_path, flip):
    sides = (
        insert(n=row("n", a=4, b=None)),
        apply(p("a: I32?  b: String?  c: I64"), fill="P.c=a"),
    )
    graph = diverge(tmp_path, *(reversed(sides) if flip else sides))
    assert places(refused(graph)) == [("value_constraint_violation", "P", "n", "c")]


def test_an_edge_of_a_new_type_needs_its_ends(tmp_path):
    text = f"{BASE}\nedge In: P -> P {{ }}"
    theirs = apply(text, insert("In", i={"id": "i", "src": "y", "dst": "z"}))
    graph = diverge(tmp_path, insert(z=None), theirs)
    assert places(refused(graph)) == [("orphan_edge", "In", "i", "dst")]


def test_ids_of_the_source_have_to_be_what_a_new_key_says(tmp_path):
    graph = world(
        tmp_path / "graph", {"U": {"a": {"id": "a", "name": "a"}}}, "node U { name: String }"
    )
    graph.branches.create("draft")
    graph.schema.apply("node U { name: String @key }")
    change(graph, {"U": {"b": {"id": "other", "name": "b"}}}, branch="draft")
    error = refused(graph)
    assert places(error) == [("value_constraint_violation", "U", "other", "id")]


def test_vectors_and_blobs_survive_a_rename_on_one_side_and_new_rows_on_the_other(tmp_path):
    text = "node V { name: String @key  e: Vector(2)?  d: Blob? }"
    graph = world(tmp_path / "graph", {"V": {"x": row("x", e=[1.0, 2.0], d=b"1")}}, text)
    graph.branches.create("draft")
    renamed = 'node V { name: String @key  f: Vector(2)? @rename_from("e")  d: Blob?  n: I32? }'
    graph.schema.apply(renamed)
    rows = {"y": row("y", e=[3.0, 4.0], d=b"2"), "x": row("x", e=[1.0, 9.0], d=b"1")}
    change(graph, {"V": rows}, branch="draft")
    graph.merge("draft")
    assert rows_of(graph)["V"] == {
        "x": row("x", f=[1.0, 9.0], d=b"1", n=None),
        "y": row("y", f=[3.0, 4.0], d=b"2", n=None),
    }


def test_branches_that_merged_each_other_merge_again(tmp_path):
    graph = diverge(tmp_path, add_c("I64?"), insert(n=row("n", a=4, b=None)))
    graph.branches.create("other", branch="main")
    graph.branches.create("third", branch="draft")
    graph.merge("draft")
    graph.merge("other", into="third")
    change(graph, {"P": {"x": row("x", a=9, b="b", c=1)}})
    graph.schema.apply(whole(p("a: I32?  b: String?  c: I64?  d: I32?")), branch="third")
    change(graph, {"P": {"y": row("y", a=8, b="b", c=2, d=3)}}, branch="third")
    assert graph.merge("third").outcome is Outcome.MERGED
    rows = rows_of(graph)["P"]
    assert rows["x"] == row("x", a=9, b="b", c=1, d=None)
    assert rows["y"] == row("y", a=8, b="b", c=2, d=3)
    assert rows["n"] == row("n", a=4, b=None, c=None, d=None)


def test_schemas_without_a_common_base_conflict_until_both_are_alike(tmp_path):
    graph = diverge(tmp_path, add_c("I64?"), add_c("String?"))
    graph.branches.create("other", branch="main")
    graph.branches.create("third", branch="draft")
    graph.merge("draft", resolve="ours")
    graph.merge("other", into="third", resolve="ours")
    change(graph, {"P": {"n": row("n", a=4, b=None, c=7)}})
    change(graph, {"P": {"m": row("m", a=4, b=None, c="8")}}, branch="third")
    with pytest.raises(MergeConflictError, match="the type has no base") as caught:
        graph.merge("third")
    assert places(caught.value) == [("schema", "P", None, "c")]
    graph.schema.apply(whole(p("a: I32?  b: String?  c: String?")))
    graph.merge("third")
    assert rows_of(graph)["P"]["n"] == row("n", a=4, b=None, c="7")
    assert rows_of(graph)["P"]["m"] == row("m", a=4, b=None, c="8")


def test_a_decision_brings_back_a_row_of_the_source_as_a_row_of_the_merged_type(tmp_path):
    edge = {"id": "f", "src": "y", "dst": "z", "w": 2}
    ours = apply(p('size: I64? @rename_from("a")  b: String?'), insert(z=None))
    graph = diverge(tmp_path, ours, insert("K", f=edge))
    assert places(refused(graph)) == [("orphan_edge", "K", "f", "dst")]
    graph.merge("draft", resolve="theirs")
    assert rows_of(graph)["P"]["z"] == row("z", size=3, b="b")


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ({"facet": "type", "take": "ours"}, "names no type"),
        ({"type": "P", "id": "x", "facet": "type", "take": "ours"}, "a row and a facet"),
        ({"type": "P", "property": 1, "facet": "type", "take": "ours"}, "by its name"),
        ({"type": "P", "facet": "colour", "take": "ours"}, "the facet 'colour'"),
        ({"type": "P", "facet": "type", "take": "both"}, "does not take a side"),
        ({"type": "P", "facet": "type", "value": 1}, "does not take a side"),
        ({"type": "P", "property": "c", "facet": "name", "take": "ours"}, "name of P c"),
    ],
)
def test_a_wrong_decision_about_a_schema_is_named(tmp_path, entry, words):
    graph = diverge(tmp_path, add_c("I64?"), insert(n=row("n", a=4, b=None)))
    with pytest.raises(InvalidInputError, match=words):
        graph.merge("draft", resolve=decisions(entry))


IN_EVERY_RUN = ("separate properties", "a rename and an update")
ON_SPARK = [
    pytest.param(name, marks=() if name in IN_EVERY_RUN else pytest.mark.soak) for name in CASES
]


@pytest.fixture
def on_spark(request: pytest.FixtureRequest) -> Callable[[Graph], Graph]:
    """Makes a graph merge on Spark."""
    return lambda graph: use(graph, open_backend(EngineName.SPARK, request))


@pytest.mark.parametrize("name", ON_SPARK)
def test_spark_merges_schemas_as_the_local_engine_does(name, tmp_path, on_spark):
    case = CASES[name]
    graph = on_spark(diverge(tmp_path, case.one, case.other))
    graph.merge("draft")
    assert rows_of(graph) == expected(case)
    assert graph.check().findings == ()
    assert graph.merge("main", into="draft").outcome is Outcome.FAST_FORWARD
    assert rows_of(graph, "draft") == rows_of(graph)
    assert schema_of(graph, "draft") == schema_of(graph)


def test_spark_refuses_what_only_the_local_engine_merges(tmp_path, on_spark):
    graph = on_spark(diverge(tmp_path, apply(p("a: I32?")), insert(x=row("x", a=1, b="new"))))
    with pytest.raises(InvalidInputError, match="a property that one branch has dropped") as caught:
        graph.merge("draft", resolve="theirs")
    assert "--engine local" in caught.value.hint
