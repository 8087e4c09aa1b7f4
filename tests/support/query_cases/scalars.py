"""Cases: values of every type, at the edges where engines round, wrap or fold them."""

from __future__ import annotations

from datetime import UTC, date, datetime
from math import inf, nan

from tests.support.query_cases.case import NOW, CaseGraph, QueryCase, answer, ask
from tests.support.query_cases.graphs import values

I64_MAX = 2**63 - 1
U64_MAX = 2**64 - 1
SHORT_TENTH = 0.10000000149011612
"""The 32-bit float nearest to 0.1."""


def which(
    title: str, on: CaseGraph, clauses: str, names: str, takes: str = "", **given: object
) -> QueryCase:
    """Which values meet the clauses."""
    body = f"match {{ $v: Value {clauses} }} return {{ $v.name }}"
    return ask(title, on, body, answer("v.name", *names.split()), takes, **given)


def both(title: str, on: CaseGraph, clauses: str, pairs: str) -> QueryCase:
    """Which pairs of values meet the clauses, written `ab`."""
    body = f"match {{ $v: Value $w: Value {clauses} }} return {{ $v.name $w.name }}"
    return ask(title, on, body, answer("v.name w.name", *map(tuple, pairs.split())))


INTEGERS = values(
    a={"i64": -3, "i32": -1}, b={"i64": 2, "u32": 0}, c={"i64": 3, "u32": 2**32 - 1}, d={}
)
LARGE = values(
    a={"i64": 2**53, "f64": 2.0**53},
    b={"i64": 2**53 + 1, "f64": 2.0**63},
    c={"i64": I64_MAX, "f64": 2.0**64},
)
UNSIGNED = values(
    a={"u64": 5, "i64": -1},
    b={"u64": 2**63, "i64": -(2**63)},
    c={"u64": U64_MAX, "i64": 5, "f64": 2.0**64},
)
SHORT = values(a={"f32": SHORT_TENTH, "f64": 0.1}, b={"f32": 0.5, "f64": 0.5})
FLOATS = values(
    a={"f64": nan}, b={"f64": inf}, c={"f64": -inf}, d={"f64": -0.0}, e={"f64": 5e-324}, f={}
)
TEXTS = values(
    a={"text": "100% sure"},
    b={"text": "snake_case"},
    c={"text": "snakeXcase"},
    d={"text": 'say "hi"\n\\'},
    e={"text": ""},
    f={"text": "Snake"},
    g={"text": "it's 😀"},
    h={},
)
DAYS = values(
    a={"day": date(1583, 1, 1), "at": datetime(1583, 1, 1, tzinfo=UTC)},
    b={"day": date(2024, 2, 29), "at": NOW},
    c={"day": date(2024, 3, 1), "at": datetime(2024, 2, 29, 12, tzinfo=UTC)},
    d={
        "day": date(9999, 12, 31),
        "at": datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
    },
    e={},
)
LISTS = values(
    a={"ints": (1, 2), "texts": ("a", "%"), "floats": (0.5, nan), "f64": nan},
    b={"ints": (), "texts": ("",), "floats": (-0.0,), "f64": 0.0},
    c={"days": (date(2024, 2, 29),), "ints": (2**53 + 1,), "f64": 2.0**53},
    d={},
)
NEAR = "$i: I64, $f: F64, $n: F32?"
NEARLY: dict[str, object] = {"i": 2**53 + 1, "f": 2.0**53}
FLAGS = values(a={"flag": True}, b={"flag": False}, c={})

