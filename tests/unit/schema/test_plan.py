"""Plans of schema changes: the steps between two schemas, with their costs."""

from __future__ import annotations

import json
import pickle

import pytest

from omnigraph.cli.exits import Exit, exit_code
from omnigraph.errors import ErrorCode, MigrationRefusedError
from omnigraph.integrity.violations import Rule
from omnigraph.lang.diagnostics import Severity
from omnigraph.model.tables import TableKey
from omnigraph.schema.change_codes import ChangeCode
from omnigraph.schema.parser import parse_schema
from omnigraph.schema.plan import plan_by_hints
from omnigraph.schema.steps import RuleWord

EDGE = "node A {} node B {} "


def plan(old: str, new: str, *, rows=3, **requests):
    """The plan from one text to another, where every type has that many rows."""
    before = parse_schema(old)
    counts = {type_.table_key: rows for type_ in before.types}
    if isinstance(rows, dict):
        counts = {key: rows.get(str(key.type_name), 0) for key in counts}
    return plan_by_hints(before, parse_schema(new), row_counts=counts, **requests)


def lines(planned) -> list[str]:
    """Each step as `kind place: cost`, or the code if it is refused."""
    return [
        f"{step.kind} {step.place}: {step.refusal.code if step.refusal else step.cost}"
        for step in planned.steps
    ]


