"""Merges of schemas: a table of cases, always in both directions."""

from __future__ import annotations

from dataclasses import replace

import pytest

from omnigraph.model.tables import TableKey
from omnigraph.schema.parser import parse_schema
from omnigraph.schema.property_order import merge_orders
from omnigraph.schema.resolve import catalog_of
from omnigraph.schema.schema_conflicts import Decide, SideName
from omnigraph.schema.schema_facts import declarations_of, facts_of
from omnigraph.schema.three_way import SchemaMerge, merge_schemas
from tests.support.schema_sides import first_side, next_side

A = "node A { p: I32 q: String }"
AB = "node A {} node B {} "

MERGES = {
    "separate properties": (
        A,
        "node A { p: I32 q: String x: I32 }",
        "node A { p: I32 y: I32? q: String }",
        "node A { p: I32 y: I32? q: String x: I32 }",
    ),
    "the same property": (
        A,
        "node A { p: I32 q: String x: I32 }",
        "node A { p: I32 q: String x: I32 }",
        "node A { p: I32 q: String x: I32 }",
    ),
    "a rename and a change": (
        A,
        'node A { r: I32 @rename_from("p") q: String }',
        "node A { p: I64 q: String @unique(p, q) }",
        'node A { r: I64 @rename_from("p") q: String @unique(r, q) }',
    ),
    "renames of two": (
        A,
        'node A { r: I32 @rename_from("p") q: String }',
        'node B @rename_from("A") { p: I32 q: String }',
        'node B @rename_from("A") { r: I32 @rename_from("p") q: String }',
    ),
    "the same rename": (
        A,
        'node A { r: I32 @rename_from("p") q: String }',
        'node A { r: I32 @rename_from("p") q: String }',
        'node A { r: I32 @rename_from("p") q: String }',
    ),
    "a drop and an addition": (
        A,
        "node A { q: String }",
        "node A { p: I32 q: String z: I32 }",
        "node A { q: String z: I32 }",
    ),
    "a drop and an addition of one name": (
        A,
        "node A { q: String }",
        "node A { p: I32 q: String @index }",
        "node A { q: String @index }",
    ),
    "separate types": (
        A,
        A + " node X {}",
        A + " node Y {} edge E: A -> Y",
        A + " node X {} node Y {} edge E: A -> Y",
    ),
    "a dropped type": (A + " node B {}", A, A + " node B {} node C {}", A + " node C {}"),
    "an edge to a renamed type": (
        A,
        'node B @rename_from("A") { p: I32 q: String }',
        A + " edge E: A -> A",
        'node B @rename_from("A") { p: I32 q: String } edge E: B -> B',
    ),
    "constraints by element": (
        'node A { p: I32 @unique @index q: String @check(q, "a") @length(q, 1..) }',
        'node A { p: I32 @index @range(p, 0..) q: String @check(q, "a") @length(q, 2..) }',
        'node A { p: I32 @unique q: String @check(q, "a") @check(q, "b") @length(q, 1..) '
        "@unique(p, q) }",
        'node A { p: I32 @range(p, 0..) q: String @check(q, "a") @check(q, "b") @length(q, 2..) '
        "@unique(p, q) }",
    ),
    "options of an index, and a name": (
        "node A { p: String @index }",
        'node A { p: String @index(analyzer="simple") }',
        'node A { q: String @index @rename_from("p") }',
        'node A { q: String @index(analyzer="simple") @rename_from("p") }',
    ),
    "facets of one property": (
        A,
        'node A { p: I32? @description("x") q: String }',
        "node A { p: I64 @default(1) @pii q: String }",
        'node A { p: I64? @default(1) @description("x") @pii q: String }',
    ),
    "cardinality and ends": (
        AB + "edge E: A -> A",
        AB + "edge E: A -> A @card(0..1)",
        AB + "edge E: A -> B",
        AB + "edge E: A -> B @card(0..1)",
    ),
    "interfaces": (
        "interface I { p: I32 } node A implements I {}",
        "interface I { p: I32 q: I32? } node A implements I {}",
        "interface I { p: I32 } interface J {} node A implements I, J {} node B implements I {}",
        "interface I { p: I32 q: I32? } interface J {} node A implements I, J {} "
        "node B implements I {}",
    ),
    "a key": (
        A,
        "node A { p: I32 @key q: String }",
        "node A { p: I32 q: String? }",
        "node A { p: I32 @key q: String? }",
    ),
    "a drop and an unchanged constraint": (
        "node A { p: I32 q: String @unique(p, q) }",
        "node A { q: String }",
        "node A { p: I32 q: String @unique(p, q) z: I32 }",
        "node A { q: String z: I32 }",
    ),
    "equal numbers of two types": (
        "node A { p: F64 @default(1.0) }",
        "node A { p: I64 @default(1) }",
        "node A { p: F64 @default(1.0) q: I32 }",
        "node A { p: I64 @default(1) q: I32 }",
    ),
    "hints that claim one name": (
        "node A { y: I32 }",
        'node A { y: I32 x: I32? @rename_from("z") }',
        'node A { y: I32 @rename_from("z") }',
        "node A { y: I32 x: I32? }",
    ),
    "two orders": (
        A,
        "node A { q: String p: I32 }",
        "node A { p: I32 x: I32 q: String }",
        "node A { q: String p: I32 x: I32 }",
    ),
}

