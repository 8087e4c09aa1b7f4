"""Cases: `optional`, whose variables are null where its clauses match nothing."""

from __future__ import annotations

from omnigraph.query.ir import Value
from tests.support.query_cases.case import QueryCase, answer, ask
from tests.support.query_cases.comparisons import TRUTHS, people
from tests.support.query_cases.graphs import NOBODY, PEOPLE

EMPLOYED = "optional { $p worksAt $c }"

UNKNOWN = {
    ("{a} and {b}", "true"): "unknown",
    ("{a} and {b}", "false"): "false",
    ("{a} and {b}", "unknown"): "unknown",
    ("{a} or {b}", "true"): "true",
    ("{a} or {b}", "false"): "unknown",
    ("not ({a} and {b})", "false"): "true",
    ("not ({a} or {b})", "true"): "false",
    ("not ({a} or {b})", "unknown"): "unknown",
}
"""What is known of a condition, by what is known of one part of it; the other part is unknown."""

PLACES = {
    "not": ("not {{ {} }}", {"false", "unknown"}),
    "exists": ("exists {{ {} }}", {"true"}),
    "optional": ("optional {{ $p knows $x {} }} $x is null", {"false", "unknown"}),
    "case": ("case when {} then 1 else 0 end = 0", {"false", "unknown"}),
}
"""Places of a condition, and what must be known of it for a row to be kept."""

LOGIC = tuple(
    people(
        f"{form.format(a=known, b='unknown')} in {place}",
        f'$p.name = "ada" {clause.format(form.format(a=TRUTHS[known], b=TRUTHS["unknown"]))}',
        *(("ada",) if truth in kept else ()),
        takes="$nothing: String?",
    )
    for (form, known), truth in UNKNOWN.items()
    for place, (clause, kept) in PLACES.items()
)


def jobs(title: str, clauses: str, *rows: tuple[Value, ...]) -> QueryCase:
    """People and their companies."""
    body = f"match {{ $p: Person {clauses} }} return {{ $p.name $c.name }}"
    return ask(title, PEOPLE, body, answer("p.name c.name", *rows))


def knows(title: str, clauses: str, *rows: tuple[Value, ...]) -> QueryCase:
    """People, whom they know, and where those work."""
    body = f"match {{ $p: Person {clauses} }} return {{ $p $q $c }}"
    return ask(title, PEOPLE, body, answer("p q c", *rows))


def of_jobs(title: str, columns: str, names: str, *rows: Value | tuple[Value, ...]) -> QueryCase:
    """Columns over people and their companies."""
    body = f"match {{ $p: Person {EMPLOYED} }} return {{ {columns} }}"
    return ask(title, PEOPLE, body, answer(names, *rows))