# fmt: off
CASES = {
    # Types and interfaces.
    "new node type": ("", "node A { p: String }", ["add_type A: metadata"]),
    "dropped type": ("node A {}", "", ["drop_type A: metadata"]),
    "renamed type": ("node A {}", 'node B @rename_from("A") {}', ["rename_type B: metadata"]),
    "another kind": ("node A {} node B {}", "node A {} edge B: A -> A",
        ["add_type B: metadata", "drop_type B: metadata"]),
    "new interface": ("", "interface I { p: String }", ["add_interface I: metadata"]),
    "changed interface": ("interface I { p: String }", "interface I { p: I32 }",
        ["change_interface I: metadata"]),
    "dropped interface": ("interface I {}", "", ["drop_interface I: metadata"]),
    "implements what it had": (
        "interface I { p: String } node A { p: String }",
        "interface I { p: String } node A implements I { p: String }",
        ["add_implements A: metadata"]),
    "implements what it had not": (
        "interface I { p: String @unique } node A { p: String? }",
        "interface I { p: String @unique } node A implements I { p: String @unique }",
        ["require_value A.p: validated", "add_unique A.p: validated",
         "add_implements A: validated"]),
    "implements a new property": (
        "interface I { p: String? } node A {}",
        "interface I { p: String? } node A implements I {}",
        ["add_property A.p: metadata", "add_implements A: metadata"]),
    "no longer implements": (
        "interface I { p: String } node A implements I {}",
        "interface I { p: String } node A { p: String }",
        ["drop_implements A: metadata"]),
    # Properties.
    "new nullable property": ("node A {}", "node A { p: I32? }", ["add_property A.p: metadata"]),
    "new list": ("node A {}", "node A { p: [I32]? }", ["add_property A.p: metadata"]),
    "new property with a default": (
        "node A {}", "node A { p: I32 @default(1) q: I32? @default(1) }",
        ["add_property A.p: rewritten", "add_property A.q: rewritten"]),
    "new required property": ("node A {}", "node A { p: I32 }", ["add_property A.p: OG-MF-01"]),
    "dropped property": ("node A { p: I32 @unique @index @range(p, 0..) }", "node A {}",
        ["drop_property A.p: metadata"]),
    "renamed property": ("node A { p: I32 }", 'node A { q: I32 @rename_from("p") }',
        ["rename_property A.q: metadata"]),
    "renamed, retyped and required": (
        "node A { p: I32? }", 'node A { q: I64 @rename_from("p") }',
        ["rename_property A.q: metadata", "change_type A.q: rewritten",
         "require_value A.q: validated"]),
    "another order": ("node A { p: I32 q: I32 }", "node A { q: I32 p: I32 }",
        ["reorder_properties A: metadata"]),
    "a new property in between": ("node A { p: I32 q: I32 }", "node A { p: I32 r: I32? q: I32 }",
        ["add_property A.r: metadata"]),
    # Annotations.
    "defaults": (
        "node A { p: I32 q: I32 @default(1) r: I32 @default(1) }",
        "node A { p: I32 @default(1) q: I32 @default(2) r: I32 }",
        ["add_default A.p: metadata", "change_default A.q: metadata",
         "drop_default A.r: metadata"]),
    "embeddings": (
        'node A { t: String p: Vector(64)? q: Vector(64) @embed("t") r: Vector(64) @embed("t") }',
        'node A { t: String p: Vector(64) @embed("t") q: Vector(64) @embed("t", model="mock") '
        "r: Vector(64)? }",
        ["add_embed A.p: metadata", "change_embed A.q: metadata", "drop_embed A.r: metadata"]),
    "an embedding of other texts": (
        'node A { t: String u: String v: Vector(64) @embed("t") }',
        'node A { t: String u: String v: Vector(64) @embed("t", "u") }',
        ["change_embed A.v: metadata"]),
    "an embedded vector may be null": (
        "node A { t: String v: Vector(64) }", 'node A { t: String v: Vector(64) @embed("t") }',
        ["allow_null A.v: metadata", "add_embed A.v: metadata"]),
    "the source of an embedding is renamed": (
        'node A { t: String v: Vector(64) @embed("t") }',
        'node A { u: String @rename_from("t") v: Vector(64) @embed("u") }',
        ["rename_property A.u: metadata"]),
    "indexes": ("node A { p: I32 @index q: I32 }", "node A { p: I32 q: I32 @index }",
        ["add_index A.q: metadata", "drop_index A.p: metadata"]),
    "other options of indexes": (
        'node A { p: String @index q: Vector(2) @index(metric="l2") r: String @index }',
        'node A { p: String @index(positions=true) q: Vector(2) @index s: String @rename_from("r") '
        '@index(analyzer="english") }',
        ["rename_property A.s: metadata", "change_index A.p: metadata",
         "change_index A.q: metadata"]),
    "descriptions": ('node A { p: I32 @description("x") }', 'node A @description("y") { p: I32 }',
        ["change_description A.p: metadata", "change_description A: metadata"]),
    "metadata": ('node A @owner("x") { p: I32 @pii }', "node A { p: I32 @pii(2) }",
        ["change_annotation A.p: metadata", "change_annotation A: metadata"]),
    # Keys.
    "a key for minted ids": ("node A { p: I32 }", "node A { p: I32 @key }",
        ["add_key A: validated"]),
    "another key": ("node A { p: I32 @key q: I32 }", "node A { p: I32 q: I32 @key }",
        ["change_key A: OG-DS-01"]),
    "another order of the key": ("node A { p: I32 q: I32 @key(p, q) }",
        "node A { p: I32 q: I32 @key(q, p) }", ["change_key A: OG-DS-01"]),
    "no key any more": ("node A { p: I32 @key }", "node A { p: I32 }", ["drop_key A: OG-DS-01"]),
    "dropped member of the key": ("node A { p: I32 q: I32 @key(p, q) }", "node A { q: I32 @key }",
        ["drop_property A.p: metadata", "change_key A: OG-DS-01"]),
    "renamed member of the key": ("node A { p: I32 @key }",
        'node A { q: I32 @key @rename_from("p") }', ["rename_property A.q: metadata"]),
    "another type of a member of the key": ("node A { p: I32 @key }", "node A { p: I64 @key }",
        ["change_type A.p: OG-DS-02"]),
    "a wider enum in the key": ("node A { p: enum(a) @key }", "node A { p: enum(a, b) @key }",
        ["widen_enum A.p: metadata"]),
    # Constraints.
    "uniques": ("node A { p: I32 q: I32 @unique(p, q) }", "node A { p: I32 @unique q: I32 }",
        ["add_unique A.p: validated", "drop_unique A: metadata"]),
    "uniques of renamed properties": ("node A { p: I32 q: I32 @unique(p, q) }",
        'node A { z: I32 @rename_from("p") q: I32 @unique(z, q) }',
        ["rename_property A.z: metadata"]),
    "unique with a dropped member": ("node A { p: I32 q: I32 r: I32 @unique(p, q) @unique(p, r) }",
        "node A { p: I32 }",
        ["drop_property A.q: metadata", "drop_property A.r: metadata",
         "drop_unique A: metadata", "drop_unique A: metadata"]),
    "constraints of a property without values": (
        "node A { q: I32 }", "node A { q: I32 p: I32? @range(p, 0..) @unique(p, q) }",
        ["add_property A.p: metadata", "add_unique A: metadata", "add_range A.p: metadata"]),
    "constraints of a property with a default": (
        "node A {}", "node A { p: I32 @default(1) @range(p, 0..) @unique(p) }",
        ["add_property A.p: rewritten", "add_unique A.p: validated", "add_range A.p: validated"]),
    "ranges": (
        "node A { p: I32 q: I32 r: I32 s: I32 @range(q, 0..9) @range(r, 0..9) @range(s, 0..) }",
        "node A { p: I32 q: I32 r: I32 s: I32 @range(p, 0..) @range(q, 1..9) @range(r, ..9) }",
        ["add_range A.p: validated", "tighten_range A.q: validated", "loosen_range A.r: metadata",
         "drop_range A.s: metadata"]),
    "a range that moves": ("node A { p: F64 @range(p, 0..1) }", "node A { p: F64 @range(p, 1..2) }",
        ["tighten_range A.p: validated"]),
    "an open end is closed": (
        "node A { p: I32 @range(p, 0..) }", "node A { p: I32 @range(p, 0..9) }",
        ["tighten_range A.p: validated"]),
    "a range of a wider type": ("node A { p: I32 @range(p, 0..9) }",
        "node A { p: I64 @range(p, 0..9) }", ["change_type A.p: rewritten"]),
    "checks": ('node A { p: String @check(p, "a") }', 'node A { p: String @check(p, "b") }',
        ["add_check A.p: validated", "drop_check A.p: metadata"]),
    "lengths": (
        "node A { p: String q: [I32] r: String @length(q, 1..) @length(r, 1..9) }",
        "node A { p: String q: [I32] r: String @length(p, 1..) @length(q, 2..) @length(r, 0..) }",
        ["add_length A.p: validated", "tighten_length A.q: validated",
         "loosen_length A.r: metadata"]),
    "a length that is dropped": ("node A { p: String @length(p, 1..) }", "node A { p: String }",
        ["drop_length A.p: metadata"]),
    # Edges.
    "new edge type": (EDGE, EDGE + "edge E: A -> B @card(0..1)", ["add_type E: metadata"]),
    "new edge type with a minimum": (EDGE, EDGE + "edge E: A -> B @card(1..)",
        ["add_type E: validated"]),
    "new edge type with a minimum from a new type": (
        EDGE, EDGE + "node C {} edge E: C -> B @card(1..)",
        ["add_type C: metadata", "add_type E: metadata"]),
    "other ends": (EDGE + "edge E: A -> B", EDGE + "edge E: B -> B", ["change_ends E: OG-DS-03"]),
    "ends that are renamed": (EDGE + "edge E: A -> B",
        'node C @rename_from("A") {} node B {} edge E: C -> B', ["rename_type C: metadata"]),
    "ends whose names are new": (EDGE + "edge E: A -> B", "node C {} node B {} edge E: C -> B",
        ["add_type C: metadata", "change_ends E: OG-DS-03", "drop_type A: metadata"]),
    "tighter cardinality": (EDGE + "edge E: A -> B", EDGE + "edge E: A -> B @card(0..1)",
        ["tighten_cardinality E: validated"]),
    "looser cardinality": (EDGE + "edge E: A -> B @card(1..1)", EDGE + "edge E: A -> B @card(0..1)",
        ["loosen_cardinality E: metadata"]),
    "cardinality that moves": (EDGE + "edge E: A -> B @card(0..1)",
        EDGE + "edge E: A -> B @card(1..2)", ["tighten_cardinality E: validated"]),
    "a key of an edge": (EDGE + "edge E: A -> B", EDGE + "edge E: A -> B { @key(src, dst) }",
        ["add_key E: validated"]),
}
# fmt: on