CONFLICTS = {
    "two names": (
        A,
        'node A { x: I32 @rename_from("p") q: String }',
        'node A { y: I32 @rename_from("p") q: String }',
        [("node:A", "p", "name", "p", "x", "y")],
    ),
    "two names of a type": (
        A,
        'node B @rename_from("A") { p: I32 q: String }',
        'node C @rename_from("A") { p: I32 q: String }',
        [("node:A", None, "name", "A", "B", "C")],
    ),
    "two types": (
        A,
        "node A { p: I64 q: String }",
        "node A { p: F64 q: String }",
        [("node:A", "p", "type", "I32", "I64", "F64")],
    ),
    "two types of a new property": (
        A,
        "node A { p: I32 q: String x: I32 }",
        "node A { p: I32 q: String x: I64 }",
        [("node:A", "x", "type", None, "I32", "I64")],
    ),
    "dropped and changed": (
        A,
        "node A { q: String }",
        "node A { p: I64 q: String }",
        [("node:A", "p", "presence", "p: I32", None, "p: I64")],
    ),
    "dropped and constrained": (
        A,
        "node A { q: String }",
        "node A { p: I32 q: String @unique(p, q) }",
        [("node:A", "p", "presence", "p: I32", None, "p: I32")],
    ),
    "dropped type, changed": (
        A + " node B {}",
        "node B {}",
        "node A { p: I32 q: String? } node B {}",
        [("node:A", None, "presence", "node A", None, "node A")],
    ),
    "dropped type, joined": (
        A + " node B {}",
        "node B {}",
        A + " node B {} edge E: A -> B",
        [("node:A", None, "presence", "node A", None, "node A")],
    ),
    "dropped interface, implemented": (
        "interface I {} node A {}",
        "node A {}",
        "interface I {} node A implements I {}",
        [("interface:I", None, "presence", "interface I", None, "interface I")],
    ),
    "two defaults": (
        A,
        "node A { p: I32 @default(1) q: String }",
        "node A { p: I32 @default(2) q: String }",
        [("node:A", "p", "default", None, "@default(1)", "@default(2)")],
    ),
    "two options of an index": (
        "node A { p: String @index }",
        'node A { p: String @index(analyzer="simple") }',
        "node A { p: String @index(positions=true) }",
        [
            (
                "node:A",
                "p",
                "index",
                "@index(p)",
                '@index(p, analyzer="simple")',
                "@index(p, positions=true)",
            )
        ],
    ),
    "an index dropped and changed": (
        "node A { p: Vector(2) @index }",
        "node A { p: Vector(2) }",
        'node A { p: Vector(2) @index(metric="l2") }',
        [("node:A", "p", "index", "@index(p)", None, '@index(p, metric="l2")')],
    ),
    "two keys": (
        A,
        "node A { p: I32 @key q: String }",
        "node A { p: I32 q: String @key }",
        [("node:A", None, "key", None, "@key(p)", "@key(q)")],
    ),
    "two ranges": (
        "node A { p: I32 @range(p, 0..9) }",
        "node A { p: I32 @range(p, 1..9) }",
        "node A { p: I32 }",
        [("node:A", "p", "range", "@range(p, 0..9)", "@range(p, 1..9)", None)],
    ),
    "two cardinalities": (
        AB + "edge E: A -> B",
        AB + "edge E: A -> B @card(0..1)",
        AB + "edge E: A -> B @card(1..)",
        [("edge:E", None, "cardinality", "@card(0..)", "@card(0..1)", "@card(1..)")],
    ),
    "two ends": (
        AB + "edge E: A -> B",
        AB + "edge E: B -> B",
        AB + "edge E: A -> A",
        [("edge:E", None, "ends", "A -> B", "B -> B", "A -> A")],
    ),
    "several": (
        A,
        "node A { p: I64 q: I32 }",
        "node A { p: F64 q: Date }",
        [
            ("node:A", "p", "type", "I32", "I64", "F64"),
            ("node:A", "q", "type", "String", "I32", "Date"),
        ],
    ),
}

