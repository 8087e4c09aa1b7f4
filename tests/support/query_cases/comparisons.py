"""Cases: bindings, filters, and null in every operator."""

from __future__ import annotations

from tests.support.query_cases.case import QueryCase, answer, ask
from tests.support.query_cases.graphs import PEOPLE


def people(title: str, clauses: str, *names: str, takes: str = "", **given: object) -> QueryCase:
    """Which people meet the clauses."""
    body = f"match {{ $p: Person {clauses} }} return {{ $p.name }}"
    return ask(title, PEOPLE, body, answer("p.name", *names), takes, **given)


def pairs(title: str, clauses: str, *rows: tuple[str, str]) -> QueryCase:
    """Which pairs of people meet the clauses."""
    body = f"match {{ $p: Person $q: Person {clauses} }} return {{ $p.name $q.name }}"
    return ask(title, PEOPLE, body, answer("p.name q.name", *rows))


TRUTHS = {
    "true": "$p.name = $p.name",
    "false": "$p.name != $p.name",
    "unknown": "$p.name = $nothing",
}
"""A condition of each truth."""

IS_TRUE = {
    "{a} and {b}": {("true", "true")},
    "{a} or {b}": {(a, b) for a in TRUTHS for b in TRUTHS if "true" in (a, b)},
    "not ({a} and {b})": {(a, b) for a in TRUTHS for b in TRUTHS if "false" in (a, b)},
    "not ({a} or {b})": {("false", "false")},
    "not (not {a} or not {b})": {("true", "true")},
    "not not {a} and {b}": {("true", "true")},
}
"""For which truths of its parts a condition keeps a row, as Kleene's logic has it."""

LOGIC = tuple(
    people(
        f"{form.format(a=a, b=b)}",
        form.format(a=TRUTHS[a], b=TRUTHS[b]),
        *(("ada", "bob", "cy", "dee", "eve") if (a, b) in kept else ()),
        takes="$nothing: String?",
    )
    for form, kept in IS_TRUE.items()
    for a in TRUTHS
    for b in TRUTHS
    if "unknown" in (a, b) or "and" in form
)

EVERYBODY = ("ada", "bob", "cy", "dee", "eve")
NAN = float("nan")

# NaN equals itself and is greater than all other numbers, wherever both sides are known early.
KNOWN_NUMBERS = tuple(
    people(f"{condition} of NaN", condition, *kept, takes="$x: F64, $y: F64", x=NAN, y=NAN)
    for condition, kept in {
        "$x = $y": EVERYBODY,
        "$x != $y": (),
        "$x <= $y": EVERYBODY,
        "$x < $y": (),
        "1.5 < $x": EVERYBODY,
        "$x > 1.5": EVERYBODY,
        "$x <= 1.5": (),
        "not ($x = 1.5)": EVERYBODY,
    }.items()
)