@pytest.mark.parametrize(("old", "new", "steps"), CASES.values(), ids=CASES.keys())
def test_the_steps_between_two_schemas(old, new, steps):
    assert lines(plan(old, new)) == steps


@pytest.mark.parametrize(("old", "new", "steps"), CASES.values(), ids=CASES.keys())
def test_without_rows_every_step_is_metadata(old, new, steps):
    kinds = [f"{line.rpartition(': ')[0]}: metadata" for line in steps]
    assert lines(plan(old, new, rows=0)) == kinds


def test_an_edge_type_without_rows_still_has_a_minimum_to_keep():
    old, new = EDGE + "edge E: A -> B", EDGE + "edge E: A -> B @card(1..)"
    assert lines(plan(old, new, rows={"A": 2})) == ["tighten_cardinality E: validated"]
    assert lines(plan(old, new, rows={"B": 2})) == ["tighten_cardinality E: metadata"]
    moved = EDGE + "edge E: B -> A @card(1..)"
    [ends, _] = plan(old, moved, rows={"B": 2}).steps
    assert (str(ends.kind), str(ends.cost), ends.rows) == ("change_ends", "validated", 2)


def test_a_fill_gives_values_to_a_required_property_and_they_are_checked():
    old = "node A {}"
    new = "node A { p: enum(x) q: Vector(2)? r: I32 @default(1) @range(r, 0..) }"
    planned = plan(old, new, fills=[("A", "p"), ("A", "q"), ("A", "r")])
    assert lines(planned) == [
        "add_property A.p: rewritten", "add_property A.q: rewritten",
        "add_property A.r: rewritten", "add_range A.r: validated",
    ]  # fmt: skip
    checks = [(str(check.rule), *check.properties) for check in planned.checks]
    assert checks == [
        ("required", "p"), ("enum", "p"), ("type", "q"), ("required", "r"), ("range", "r"),
    ]  # fmt: skip


