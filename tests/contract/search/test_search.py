"""Search through the facade: each function, each place that it may stand in, and bad input."""

import math
from typing import Any, Final

import pytest

from omnigraph.errors import InvalidInputError, InvalidParameterError
from omnigraph.graph import Graph
from omnigraph.lang.diagnostics import DiagnosticsError
from tests.support.graphs import graph_with

SCHEMA: Final = """
node Doc {
  name: String @key
  body: String?
  title: String? @index(analyzer="simple")
  v: Vector(2)?
  flat: Vector(2)? @index(metric="l2")
  dot: Vector(2)? @index(metric="dot")
}
edge Cites: Doc -> Doc { why: String? }
"""
DOCS: Final[list[dict[str, Any]]] = [
    {"name": "a", "body": "Graphs and databases", "title": "The Graph", "v": [1, 0]},
    {"name": "b", "body": "A graph of graph databases", "title": "graph two", "v": [0, 2]},
    {"name": "c", "body": "Nothing here, really", "title": None, "v": [3, 3]},
    {"name": "d", "body": None, "title": "none", "v": None},
    {"name": "e", "body": "The house of a graph", "title": "houses", "v": [0, 0]},
]
CITES: Final[list[dict[str, Any]]] = [
    {"src": "a", "dst": "b", "why": "graphs matter"},
    {"src": "a", "dst": "c", "why": None},
    {"src": "b", "dst": "e", "why": "houses"},
]


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    folder = tmp_path_factory.mktemp("search") / "graph.omni"
    docs = [{**doc, "flat": doc["v"], "dot": doc["v"]} for doc in DOCS]
    return graph_with(folder, SCHEMA, {"Doc": docs, "Cites": CITES})


def ask(
    graph: Graph, match: str, rest: str, types: str = "$q: String", **values: object
) -> list[Any]:
    """The rows as tuples; the query's parameters are those of `types`."""
    text = f"query q({types}) {{ match {{ {match} }} {rest} }}"
    return [tuple(row.values()) for row in graph.query(text, values).rows()]


def names(graph: Graph, match: str, q: str) -> list[str]:
    return [row[0] for row in ask(graph, f"$d: Doc {match}", "return { $d.name }", q=q)]


def test_a_search_finds_any_of_the_words_as_they_are_analysed(graph):
    assert names(graph, "search($d.body, $q)", q="the GRAPH's houses") == ["a", "b", "e"]
    assert names(graph, "search($d.body, $q)", q="nothings") == ["c"]
    assert names(graph, "search($d.title, $q)", q="house the") == ["a"]


def test_a_fuzzy_search_finds_words_that_differ_by_a_few_characters(graph):
    assert names(graph, "fuzzy($d.title, $q)", q="hausis") == ["e"]
    assert names(graph, "fuzzy($d.title, $q, 1)", q="hausis") == []
    assert names(graph, "fuzzy($d.title, $q)", q="twi") == ["b"]
    # Two characters are too few to differ in one of them.
    assert names(graph, "fuzzy($d.title, $q)", q="tw") == []


def test_a_phrase_has_its_words_as_far_from_each_other_as_the_text(graph):
    assert names(graph, "match_text($d.body, $q)", q="graph databases") == ["b"]
    assert names(graph, "match_text($d.body, $q)", q="graphs and databases") == ["a"]
    assert names(graph, "match_text($d.body, $q)", q="house of a graph") == ["e"]
    assert names(graph, "match_text($d.body, $q)", q="house graph") == []
    assert names(graph, "match_text($d.body, $q)", q="databases graph") == []


def test_a_search_inside_a_negation_and_on_an_edge(graph):
    cited = "not { $d cites $x search($x.body, $q) }"
    assert names(graph, cited, q="graph") == ["c", "d", "e"]
    assert names(graph, "not { $d cites $x search($d.body, $q) }", q="databases") == ["c", "d", "e"]
    match = "$d: Doc $d $w:cites $x search($w.why, $q)"
    assert ask(graph, match, "return { $d.name }", q="house graphs") == [("a",), ("b",)]
    grouped = ask(graph, match, "return { $d.name count($x) as n }", q="house graphs")
    assert grouped == [("a", 1), ("b", 1)]


def test_several_searches_of_one_query_all_hold(graph):
    assert names(graph, "search($d.body, $q) search($d.title, $q)", q="graph") == ["a", "b"]


def bm25(counts: list[tuple[int, int]], length: int) -> float:
    """The formula: for each word how often this text has it, and how many of 4 texts do."""
    average = (2 + 3 + 2 + 2) / 4
    norm = 1.2 * (1 - 0.75 + 0.75 * length / average)
    return sum(
        math.log(1 + (4 - having + 0.5) / (having + 0.5)) * count * 2.2 / (count + norm)
        for count, having in counts
    )


def test_bm25_is_a_column_and_the_best_comes_first(graph):
    rest = "return { $d.name bm25($d.body, $q) as score } order { score }"
    rows = ask(graph, "$d: Doc", rest, q="graph database graph")
    assert [name for name, _ in rows] == ["a", "b", "e", "c", "d"]
    expected = [bm25([(1, 3), (1, 2)], 2), bm25([(2, 3), (1, 2)], 3), bm25([(1, 3)], 2)]
    assert [score for _, score in rows[:3]] == pytest.approx(expected, rel=1e-12)
    assert [score for _, score in rows[3:]] == [None, None]


def test_an_explicit_direction_means_what_it_says_and_no_score_is_always_last(graph):
    ordered = "return { $d.name } order { bm25($d.body, $q) asc, $d.name desc }"
    assert ask(graph, "$d: Doc", ordered, q="graph database") == [*map(tuple, "ebadc")]
    farthest = "return { $d.name } order { nearest($d.v, $v) desc } limit 9"
    rows = ask(graph, "$d: Doc", farthest, "$v: Vector(2)", v=[1, 0])
    assert rows == [*map(tuple, "bcade")]


