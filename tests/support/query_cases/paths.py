"""Cases: paths, the best walks from one node to another."""

from __future__ import annotations

import math

from omnigraph.query.ir import Value
from tests.support.query_cases.case import CaseGraph, QueryCase, answer, ask
from tests.support.query_cases.graphs import PEOPLE

_ROADS = (
    ("s", "b", 1.0, 5),
    ("s", "a", 1.0, 1),
    ("a", "t", 1.0, 1),
    ("b", "t", 1.0, 1),
    ("s", "t", 9.0, 9),
    ("s", "t", 3.5, None),
    ("t", "u", 0.0, 2),
    ("u", "v", None, 3),
    ("t", "v", 2.5, 10),
    ("v", "s", -1.0, 0),
    ("a", "a", 0.5, 7),
    ("b", "z", 4.0, 4),
    ("z", "a", 0.0, 0),
)

ROADS = CaseGraph(
    """
    node Town { name: String @key }
    edge Road: Town -> Town { km: F64?  toll: I64? }
    edge Rail: Town -> Town { km: F64? }
    """,
    {
        "Town": [{"name": name} for name in "abstuvz"],
        "Road": [
            {"id": f"r{place}", "src": source, "dst": target, "km": km, "toll": toll}
            for place, (source, target, km, toll) in enumerate(_ROADS)
        ],
        "Rail": [{"id": "l1", "src": "s", "dst": "u", "km": 1.5}],
    },
)
"""Two ways of equal length from s to t by way of a and b, and two direct roads; a has a loop."""

FAR = CaseGraph(
    "node Town { name: String @key }\nedge Road: Town -> Town { km: F64 }",
    {
        "Town": [{"name": name} for name in "stu"],
        "Road": [
            {"id": "r1", "src": "s", "dst": "t", "km": 1e308},
            {"id": "r2", "src": "t", "dst": "u", "km": 1e308},
        ],
    },
)
"""From s to u is farther than a float can say."""

S = '$x: Town {name: "s"}'


def way(title: str, clauses: str, *rows: Value | tuple[Value, ...]) -> QueryCase:
    """The towns that are reached, and their paths."""
    body = f"match {{ {clauses} }} return {{ $y length($p) as n nodes($p) as via }}"
    return ask(title, ROADS, body, answer("y n via", *rows))


def costs(title: str, clauses: str, *rows: Value | tuple[Value, ...]) -> QueryCase:
    """The same, with their costs."""
    body = f"match {{ {clauses} }} return {{ $y cost($p) as cost nodes($p) as via }}"
    return ask(title, ROADS, body, answer("y cost via", *rows))