INVALID = {
    "one name for two properties": (
        A,
        'node A { x: I32 @rename_from("p") q: String }',
        "node A { p: I32 q: String x: I32 }",
        "name",
        "p and x would be called x",
    ),
    "one name for two types": (
        A,
        A + " node X {}",
        A + " edge X: A -> A",
        "name",
        "edge X and node X would be called X",
    ),
    "a nullable member of the key": (
        A,
        "node A { p: I32 @key q: String }",
        "node A { p: I32? q: String }",
        "validity",
        "key member p may be null",
    ),
    "a check of a number": (
        A,
        'node A { p: I32 q: String @check(q, "a") }',
        "node A { p: I32 q: I32 }",
        "validity",
        "needs a String",
    ),
    "a promise that changed": (
        "interface I { p: I32 }",
        "interface I { p: I64 }",
        "interface I { p: I32 } node A implements I {}",
        "validity",
        "interface I promises I64",
    ),
}


def always(choice: SideName) -> Decide:
    return lambda _: choice


flipped = pytest.mark.parametrize("flip", [False, True], ids=["", "flipped"])


def sides(base, ours, theirs, *, flip=False):
    before = first_side(base)
    texts = (theirs, ours) if flip else (ours, theirs)
    return before, *(next_side(before, text) for text in texts)


@flipped
@pytest.mark.parametrize(("base", "ours", "theirs", "merged"), MERGES.values(), ids=MERGES.keys())
def test_changes_that_do_not_exclude_each_other_combine(base, ours, theirs, merged, flip):
    result = merge_schemas(*sides(base, ours, theirs, flip=flip))
    assert isinstance(result, SchemaMerge), result
    assert result.catalog == parse_schema(merged)


@flipped
@pytest.mark.parametrize(
    ("base", "ours", "theirs", "expected"), CONFLICTS.values(), ids=CONFLICTS.keys()
)
def test_changes_that_exclude_each_other_are_conflicts(base, ours, theirs, expected, flip):
    result = merge_schemas(*sides(base, ours, theirs, flip=flip))
    assert not isinstance(result, SchemaMerge)
    facts = [
        (one.declaration, one.property, str(one.facet), one.base, one.ours, one.theirs)
        for one in result
    ]
    assert facts == [(*row[:4], row[5], row[4]) if flip else row for row in expected]


@flipped
@pytest.mark.parametrize(
    ("base", "ours", "theirs", "facet", "reason"), INVALID.values(), ids=INVALID.keys()
)
def test_an_invalid_result_is_a_conflict_that_nobody_can_decide(
    base, ours, theirs, facet, reason, flip
):
    choices: tuple[SideName, ...] = ("ours", "theirs")
    for choice in choices:
        result = merge_schemas(*sides(base, ours, theirs, flip=flip), decide=always(choice))
        assert not isinstance(result, SchemaMerge)
        assert [str(one.facet) for one in result] == [facet]
        assert reason in str(result[0])


@pytest.mark.parametrize("choice", ["ours", "theirs"])
@pytest.mark.parametrize("name", CONFLICTS)
def test_a_decision_for_one_side_is_that_side(name, choice):
    # In these cases, the chosen side has all that either side changed without a conflict.
    base, ours, theirs = sides(*CONFLICTS[name][:3])
    result = merge_schemas(base, ours, theirs, decide=always(choice))
    if (name, choice) == ("dropped type, joined", "ours"):
        assert not isinstance(result, SchemaMerge)
        return
    assert isinstance(result, SchemaMerge), result
    assert result.catalog == (ours if choice == "ours" else theirs).catalog


