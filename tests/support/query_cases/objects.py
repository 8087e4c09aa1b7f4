"""Cases: values of a row by name, in one column."""

from __future__ import annotations

from tests.support.query_cases.case import TooLarge, answer, ask
from tests.support.query_cases.graphs import PEOPLE, values

ADA = {"name": "ada", "age": 36, "city": "London", "team": "red", "tags": ("math", "code")}

CASES = (
    ask(
        "an object has every property",
        PEOPLE,
        'match { $p: Person {name: "ada"} } return { $p {.*} }',
        answer("p", ADA),
    ),
    ask(
        "an object has what is named, in that order",
        PEOPLE,
        'match { $p: Person {name: "bob"} } '
        "return { $p {.id, .age, initial: upper(substring($p.name, 1, 1))} as who }",
        answer("who", {"id": "bob", "age": None, "initial": "B"}),
    ),
    ask(
        "an object may have values of others, and of edges",
        PEOPLE,
        "match { $p $k:knows $q } return { $k {.since, from: $p.name, to: $q.name} as k } "
        "order { $k.since desc, $k } limit 2",
        answer(
            "k",
            {"since": 2010, "from": "cy", "to": "ada"},
            {"since": 2005, "from": "ada", "to": "bob"},
        ),
    ),
    ask(
        "names of values may differ in case only",
        PEOPLE,
        'match { $p: Person {name: "cy"} } return { $p {a: $p.age, aA: $p.name, aa: 1} as o }',
        answer("o", {"a": 25, "aA": "cy", "aa": 1}),
    ),
    ask(
        "an object of nothing is null",
        PEOPLE,
        "match { $p: Person optional { $p worksAt $c } } return { $c {.*, who: $p.name} } "
        "order { $p.name desc } limit 3",
        answer("c", None, None, {"name": "ada", "size": 1, "who": "cy"}),
    ),
    ask(
        "a value of an object has to fit its type",
        values(v0={"i64": 2**63 - 1}),
        "match { $v: Value } return { $v {n: $v.i64 + 1} as o }",
        TooLarge(),
    ),
)
