"""Hints of renames: what continues what, and every way in which a hint is wrong."""

from __future__ import annotations

import pytest

from omnigraph.model.identities import TypeIdentity
from omnigraph.model.tables import TableKey
from omnigraph.schema.matching import match_by_identity
from omnigraph.schema.parser import parse_schema
from omnigraph.schema.plan import plan_by_hints
from omnigraph.schema.rename_hints import match_by_hints

NAMED = 'interface Named { label: String @rename_from("name") } '


def match(old: str, new: str):
    matching, findings = match_by_hints(parse_schema(old), parse_schema(new))
    pairs = [f"{before}>{after}" for after, before in matching.types.items()]
    for key, names in matching.properties.items():
        pairs += [f"{key.type_name}.{before}>{after}" for after, before in names.items()]
    return sorted(pairs), [(str(finding.code), finding.hint) for finding in findings]


# fmt: off
CASES = {
    "names": ("node A { p: I32 }", "node A { p: I32 }", ["A.p>p", "node:A>node:A"], []),
    "renamed type and property": (
        "node A { p: I32 }", 'node B @rename_from("A") { q: I32 @rename_from("p") }',
        ["B.p>q", "node:A>node:B"], []),
    "a hint that has done its work": (
        "node B { q: I32 }", 'node B @rename_from("A") { q: I32 @rename_from("p") }',
        ["B.q>q", "node:B>node:B"],
        [("OG-WN-01", "remove the hint"), ("OG-WN-01", "remove the hint")]),
    "both names existed": (
        "node A {} node B {}", 'node B @rename_from("A") {}',
        ["node:B>node:B"], [("OG-WN-01", "remove the hint")]),
    "unknown type": (
        "node Person {}", 'node B @rename_from("Persn") {}',
        [], [("OG-RN-01", "did you mean Person?")]),
    "unknown property": (
        "node A { email: I32 }", 'node A { q: I32 @rename_from("emal") }',
        ["node:A>node:A"], [("OG-RN-01", "did you mean email?")]),
    "property of a new type": (
        "node A {}", 'node A {} node B { q: I32 @rename_from("p") }',
        ["node:A>node:A"], [("OG-RN-01", "remove the hint")]),
    "a node that was an edge": (
        "node A {} edge E: A -> A", 'node A {} node F @rename_from("E") {}',
        ["node:A>node:A"],
        [("OG-RN-02", "remove the hint: F is a new type, and E is dropped")]),
    "a node that was an interface": (
        "interface I {}", 'node F @rename_from("I") {}',
        [], [("OG-RN-02", "remove the hint: F is a new type, and I is dropped")]),
    "the former type is still there": (
        "node A {}", 'node A {} node B @rename_from("A") {}',
        ["node:A>node:A"],
        [("OG-RN-03", "remove the hint, or A; a chain of renames takes one change for each")]),
    "the former property is still there": (
        "node A { p: I32 }", 'node A { p: I32 q: I32 @rename_from("p") }',
        ["A.p>p", "node:A>node:A"],
        [("OG-RN-03", "remove the hint, or p; a chain of renames takes one change for each")]),
    "two properties that take each other's names": (
        "node A { p: I32 q: I32 }",
        'node A { p: I32 @rename_from("q") q: I32 @rename_from("p") }',
        ["A.p>p", "A.q>q", "node:A>node:A"],
        [("OG-RN-03",
          "rename p to a name that is free, then the others, then that, one by one")]),
    "types that take each other's names": (
        "node A {} node B {} node C {}",
        'node A @rename_from("B") {} node B @rename_from("C") {} node C @rename_from("A") {}',
        ["node:A>node:A", "node:B>node:B", "node:C>node:C"],
        [("OG-RN-03",
          "rename A to a name that is free, then the others, then that, one by one")]),
    "hints in a row that have done their work": (
        "node A { p: I32 q: I32 }",
        'node A { p: I32 @rename_from("q") q: I32 @rename_from("z") }',
        ["A.p>p", "A.q>q", "node:A>node:A"],
        [("OG-WN-01", "remove the hint"), ("OG-WN-01", "remove the hint")]),
    "all wrong hints at once": (
        "node A { p: I32 }", 'node A { x: I32 @rename_from("zzz") } node B @rename_from("Zzz") {}',
        ["node:A>node:A"], [("OG-RN-01", "remove the hint"), ("OG-RN-01", "remove the hint")]),
    "a hint of an interface suits some types": (
        "node A { name: String } node B {}",
        NAMED + "node A implements Named {} node B implements Named {}",
        ["A.name>label", "node:A>node:A", "node:B>node:B"], [("OG-WN-02", "")]),
    "a hint of an interface suits none": (
        "node A { nam: String }", NAMED + "node A implements Named {}",
        ["node:A>node:A"], [("OG-RN-01", "did you mean nam?")]),
    "a likely rename of a property": (
        "node A { p: I32 }", "node A { q: I32 }",
        ["node:A>node:A"], [("OG-WN-03", 'a rename is @rename_from("p") on q')]),
    "a likely rename of a type": (
        "node A { p: I32 }", "node B { p: I32 }",
        [], [("OG-WN-03", 'a rename is @rename_from("A") on B')]),
    "no likely rename of another type": (
        "node A { p: I32 }", "node A { q: Date }", ["node:A>node:A"], []),
}
# fmt: on


@pytest.mark.parametrize(("old", "new", "pairs", "findings"), CASES.values(), ids=CASES.keys())
def test_hints_and_names_say_what_continues_what(old, new, pairs, findings):
    assert match(old, new) == (pairs, findings)


def test_a_hint_that_has_done_its_work_makes_no_step():
    catalog = parse_schema('node B @rename_from("A") { q: I32 @rename_from("p") }')
    counts = {type_.table_key: 3 for type_ in catalog.types}
    plan = plan_by_hints(catalog, catalog, row_counts=counts)
    assert plan.steps == ()
    assert plan.errors == ()


def test_a_wrong_hint_names_both_and_leaves_no_steps():
    old, new = parse_schema("node A {}"), parse_schema('node B @rename_from("Aa") {}')
    plan = plan_by_hints(old, new, row_counts={TableKey.parse("node:A"): 0})
    [error] = plan.errors
    assert plan.steps == ()
    assert error.message == (
        'node B has @rename_from("Aa"), and the present schema has no node type Aa'
    )


def test_identities_match_what_names_do_not():
    old = parse_schema("node A { p: I32 q: I32 } edge E: A -> A")
    new = parse_schema("node B { q: I32 r: I32 } node A {} edge E: B -> A")
    node_a, node_b, edge = (TableKey.parse(text) for text in ("node:A", "node:B", "edge:E"))
    matching = match_by_identity(
        old, {node_a: TypeIdentity("A"), edge: TypeIdentity("E")},
        new, {
            # p became q, after q was dropped; E was dropped and declared again.
            node_b: TypeIdentity("A", {"q": "p"}, ("q",)),
            node_a: TypeIdentity("A~2"),
            edge: TypeIdentity("E~2"),
        },
    )  # fmt: skip
    assert matching.types == {node_b: node_a}
    assert matching.properties == {node_b: {"q": "p"}}
    assert [type_.name for type_ in matching.new_types(new)] == ["A", "E"]
    assert [type_.name for type_ in matching.dropped_types(old)] == ["E"]
    assert matching.names_before(new.node_type("B")) == {"q": "p", "r": None}
