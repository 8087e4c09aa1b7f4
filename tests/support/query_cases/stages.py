"""Cases: stages, which keep some of what was matched for the matches after them."""

from __future__ import annotations

from omnigraph.query.ir import Value
from tests.support.query_cases.case import QueryCase, answer, ask
from tests.support.query_cases.graphs import NOBODY, PEOPLE
from tests.support.query_cases.several import FORUM

KNOWN = "match { $p: Person optional { $q knows $p } } with { $p, count(distinct $q) as n }"
"""People, and by how many each is known: ada 2, bob 1, cy 1, dee 1, eve 0."""


def staged(title: str, body: str, names: str, *rows: Value | tuple[Value, ...]) -> QueryCase:
    return ask(title, PEOPLE, body, answer(names, *rows))


CASES = (
    staged(
        "the top two, and whom they know",
        f"{KNOWN} order {{ n desc, p desc }} limit 2 match {{ $p knows $f }} "
        "return { $p.name n $f.name }",
        "p.name n f.name",
        ("dee", 1, "ada"),
        ("ada", 2, "bob"),
        ("dee", 1, "dee"),
    ),
    staged(
        "ties at a limit are broken by group keys",
        f"{KNOWN} order {{ n desc }} limit 2 return {{ $p.name n }}",
        "p.name n",
        ("ada", 2),
        ("bob", 1),
    ),
    staged(
        "skip leaves out the first",
        f"{KNOWN} order {{ n desc }} skip 1 limit 2 return {{ $p.name }}",
        "p.name",
        "bob",
        "cy",
    ),
    staged(
        "a limit without an order is by what identifies rows",
        "match { $p: Person } with { $p } limit 3 return { count(*) as n max($p.name) as last }",
        "n last",
        (3, "cy"),
    ),
    staged(
        "a limit of none",
        f"{KNOWN} limit 0 return {{ count(*) as rows sum(n) as total }}",
        "rows total",
        (0, None),
    ),
    staged(
        "where filters by an aggregate",
        f"{KNOWN} where n > 1 or $p.age is null and n = 0 return {{ $p.name n }}",
        "p.name n",
        ("ada", 2),
        ("eve", 0),
    ),
    staged(
        "where filters what a limit leaves",
        f"{KNOWN} order {{ n }} limit 2 where n > 0 return {{ $p.name }}",
        "p.name",
        "bob",
    ),
    staged(
        "a condition of the next match",
        f"{KNOWN} match {{ n = 1 $p knows $f }} return {{ $p.name $f.name }}",
        "p.name f.name",
        ("cy", "ada"),
        ("dee", "ada"),
        ("bob", "cy"),
        ("dee", "dee"),
    ),
    staged(
        "a value without a variable",
        "match { $p: Person } with { avg($p.age) as mean } "
        "match { $q: Person $q.age > mean } return { $q.name }",
        "q.name",
        "ada",
        "dee",
    ),
    staged(
        "a group of nothing is kept",
        "match { $p: Person $p.age > 99 } with { count(*) as n, max($p.age) as oldest } "
        "return { n oldest }",
        "n oldest",
        (0, None),
    ),
    staged(
        "no groups of nothing",
        "match { $p: Person $p.age > 99 } with { $p, count(*) as n } return { count(*) as rows }",
        "rows",
        0,
    ),
    staged(
        "null is a group, and stays null",
        "match { $p: Person } with { $p.city as place, count(*) as n } "
        "return { place n } order { n desc }",
        "place n",
        (None, 2),
        ("London", 2),
        ("Paris", 1),
    ),
    staged(
        "null equals nothing in the next match",
        "match { $p: Person } with { $p.city as place, count(*) as n } "
        "match { $q: Person $q.city = place } return { place n $q.name } order { place }",
        "place n q.name",
        ("London", 2, "ada"),
        ("London", 2, "dee"),
        ("Paris", 1, "bob"),
    ),
    staged(
        "rows are kept as often as they match",
        "match { $p: Person $p $e:knows $q } with { $p, $q } return { $p.name count(*) as n }",
        "p.name n",
        ("ada", 2),
        ("bob", 1),
        ("cy", 1),
        ("dee", 2),
    ),
    staged(
        "unless they are distinct",
        "match { $p: Person $p $e:knows $q } with distinct { $p, $q } "
        "return { $p.name count(*) as n }",
        "p.name n",
        ("ada", 1),
        ("bob", 1),
        ("cy", 1),
        ("dee", 2),
    ),
    staged(
        "equal ids are told apart by values",
        "match { $p: Person $p $e:knows $q } with { $p, $e.since as since } "
        'match { $p: Person { name: "ada" } } return { $p.name since } limit 1',
        "p.name since",
        ("ada", 2001),
    ),
    staged(
        "an edge is kept",
        "match { $p $e:knows $q } with { $e, count(*) as n } order { e desc } limit 2 "
        "return { $e $e.since $e.src n }",
        "e e.since e.src n",
        ("k5", 1999, "dee", 1),
        ("k6", 2001, "dee", 1),
    ),
    staged(
        "what may be null is kept as null",
        "match { $p: Person optional { $p worksAt $c } } with { $p, $c, count(*) as n } "
        "match { $c is null } return { $p.name $c $c.size n }",
        "p.name c c.size n",
        ("dee", None, None, 1),
        ("eve", None, None, 1),
    ),
    staged(
        "a walk from what is null has no rows",
        "match { $p: Person optional { $p worksAt $c } } with distinct { $c } "
        "match { $q worksAt $c } return { $c.name count($q) as n }",
        "c.name n",
        ("acme", 2),
        ("ada", 1),
        ("bell", 1),
    ),
    staged(
        "a binding after a stage is no null",
        "match { $p: Person optional { $p worksAt $c } } with { $p, $c } "
        "match { $c: Company } return { count(*) as n }",
        "n",
        4,
    ),
    staged(
        "optional after a stage",
        f"{KNOWN} where n = 1 match {{ optional {{ $p worksAt $c $c.size > n }} }} "
        "return { $p.name $c.name }",
        "p.name c.name",
        ("cy", None),
        ("dee", None),
        ("bob", "acme"),
    ),
    staged(
        "not after a stage, over what was kept",
        f"{KNOWN} match {{ not {{ $p knows $f $f.age > n * 18 }} }} return {{ $p.name }}",
        "p.name",
        "ada",
        "eve",
    ),
    staged(
        "a value decides about a not for each row",
        'match { $p: Person $q: Person $q.age = 25 or $q.name = "dee" } '
        "with { $p, $q.age as age } match { not { $p knows $f $f.age = age } } "
        "return { $p.name age } order { age }",
        "p.name age",
        ("ada", 25),
        ("cy", 25),
        ("dee", 25),
        ("eve", 25),
        ("ada", 36),
        ("bob", 36),
        ("eve", 36),
    ),
    staged(
        "many stages",
        f"{KNOWN} where n > 0 with {{ n, count(*) as people }} "
        "with { sum(people) as total, max(n) as most, collect(n) as all } "
        "return { total most all length(all) as kinds }",
        "total most all kinds",
        (4, 2, (1, 2), 2),
    ),
    staged(
        "a name that was not kept may be used again",
        "match { $p: Person $p knows $q } with { $p } where $p.age = 25 "
        "match { $p worksAt $q } return { $q.name }",
        "q.name",
        "ada",
    ),
    staged(
        "a stage that only filters",
        "match { $p: Person } with { $p, $p.age * 2 as twice } where twice > 60 "
        "match { $p knows $f } return { $p.name twice $f.name $p.city }",
        "p.name twice f.name p.city",
        ("dee", 72, "ada", "London"),
        ("ada", 72, "bob", "London"),
        ("dee", 72, "dee", "London"),
    ),
    staged(
        "what is returned has the name of what is kept",
        f"{KNOWN} return {{ n count(*) as people }} order {{ people desc, n desc }} limit 2",
        "n people",
        (1, 3),
        (2, 1),
    ),
    staged(
        "numbers between stages have no bound",
        "match { $p: Person $p.age = 25 } with { $p, $p.age * 9000000000000000000 as much } "
        "with { sum(much) as total } where total > 9223372036854775807 "
        "return { total % 9000000000000000001 as rest }",
        "rest",
        8999999999999999976,
    ),
    ask(
        "a variable of several types is kept",
        FORUM,
        "match { $m: Post | Comment } with { $m, $m.length as size } order { size desc } limit 3 "
        "return { $m.id type($m) as kind $m.length }",
        answer("m.id kind m.length", ("m1", "Comment", 7), ("m3", "Comment", 5), ("m1", "Post", 5)),
    ),
    ask(
        "nothing to keep",
        NOBODY,
        "match { $p: Person } with { $p, count(*) as n } match { $c: Company } return { $c.name }",
        answer("c.name"),
    ),
)
