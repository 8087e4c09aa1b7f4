"""Every change of type and of nullability with every change of a rule, against written verdicts."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import product
from typing import Final, NamedTuple

import pytest

from omnigraph.schema.catalog import Catalog
from omnigraph.schema.parser import parse_schema
from omnigraph.schema.plan import SchemaPlan, plan_by_hints
from tests.unit.schema.test_retyping import COSTS, MATRIX, TYPES, expected_kind, nullability

TEXTS: Final = ("String", "enum(a,b)", "enum(a)", "enum(b,a)")
NUMBERS: Final = ("I32", "I64", "U32", "U64", "F32", "F64")
TIMES: Final = ("Date", "DateTime")
SINGLE: Final = (*TEXTS, "Bool", *NUMBERS, *TIMES)
"""The types of single values."""

# By the types that may have it, each rule as the schema page allows it: the words of a rule, then
# for rules with bounds those of a stricter and of a looser one.
RULES: Final[dict[str, dict[tuple[str, ...], tuple[str, ...]]]] = {
    "unique": {SINGLE: ("@unique",)},
    "key": {SINGLE: ("@key",)},
    "index": {(*SINGLE, "Vector(2)", "Vector(3)"): ("@index",)},
    "check": {("String",): ('@check(p, "a")',)},
    "length": {
        ("String", "[String]", "[I32]"): (
            "@length(p, 1..3)",
            "@length(p, 1..2)",
            "@length(p, 0..3)",
        )
    },
    "range": {
        NUMBERS: ("@range(p, 1..3)", "@range(p, 1..2)", "@range(p, 0..3)"),
        TIMES: (
            '@range(p, "2024-01-02".."2024-01-04")',
            '@range(p, "2024-01-02".."2024-01-03")',
            '@range(p, "2024-01-01".."2024-01-04")',
        ),
    },
    "default": {
        TEXTS: ('@default("a")',),
        ("Bool",): ("@default(true)",),
        ("I32", "I64", "U32", "U64"): ("@default(1)",),
        ("F32", "F64"): ("@default(1.5)",),
        ("Date",): ('@default("2024-01-02")',),
        ("DateTime",): ('@default("2024-01-02T00:00:00Z")',),
    },
}
READS_ROWS: Final = ("unique", "key", "check", "length", "range")
"""The rules that rows can break; the others say nothing of the rows that exist."""

CHANGES: Final = ("added", "removed", "kept", "stricter", "looser")


class Change(NamedTuple):
    """A change of a property: its types, whether it may be null, and its rule."""

    before: str
    after: str
    nulls: tuple[bool, bool]
    rule: str
    change: str

    @property
    def letter(self) -> str:
        """The verdict of the matrix about the types alone."""
        return MATRIX[self.before][list(TYPES).index(self.after)]

    @property
    def rule_stays(self) -> bool:
        return self.change in ("kept", "stricter", "looser")

    @property
    def orders_differ(self) -> bool:
        """Whether the bounds do not compare, so that the new range counts as stricter."""
        groups = [type_ if type_ in TIMES else "number" for type_ in (self.before, self.after)]
        return self.rule == "range" and groups[0] != groups[1]


def words(rule: str, type_: str) -> tuple[str, ...]:
    """A rule of a property of a type; nothing if it does not exist."""
    return next((texts for types, texts in RULES[rule].items() if type_ in types), ())


def schemas(change: Change) -> tuple[Catalog, Catalog] | None:
    """The schemas before and after; None if one of them is none."""
    had, has = change.change != "added", change.change != "removed"
    old, new = words(change.rule, change.before), words(change.rule, change.after)
    place = {"stricter": 1, "looser": 2}.get(change.change, 0)
    if (had and not old) or (has and len(new) <= place):
        return None
    if change.rule == "key" and ((had and change.nulls[0]) or (has and change.nulls[1])):
        return None
    return (
        declare(change.before, change.nulls[0], old[0] if had else ""),
        declare(change.after, change.nulls[1], new[place] if has else ""),
    )


@cache
def declare(type_: str, nullable: bool, rule: str) -> Catalog:  # noqa: FBT001
    return parse_schema(f"node A {{ p: {type_}{'?' if nullable else ''} {rule} }}")


def changes_from(before: str) -> Iterator[tuple[Change, Catalog, Catalog]]:
    """Every change from a type that two schemas can express."""
    both = (False, True)
    for after, old, new, rule, word in product(TYPES, both, both, RULES, CHANGES):
        change = Change(before, after, (old, new), rule, word)
        if catalogs := schemas(change):
            yield change, *catalogs


def plan(old: Catalog, new: Catalog, *, rows: int, requested: bool) -> SchemaPlan:
    counts = {type_.table_key: rows for type_ in old.types}
    conversions = [("A", "p")] if requested else []
    return plan_by_hints(old, new, row_counts=counts, conversions=conversions)


def verdicts(planned: SchemaPlan) -> list[tuple[str, str]]:
    return sorted(
        (str(step.kind), str(step.refusal.code if step.refusal else step.cost))
        for step in planned.steps
    )


def expected_verdicts(change: Change, *, rows: int, requested: bool) -> list[tuple[str, str]]:
    steps = nullability(*change.nulls, "validated" if rows else "metadata")
    if change.letter != ".":
        kind = expected_kind(TYPES[change.before], TYPES[change.after])
        steps[kind] = type_verdict(change, requested=requested) if rows else "metadata"
    return sorted({**steps, **rule_verdict(change, rows=rows)}.items())


def type_verdict(change: Change, *, requested: bool) -> str:
    # Ids are made from the text of the key: only where the text stays may its type change.
    if change.rule == "key" and change.change != "added" and change.letter in "wcx":
        return "OG-DS-02"
    if change.letter == "c" and requested:
        return "rewritten"
    return COSTS[change.letter]


def rule_verdict(change: Change, *, rows: int) -> dict[str, str]:
    """The step about the rule: those that are new or stricter are checked on rows, if any."""
    checked = "validated" if rows and change.rule in READS_ROWS else "metadata"
    if change.change == "added":
        return {f"add_{change.rule}": checked}
    if change.change == "removed":
        return {f"drop_{change.rule}": "OG-DS-01" if rows and change.rule == "key" else "metadata"}
    if change.change == "stricter" or change.orders_differ:
        return {f"tighten_{change.rule}": checked}
    if change.change == "looser":
        return {f"loosen_{change.rule}": "metadata"}
    if change.rule == "default" and words("default", change.before) != words(
        "default", change.after
    ):
        return {"change_default": "metadata"}
    return {}


def needed_checks(change: Change) -> set[str]:
    """The rules that rows may break though they were valid before."""
    needed = set()
    if change.nulls == (True, False):
        needed.add("required")
    if change.letter == "v" or (change.letter == "c" and change.after in TEXTS[1:]):
        needed.add("enum")
    if change.rule in READS_ROWS and change.change in ("added", "stricter"):
        needed.add(change.rule)
    # Two texts may denote one value, as "1" and "01" do.
    is_read = change.before in TEXTS and change.after not in TEXTS
    if change.rule == "unique" and change.rule_stays and is_read:
        needed.add("unique")
    if change.rule_stays and change.orders_differ:
        needed.add("range")
    return needed


@pytest.mark.parametrize("before", TYPES)
def test_every_change_of_type_nullability_and_rule_has_the_verdict_of_the_table(before):
    for change, old, new in changes_from(before):
        for requested in (False, True) if change.letter == "c" else (False,):
            planned = plan(old, new, rows=3, requested=requested)
            expected = expected_verdicts(change, rows=3, requested=requested)
            assert verdicts(planned) == expected, change
            if not planned.refusals:
                checks = {str(check.rule) for check in planned.checks}
                assert needed_checks(change) <= checks, change
                costs = {cost for _, cost in expected}
                assert not checks or costs - {"metadata"}, f"{change} reads no rows"


@pytest.mark.parametrize("before", TYPES)
def test_a_type_without_rows_accepts_every_change_of_rules_as_metadata(before):
    for change, old, new in changes_from(before):
        planned = plan(old, new, rows=0, requested=False)
        assert verdicts(planned) == expected_verdicts(change, rows=0, requested=False), change
        assert {cost for _, cost in verdicts(planned)} <= {"metadata"}, change
        assert not planned.checks, change


def test_the_table_has_every_rule_with_every_pair_of_types_that_may_have_it():
    found = {change for before in TYPES for change, _, _ in changes_from(before)}
    pairs = len(SINGLE) ** 2
    kept = [change for change in found if change.change == "kept" and not any(change.nulls)]
    by_rule = {rule: sum(change.rule == rule for change in kept) for rule in RULES}
    assert by_rule == {
        "unique": pairs,
        "key": pairs,
        "index": (len(SINGLE) + 2) ** 2,
        "check": 1,
        "length": 9,
        "range": (len(NUMBERS) + len(TIMES)) ** 2,
        "default": pairs,
    }
    assert len(found) > 10_000