def test_an_edge_to_a_type_that_was_decided_to_be_dropped_is_a_conflict():
    base, ours, theirs = sides("node A {}", "", "node A {} edge E: A -> A")
    result = merge_schemas(base, ours, theirs, decide=always("ours"))
    assert not isinstance(result, SchemaMerge)
    assert str(result[0]) == "edge E: it joins node A, which the other side dropped"
    kept = merge_schemas(base, ours, theirs, decide=always("theirs"))
    assert isinstance(kept, SchemaMerge)
    assert kept.catalog == theirs.catalog


def test_constraints_of_a_property_that_was_decided_to_be_dropped_are_dropped_too():
    base, ours, theirs = sides(
        'node A { t: String v: Vector(64)? k: I32 }', "node A { v: Vector(64)? k: I32 }",
        'node A { t: String @unique v: Vector(64) @embed("t") k: I32 @key(k, t) }',
    )  # fmt: skip
    result = merge_schemas(base, ours, theirs, decide=always("ours"))
    assert isinstance(result, SchemaMerge)
    assert result.catalog == ours.catalog


def test_the_merged_identities_continue_both_sides():
    base, ours, theirs = sides(
        "node A { p: I32 q: I32 }",
        'node B @rename_from("A") { r: I32 @rename_from("p") q: I32 }',
        "node A { p: I32 x: I32 }",
    )
    result = merge_schemas(base, ours, theirs)
    assert isinstance(result, SchemaMerge)
    node_a, node_b = TableKey.parse("node:A"), TableKey.parse("node:B")
    identity = result.identities[node_b]
    assert (identity.origin, identity.properties, identity.dropped) == ("A", {"r": "p"}, ("q",))
    assert result.to_ours.types == {node_b: node_b}
    assert result.to_ours.properties == {node_b: {"r": "r"}}
    assert result.to_theirs.types == {node_b: node_a}
    assert result.to_theirs.properties == {node_b: {"r": "p", "x": "x"}}


def test_a_name_that_was_dropped_and_declared_again_is_not_the_former_property():
    base = first_side("node A { p: I32 }")
    ours = next_side(next_side(base, "node A {}"), "node A { p: String }")
    theirs = next_side(base, "node A { p: I32 z: I32 }")
    result = merge_schemas(base, ours, theirs)
    assert isinstance(result, SchemaMerge)
    assert result.catalog == parse_schema("node A { p: String z: I32 }")
    assert result.to_theirs.properties == {TableKey.parse("node:A"): {"z": "z"}}


def test_a_conflict_reads_as_a_sentence():
    result = merge_schemas(*sides(A, "node A { q: String }", "node A { p: I64 q: String }"))
    assert not isinstance(result, SchemaMerge)
    assert str(result[0]) == "node A, property p was dropped by ours and changed by theirs"
    other = replace(result[0], ours="p: I64", theirs=None)
    assert str(other) == "node A, property p was dropped by theirs and changed by ours"


def test_a_schema_is_its_facts():
    side = first_side(
        "interface I { p: I32 @index } "
        'node A implements I { t: String @check(t, "a") @length(t, 1..) @unique(p, t) @key(t, p) '
        'v: Vector(64)? @embed("t") @description("d") @x @x(1) } '
        'edge E: A -> A @card(1..) { d: Date @range(d, .."2024-01-01") @unique(src, d) }'
    )
    assert catalog_of(*declarations_of(facts_of(side))) == side.catalog


@pytest.mark.parametrize(
    ("base", "ours", "theirs", "merged"),
    [
        ("ab", "ab", "ba", "ba"),
        ("abc", "acb", "bac", "acb"),
        ("ab", "axb", "ayb", "axyb"),
        ("ab", "xab", "aby", "xaby"),
        ("", "xy", "yx", "xy"),
        ("a", "xay", "ay", "xay"),
    ],
)
def test_orders_merge_the_same_in_both_directions(base, ours, theirs, merged):
    assert "".join(merge_orders(tuple(base), tuple(ours), tuple(theirs))) == merged
    assert "".join(merge_orders(tuple(base), tuple(theirs), tuple(ours))) == merged


@pytest.mark.parametrize("choice", ["ours", "theirs"])
def test_a_type_that_was_decided_brings_what_was_declared_for_it(choice: SideName):
    ours = "node A { x: I32? @range(x, 0..5) }"
    theirs = 'node A { x: String @default("a") @length(x, 1..3) }'
    result = merge_schemas(*sides("node A {}", ours, theirs), decide=always(choice))
    assert isinstance(result, SchemaMerge)
    assert result.catalog == parse_schema(ours if choice == "ours" else theirs)
