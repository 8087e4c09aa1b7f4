"""Rules that come with a change of type: each class of conversion with each rule, both engines."""

from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any, Final, TypeAlias

import pytest

from tests.contract.evolution.worlds import Offence, apply_change, refused_rows
from tests.support.graphs import graph_with


@dataclass(frozen=True)
class Case:
    """A property whose type and rule change.

    Attributes:
        rule: What stands after the type in the new schema; `{p}` is the name of the property.
        kept: Values with their results, which satisfy the rule: one for each row.
        broken: Values that convert, and break the rule in their new type; none where no value can.
        offenders: The rows of `broken` that break it; of two that share a value, the first.
        word: The rule in reports.
        had: The rule in the old schema.
    """

    before: str
    after: str
    rule: str
    kept: dict[Any, Any]
    broken: tuple[Any, ...] = ()
    offenders: tuple[int, ...] = ()
    word: str = ""
    had: str = ""
    requested: bool = False


def _converted(before: str, after: str, rule: str, *rest: Any, **more: Any) -> Case:
    """A conversion that may fail, which has to be requested."""
    return replace(Case(before, after, rule, *rest, **more), requested=True)


RANGE: Final = "@range({p}, 1..3)"
CHECK: Final = '@check({p}, "^[12]")'
LENGTH: Final = "@length({p}, ..2)"
COLOURS: Final = "enum(red, green, blue)"
OF_COLOURS: Final = {"red": "red", "green": "green", "blue": "blue"}
OF_I32: Final = {1: 1, 2: 2, 3: 3}
OF_TEXTS: Final = {"1": 1, "2": 2, "3": 3}
AS_TEXTS: Final = {1: "1", 2: "2", 10: "10"}
JUNE: Final = '@range({p}, "2024-06-01".."2024-06-30")'
NOONS: Final = [datetime(2024, 6, day, 12, tzinfo=UTC) for day in (1, 2, 29)]
MIDNIGHTS: Final = [datetime(2024, 6, day, tzinfo=UTC) for day in (1, 2, 30)]
DAYS: Final = [date(2024, 6, day) for day in (1, 2, 30)]
JULY: Final = datetime(2024, 7, 1, tzinfo=UTC)

