"""Cases: values that are computed from the values of a row."""

from __future__ import annotations

from datetime import UTC, date, datetime

from omnigraph.query.ir import Value
from tests.support.query_cases.case import QueryCase, TooLarge, answer, ask
from tests.support.query_cases.graphs import PEOPLE, values


def of_ada(title: str, expression: str, value: Value) -> QueryCase:
    """What is computed for ada, who is 36."""
    body = f'match {{ $p: Person {{name: "ada"}} }} return {{ {expression} as v }}'
    return ask(title, PEOPLE, body, answer("v", value))


def of_bob(title: str, expression: str, value: Value) -> QueryCase:
    """What is computed for bob, who has no age."""
    body = f'match {{ $p: Person {{name: "bob"}} }} return {{ {expression} as v }}'
    return ask(title, PEOPLE, body, answer("v", value))


LEAST = values(v={"i32": -(2**31), "i64": -(2**63), "u32": 2**32 - 1, "day": date(9999, 12, 31)})
"""Numbers at the ends of their types, where native arithmetic would overflow."""


def of_least(title: str, expression: str, value: Value) -> QueryCase:
    """What is computed of the numbers at the ends of their types."""
    body = f"match {{ $v: Value }} return {{ {expression} as v }}"
    return ask(title, LEAST, body, answer("v", value))


UNSIGNED = values(v={"u64": 2**63 + 5, "u32": 0})


def of_unsigned(title: str, expression: str, expected: Value | TooLarge) -> QueryCase:
    """What is computed of unsigned numbers, one of which is beyond I64."""
    body = f"match {{ $v: Value }} return {{ {expression} as v }}"
    told = expected if isinstance(expected, TooLarge) else answer("v", expected)
    return ask(title, UNSIGNED, body, told)