def test_a_conversion_from_text_checks_what_may_no_longer_differ():
    old = 'node A { p: String @unique q: F64 @unique d: Date @range(d, "2024-01-01"..) }'
    new = 'node A { p: I32 @unique q: F32 @unique d: DateTime @range(d, "2024-01-01"..) }'
    planned = plan(old, new, conversions=[("A", "p"), ("A", "q"), ("A", "d")])
    assert [(str(check.rule), *check.properties) for check in planned.checks] == [
        ("unique", "p"), ("range", "d"),
    ]  # fmt: skip


def test_the_columns_say_where_their_values_are_from():
    planned = plan(
        "node A { k: String @key p: I32 q: I32 gone: Bool e: enum(a, b) }",
        'node A { z: I64 @rename_from("q") k: String @key p: I32 e: enum(a) '
        "d: I32 @default(1) f: I32 n: I32? }",
        fills=[("A", "f")],
    )
    columns = [
        (column.name, column.old_name, str(column.source), column.needs_values)
        for column in planned.columns(planned.new.node_type("A"))
    ]
    assert columns == [
        ("id", "id", "kept", False),
        ("z", "q", "converted", True),
        ("k", "k", "kept", False),
        ("p", "p", "kept", False),
        ("e", "e", "kept", False),
        ("d", None, "default", True),
        ("f", None, "expression", True),
        ("n", None, "nulls", False),
    ]


def test_the_columns_of_an_empty_type_need_no_values():
    planned = plan(
        EDGE + "edge E: A -> B { p: Blob }", EDGE + "edge E: A -> B { p: I32 q: I32 }", rows=0
    )
    columns = planned.columns(planned.new.edge_type("E"))
    assert [(column.name, column.old_name) for column in columns] == [
        ("id", "id"), ("src", "src"), ("dst", "dst"), ("p", None), ("q", None),
    ]  # fmt: skip
    assert not any(column.needs_values for column in columns)


REQUESTS = {
    "unknown type": ({"fills": [("Persn", "p")]}, "OG-RQ-01", "did you mean Person?"),
    "unknown property": ({"conversions": [("Person", "frsh")]}, "OG-RQ-01", "did you mean fresh?"),
    "fill of an old property": ({"fills": [("Person", "same")]}, "OG-RQ-02", "leave out --fill"),
    "fill of a new type": ({"fills": [("Brand", "p")]}, "OG-RQ-02", "leave out --fill"),
    "conversion of a new property": (
        {"conversions": [("Person", "fresh")]},
        "OG-RQ-03",
        "leave out --convert",
    ),
    "conversion without a change": (
        {"conversions": [("Person", "same")]},
        "OG-RQ-03",
        "leave out --convert",
    ),
}


@pytest.mark.parametrize(("requests", "code", "hint"), REQUESTS.values(), ids=REQUESTS.keys())
@pytest.mark.parametrize("rows", [0, 3])
def test_a_request_that_makes_no_sense_is_an_error(requests, code, hint, rows):
    old = "node Person { same: I32 wide: I32 }"
    new = "node Person { same: I32 wide: I64 fresh: I32? } node Brand { p: I32 }"
    planned = plan(old, new, rows=rows, **requests)
    assert [(str(error.code), error.hint) for error in planned.errors] == [(code, hint)]
    with pytest.raises(MigrationRefusedError):
        planned.require_allowed()


def test_a_request_that_only_an_empty_type_does_not_need_is_accepted():
    planned = plan(
        "node A { p: String }", "node A { p: I32 q: I32 }",
        rows=0, fills=[("A", "q")], conversions=[("A", "p")],
    )  # fmt: skip
    assert planned.findings == ()
    planned.require_allowed()


def test_a_refused_plan_says_why_and_what_to_do():
    planned = plan("node A { p: String q: Vector(2) }", "node A { p: I32 q: Vector(3) r: Bool }")
    with pytest.raises(MigrationRefusedError) as caught:
        planned.require_allowed()
    error = caught.value
    assert error.code is ErrorCode.MIGRATION_REFUSED
    assert exit_code(error) is Exit.INVALID
    assert [str(step.refusal.code) for step in error.steps if step.refusal] == [
        "OG-MF-02", "OG-DS-04", "OG-MF-01",
    ]  # fmt: skip
    assert "--convert A.p" in str(error)
    assert "--fill A.r=<expression>" in str(error)
    assert json.loads(json.dumps(error.details))["steps"][0]["step"] == "change_type"
    again = pickle.loads(pickle.dumps(error))
    assert (again.steps, str(again)) == (error.steps, str(error))


