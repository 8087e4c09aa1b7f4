"""Cases: aggregates and the groups that they make."""

from __future__ import annotations

from math import inf, nan

from omnigraph.query.ir import Value
from tests.support.query_cases.case import QueryCase, TooLarge, answer, ask
from tests.support.query_cases.graphs import NOBODY, PEOPLE, values

I64_MAX = 2**63 - 1
U64_MAX = 2**64 - 1


def total(title: str, expression: str, column: str, *held: Value, of: Value) -> QueryCase:
    """What an aggregate makes of the values that rows hold in one column."""
    rows = {f"v{place}": {column: value} for place, value in enumerate(held)}
    body = f"match {{ $v: Value }} return {{ {expression} as n }}"
    return ask(title, values(**rows), body, answer("n", of))


def too_large(title: str, expression: str, column: str, *held: Value) -> QueryCase:
    """A sum that does not fit."""
    rows = {f"v{place}": {column: value} for place, value in enumerate(held)}
    body = f"match {{ $v: Value }} return {{ {expression} as n }}"
    return ask(title, values(**rows), body, TooLarge())


ALL = (
    "count($p.age) as n sum($p.age) as total avg($p.age) as mean min($p.age) as low "
    "max($p.age) as high"
)

THREE_SUMS = values(
    v0={"text": "a", "i64": 1},
    v1={"text": "b", "i64": I64_MAX},
    v2={"text": "b", "i64": I64_MAX},
    v3={"text": "c", "i64": -5},
)
SUMS = "match { $v: Value } return { $v.text as g sum($v.i64) as n }"

BESIDE_A_VALUE = tuple(
    ask(
        f"no rows with {clauses}, and totals beside {value}, which is a key",
        PEOPLE,
        f"match {{ $p: Person {clauses} $p.age > 1000 }} "
        f"return {{ sum($p.age) as s count($p) as n avg($p.age) as m {value} as v }}",
        answer("s n m v"),
        takes="$x: I64",
        x=3,
    )
    for value in ("5", "$x", "now()")
    for clauses in ("$p knows $_", "$p knows $q $p worksAt $c")
)