def test_a_filter_and_a_traversal_change_no_score(graph):
    rest = "return { $d.name bm25($d.body, $q) as score } order { score }"
    every = dict(ask(graph, "$d: Doc", rest, q="graph database"))
    for scope in ("$d: Doc $x cites $d", '$d: Doc $d.name > "a"', "$d: Doc not { $d cites $_ }"):
        for name, score in ask(graph, scope, rest, q="graph database"):
            assert score == every[name]


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        ("v", [("a", 0.0), ("c", 1 - math.sqrt(0.5)), ("b", 1.0), ("d", None), ("e", None)]),
        ("flat", [("a", 0.0), ("e", 1.0), ("b", 5.0), ("c", 13.0), ("d", None)]),
        ("dot", [("c", -2.0), ("a", 0.0), ("b", 1.0), ("e", 1.0), ("d", None)]),
    ],
)
def test_nearest_is_the_distance_of_the_metric(graph, column, expected):
    rest = f"return {{ $d.name nearest($d.{column}, $v) as far }} order {{ far }} limit 9"
    rows = ask(graph, "$d: Doc", rest, "$v: Vector(2)", v=[1, 0])
    assert [name for name, _ in rows] == [name for name, _ in expected]
    assert [far for _, far in rows] == pytest.approx([far for _, far in expected])
    some = ask(graph, "$d: Doc", rest.replace("9", "2"), "$v: Vector(2)", v=[1, 0])
    assert some == rows[:2]


def test_a_fusion_adds_up_the_ranks_within_the_scope(graph):
    types = "$v: Vector(2), $q: String"
    rest = (
        "return { $d.name rrf(nearest($d.v, $v), bm25($d.body, $q), bm25($d.title, $q), 1) as s }"
        " order { s } limit 9"
    )
    match = "$x: Doc $x cites $d"
    rows = ask(graph, match, rest, types, v=[1, 0], q="graph")
    # b: second of two by vector, first of two by body, first of one by title.
    assert rows == [("b", 1 / 3 + 1 / 2 + 1 / 2), ("c", 1 / 2), ("e", 1 / 3)]
    nobody = ask(graph, '$d: Doc {name: "d"}', rest, types, v=[1, 0], q="graph")
    assert nobody == [("d", None)]


def test_a_search_for_null_finds_nothing(graph):
    rest = "return { $d.name bm25($d.body, $q) as score } order { score } limit 1"
    assert ask(graph, "$d: Doc", rest, "$q: String?") == [("a", None)]
    assert ask(graph, "$d: Doc search($d.body, $q)", rest, "$q: String?") == []
    assert ask(graph, "$d: Doc not { $d cites $x search($x.body, $q) }", rest, "$q: String?")


@pytest.mark.parametrize("text", ["", " ", "the of a", "...", "x" * 60])
def test_a_text_without_words_is_refused_by_name(graph, text):
    for match in ("search($d.body, $q)", "fuzzy($d.body, $q)", "match_text($d.body, $q)"):
        with pytest.raises(InvalidParameterError, match=r"\$q: the text .* has no word") as refused:
            names(graph, match, q=text)
        assert "english" in refused.value.hint
    with pytest.raises(InvalidInputError, match="has no word"):
        ask(graph, f'$d: Doc search($d.body, "{text}")', "return { $d }", "")


def test_a_very_long_text_is_refused(graph):
    with pytest.raises(InvalidParameterError, match=r"\$q: the search text has 1,000,000 bytes"):
        names(graph, "search($d.body, $q)", q="word " * 200_000)
    assert names(graph, "search($d.body, $q)", q="graph " * 10_000) == ["a", "b", "e"]


@pytest.mark.parametrize(
    ("vector", "says"),
    [
        ([1.0], "1 number"),
        ([1.0, 2.0, 3.0], "3"),
        ([1.0, math.nan], "finite"),
        ([1.0, math.inf], "finite"),
        ([0.0, 0.0], "zero"),
        ("graph", "Vector"),
    ],
)
def test_a_vector_that_has_no_distance_is_refused_by_name(graph, vector, says):
    rest = "return { $d.name } order { nearest($d.v, $v) } limit 1"
    with pytest.raises(InvalidParameterError, match=rf"\$v: .*{says}"):
        ask(graph, "$d: Doc", rest, "$v: Vector(2)", v=vector)


def test_a_zero_vector_has_a_distance_where_the_metric_has_one(graph):
    rest = "return { $d.name } order { nearest($d.flat, $v) } limit 1"
    assert ask(graph, "$d: Doc", rest, "$v: Vector(2)", v=[0, 0]) == [("e",)]


def test_nearest_without_a_limit_is_refused(graph):
    with pytest.raises(DiagnosticsError, match="needs a limit"):
        ask(
            graph, "$d: Doc", "return { $d } order { nearest($d.v, $v) }", "$v: Vector(2)", v=[1, 0]
        )


def test_explain_says_how_each_search_is_answered(graph):
    text = """query q($q: String, $v: Vector(2)) {
      match { $d: Doc search($d.title, $q) }
      return { $d } order { rrf(bm25($d.body, $q), nearest($d.flat, $v)) } limit 3
    }"""
    explanation = graph.explain(text, {"q": "graph", "v": [0, 0]})
    assert sorted(explanation.searches.values()) == [
        "bm25 of Doc.body, analyzer english, exact, by a scan",
        "nearest in Doc.flat, metric l2, exact, by a scan",
        "search in Doc.title, analyzer simple, exact, by a scan",
    ]
    assert "searches:\n" in str(explanation)
