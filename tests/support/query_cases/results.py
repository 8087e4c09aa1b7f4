"""Cases: columns, order and limit of rows that are not grouped."""

from __future__ import annotations

from tests.support.query_cases.case import NOW, QueryCase, answer, ask
from tests.support.query_cases.graphs import PEOPLE, values


def ordered(title: str, order: str, *names: str, takes: str = "", **given: object) -> QueryCase:
    """The order of people."""
    body = f"match {{ $p: Person }} return {{ $p.name }} {order}"
    return ask(title, PEOPLE, body, answer("p.name", *names), takes, **given)


TEXTS = values(
    a={"text": "a"},
    b={"text": "B"},
    c={"text": "é"},
    d={"text": "\uffff"},
    e={"text": "😀"},
    f={"text": ""},
    g={"text": "e\u0301"},
    h={"text": "a "},
)

CASES = (
    ask(
        "equal rows are one",
        PEOPLE,
        "match { $p: Person } return distinct { $p.age, $p.city }",
        answer("p.age p.city", (None, None), (None, "Paris"), (25, None), (36, "London")),
    ),
    ask(
        "rows are distinct after an edge that multiplies them",
        PEOPLE,
        "match { $p $e:knows $q } return distinct { $q.name } order { $q.name desc } limit 2",
        answer("q.name", "dee", "cy"),
    ),
    ask(
        "rows are skipped in order",
        PEOPLE,
        "match { $p: Person } return { $p.name } order { $p.name desc } skip 1 limit 2",
        answer("p.name", "dee", "cy"),
    ),
    ask(
        "more rows are skipped than there are",
        PEOPLE,
        "match { $p: Person } return { $p.name } skip $n",
        answer("p.name"),
        "$n: I64",
        n=2**40,
    ),
    ask(
        "rows are counted",
        PEOPLE,
        "match { $p: Person $p $e:knows $q } return { $p.name, count(*) as n } skip 1",
        answer("p.name n", ("bob", 1), ("cy", 1), ("dee", 2)),
    ),
    ask(
        "no rows are none",
        PEOPLE,
        "match { $p: Person $p.age > 99 } return { count(*) as n }",
        answer("n", 0),
    ),
    ask(
        "all properties are columns",
        PEOPLE,
        'match { $c: Company $c.name = "acme" } return { $c.* $c }',
        answer("c.name c.size c", ("acme", 30, "acme")),
    ),
    ask(
        "a limit may be larger than any answer",
        PEOPLE,
        "match { $p: Person } return { $p.name } limit 9223372036854775807",
        answer("p.name", "ada", "bob", "cy", "dee", "eve"),
    ),
    ask(
        "a column has its alias, or the property, or the variable for a name",
        PEOPLE,
        'match { $p: Person {name: "ada"} } return { $p, $p.id, $p.name as called $p.age }',
        answer("p p.id called p.age", ("ada", "ada", "ada", 36)),
    ),
    ask(
        "a column may be returned under two names",
        PEOPLE,
        'match { $p: Person {name: "ada"} } return { $p.age $p.age as years }',
        answer("p.age years", (36, 36)),
    ),
    ask(
        "a keyword may be an alias",
        PEOPLE,
        "match { $p: Person } return { $p.age as order } order { order desc } limit 1",
        answer("order", 36),
    ),
    ask(
        "constants, parameters and now are columns too",
        PEOPLE,
        'match { $c: Company {name: "bell"} } return { 1 as one "x" as text $n as n now() as at }',
        answer("one text n at", (1, "x", 2.5, NOW)),
        "$n: F64",
        n=2.5,
    ),
    ask(
        "a null parameter is a null column",
        PEOPLE,
        'match { $c: Company {name: "bell"} } return { $c.size $n as n }',
        answer("c.size n", (None, None)),
        "$n: String?",
    ),
    ask(
        "lists are returned whole",
        PEOPLE,
        "match { $p: Person } return { $p.tags }",
        answer("p.tags", (("math", "code"),), ((),), None, (("code",),), (("%", "a_b"),)),
    ),
    ask(
        "equal rows are all returned",
        PEOPLE,
        "match { $p: Person } return { $p.city }",
        answer("p.city", "London", "Paris", None, "London", None),
    ),
    ask(
        "without an order rows are sorted by the ids of their variables, in order of name",
        PEOPLE,
        "match { $b: Company $a: Company } return { $b $a } limit 4",
        answer("b a", ("acme", "acme"), ("ada", "acme"), ("bell", "acme"), ("acme", "ada")),
    ),
    ask(
        "ids of edges break ties too",
        PEOPLE,
        "match { $z knows $y $_ $a:knows $y } return { $a $y $z } limit 3",
        answer("a y z", ("k1", "bob", "ada"), ("k2", "bob", "ada"), ("k3", "cy", "bob")),
    ),
    ordered("nulls are first ascending", "order { $p.age asc }", "bob", "eve", "cy", "ada", "dee"),
    ordered("ascending is the default", "order { $p.age }", "bob", "eve", "cy", "ada", "dee"),
    ordered("nulls are last descending", "order { $p.age desc }", "ada", "dee", "cy", "bob", "eve"),
    ordered(
        "a second key decides among equals, nulls among them",
        "order { $p.city, $p.age desc }",
        "cy",
        "eve",
        "ada",
        "dee",
        "bob",
    ),
    ordered(
        "ids break ties ascending whatever the keys do",
        "order { $p.city desc }",
        "bob",
        "ada",
        "dee",
        "cy",
        "eve",
    ),
    ordered("a limit cuts ties always alike", "order { $p.city desc } limit 2", "bob", "ada"),
    ordered("a limit cuts nulls alike", "order { $p.age } limit 1", "bob"),
    ordered("rows are ordered by their own id", "order { $p desc } limit 2", "eve", "dee"),
    ordered("an enum is sorted as text", "order { $p.team }", "cy", "dee", "bob", "ada", "eve"),
    ordered("a limit of nothing", "limit 0"),
    ordered("a limit beyond the rows", "limit 99", "ada", "bob", "cy", "dee", "eve"),
    ordered("a limit from a parameter", "limit $n", "ada", "bob", takes="$n: I64", n=2),
    ordered("a limit of nothing from a parameter", "limit $n", takes="$n: U32", n=0),
    ordered(
        "a constant is no order",
        "order { $n desc } limit 2",
        "ada",
        "bob",
        takes="$n: I64",
        n=7,
    ),
    ask(
        "an order by an alias",
        PEOPLE,
        "match { $p: Person } return { $p.age as years } order { years desc } limit 3",
        answer("years", 36, 36, 25),
    ),
    ask(
        "an order by a property of an edge",
        PEOPLE,
        "match { $a $k:knows $b } return { $k } order { $k.since desc }",
        answer("k", "k4", "k2", "k1", "k6", "k5", "k3"),
    ),
    ask(
        "texts are sorted by code point",
        TEXTS,
        "match { $v: Value } return { $v.text } order { $v.text }",
        answer("v.text", "", "B", "a", "a ", "e\u0301", "é", "\uffff", "😀"),
    ),
    ask(
        "texts are compared by code point",
        TEXTS,
        'match { $v: Value $v.text > "é" } return { $v.name }',
        answer("v.name", "d", "e"),
    ),
    ask(
        "false is before true",
        values(a={"flag": True}, b={"flag": False}, c={}),
        "match { $v: Value } return { $v.flag } order { $v.flag }",
        answer("v.flag", *(None, False, True)),
    ),
    ask(
        "enums are sorted as texts, not as declared",
        values(a={"kind": "low"}, b={"kind": "mid"}, c={"kind": "high"}),
        "match { $v: Value } return { $v.kind } order { $v.kind }",
        answer("v.kind", "high", "low", "mid"),
    ),
    ask(
        "vectors are returned whole",
        values(a={"vector": (0.5, -1.0)}, b={}),
        "match { $v: Value } return { $v.vector }",
        answer("v.vector", ((0.5, -1.0),), None),
    ),
)
