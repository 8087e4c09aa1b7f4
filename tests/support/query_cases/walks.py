"""Cases: walks of several hops over cycles, diamonds, short cuts and loops."""

from __future__ import annotations

from tests.support.query_cases.case import QueryCase, answer, ask
from tests.support.query_cases.graphs import PEOPLE, SHAPES


def walk(title: str, start: str, hops: str, *names: str) -> QueryCase:
    """Where a walk from a spot arrives."""
    body = f'match {{ $s: Spot {{name: "{start}"}} $s {hops} $t }} return {{ $t.name }}'
    return ask(title, SHAPES, body, answer("t.name", *names))


CASES = (
    walk("a cycle is walked once, and does not return to its start", "a", "to{1,5}", "b", "c"),
    walk("a long walk on a cycle ends", "a", "to{1,12}", "b", "c"),
    walk("a short cut counts, so nothing is two hops away", "s", "to{2,2}"),
    walk("a short cut's ends are both one hop away", "s", "to{1,1}", "t", "u"),
    walk("two ways to one end give it once", "d", "to{2,2}", "g"),
    walk("a walk gathers every distance it allows", "d", "to{1,2}", "e", "f", "g"),
    walk("a loop reaches its own node at one hop", "x", "to{1,1}", "x", "y"),
    walk("a loop reaches its own node once", "x", "to{1,3}", "x", "y"),
    walk("a loop does not reach its own node later", "x", "to{2,3}"),
    walk("a loop on the way is no detour", "h", "to{2,3}", "y"),
    walk("going there and back arrives nowhere", "p", "to{1,2}", "q"),
    walk("two hops there and back do not count", "p", "to{2,2}"),
    walk("parallel edges are one hop", "m", "to{1,1}", "n"),
    walk("a chain is cut at both ends", "m", "to{2,3}", "o", "r"),
    walk("an exact distance", "m", "to{3,3}", "r"),
    walk("a walk beyond the end finds nothing", "m", "to{4,9}"),
    walk("hops without edges find nothing", "z", "to{1,9}"),
    walk("without hops a walk has one", "m", "to", "n"),
    walk("an undirected walk turns back at will", "e", "<to>{2,2}", "f"),
    walk("an undirected walk reaches all around", "g", "<to>{1,2}", "d", "e", "f"),
    walk("an undirected walk does not return to its start", "p", "<to>{1,3}", "q"),
    walk("an undirected walk goes around a cycle both ways", "a", "<to>{1,1}", "b", "c"),
    walk("an undirected walk has shorter ways", "a", "<to>{2,2}"),
    walk("an undirected walk meets a loop at one hop", "x", "<to>{1,2}", "h", "x", "y"),
    ask(
        "a walk is found from its end",
        SHAPES,
        'match { $s to{1,2} $t $t.name = "g" } return { $s }',
        answer("s", "d", "e", "f"),
    ),
    ask(
        "a walk with both ends bound is a condition",
        SHAPES,
        'match { $s: Spot {name: "a"} $t: Spot {name: "c"} $s to{2,2} $t } return { $s $t }',
        answer("s t", ("a", "c")),
    ),
    ask(
        "a walk with both ends bound fails at another distance",
        SHAPES,
        'match { $s: Spot {name: "a"} $t: Spot {name: "c"} $s to{1,1} $t } return { $s $t }',
        answer("s t"),
    ),
    ask(
        "only a loop leads from a node to itself",
        SHAPES,
        "match { $s to{1,4} $s } return { $s }",
        answer("s", "x"),
    ),
    ask(
        "nothing leads from a node to itself in two hops",
        SHAPES,
        "match { $s to{2,4} $s } return { $s }",
        answer("s"),
    ),
    ask(
        "a filter on the destination does not stop the walk",
        SHAPES,
        'match { $s: Spot {name: "m"} $s to{1,3} $t $t.name != "n" $t.name != "o" } return { $t }',
        answer("t", "r"),
    ),
    ask(
        "of all pairs only one is three hops apart",
        SHAPES,
        "match { $s to{3,9} $t } return { $s $t }",
        answer("s t", ("m", "r")),
    ),
    ask(
        "an end without a name multiplies by the nodes reached",
        SHAPES,
        'match { $s: Spot {name: "d"} $s to{1,2} $_ } return { $s }',
        answer("s", "d", "d", "d"),
    ),
    ask(
        "an edge between types does not chain",
        SHAPES,
        "match { $s has{1,3} $t } return { $s $t }",
        answer("s t", ("a", "b"), ("b", "c"), ("c", "a"), ("z", "z")),
    ),
    ask(
        "an edge between types does not chain backwards either",
        SHAPES,
        'match { $t: Thing {name: "a"} $t has{1,3} $s } return { $s }',
        answer("s", "c"),
    ),
    ask(
        "walks follow one another",
        SHAPES,
        'match { $s: Spot {name: "m"} $s to{1,2} $t $t to{1,2} $u } return { $t $u }',
        answer("t u", ("n", "o"), ("n", "r"), ("o", "r")),
    ),
    ask(
        "reached nodes are counted",
        SHAPES,
        "match { $s to{1,9} $t } return { $s count($t) as n } order { n desc } limit 9",
        answer(
            "s n",
            ("d", 3),
            ("m", 3),
            ("a", 2),
            ("b", 2),
            ("c", 2),
            ("h", 2),
            ("n", 2),
            ("s", 2),
            ("x", 2),
        ),
    ),
    ask(
        "what no walk reaches",
        SHAPES,
        "match { $t: Spot not { $s to{1,9} $t $s != $t } } return { $t }",
        answer("t", "d", "h", "m", "s", "z"),
    ),
    ask(
        "a walk over parallel edges, a loop and a cycle",
        PEOPLE,
        'match { $p: Person {name: "dee"} $p knows{1,2} $q } return { $q.name $q.age }',
        answer("q.name q.age", ("ada", 36), ("bob", None), ("dee", 36)),
    ),
)
