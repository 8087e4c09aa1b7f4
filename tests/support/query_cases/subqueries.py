"""Cases: `exists { … }`, `count { … }` and the like, as values."""

from __future__ import annotations

from omnigraph.query.ir import Value
from tests.support.query_cases.case import QueryCase, answer, ask
from tests.support.query_cases.comparisons import TRUTHS, people
from tests.support.query_cases.graphs import NOBODY, PEOPLE
from tests.support.query_cases.optionals import EMPLOYED, UNKNOWN

FRIENDS = "count { $p knows $_ }"

LOGIC = tuple(
    people(
        f"{form.format(a=known, b='unknown')} in {place}",
        f'$p.name = "ada" {clause.format(form.format(a=TRUTHS[known], b=TRUTHS["unknown"]))}',
        *(("ada",) if (truth == "true") is kept else ()),
        takes="$nothing: String?",
    )
    for (form, known), truth in UNKNOWN.items()
    for place, clause, kept in (
        ("an exists beside or", 'exists {{ {} }} or $p.name = "x"', True),
        ("not an exists beside or", 'not exists {{ {} }} or $p.name = "x"', False),
        ("a count", "count {{ {} }} = 1", True),
        ("a count of nothing", "count {{ $p knows $q {} }} = 0", False),
        ("a sum of nothing", "sum {{ $p knows $q {} 1 }} is null", False),
    )
)
"""Where a condition is not true, nothing matches: a count is 0, and a sum is null."""

AGGREGATED = tuple(
    ask(
        f"{form.format(a=known, b='unknown')} in an aggregate",
        PEOPLE,
        'match { $p: Person {name: "ada"} } return { '
        f"count(case when {form.format(a=TRUTHS[known], b=TRUTHS['unknown'])} then 1 end) as n "
        f"max(case when {form.format(a=TRUTHS[known], b=TRUTHS['unknown'])} then 1 else 0 end) "
        "as most }",
        answer("n most", (int(truth == "true"), int(truth == "true"))),
        "$nothing: String?",
    )
    for (form, known), truth in UNKNOWN.items()
)


def of_people(title: str, columns: str, names: str, *rows: tuple[Value, ...]) -> QueryCase:
    """Values for each person."""
    body = f"match {{ $p: Person }} return {{ $p.name as name {columns} }}"
    return ask(title, PEOPLE, body, answer(f"name {names}", *rows))