CASES = (
    way(
        "a path has the fewest edges",
        f"{S} $x road{{1,4}} $y as $p",
        ("a", 1, ("s", "a")),
        ("b", 1, ("s", "b")),
        ("t", 1, ("s", "t")),
        ("u", 2, ("s", "t", "u")),
        ("v", 2, ("s", "t", "v")),
        ("z", 2, ("s", "b", "z")),
    ),
    way(
        "of equal paths, the least list of nodes",
        f'{S} $x <road>{{1,4}} $y as $p $y.name in ["z", "u"]',
        ("u", 2, ("s", "t", "u")),
        ("z", 2, ("s", "a", "z")),
    ),
    way(
        "paths to one town, from everywhere",
        '$x road{2,3} $y as $p $y.name = "u"',
        ("u", 2, ("a", "t", "u")),
        ("u", 2, ("b", "t", "u")),
        ("u", 2, ("s", "t", "u")),
        ("u", 3, ("v", "s", "t", "u")),
        ("u", 3, ("z", "a", "t", "u")),
    ),
    way("a loop is a path to itself", "$y: Town $y road{1,3} $y as $p", ("a", 1, ("a", "a"))),
    way("one edge is a path", f'{S} $x road $y as $p $y.name = "t"', ("t", 1, ("s", "t"))),
    way(
        "a path either way",
        '$x: Town {name: "u"} $x <road>{1,2} $y as $p $y.name in ["b", "v"]',
        ("b", 2, ("u", "t", "b")),
        ("v", 1, ("u", "v")),
    ),
    way(
        "a path along several edges",
        f'{S} $x road|rail{{1,3}} $y as $p $y.name in ["u", "v"]',
        ("u", 1, ("s", "u")),
        ("v", 2, ("s", "t", "v")),
    ),
    way(
        "conditions on a path",
        f'{S} $x road{{1,4}} $y as $p length($p) = 2 nodes($p) contains "t"',
        ("u", 2, ("s", "t", "u")),
        ("v", 2, ("s", "t", "v")),
    ),
    way(
        "a path from outside of a not",
        f"{S} $x road{{1,4}} $y as $p not {{ $y road $_ length($p) = 1 }}",
        ("u", 2, ("s", "t", "u")),
        ("v", 2, ("s", "t", "v")),
        ("z", 2, ("s", "b", "z")),
    ),
    costs(
        "the cheapest by a float",
        f"{S} $x road{{1,5}} $y as $p by km",
        ("a", 1.0, ("s", "a")),
        ("b", 1.0, ("s", "b")),
        ("t", 2.0, ("s", "a", "t")),
        ("u", 2.0, ("s", "a", "t", "u")),
        ("v", 4.5, ("s", "a", "t", "v")),
        ("z", 5.0, ("s", "b", "z")),
    ),
    costs(
        "the cheapest of few edges",
        f"{S} $x road{{1,1}} $y as $p by km",
        ("a", 1.0, ("s", "a")),
        ("b", 1.0, ("s", "b")),
        ("t", 3.5, ("s", "t")),
    ),
    costs(
        "the cheapest by a whole number",
        f"{S} $x road{{1,5}} $y as $p by toll",
        ("a", 1, ("s", "a")),
        ("b", 5, ("s", "b")),
        ("t", 2, ("s", "a", "t")),
        ("u", 4, ("s", "a", "t", "u")),
        ("v", 7, ("s", "a", "t", "u", "v")),
        ("z", 9, ("s", "b", "z")),
    ),
    costs(
        "to one town, from everywhere, by a weight",
        '$x road{1,3} $y as $p by toll $y.name = "t"',
        ("t", 1, ("a", "t")),
        ("t", 1, ("b", "t")),
        ("t", 2, ("s", "a", "t")),
        ("t", 12, ("u", "v", "s", "t")),
        ("t", 2, ("v", "s", "a", "t")),
        ("t", 1, ("z", "a", "t")),
    ),
    costs(
        "a loop has its own cost",
        "$y: Town $y road{1,4} $y as $p by km",
        ("a", 0.5, ("a", "a")),
    ),
    costs(
        "an edge without a weight is not there",
        '$x: Town {name: "u"} $x road{1,5} $y as $p by km',
    ),
    costs(
        "the cheapest either way, and along several edges",
        f'{S} $x <road|rail>{{1,5}} $y as $p by km $y.name in ["t", "v"]',
        ("t", 1.5, ("s", "u", "t")),
        ("v", 4.0, ("s", "u", "t", "v")),
    ),
    ask(
        "a cost that is too large is infinite",
        FAR,
        f"match {{ {S} $x road{{1,2}} $y as $p by km }} return {{ $y cost($p) as cost }}",
        answer("y cost", ("t", 1e308), ("u", math.inf)),
    ),
    ask(
        "an optional path",
        ROADS,
        'match { $y: Town $y.name in ["s", "t"] optional { $x: Town {name: "z"} '
        "$x road{1,2} $y as $p } } return { $y length($p) as n nodes($p) as via }",
        answer("y n via", ("s", None, None), ("t", 2, ("z", "a", "t"))),
    ),
    ask(
        "how far, and how many so far",
        ROADS,
        f"match {{ {S} $x road{{1,9}} $y as $p }} "
        "return { length($p) as far count($y) as towns } order { far }",
        answer("far towns", (1, 3), (2, 3)),
    ),
    ask(
        "a path after a stage",
        ROADS,
        f"match {{ {S} $x road $y }} with {{ $y }} order {{ $y.name }} limit 2 "
        "match { $y road{1,3} $z as $p } return { $y $z length($p) as n }"
        " order { n desc } limit 3",
        answer("y z n", ("a", "s", 3), ("b", "s", 3), ("a", "u", 2)),
    ),
    ask(
        "a stage keeps what is read of a path",
        ROADS,
        f"match {{ {S} $x road{{1,4}} $y as $p by toll }} "
        "with { $y, cost($p) as cost, nodes($p) as via } order { cost desc } limit 1 "
        "match { $y road $z } return { $z cost length(via) as n }",
        answer("z cost n", ("a", 9, 3)),
    ),
    ask(
        "a path of an edge between two types",
        PEOPLE,
        "match { $p: Person $p worksAt $c as $w } return { nodes($w) as via } limit 2",
        answer("via", (("ada", "acme"),), (("bob", "acme"),)),
    ),
)