# fmt: off
CASES: Final[dict[str, tuple[Case, ...]]] = {
    "the type stays": (
        Case("I32", "I32", "@unique", OF_I32, (1, 2, 1), (0,), "unique"),
        Case("F64", "F64", RANGE, {1.0: 1.0, 2.5: 2.5, 3.0: 3.0}, (1.0, 3.5, 0.5), (1, 2), "range"),
        Case("DateTime", "DateTime", JUNE, {noon: noon for noon in NOONS}, (*NOONS[:2], JULY), (2,),
             "range"),
        Case("String", "String", CHECK, {"1": "1", "2x": "2x", "1y": "1y"}, ("1", "x2", "2"), (1,),
             "check"),
        Case("String", "String", LENGTH, {"": "", "a": "a", "ab": "ab"}, ("abc", "ab", "abcd"),
             (0, 2), "length"),
        Case("String", "String", "@index", OF_COLOURS),
        Case("I32", "I32", "@default(7)", OF_I32),
    ),
    "the text stays, and every one is valid": (
        Case(COLOURS, "String", "@unique", OF_COLOURS, ("red", "blue", "red"), (0,), "unique"),
        Case("enum(a, bb, ccc)", "String", LENGTH, {"a": "a", "bb": "bb"}, ("a", "bb", "ccc"), (2,),
             "length"),
        Case("enum(a, bb, 1, 2)", "String", CHECK, {"1": "1", "2": "2"}, ("1", "a", "bb"), (1, 2),
             "check"),
        Case(COLOURS, "String", "@index", OF_COLOURS),
        Case(COLOURS, "String", '@default("red")', OF_COLOURS),
    ),
    "the text stays, and some may be no value of the enum": (
        Case("String", COLOURS, "@unique", OF_COLOURS, ("red", "red", "blue"), (0,), "unique"),
        Case("String", COLOURS, "", OF_COLOURS, ("red", "Red", "pink"), (1, 2), "enum"),
        Case("String", COLOURS, "@index", OF_COLOURS, ("pink", "blue", "red"), (0,), "enum"),
        Case("String", COLOURS, '@default("red")', OF_COLOURS, ("red", "", "red"), (1,), "enum"),
        Case(COLOURS, "enum(red, green)", "", {"red": "red", "green": "green"},
             ("red", "green", "blue"), (2,), "enum"),
    ),
    "every value converts": (
        Case("I32", "I64", "@unique", OF_I32, (1, 1, 2), (0,), "unique"),
        Case("I32", "I64", "@unique", OF_I32, had="@unique"),
        Case("U32", "U64", RANGE, OF_I32, (0, 1, 4), (0, 2), "range"),
        Case("F32", "F64", RANGE, {1.5: 1.5, 2.5: 2.5}, (0.5, 1.0, 3.5), (0, 2), "range"),
        Case("I32", "I64", "@range({p}, 1..2)", {1: 1, 2: 2}, (1, 2, 3), (2,), "range", had=RANGE),
        Case("I32", "I64", "@index", OF_I32, had="@index"),
        Case("I32", "I64", "@default(1)", OF_I32),
        Case("I32", "String", "@unique", AS_TEXTS, (1, 2, 2), (1,), "unique"),
        Case("I32", "String", CHECK, AS_TEXTS, (1, 31, -1), (1, 2), "check"),
        Case("I32", "String", LENGTH, AS_TEXTS, (1, 100, -10), (1, 2), "length"),
        Case("I32", "String", "@index", AS_TEXTS),
        Case("I32", "String", '@default("1")', AS_TEXTS, had="@default(1)"),
    ),
    "values may fail to convert, though these do not": (
        _converted("String", "I32", "@unique", OF_TEXTS, ("1", "2", "01"), (0,), "unique"),
        _converted("String", "I32", "@unique", OF_TEXTS, ("1", "2", "1e0"), (0,), "unique",
                   had="@unique"),
        _converted("String", "I32", RANGE, OF_TEXTS, ("1", "0", "4"), (1, 2), "range"),
        _converted("String", "I32", "@index", OF_TEXTS, had="@index"),
        _converted("String", "I32", "@default(1)", OF_TEXTS, had='@default("x")'),
        _converted("F64", "I32", RANGE, {1.0: 1, 2.0: 2}, (1.0, 4.0, 2.0), (1,), "range"),
        _converted("DateTime", "Date", JUNE, dict(zip(MIDNIGHTS, DAYS, strict=True)),
                   (*MIDNIGHTS[:2], JULY), (2,), "range"),
        _converted("Date", "DateTime", JUNE, dict(zip(DAYS, MIDNIGHTS, strict=True)), had=JUNE),
        _converted("Date", "String", '@check({p}, "-06-")', {day: str(day) for day in DAYS},
                   (*DAYS[:2], JULY.date()), (2,), "check"),
        _converted("Date", "String", "@length({p}, 10..)", {day: str(day) for day in DAYS}),
        _converted("I32", "enum(1, 2, 3)", "@unique", {1: "1", 2: "2", 3: "3"}, (1, 3, 3), (1,),
                   "unique"),
        _converted("I32", "enum(1, 2)", "", {1: "1", 2: "2"}, (1, 2, 3), (2,), "enum"),
    ),
}
"""By the class of conversion, a case for each rule that the new type may have."""

# Each key has a type of its own, whose ids are the texts of the results, also where values differ.
KEYS: Final = (
    Case("String", "String", "@key", OF_COLOURS, ("red", "green", "pink")),
    Case(COLOURS, "String", "@key", OF_COLOURS, ("red", "green", "green")),
    Case("String", COLOURS, "@key", OF_COLOURS, ("red", "green", "green")),
    Case("I32", "I64", "@key", OF_I32, (1, 2, 4)),
    Case("I32", "String", "@key", {1: "1", 2: "2", 3: "3"}, (1, 2, -3)),
    _converted("String", "I32", "@key", {"1": 1, "02": 2, "3e0": 3}, ("1", "2", "4")),
)
# fmt: on
ROWS: Final = 3

EVERY_CASE: Final = tuple(case for cases in CASES.values() for case in cases)
ONE_OF_EACH: Final = tuple(
    case for cases in CASES.values() for case in {case.word: case for case in cases}.values()
)
"""Of each class, one case for each rule that rows can break, and one that none can."""