CASES = (
    *LOGIC,
    *AGGREGATED,
    of_people(
        "pairs are counted, and edges with a name",
        f"{FRIENDS} as n count {{ $p $e:knows $_ }} as edges count {{ $p <knows> $_ }} as either",
        "n edges either",
        ("ada", 1, 2, 3),
        ("bob", 1, 1, 2),
        ("cy", 1, 1, 2),
        ("dee", 2, 2, 2),
        ("eve", 0, 0, 0),
    ),
    of_people(
        "of no values, a sum is null and a count is 0",
        "sum { $p knows $q $q.age } as total avg { $p knows $q $q.age } as mean "
        "min { $p knows $q $q.name } as first max { $p $e:knows $q $e.since } as last "
        "count { $p knows $q $q.age } as ages",
        "total mean first last ages",
        ("ada", None, None, "bob", 2005, 0),
        ("bob", 25, 25.0, "cy", None, 1),
        ("cy", 36, 36.0, "ada", 2010, 1),
        ("dee", 72, 36.0, "ada", 2001, 2),
        ("eve", None, None, None, None, 0),
    ),
    of_people(
        "whether something exists is a value",
        "exists { $p worksAt $_ } as works "
        'case when not exists { $p knows $_ } then "alone" when exists { $p knows $p } '
        'then "self" else "other" end as kind',
        "works kind",
        ("ada", True, "other"),
        ("bob", True, "other"),
        ("cy", True, "other"),
        ("dee", False, "self"),
        ("eve", False, "alone"),
    ),
    people(
        "exists beside or",
        'exists { $p worksAt $c $c.size > 1 } or $p.name = "eve"',
        "ada",
        "bob",
        "eve",
    ),
    people("not beside or", "not { $p knows $_ } or $p.age = 25", "cy", "eve"),
    people("exists beside and", "exists { $p worksAt $_ } and not { $p.age = 36 }", "bob", "cy"),
    people(
        "exists inside not and parentheses",
        'not (exists { $p worksAt $_ } or $p.name = "dee")',
        "eve",
    ),
    people("a comparison of two", "count { $p knows $_ } < count { $p worksAt $_ }", "ada"),
    people("with a parameter", f"{FRIENDS} >= $n", "dee", takes="$n: I64", n=2),
    people("in arithmetic", f"{FRIENDS} * 10 + count {{ $p worksAt $_ }} = 12", "ada"),
    people(
        "a sum beside null", "coalesce(sum { $p knows $q $q.age }, 0) < 30", "ada", "bob", "eve"
    ),
    people("the same for all rows", "$p.age > avg { $q: Person $q.age }", "ada", "dee"),
    people(
        "of no rows at all",
        'sum { $q: Person {name: "x"} $q.age } is null and '
        'count { $q: Person {name: "x"} } = 0 and $p.age = 25',
        "cy",
    ),
    people(
        "a comparison with the row around it",
        "count { $p knows $q $q.age < $p.age } = 0 and exists { $p knows $_ }",
        "ada",
        "bob",
        "cy",
        "dee",
    ),
    people("a value of the outside is summed", "sum { $p knows $q $p.age } = 72", "dee"),
    people("no clause but a condition", "count { $p.age > 30 } = 1", "ada", "dee"),
    people("several steps", "count { $p knows $q $q worksAt $c } = 2", "cy", "dee"),
    people("several hops", "count { $p knows{1,3} $q } = 4", "dee"),
    people(
        "two variables from outside", "$p knows $q count { $p worksAt $c $q worksAt $c } = 1", "ada"
    ),
    people(
        "a subquery inside a subquery",
        "count { $p knows $q count { $q knows $_ } = 1 } = 1",
        "ada",
        "bob",
        "cy",
        "dee",
    ),
    people(
        "that uses the outermost row",
        "exists { $p knows $q sum { $q knows $r $r.age } = 2 * $p.age } or $p.age = 25",
        "cy",
        "dee",
    ),
    people("inside not", "not { $p knows $q count { $q worksAt $_ } = 2 }", "ada", "bob", "eve"),
    people(
        "inside optional",
        "optional { $p knows $q count { $q worksAt $_ } = 2 } $q is null",
        "ada",
        "bob",
        "eve",
    ),
    people("optional inside", "count { $p knows $q optional { $q worksAt $c } } = 3", "dee"),
    people("of what may be null", f"{EMPLOYED} count {{ $c worksAt $_ }} = 0", "dee", "eve"),
    people(
        "exists of what may be null",
        f'{EMPLOYED} exists {{ $c worksAt $_ }} or $p.name = "eve"',
        "eve",
        "ada",
        "bob",
        "cy",
        "ada",
    ),
    people(
        "a count where null is wanted", f"{EMPLOYED} count {{ $c is null $p knows $_ }} = 2", "dee"
    ),
    people("several types", "count { $p knows|worksAt $x } = 3", "ada"),
    people(
        "an aggregate over no variable of its own",
        "count { $p knows $q $x: Company } = 3",
        "ada",
        "bob",
        "cy",
    ),
    ask(
        "order by a count",
        PEOPLE,
        f"match {{ $p: Person }} return {{ $p.name }} order {{ {FRIENDS} desc }} limit 2",
        answer("p.name", "dee", "ada"),
    ),
    ask(
        "order by a column that is one",
        PEOPLE,
        f"match {{ $p: Person }} return {{ $p.name {FRIENDS} }} order {{ {FRIENDS} }} limit 2",
        answer(("p.name", "count { p knows _ }"), ("eve", 0), ("ada", 1)),
    ),
    ask(
        "groups by a count",
        PEOPLE,
        f"match {{ $p: Person }} return {{ {FRIENDS} as friends count($p) as people }}",
        answer("friends people", (0, 1), (1, 3), (2, 1)),
    ),
    ask(
        "aggregates of counts",
        PEOPLE,
        f"match {{ $p: Person }} return {{ sum({FRIENDS}) as total max({FRIENDS}) as most "
        f"avg({FRIENDS}) as mean collect({FRIENDS}) as all "
        "count(distinct exists { $p worksAt $_ }) as kinds }",
        answer("total most mean all kinds", (5, 2, 1.0, (0, 1, 1, 1, 2), 2)),
    ),
    ask(
        "an aggregate beside rows that are weighed",
        PEOPLE,
        "match { $p knows $q $q worksAt $c } "
        "return { $p.name as name count($c) as n sum(count { $p knows $_ }) as total }",
        answer("name n total", ("ada", 1, 1), ("bob", 1, 1), ("cy", 2, 2), ("dee", 2, 4)),
    ),
    ask(
        "distinct values",
        PEOPLE,
        "match { $p: Person } return distinct { exists { $p worksAt $_ } as works }",
        answer("works", (False,), (True,)),
    ),
    ask(
        "in an object",
        PEOPLE,
        f'match {{ $p: Person {{name: "dee"}} }} return {{ $p {{.name, friends: {FRIENDS}}} }}',
        answer("p", {"name": "dee", "friends": 2}),
    ),
    ask(
        "nothing to have values of",
        NOBODY,
        f"match {{ $p: Person }} return {{ $p {FRIENDS} as n }}",
        answer("p n"),
    ),
    ask(
        "a sum may exceed its type where it is compared",
        PEOPLE,
        "match { $p: Person  sum { $p knows $q  9223372036854775807 } > 9223372036854775807 } "
        "return { $p.name }",
        answer("p.name", "dee"),
    ),
    ask(
        "kept by a stage, and compared by where",
        PEOPLE,
        f"match {{ $p: Person }} with {{ $p, {FRIENDS} as n }} "
        "where n > 0 and n < count { $p worksAt $_ } + 1 match { $p worksAt $c } "
        "return { $p.name n count { $c worksAt $_ } as others }",
        answer("p.name n others", ("ada", 1, 2), ("bob", 1, 2), ("cy", 1, 1), ("ada", 1, 1)),
    ),
    ask(
        "a value that a stage kept, inside",
        PEOPLE,
        "match { $p: Person } with { $p, $p.age as age } "
        "match { $p knows $q  count { $q knows $r  $r.age < age } = 0 } "
        "return { $p.name $q.name }",
        answer("p.name q.name", ("bob", "cy"), ("cy", "ada"), ("dee", "ada"), ("dee", "dee")),
    ),
    ask(
        "the same for all rows that a stage kept",
        PEOPLE,
        "match { $p: Person } with { $p.city as city, count($p) as n } "
        'where n >= max { $q: Person {name: "bob"} length($q.name) } - 1 '
        "match { $c: Company } return { city n count($c) as companies }",
        answer("city n companies", (None, 2, 3), ("London", 2, 3)),
    ),
)