CASES = (
    *BESIDE_A_VALUE,
    ask(
        "aggregates leave nulls out",
        PEOPLE,
        f"match {{ $p: Person }} return {{ count($p) as all {ALL} }}",
        answer("all n total mean low high", (5, 3, 97, 97 / 3, 25, 36)),
    ),
    ask(
        "distinct aggregates take equal values once",
        PEOPLE,
        "match { $p: Person } return { count(distinct $p.age) as n sum(distinct $p.age) as total "
        "avg(distinct $p.age) as mean count(distinct $p.city) as cities }",
        answer("n total mean cities", (2, 61, 30.5, 2)),
    ),
    ask(
        "aggregates have names of their own",
        PEOPLE,
        "match { $p: Person } return { count($p) count(distinct $p.age) max($p.age) }",
        answer(("count(p)", "count(distinct p.age)", "max(p.age)"), (5, 2, 36)),
    ),
    ask(
        "no rows and no keys give one row",
        NOBODY,
        f"match {{ $p: Person }} return {{ {ALL} }}",
        answer("n total mean low high", (0, None, None, None, None)),
    ),
    ask(
        "no rows and a key give no row",
        NOBODY,
        f"match {{ $p: Person }} return {{ $p.city {ALL} }}",
        answer("p.city n total mean low high"),
    ),
    ask(
        "no rows and a constant for a key give no row",
        NOBODY,
        'match { $p: Person } return { "all" as what count($p) as n }',
        answer("what n"),
    ),
    ask(
        "rows that a filter leaves out do not count",
        PEOPLE,
        'match { $p: Person $p.name = "nobody" } return { count($p) as n sum($p.age) as total }',
        answer("n total", (0, None)),
    ),
    ask(
        "a constant is a key",
        PEOPLE,
        'match { $p: Person } return { "all" as what count($p) as n }',
        answer("what n", ("all", 5)),
    ),
    ask(
        "null is a group of its own, and is first",
        PEOPLE,
        "match { $p: Person } return { $p.city count($p) as n }",
        answer("p.city n", (None, 2), ("London", 2), ("Paris", 1)),
    ),
    ask(
        "a group of nulls only has nothing to add",
        PEOPLE,
        f"match {{ $p: Person }} return {{ $p.city {ALL} }}",
        answer(
            "p.city n total mean low high",
            (None, 1, 25, 25.0, 25, 25),
            ("London", 2, 72, 36.0, 36, 36),
            ("Paris", 0, None, None, None, None),
        ),
    ),
    ask(
        "two keys make a group for each pair",
        PEOPLE,
        "match { $p: Person } return { count($p) as n $p.city $p.age }",
        answer(
            "n p.city p.age",
            (1, None, None),
            (1, None, 25),
            (2, "London", 36),
            (1, "Paris", None),
        ),
    ),
    ask(
        "a bare variable is a key",
        PEOPLE,
        "match { $p worksAt $c } return { $p count($c) as n }",
        answer("p n", ("ada", 2), ("bob", 1), ("cy", 1)),
    ),
    ask(
        "an enum is a key",
        PEOPLE,
        "match { $p: Person } return { $p.team count($p) as n }",
        answer("p.team n", (None, 2), ("blue", 1), ("red", 2)),
    ),
    ask(
        "pairs are counted without parallel edges",
        PEOPLE,
        "match { $a knows $b } return { $a count($b) as n }",
        answer("a n", ("ada", 1), ("bob", 1), ("cy", 1), ("dee", 2)),
    ),
    ask(
        "bound edges are counted with parallel ones",
        PEOPLE,
        "match { $a $k:knows $b } return { $a count($b) as n count(distinct $b) as others }",
        answer("a n others", ("ada", 2, 1), ("bob", 1, 1), ("cy", 1, 1), ("dee", 2, 2)),
    ),
    ask(
        "an aggregate counts rows, whatever clause produced them",
        PEOPLE,
        "match { $p: Person $c: Company } return { sum($p.age) as total count(distinct $p) as n }",
        answer("total n", (291, 5)),
    ),
    ask(
        "a constant may be aggregated",
        PEOPLE,
        "match { $p: Person } return { count(1) as n sum(2) as total min(1.5) as low }",
        answer("n total low", (5, 10, 1.5)),
    ),
    ask(
        "a list is counted whole",
        PEOPLE,
        "match { $p: Person } return { count($p.tags) as n }",
        answer("n", 4),
    ),
    ask(
        "groups are ordered by an aggregate, then by their keys",
        PEOPLE,
        "match { $p: Person } return { $p.city count($p) as n } order { n desc }",
        answer("p.city n", (None, 2), ("London", 2), ("Paris", 1)),
    ),
    ask(
        "a limit cuts tied groups always alike",
        PEOPLE,
        "match { $p: Person } return { $p.city count($p) as n } order { n desc } limit 1",
        answer("p.city n", (None, 2)),
    ),
    ask(
        "groups are ordered by an aggregate that is not returned",
        PEOPLE,
        "match { $p: Person } return { $p.city count($p) as n } order { max($p.age) desc }",
        answer("p.city n", ("London", 2), (None, 2), ("Paris", 1)),
    ),
    ask(
        "a null aggregate is first ascending",
        PEOPLE,
        "match { $p: Person } return { $p.city min($p.age) as low } order { low }",
        answer("p.city low", ("Paris", None), (None, 25), ("London", 36)),
    ),
    ask(
        "groups are ordered by a key descending, null last",
        PEOPLE,
        "match { $p: Person } return { $p.city count($p) as n } order { $p.city desc }",
        answer("p.city n", ("Paris", 1), ("London", 2), (None, 2)),
    ),
    ask(
        "a limit of nothing leaves not even the one group",
        PEOPLE,
        "match { $p: Person } return { count($p) as n } limit 0",
        answer("n"),
    ),
    ask(
        "least and greatest texts are by code point",
        values(a={"text": "é"}, b={"text": "B"}, c={"text": "a"}, d={}),
        "match { $v: Value } return { min($v.text) as low max($v.text) as high }",
        answer("low high", ("B", "é")),
    ),
    total("a sum of small integers is wide", "sum($v.i32)", "i32", 2**31 - 1, 1, of=2**31),
    total("a sum of small unsigned integers is wide", "sum($v.u32)", "u32", 2**32 - 1, 1, of=2**32),
    total("a sum may be the greatest", "sum($v.i64)", "i64", I64_MAX - 1, 1, of=I64_MAX),
    total("a sum may be the least", "sum($v.i64)", "i64", -I64_MAX, -1, of=-(2**63)),
    total("only the whole sum must fit", "sum($v.i64)", "i64", I64_MAX, 1, -1, of=I64_MAX),
    total("an unsigned sum uses all its bits", "sum($v.u64)", "u64", 2**63, I64_MAX, of=U64_MAX),
    total(
        "equal values are summed once", "sum(distinct $v.i64)", "i64", I64_MAX, I64_MAX, of=I64_MAX
    ),
    total("an average does not overflow", "avg($v.i64)", "i64", I64_MAX, I64_MAX, of=2.0**63),
    total("an average of integers is a float", "avg($v.i32)", "i32", 1, 2, of=1.5),
    total(
        "an unsigned average does not overflow", "avg($v.u64)", "u64", U64_MAX, U64_MAX, of=2.0**64
    ),
    total("a sum of floats", "sum($v.f64)", "f64", 0.5, 0.25, None, of=0.75),
    total(
        "a sum of short floats is a long one",
        "sum($v.f32)",
        "f32",
        16_777_216.0,
        1.0,
        of=16_777_217.0,
    ),
    total("a sum with NaN is NaN", "sum($v.f64)", "f64", 1.0, nan, inf, of=nan),
    total("a sum with infinity is infinite", "sum($v.f64)", "f64", 1.0, inf, of=inf),
    total("opposite infinities have no sum", "sum($v.f64)", "f64", inf, -inf, of=nan),
    total("NaN is the greatest", "max($v.f64)", "f64", nan, inf, None, of=nan),
    total("NaN is not the least", "min($v.f64)", "f64", nan, inf, of=inf),
    total("NaN is the least of itself", "min($v.f64)", "f64", nan, None, of=nan),
    total(
        "NaN and zero are each one value",
        "count(distinct $v.f64)",
        "f64",
        nan,
        nan,
        0.0,
        -0.0,
        of=2,
    ),
    total(
        "a distinct sum has zero once", "sum(distinct $v.f64)", "f64", 0.0, -0.0, 1.0, 1.0, of=1.0
    ),
    too_large("a sum beyond I64 is refused", "sum($v.i64)", "i64", I64_MAX, 1),
    too_large("a sum below I64 is refused", "sum($v.i64)", "i64", -(2**63), -1),
    too_large("a sum beyond U64 is refused", "sum($v.u64)", "u64", U64_MAX, 1),
    ask(
        "a sum that is cut off need not fit",
        THREE_SUMS,
        f"{SUMS} order {{ g }} limit 1",
        answer("g n", ("a", 1)),
    ),
    ask("a sum that is kept has to fit", THREE_SUMS, f"{SUMS} order {{ g }} limit 2", TooLarge()),
    ask("no sum has to fit where none is kept", THREE_SUMS, f"{SUMS} limit 0", answer("g n")),
    ask(
        "sums that do not fit are ordered by what they are",
        THREE_SUMS,
        f"{SUMS} order {{ n }} limit 2",
        answer("g n", ("c", -5), ("a", 1)),
    ),
    ask(
        "a sum that is first since it is the largest has to fit",
        THREE_SUMS,
        f"{SUMS} order {{ n desc }} limit 1",
        TooLarge(),
    ),
    ask(
        "an average is not held to the type of the sum",
        THREE_SUMS,
        "match { $v: Value } return { $v.text as g avg($v.i64) as n } order { g desc } limit 2",
        answer("g n", ("c", -5.0), ("b", float(I64_MAX))),
    ),
    ask(
        "NaN is one group, zero is one group, null is one group",
        values(
            a={"f64": nan},
            b={"f64": -0.0},
            c={},
            d={"f64": 0.0},
            e={"f64": nan},
            f={"f64": inf},
            g={"f64": -inf},
        ),
        "match { $v: Value } return { $v.f64 count($v) as n }",
        answer("v.f64 n", (None, 1), (-inf, 1), (0.0, 2), (inf, 1), (nan, 2)),
    ),
    ask(
        "minus zero is a group called zero",
        values(a={"f64": -0.0}, b={"f32": -0.0}),
        "match { $v: Value } return { $v.f64 $v.f32 count($v) as n }",
        answer("v.f64 v.f32 n", (None, 0.0, 1), (0.0, None, 1)),
    ),
)