Types: TypeAlias = dict[str, tuple[Case, ...]]
"""By its name, the properties `p0`, `p1` … of a type."""


def types_with(cases: tuple[Case, ...], keys: tuple[Case, ...]) -> Types:
    return {
        "Good": cases,
        "Bad": tuple(case for case in cases if case.broken),
        "Empty": cases,
        **{f"GoodKey{number}": (case,) for number, case in enumerate(keys)},
        **{f"BadKey{number}": (case,) for number, case in enumerate(keys)},
    }


def declare(types: Types, *changed: str) -> str:
    """The schema in which some types have their new form."""
    declarations = []
    for name, cases in types.items():
        properties = [] if "Key" in name else ["row: I32 @key"]
        for number, case in enumerate(cases):
            after = name in changed
            type_, rule = (case.after, case.rule) if after else (case.before, case.had)
            properties.append(f"p{number}: {type_} {rule.format(p=f'p{number}')}")
        declarations.append(f"node {name} {{ {'  '.join(properties)} }}")
    return "\n".join(declarations)


def row_ids(types: Types, name: str) -> list[str]:
    """The ids of the rows of a type: where it gets a key, what the key says of good values."""
    if "Key" not in name:
        return [str(row) for row in range(ROWS)]
    [case] = types[name]
    return [str(value) for value in case.kept.values()]


def rows_of(types: Types, name: str, *, after: bool = False) -> dict[str, dict[str, Any]]:
    """By id, the rows of a type: those of a bad one break each rule as its case says."""
    rows = {}
    for row, row_id in enumerate(row_ids(types, name)):
        values: dict[str, Any] = {} if "Key" in name else {"row": row}
        for number, case in enumerate(types[name]):
            kept = list(case.kept.values() if after else case.kept)
            of_case = case.broken if name.startswith("Bad") else kept
            values[f"p{number}"] = of_case[row % len(of_case)]
        rows[row_id] = values
    return rows


def conversions(types: Types, names: list[str]) -> list[str]:
    return [
        f"{name}.p{number}"
        for name in names
        for number, case in enumerate(types[name])
        if case.requested
    ]


def expected_offences(types: Types, bad: list[str]) -> dict[Offence, set[str]]:
    offences: dict[Offence, set[str]] = {
        (case.word, "Bad", (f"p{number}",)): {str(row) for row in case.offenders}
        for number, case in enumerate(types["Bad"])
    }
    return offences | {
        ("type", name, ("id",)): {row_ids(types, name)[-1]} for name in bad if "Key" in name
    }


def change_rules(root: Path, types: Types, engine: str) -> None:
    """Change types with rows that break the rules, and then those whose rows satisfy them."""
    bad = [name for name in types if name.startswith("Bad")]
    good = [name for name in types if name.startswith("Good")]
    rows = {
        name: [{"id": row_id} | row for row_id, row in rows_of(types, name).items()]
        for name in (*bad, *good)
    }
    graph = graph_with(root / "graph", declare(types), rows)

    requests = conversions(types, bad)
    refused = refused_rows(graph, declare(types, *bad), engine=engine, convert=requests)
    assert {offence: set(ids) for offence, ids in refused.items()} == expected_offences(types, bad)

    accepted, requests = declare(types, *good, "Empty"), conversions(types, good)
    of_empty = [
        step.cost
        for step in graph.schema.plan(accepted, convert=requests).steps
        if step.place.startswith("Empty.")
    ]
    assert len(of_empty) >= len(types["Empty"])
    assert set(of_empty) == {"metadata"}
    expected = {name: rows_of(types, name, after=True) for name in good} | {"Empty": {}}
    apply_change(graph, accepted, expected, untouched=bad, engine=engine, convert=requests)


def test_rules_come_with_conversions_where_rows_keep_them_and_name_those_that_do_not(tmp_path):
    change_rules(tmp_path, types_with(EVERY_CASE, KEYS), "local")


@pytest.mark.usefixtures("spark")
def test_spark_finds_the_same_rows_and_writes_the_same_values(tmp_path):
    # Of the keys only the one whose text is made by a conversion, since each type is a job.
    change_rules(tmp_path, types_with(ONE_OF_EACH, KEYS[-1:]), "spark")
