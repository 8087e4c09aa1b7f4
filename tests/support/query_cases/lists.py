"""Cases: lists that are collected from rows."""

from __future__ import annotations

from datetime import UTC, date, datetime
from math import inf, nan

from omnigraph.query.ir import Value
from tests.support.query_cases.case import QueryCase, TooLarge, answer, ask
from tests.support.query_cases.graphs import NOBODY, PEOPLE, values

Item = str | int | float | bool | date | datetime
TRUTHS = True, False, True
LATER = datetime(2024, 2, 29, 12, 0, 0, 1, tzinfo=UTC)


def collected(title: str, column: str, *held: Value, of: tuple[Item, ...]) -> QueryCase:
    """What is collected from the values that rows hold in one column."""
    rows = {f"v{place}": {column: value} for place, value in enumerate(held)}
    body = f"match {{ $v: Value }} return {{ collect($v.{column}) as n }}"
    return ask(title, values(**rows), body, answer("n", (of,)))


CASES = (
    ask(
        "values are collected in their own order, without nulls",
        PEOPLE,
        "match { $p: Person } return { collect($p.name) as names, collect($p.age) as ages }",
        answer("names ages", (("ada", "bob", "cy", "dee", "eve"), (25, 36, 36))),
    ),
    ask(
        "equal values are collected once if they are to be distinct",
        PEOPLE,
        "match { $p: Person } return { collect(distinct $p.age) as ages, "
        "collect(distinct $p.team) as teams }",
        answer("ages teams", ((25, 36), ("blue", "red"))),
    ),
    ask(
        "each group has its list, which may be empty",
        PEOPLE,
        "match { $p: Person } return { $p.city, collect($p.team) as teams, count($p) as n }",
        answer(
            "p.city teams n", (None, ("red",), 2), ("London", ("red",), 2), ("Paris", ("blue",), 1)
        ),
    ),
    ask(
        "no rows are an empty list",
        NOBODY,
        "match { $p: Person } return { collect($p.name) as names, collect($p.age + 1) as ages }",
        answer("names ages", ((), ())),
    ),
    ask(
        "an item for each match",
        PEOPLE,
        "match { $p knows $q  $p worksAt $c } "
        "return { $p.name, collect($q.name) as q, count(*) as n } order { n desc }",
        answer("p.name q n", ("ada", ("bob", "bob"), 2), ("bob", ("cy",), 1), ("cy", ("ada",), 1)),
    ),
    ask(
        "edges that are named are collected, each for itself",
        PEOPLE,
        "match { $p $k:knows $q } return { $q, collect($p) as p, collect($k.since) as s, "
        "sum($k.since) as t } order { $q }",
        answer(
            "q p s t",
            ("ada", ("cy", "dee"), (2001, 2010), 4011),
            ("bob", ("ada", "ada"), (2001, 2005), 4006),
            ("cy", ("bob",), (), None),
            ("dee", ("dee",), (1999,), 1999),
        ),
    ),
    ask(
        "what is computed is collected",
        PEOPLE,
        "match { $p: Person } "
        "return { collect($p.age * 2 + 1) as a, collect(upper($p.name)) as b }",
        answer("a b", ((51, 73, 73), ("ADA", "BOB", "CY", "DEE", "EVE"))),
    ),
    collected("floats, with NaN last", "f64", nan, 0.5, -inf, inf, of=(-inf, 0.5, inf, nan)),
    collected("the greatest unsigned numbers", "u64", 2**64 - 1, 0, of=(0, 2**64 - 1)),
    collected("small unsigned numbers", "u32", 2**32 - 1, 7, of=(7, 2**32 - 1)),
    collected("true after false", "flag", *TRUTHS, of=(False, True, True)),
    collected(
        "dates", "day", date(2024, 2, 29), date(1, 1, 1), of=(date(1, 1, 1), date(2024, 2, 29))
    ),
    collected("instants", "at", LATER, of=(LATER,)),
    collected("texts by code point", "text", "é", "z", "\U0001f40d", of=("z", "é", "\U0001f40d")),
    ask(
        "an item has to fit its type",
        values(v0={"i64": 2**63 - 1}),
        "match { $v: Value } return { collect($v.i64 + 1) as n }",
        TooLarge(),
    ),
)