CASES = (
    *LOGIC,
    *KNOWN_NUMBERS,
    # On arrays these were not tested at all.
    people("a condition on no variable", "$p knows $_  $x > 3", takes="$x: I64", x=3),
    people(
        "one that holds, of each of two jobs",
        "$p worksAt $_  $x > 3",
        *("ada", "ada", "bob", "cy"),
        takes="$x: I64",
        x=4,
    ),
    people("the type of one type", '$p knows $_  type($p) != "Person"'),
    people("one in a not", "not { $p knows $_  $x > 3 }", "eve", takes="$x: I64", x=4),
    people(
        "one that is all of a not",
        "$p knows $_  not { $p.name = $p.name  $x > 3 }",
        takes="$x: I64",
        x=4,
    ),
    people("either condition is enough", '$p.age < 30 or $p.city = "London"', "ada", "cy", "dee"),
    people("and binds more than or", '$p.age = 36 or $p.age = 25 and $p.city = "x"', "ada", "dee"),
    people(
        "parentheses bind most", '($p.age = 36 or $p.age = 25) and $p.name != "ada"', "cy", "dee"
    ),
    people("an inverted comparison is unknown for null", "not $p.age = 36", "cy"),
    people("an inverted membership is unknown for null", "not $p.age in [36, 1]", "cy"),
    people("an inverted list without the item", 'not $p.tags contains "code"', "bob", "eve"),
    people("a number that no item can be", "not $p.age in [36.5]", "ada", "cy", "dee"),
    people("an inverted test for null", "not $p.age is null", "ada", "cy", "dee"),
    people("an item of a parameter", "$p.age in $all", "cy", takes="$all: [I64]", all=[25, 1]),
    people("an item of no items", "$p.age in $all", takes="$all: [I64]", all=[]),
    people(
        "a filter that a null turns off",
        "$x is null or $p.age = $x",
        "ada",
        "bob",
        "cy",
        "dee",
        "eve",
        takes="$x: I64?",
    ),
    people(
        "a filter that a value turns on", "$x is null or $p.age = $x", "cy", takes="$x: I64?", x=25
    ),
    pairs(
        "two variables in one alternative",
        "$p = $q or $p.age > $q.age",
        ("ada", "ada"),
        ("ada", "cy"),
        ("bob", "bob"),
        ("cy", "cy"),
        ("dee", "cy"),
        ("dee", "dee"),
        ("eve", "eve"),
    ),
    people(
        "an alternative in a negation",
        "not { $p knows $q ($q.age is null or $q.age < 30) }",
        "cy",
        "dee",
        "eve",
    ),
    people("a binding alone scans its type", "", "ada", "bob", "cy", "dee", "eve"),
    people("null is not greater", "$p.age > 30", "ada", "dee"),
    people("null is not less", "$p.age < 36", "cy"),
    people("null is not at least", "$p.age >= 36", "ada", "dee"),
    people("null is not at most", "$p.age <= 25", "cy"),
    people("null equals no value", "$p.age = 36", "ada", "dee"),
    people("null differs from no value", "$p.age != 36", "cy"),
    people(
        "null contains nothing, nor does the empty list", '$p.tags contains "code"', "ada", "dee"
    ),
    people("null starts with nothing", '$p.city starts_with ""', "ada", "bob", "dee"),
    people("null has no part", '$p.city contains "o"', "ada", "dee"),
    people("is null finds what no comparison does", "$p.age is null", "bob", "eve"),
    people("is not null finds the others", "$p.age is not null", "ada", "cy", "dee"),
    people("an empty list is not null", "$p.tags is not null", "ada", "bob", "dee", "eve"),
    people("a null parameter equals nothing", "$p.age = $age", takes="$age: I64?", age=None),
    people("a null parameter differs from nothing", "$p.age != $age", takes="$age: I64?"),
    people("a null parameter is part of nothing", "$p.city contains $x", takes="$x: String?"),
    people("a null parameter is an item of nothing", "$p.tags contains $x", takes="$x: String?"),
    people("a null list contains nothing", "$all contains $p.name", takes="$all: [String]?"),
    people(
        "a list holds what is given",
        "$p.tags contains $x",
        "ada",
        "dee",
        takes="$x: String",
        x="code",
    ),
    people("an inline value is equality", "$p: Person {age: 36}", "ada", "dee"),
    people("an inline null parameter matches nothing", "$p: Person {age: $x}", takes="$x: I64?"),
    people("inline values hold together", '$p: Person {city: "London", team: "red"}', "ada"),
    people("an inline value on a list is membership", '$p: Person {tags: "code"}', "ada", "dee"),
    people(
        "naming a variable again adds constraints",
        '$p: Person {city: "London"} $p: Person {team: "red"}',
        "ada",
    ),
    people(
        "a literal list is searched for a property", '["London"] contains $p.city', "ada", "dee"
    ),
    people("a literal may be on the left", "30 < $p.age", "ada", "dee"),
    people("all filters must hold", '$p.age >= 30 $p.city = "London" $p.name != "ada"', "dee"),
    people("contradictions leave nothing", "$p.age > 30 $p.age < 30"),
    people("an enum equals its value", '$p.team = "red"', "ada", "eve"),
    people("an enum differs only where it is", '$p.team != "red"', "bob"),
    people("an enum meets a text", "$p.team = $t", "bob", takes="$t: String", t="blue"),
    people("an enum never equals a text outside it", "$p.team = $t", takes="$t: String", t="green"),
    people("a filter on parameters alone can be false", "$n > 3", takes="$n: I64", n=3),
    people(
        "a filter on parameters alone can be true",
        '$n > 3 $p.name = "cy"',
        "cy",
        takes="$n: I64",
        n=4,
    ),
    people("ids are readable", '$p.id >= "d"', "dee", "eve"),
    people("a bare variable is its id", '$p = "cy"', "cy"),
    pairs(
        "nulls on both sides are not equal",
        "$p.age = $q.age",
        ("ada", "ada"),
        ("ada", "dee"),
        ("cy", "cy"),
        ("dee", "ada"),
        ("dee", "dee"),
    ),
    pairs(
        "null on either side does not differ",
        "$p.age != $q.age",
        ("ada", "cy"),
        ("cy", "ada"),
        ("cy", "dee"),
        ("dee", "cy"),
    ),
    pairs(
        "enums compare with one another",
        "$p.team = $q.team",
        ("ada", "ada"),
        ("ada", "eve"),
        ("bob", "bob"),
        ("eve", "ada"),
        ("eve", "eve"),
    ),
    pairs(
        "a list is searched for another row's property",
        "$p.tags contains $q.name",
    ),
    pairs(
        "two variables of one type may be the same node",
        '$p = $q $p.city = "London"',
        ("ada", "ada"),
        ("dee", "dee"),
    ),
    ask(
        "bindings that nothing connects give their product",
        PEOPLE,
        "match { $c: Company $d: Company } return { $c $d }",
        answer("c d", *((c, d) for c in ("acme", "ada", "bell") for d in ("acme", "ada", "bell"))),
    ),
    ask(
        "ids of different types may be equal",
        PEOPLE,
        "match { $p: Person $c: Company $p.id = $c.id } return { $p $c }",
        answer("p c", ("ada", "ada")),
    ),
    ask(
        "numbers of two types compare across a product",
        PEOPLE,
        "match { $p: Person $c: Company $c.size > $p.age } return { $p $c }",
        answer("p c", ("cy", "acme")),
    ),
)