@pytest.mark.parametrize(
    ("old", "new", "way"),
    [
        ("p: Date", "p: I32", "add a property of another name with --fill and drop p, or export"),
        ("p: Vector(2)", "p: Vector(3)", "add a property of another name, load its values, and"),
        ("q: I32", "q: I32 p: [String]", "make it [String]?, and load its values"),
        ("q: I32", "q: I32 p: I32", "give it a @default, or pass --fill A.p=<expression>, or make"),
    ],
)
def test_the_way_out_of_a_refusal_is_one_that_the_type_has(old, new, way):
    [step] = plan(f"node A {{ {old} }}", f"node A {{ {new} }}", rows=1).refusals
    assert step.refusal is not None
    assert step.refusal.way.startswith(way)


def test_a_plan_is_plain_data_and_lines_for_people():
    planned = plan("node A { p: I32? q: I32 }", "node A { p: I32 }", rows=1200)
    assert planned.describe().splitlines() == [
        "require value A.p: I32? -> I32  [validated, 1,200 rows, under a second]",
        "drop property A.q: I32  [metadata, 1,200 rows]",
    ]
    assert planned.to_json() == {
        "allowed": True,
        "seconds_estimated": 0.0,
        "findings": [],
        "steps": [
            {
                "step": "require_value",
                "declaration": "node:A",
                "property": "p",
                "before": "I32?",
                "after": "I32",
                "cost": "validated",
                "rows": 1200,
                "seconds_estimated": 0.0,
                "checks": [{"rule": "required", "type": "node:A", "properties": ["p"]}],
            },
            {
                "step": "drop_property",
                "declaration": "node:A",
                "property": "q",
                "before": "q: I32",
                "cost": "metadata",
                "rows": 1200,
            },
        ],
    }
    assert plan("node A {}", "node A {}").describe() == "the schema does not change"


def test_an_estimate_grows_with_the_rows_and_writing_costs_more_than_checking():
    old, new = "node A { p: I32? q: I32 }", "node A { p: I32 q: I64 r: I32? }"
    planned = plan(old, new, rows=60_000_000)
    assert [step.seconds_estimated for step in planned.steps] == [12.0, 60.0, 0.0]
    assert planned.describe().splitlines() == [
        "require value A.p: I32? -> I32  [validated, 60,000,000 rows, about 12 s]",
        "change type A.q: I32 -> I64  [rewritten, 60,000,000 rows, about 60 s]",
        "add property A.r: I32?  [metadata]",
    ]
    assert planned.to_json()["seconds_estimated"] == 72.0


def test_a_hint_without_use_does_not_hide_that_nothing_changes():
    lines = plan("node A {}", 'node A @rename_from("B") {}').describe().splitlines()
    assert lines[0].startswith("warning[OG-WN-01]")
    assert lines[1:] == ["the schema does not change"]


def test_a_description_that_is_added_is_told_from_one_that_is_removed():
    plain, described = "node A {}", 'node A @description("x") {}'
    [added], [removed] = plan(plain, described).steps, plan(described, plain).steps
    assert added.describe() == 'change description A: none -> @description("x")'
    assert removed.describe() == 'change description A: @description("x") -> none'


def test_the_ends_of_an_edge_before_and_after_are_told_apart():
    old = "node A {} node B {} edge E: A -> B"
    [step] = plan(old, "node A {} node B {} edge E: B -> A", rows=0).steps
    assert step.describe() == "change ends E: from A -> B to B -> A"


def test_a_plan_knows_what_continues_what():
    matching = plan("node A { p: I32 }", 'node B @rename_from("A") { q: I32 }').matching
    new = TableKey.parse("node:B")
    assert matching.types == {new: TableKey.parse("node:A")}
    assert matching.properties == {new: {}}


def test_the_rules_to_check_have_the_words_of_violations():
    assert {str(word) for word in RuleWord} <= {str(rule) for rule in Rule}


def test_every_code_has_a_sentence_and_says_whether_it_refuses():
    assert len({code.sentence for code in ChangeCode}) == len(ChangeCode)
    warnings = [str(code) for code in ChangeCode if code.severity is Severity.WARNING]
    assert warnings == ["OG-WN-01", "OG-WN-02", "OG-WN-03", "OG-WN-04"]