CASES = (
    which("given numbers are not rounded to be equal", LARGE, "$i = $f", "", NEAR, **NEARLY),
    which("given numbers that differ, differ", LARGE, "$i != $f", "a b c", NEAR, **NEARLY),
    which(
        "a literal meets a given number", LARGE, "9007199254740993 > $f", "a b c", NEAR, **NEARLY
    ),
    which("a given null equals no number", LARGE, "$n != $i", "", NEAR, **NEARLY),
    which("no integer is 2.7", INTEGERS, "$v.i64 = 2.7", ""),
    which("every integer differs from 2.7", INTEGERS, "$v.i64 != 2.7", "a b c"),
    which("two is less than 2.7", INTEGERS, "$v.i64 < 2.7", "a b"),
    which("three is at least 2.7", INTEGERS, "$v.i64 >= 2.7", "c"),
    which("minus three is less than -2.7", INTEGERS, "$v.i64 < -2.7", "a"),
    which("a whole float equals an integer", INTEGERS, "$v.i64 = 2.0", "b"),
    which("no integer is 2.7 inline", INTEGERS, "$v: Value {i64: $x}", "", "$x: F64", x=2.7),
    which("a float parameter meets integers", INTEGERS, "$v.i64 > $x", "c", "$x: F64", x=2.5),
    which("a short float meets integers", INTEGERS, "$v.i64 <= $x", "a b", "$x: F32", x=2.5),
    both("signed and unsigned compare by value", INTEGERS, "$v.i32 < $w.u32", "ab ac"),
    both("a wide integer equals no float beside it", LARGE, "$v.i64 = $w.f64", "aa"),
    both("a wide integer is greater than a float", LARGE, "$v.i64 > $w.f64", "ba ca"),
    both("a wide integer is less than a float", LARGE, "$v.i64 < $w.f64", "ab ac bb bc cb cc"),
    which("a float equals no integer beside it", LARGE, "$v.f64 = 9007199254740993", ""),
    which("a float is less than the integer beside it", LARGE, "$v.f64 < 9007199254740993", "a"),
    which(
        "a wide integer equals a parameter exactly",
        LARGE,
        "$v.i64 = $x",
        "b",
        "$x: I64",
        x="9007199254740993",
    ),
    which("a wide integer is not a near float", LARGE, "$v.i64 = $x", "a", "$x: F64", x=2.0**53),
    which("U64 goes beyond I64", UNSIGNED, "$v.u64 > 9223372036854775807", "b c"),
    which("the greatest U64 is itself", UNSIGNED, "$v.u64 = 18446744073709551615", "c"),
    which(
        "the greatest U64 as text",
        UNSIGNED,
        "$v.u64 = $x",
        "c",
        "$x: U64",
        x="18446744073709551615",
    ),
    both("no U64 is a negative I64", UNSIGNED, "$v.u64 = $w.i64", "ac"),
    both(
        "every U64 exceeds a negative I64", UNSIGNED, "$v.u64 > $w.i64", "aa ab ba bb bc ca cb cc"
    ),
    both("the greatest U64 is less than 2 to the 64", UNSIGNED, "$v.u64 < $w.f64", "ac bc cc"),
    which("a literal beside a short float is the nearest one", SHORT, "$v.f32 = 0.1", "a"),
    both("a short float is not the long one", SHORT, "$v.f32 = $w.f64", "bb"),
    both("a short tenth exceeds a long tenth", SHORT, "$v.f32 > $w.f64", "aa ba"),
    which("a long parameter is not rounded", SHORT, "$v.f32 = $x", "", "$x: F64", x=0.1),
    which("a short parameter is rounded", SHORT, "$v.f32 = $x", "a", "$x: F32", x=0.1),
    which("NaN and infinity are greater than numbers", FLOATS, "$v.f64 > 1.0", "a b"),
    which("NaN is not less than a number", FLOATS, "$v.f64 <= 1.0", "c d e"),
    which("NaN differs from numbers", FLOATS, "$v.f64 != 1.0", "a b c d e"),
    both("NaN equals NaN", FLOATS, "$v.f64 = $w.f64", "aa bb cc dd ee"),
    both("NaN exceeds infinity", FLOATS, "$v.f64 > $w.f64 $v.f64 > 1.0", "ab ac ad ae bc bd be"),
    which("NaN is found by a parameter", FLOATS, "$v.f64 = $x", "a", takes="$x: F64", x=nan),
    which("others differ from a NaN", FLOATS, "$v.f64 != $x", "b c d e", takes="$x: F64", x=nan),
    which("a NaN exceeds all others", FLOATS, "$v.f64 < $x", "b c d e", takes="$x: F64", x=nan),
    which("infinity is found", FLOATS, "$v.f64 = $x", "b", takes="$x: F64", x=inf),
    which("infinity is exceeded by NaN", FLOATS, "$v.f64 > $x", "a", takes="$x: F64", x=inf),
    which("minus infinity is least", FLOATS, "$v.f64 <= $x", "c", takes="$x: F64", x=-inf),
    which("whole numbers are less than NaN", LARGE, "$v.i64 < $x", "a b c", takes="$x: F64", x=nan),
    which("minus zero equals zero", FLOATS, "$v.f64 = 0.0", "d"),
    which("minus zero equals a whole zero", FLOATS, "$v.f64 = 0", "d"),
    which("minus zero is not less than zero", FLOATS, "$v.f64 < 0.0", "c"),
    which("the least float is not zero", FLOATS, "$v.f64 > 0.0", "a b e"),
    ask(
        "floats are sorted with null first and NaN last",
        FLOATS,
        "match { $v: Value } return { $v.f64 } order { $v.f64 }",
        answer("v.f64", None, -inf, -0.0, 5e-324, inf, nan),
    ),
    ask(
        "floats are sorted with NaN first and null last",
        FLOATS,
        "match { $v: Value } return { $v.f64 } order { $v.f64 desc }",
        answer("v.f64", nan, inf, 5e-324, -0.0, -inf, None),
    ),
    which("a percent sign is itself", TEXTS, '$v.text contains "%"', "a"),
    which("an underscore is itself", TEXTS, '$v.text contains "e_c"', "b"),
    which("a prefix is exact", TEXTS, '$v.text starts_with "snake_"', "b"),
    which("a prefix has its case", TEXTS, '$v.text starts_with "snake"', "b c"),
    which("a percent sign is no prefix of all", TEXTS, '$v.text starts_with "%"', ""),
    which("a part has its case", TEXTS, '$v.text contains "S"', "f"),
    which("the empty text is part of every text", TEXTS, '$v.text contains ""', "a b c d e f g"),
    which("the empty text is not null", TEXTS, '$v.text = ""', "e"),
    which("quotes are plain", TEXTS, '$v.text contains "\\"hi\\""', "d"),
    which("a backslash is plain", TEXTS, '$v.text contains "\\\\"', "d"),
    which("a line end is plain", TEXTS, '$v.text contains "\\n"', "d"),
    which("an apostrophe is plain", TEXTS, "$v.text starts_with $x", "g", "$x: String", x="it's"),
    which("an emoji is a character", TEXTS, '$v.text contains "😀"', "g"),
    which(
        "a text parameter is searched too",
        TEXTS,
        "$x contains $v.text",
        "b e",
        "$x: String",
        x="snake_case",
    ),
    which("blanks count", values(a={"text": "x"}, b={"text": "x "}), '$v.text = "x"', "a"),
    which(
        "accents are not composed",
        values(a={"text": "é"}, b={"text": "e\u0301"}),
        '$v.text = "\\u00e9"',
        "a",
    ),
    which("true is true", FLAGS, "$v.flag = true", "a"),
    which("not true is false, and not null", FLAGS, "$v.flag != true", "b"),
    which("a truth inline", FLAGS, "$v: Value {flag: false}", "b"),
    which("a truth from a parameter", FLAGS, "$v.flag = $x", "a", "$x: Bool", x=True),
    which("dates compare", DAYS, '$v.day > date("2024-02-29")', "c d"),
    which("a date inline", DAYS, '$v: Value {day: date("1583-01-01")}', "a"),
    which("a date as text", DAYS, "$v.day = $x", "b", "$x: Date", x="2024-02-29"),
    which("a date as Python's", DAYS, "$v.day <= $x", "a b", "$x: Date", x=date(2024, 2, 29)),
    which("the last date", DAYS, '$v.day >= date("9999-12-31")', "d"),
    which(
        "instants differ by a microsecond", DAYS, '$v.at > datetime("2024-02-29T12:00:00Z")', "b d"
    ),
    which("an instant has an offset", DAYS, '$v.at = datetime("2024-02-29T13:00:00+01:00")', "c"),
    which(
        "an instant as text",
        DAYS,
        "$v.at = $x",
        "b",
        "$x: DateTime",
        x="2024-02-29T12:00:00.000001Z",
    ),
    which("an instant as Python's", DAYS, "$v.at < $x", "a c", "$x: DateTime", x=NOW),
    which("now is the instant of the query", DAYS, "$v.at = now()", "b"),
    which("the past is before now", DAYS, "$v.at < now()", "a c"),
    which("now inline", DAYS, "$v: Value {at: now()}", "b"),
    ask(
        "now is one value",
        DAYS,
        "match { $v: Value now() = now() } return { now() as at count($v) as n }",
        answer("at n", (NOW, 5)),
    ),
    ask(
        "dates and instants have a least and a greatest",
        DAYS,
        "match { $v: Value } return { min($v.day) as first max($v.at) as last }",
        answer(
            "first last",
            (date(1583, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)),
        ),
    ),
    ask(
        "dates and instants come back as they were",
        DAYS,
        "match { $v: Value } return { $v.day $v.at } order { $v.at desc } limit 2",
        answer(
            "v.day v.at",
            (date(9999, 12, 31), datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)),
            (date(2024, 2, 29), NOW),
        ),
    ),
    ask(
        "extreme numbers come back as they were",
        values(
            a={"i32": -(2**31), "i64": -(2**63), "u32": 2**32 - 1, "u64": U64_MAX},
            b={"f32": 3.4028234663852886e38, "f64": -1.7976931348623157e308},
        ),
        "match { $v: Value } return { $v.i32 $v.i64 $v.u32 $v.u64 $v.f32 $v.f64 }",
        answer(
            "v.i32 v.i64 v.u32 v.u64 v.f32 v.f64",
            (-(2**31), -(2**63), 2**32 - 1, U64_MAX, None, None),
            (None, None, None, None, 3.4028234663852886e38, -1.7976931348623157e308),
        ),
    ),
    which("a list has an item", LISTS, "$v.ints contains 2", "a"),
    which("an item equals a whole float", LISTS, "$v.ints contains 2.0", "a"),
    which("no item is 2.7", LISTS, "$v.ints contains 2.7", ""),
    which("an item inline", LISTS, "$v: Value {ints: 1}", "a"),
    which("a percent sign is an item", LISTS, '$v.texts contains "%"', "a"),
    which("the empty text is an item", LISTS, '$v.texts contains ""', "b"),
    which("an item is not a part", values(a={"texts": ("abc",)}), '$v.texts contains "b"', ""),
    which("a date is an item", LISTS, '$v.days contains date("2024-02-29")', "c"),
    which("zero is an item whatever its sign", LISTS, "$v.floats contains 0.0", "b"),
    both("NaN is an item", LISTS, "$v.floats contains $w.f64", "aa bb"),
    both("an item is not a near float", LISTS, "$v.ints contains $w.f64", ""),
    which(
        "a list from a parameter",
        INTEGERS,
        "$xs contains $v.i64",
        "b c",
        "$xs: [I64]",
        xs=[3, 2, 2],
    ),
    which(
        "an empty list from a parameter", INTEGERS, "$xs contains $v.i64", "", "$xs: [I64]", xs=[]
    ),
    which(
        "a list of floats meets integers",
        INTEGERS,
        "$xs contains $v.i64",
        "b",
        "$xs: [F64]",
        xs=[2.0, 2.7],
    ),
    which("a list of mixed numbers", INTEGERS, "[2.5, 3] contains $v.i64", "c"),
    which(
        "a list of texts from a parameter",
        TEXTS,
        "$xs contains $v.text",
        "b e",
        "$xs: [String]",
        xs=["", "snake_case", "%"],
    ),
    which("a small parameter meets a wide column", INTEGERS, "$v.i64 = $x", "b", "$x: I32", x=2),
    which(
        "an unsigned parameter meets a signed column",
        INTEGERS,
        "$v.i64 < $x",
        "a b c",
        "$x: U64",
        x=U64_MAX,
    ),
)