CASES = (
    of_unsigned("a sum of unsigned numbers is unsigned", "$v.u64 + 1", 2**63 + 6),
    of_unsigned("a difference of unsigned numbers may be negative", "$v.u32 - 1", -1),
    of_unsigned("a difference of unsigned numbers has a sign", "$v.u64 - 1", TooLarge()),
    of_unsigned("a remainder of unsigned numbers is unsigned", "$v.u64 % 10", 3),
    of_unsigned("either of two unsigned numbers", "coalesce($v.u64, 0)", 2**63 + 5),
    of_unsigned("an unsigned number or null", "coalesce(null, $v.u64, 1)", 2**63 + 5),
    of_unsigned(
        "a case of unsigned numbers", "case when $v.u32 > 0 then 1 else $v.u64 end", 2**63 + 5
    ),
    of_unsigned("a case of a negative number", "case when $v.u32 > 0 then $v.u64 else -1 end", -1),
    of_least("the least number by minus one", "$v.i64 % -1", 0),
    of_least("the least number by a column", "$v.i64 % ($v.i32 + 2147483647)", 0),
    of_least("the least number by ten", "$v.i64 % 10", -8),
    of_least("the square of the least", "$v.i32 * $v.i32", 2**62),
    of_least("a distance that fits", "abs($v.i32)", 2**31),
    of_least("a distance beyond 64 bits", "abs($v.i64) % 1000", 808),
    of_least("a sum beyond 64 bits and back", "($v.i64 + $v.i64) % 1000", -616),
    of_least("a product beyond 64 bits", "($v.i64 * $v.u32) % 7", -3),
    of_least("a difference below zero", "$v.i32 - $v.u32", -(2**31) - 2**32 + 1),
    of_least("the first that is there", "coalesce($v.i32, 0) - 1", -(2**31) - 1),
    of_least("parts of a last day", "year($v.day) * month($v.day) + day($v.day)", 9999 * 12 + 31),
    of_least(
        "a number that no such one is",
        "case when $v.i32 + 1 < 18446744073709551615 then 1 else 0 end",
        1,
    ),
    of_ada("products before sums", "$p.age + 2 * 3", 42),
    of_ada("a minus directly after a value subtracts", "$p.age-1", 35),
    of_ada("signs are read from left to right", "$p.age - 6 - 10", 20),
    of_ada("a division is not truncated", "$p.age / 8", 4.5),
    of_ada("nothing can be divided by zero", "$p.age / ($p.age - 36)", None),
    of_ada("a remainder has the sign of the first", "(0 - $p.age) % 10", -6),
    of_ada("nothing is left by zero", "$p.age % 0", None),
    of_ada(
        "a product beyond 64 bits is compared exactly",
        "case when $p.age * 9223372036854775807 > $p.age * 9223372036854775806 then 1 else 0 end",
        1,
    ),
    of_ada(
        "no float is a whole number that none can be",
        "case when floor($p.age * 1.5) = 9007199254740993 then 1 else 0 end",
        0,
    ),
    of_ada("a whole number beside a float", "$p.age * 0.5", 18.0),
    of_ada("half away from zero", "round(0.0 - 2.5)", -3.0),
    of_ada("downwards", "floor($p.age / -5)", -8.0),
    of_ada("upwards, without a minus before zero", "ceil(-0.5 * 1)", 0.0),
    of_ada("characters are counted", 'length(concat($p.name, "\U0001f40d"))', 4),
    of_ada("small letters", 'lower(concat($p.name, "\u00c9\u0130\u03a3"))', "ada\u00e9i\u03c3"),
    of_ada(
        "capitals are single characters",
        'upper(concat($p.name, "\u00df\ufb01\u1f80\U00010428"))',
        "ADA\u1e9e\ufb01\u1f88\U00010400",
    ),
    of_ada("items are counted", "length($p.tags)", 2),
    of_bob("no items are none", "length($p.tags)", 0),
    of_ada("a part of a text", "substring($p.name, 2, 1)", "d"),
    of_ada("nothing is before the first character", "substring($p.name, 0, 1)", None),
    of_ada("nothing is far before the first character", "substring($p.name, -3000000000, 1)", None),
    of_ada("no part has a length far below zero", "substring($p.name, 1, -3000000000)", None),
    of_ada("a part beyond the end", "substring($p.name, 9)", ""),
    of_ada("spaces and line ends are trimmed", 'trim(" \\t\\r\\na b\\n ")', "a b"),
    of_ada("other white space stays", 'trim("\u00a0a\u2003 ")', "\u00a0a\u2003"),
    of_ada("a dotless i has the plain capital", 'upper("\u0131i")', "II"),
    of_ada("every occurrence is replaced", 'replace($p.name, "a", "xa")', "xadxa"),
    of_ada("no text is never found", 'replace($p.name, "", "x")', "ada"),
    of_ada("days between dates", 'date("2024-03-01") - date("2023-03-01")', 366),
    of_ada(
        "parts of a date",
        'year(date("2024-02-29") + 1) * 100 + month(date("2024-02-29") + 1)',
        202403,
    ),
    of_ada(
        "a day has 24 hours",
        'datetime("2024-02-28T12:00:00.000001Z") + 1',
        datetime(2024, 2, 29, 12, 0, 0, 1, tzinfo=UTC),
    ),
    of_ada(
        "days between instants",
        'datetime("2024-03-01T06:00:00Z") - datetime("2024-02-29T00:00:00Z")',
        1.25,
    ),
    of_ada("there is no instant after the last", 'datetime("9999-12-31T00:00:00Z") + 1', None),
    of_ada("nor before the first", "now() - 9223372036854775807", None),
    of_ada("there is no date after the last", 'date("9999-12-31") + 1', None),
    of_ada("there is no date before the first", 'date("0001-01-01") - 1', None),
    of_ada(
        "the first case that holds",
        'case when $p.age > 40 then "old" when $p.age > 30 then "fit" else "young" end',
        "fit",
    ),
    of_bob("null is passed on", "$p.age + 1", None),
    of_bob("a case without an else is null", "case when $p.age > 1 then 1 end", None),
    of_bob("unknown is not the case", "case when $p.age > 1 then 1 else 2 end", 2),
    of_bob("nor is its inversion", "case when not $p.age > 1 then 1 else 2 end", 2),
    of_bob("the first that is not null", "coalesce($p.age, 7)", 7),
    of_bob(
        "joining null to a text is null", 'concat($p.name, case when $p.age > 1 then "x" end)', None
    ),
    ask(
        "rows are grouped by what is computed",
        PEOPLE,
        "match { $p: Person } return { length($p.name) as n, count($p) as people, "
        "sum($p.age * 2) as s } order { n desc }",
        answer("n people s", (3, 4, 144), (2, 1, 50)),
    ),
    ask(
        "rows are sorted by what is computed",
        PEOPLE,
        "match { $p: Person $p.age is not null } return { $p.name } "
        "order { 0 - $p.age, $p.name desc }",
        answer("p.name", "dee", "ada", "cy"),
    ),
    ask(
        "weights multiply what is computed",
        PEOPLE,
        "match { $p: Person $p knows $q } return { sum($p.age + 1) as s, count($q) as n }",
        answer("s n", (137, 5)),
    ),
)