CASES = (
    *LOGIC,
    jobs(
        "optional keeps who has none",
        EMPLOYED,
        ("dee", None),
        ("eve", None),
        ("ada", "acme"),
        ("bob", "acme"),
        ("cy", "ada"),
        ("ada", "bell"),
    ),
    jobs(
        "a condition inside decides what is there",
        "optional { $p worksAt $c $c.size > 1 }",
        ("cy", None),
        ("dee", None),
        ("eve", None),
        ("ada", "acme"),
        ("bob", "acme"),
    ),
    jobs(
        "a condition outside decides about rows",
        f"{EMPLOYED} $c.size > 1",
        ("ada", "acme"),
        ("bob", "acme"),
    ),
    people("what is not there is null", f"{EMPLOYED} $c is null", "dee", "eve"),
    people("and so are its properties", f"{EMPLOYED} $c.size is null", "dee", "eve", "ada"),
    people(
        "an unknown part of or", f'{EMPLOYED} $c.size > 1 or $p.name = "eve"', "eve", "ada", "bob"
    ),
    people(
        "an unknown part of and", f'{EMPLOYED} $c.size > 0 and $p.name != "x"', "ada", "bob", "cy"
    ),
    people("not of an unknown", f"{EMPLOYED} not $c.size > 1", "cy"),
    people(
        "not over what may be null", f"{EMPLOYED} not {{ $c.size > 1 }}", "dee", "eve", "cy", "ada"
    ),
    people("a not that wants null", f"{EMPLOYED} not {{ $c is not null }}", "dee", "eve"),
    people(
        "a not that wants no null", f"{EMPLOYED} not {{ $c is null }}", "ada", "bob", "cy", "ada"
    ),
    people("exists with null and more", f"{EMPLOYED} exists {{ $c is null $p knows $_ }}", "dee"),
    people(
        "exists over what may be null",
        f"{EMPLOYED} exists {{ $c worksAt $_ }}",
        "ada",
        "bob",
        "cy",
        "ada",
    ),
    people(
        "a binding again is no null",
        f"{EMPLOYED} exists {{ $c: Company }}",
        "ada",
        "bob",
        "cy",
        "ada",
    ),
    people(
        "optional inside not",
        "not { $p knows $q optional { $q worksAt $c } $c is null }",
        "ada",
        "bob",
        "cy",
        "eve",
    ),
    people(
        "exists inside optional",
        "optional { $p knows $q exists { $q.age > 30 } } $q is not null",
        "cy",
        "dee",
        "dee",
    ),
    knows(
        "optional in optional",
        "optional { $p knows $q optional { $q worksAt $c } }",
        ("dee", "dee", None),
        ("eve", None, None),
        ("ada", "bob", "acme"),
        ("cy", "ada", "acme"),
        ("dee", "ada", "acme"),
        ("bob", "cy", "ada"),
        ("cy", "ada", "bell"),
        ("dee", "ada", "bell"),
    ),
    knows(
        "optional after optional",
        "optional { $p knows $q } optional { $q worksAt $c }",
        ("dee", "dee", None),
        ("eve", None, None),
        ("ada", "bob", "acme"),
        ("cy", "ada", "acme"),
        ("dee", "ada", "acme"),
        ("bob", "cy", "ada"),
        ("cy", "ada", "bell"),
        ("dee", "ada", "bell"),
    ),
    knows(
        "all of an optional, or nothing",
        "optional { $p knows $q $q worksAt $c }",
        ("eve", None, None),
        ("ada", "bob", "acme"),
        ("cy", "ada", "acme"),
        ("dee", "ada", "acme"),
        ("bob", "cy", "ada"),
        ("cy", "ada", "bell"),
        ("dee", "ada", "bell"),
    ),
    knows(
        "two optionals multiply",
        'optional { $p knows $q } optional { $p worksAt $c $c.name != "bell" } $p.age = 36',
        ("dee", "ada", None),
        ("dee", "dee", None),
        ("ada", "bob", "acme"),
    ),
    knows(
        "a condition on the outside, inside",
        "optional { $p knows $q $p.age = 36 } optional { $q worksAt $c $p.age = $q.age }",
        ("ada", "bob", None),
        ("bob", None, None),
        ("cy", None, None),
        ("dee", "dee", None),
        ("eve", None, None),
        ("dee", "ada", "acme"),
        ("dee", "ada", "bell"),
    ),
    ask(
        "an optional edge",
        PEOPLE,
        "match { $p: Person optional { $p $e:knows $q $e.since > 2003 } } "
        "return { $p $e $e.since }",
        answer(
            "p e e.since",
            ("bob", None, None),
            ("dee", None, None),
            ("eve", None, None),
            ("ada", "k2", 2005),
            ("cy", "k4", 2010),
        ),
    ),
    ask(
        "an optional edge between two that are there",
        PEOPLE,
        'match { $a: Person {city: "London"} $b: Person {city: "London"} '
        "optional { $a $e:knows $b } } return { $a $b $e }",
        answer(
            "a b e",
            ("ada", "ada", None),
            ("ada", "dee", None),
            ("dee", "ada", "k6"),
            ("dee", "dee", "k5"),
        ),
    ),
    ask(
        "an optional walk",
        PEOPLE,
        "match { $p: Person optional { $p knows{2,3} $q } } return { $p count($q) as n }",
        answer("p n", ("ada", 1), ("bob", 1), ("cy", 1), ("dee", 2), ("eve", 0)),
    ),
    ask(
        "an optional product",
        PEOPLE,
        "match { $p: Person optional { $c: Company $c.size < $p.age } } return { $p $c }",
        answer(
            "p c",
            ("bob", None),
            ("eve", None),
            ("ada", "acme"),
            ("dee", "acme"),
            ("ada", "ada"),
            ("cy", "ada"),
            ("dee", "ada"),
        ),
    ),
    ask(
        "an optional of an empty type",
        NOBODY,
        "match { $c: Company optional { $p worksAt $c } } return { $c.name $p.name }",
        answer("c.name p.name", ("acme", None)),
    ),
    of_jobs(
        "counts of what may not be there",
        "$p.name as p count($c) as n count(*) as rows",
        "p n rows",
        ("ada", 2, 2),
        ("bob", 1, 1),
        ("cy", 1, 1),
        ("dee", 0, 1),
        ("eve", 0, 1),
    ),
    of_jobs(
        "aggregates of what may not be there",
        "sum($c.size) as s min($c.size) as m avg($c.size) as a count($c.size) as n "
        "count(distinct $c) as d",
        "s m a n d",
        (61, 1, 61 / 3, 3, 3),
    ),
    of_jobs(
        "groups by what may not be there",
        "$c.name as c count($p) as n",
        "c n",
        (None, 2),
        ("acme", 2),
        ("ada", 1),
        ("bell", 1),
    ),
    of_jobs(
        "values of what may not be there",
        'coalesce($c.name, "none") as c, $p.name as p',
        "c p",
        ("none", "dee"),
        ("none", "eve"),
        ("acme", "ada"),
        ("acme", "bob"),
        ("ada", "cy"),
        ("bell", "ada"),
    ),
    ask(
        "an order by what may not be there",
        PEOPLE,
        f"match {{ $p: Person {EMPLOYED} }} return {{ $p $c }} "
        "order { $c.size desc } skip 1 limit 3",
        answer("p c", ("bob", "acme"), ("cy", "ada"), ("dee", None)),
    ),
    ask(
        "sums of several optionals multiply",
        PEOPLE,
        "match { $p: Person optional { $p knows $q } optional { $p worksAt $c } } "
        "return { $p.name as p sum($q.age) as s count($c) as n count(*) as rows }",
        answer(
            "p s n rows",
            ("ada", None, 2, 2),
            ("bob", 25, 1, 1),
            ("cy", 36, 1, 1),
            ("dee", 72, 0, 2),
            ("eve", None, 0, 1),
        ),
    ),
    ask(
        "sums of optionals of a leaf",
        PEOPLE,
        "match { $c: Company $p worksAt $c optional { $p knows $q } optional { $q knows $r } } "
        "return { $c.name as c count($q) as q count($r) as r count($p) as p }",
        answer("c q r p", ("acme", 2, 2, 2), ("ada", 1, 1, 1), ("bell", 1, 1, 1)),
    ),
)
