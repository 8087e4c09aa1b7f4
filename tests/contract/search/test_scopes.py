"""The best of a scope: filled while rows match, the right ones, and without a ranking of all."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pytest

import omnigraph
from omnigraph.engine.local import cuts, indexed_vectors, searching
from omnigraph.graph import Graph
from omnigraph.storage import search_options
from tests.support.graphs import add_indexes

ROWS: Final = 3000
DIMENSION: Final = 8
SCHEMA: Final = f"""
node Doc {{
  number: I64 @key
  share: I64
  mark: I64
  body: String @index
  v: Vector({DIMENSION})? @index(kind="ivf_flat", metric="l2")
}}
edge Cites: Doc -> Doc
"""
WORDS: Final = ("graph", "lake", "soup", "cold")
EMPTY_EVERY: Final = 50
"""Each of so many rows has no vector."""


def draw() -> np.ndarray:
    generator = np.random.default_rng(5)
    centres = generator.standard_normal((30, DIMENSION))
    near = centres[generator.integers(0, 30, ROWS)]
    return (near + 0.3 * generator.standard_normal((ROWS, DIMENSION))).astype(np.float32)


VECTORS: Final = draw()
SHARES: Final = np.arange(ROWS) * 7919 % 100
HAS_VECTOR: Final = np.arange(ROWS) % EMPTY_EVERY != 0


def distances(query: np.ndarray) -> np.ndarray:
    far = ((VECTORS.astype(np.float64) - query) ** 2).sum(axis=1)
    return np.where(HAS_VECTOR, far, np.inf)


def mark_rows() -> np.ndarray:
    """1 for the farthest from one vector, 2 for a few of which most have none."""
    marks = np.zeros(ROWS, np.int64)
    far = np.where(HAS_VECTOR, distances(VECTORS[FAR_FROM]), 0)
    marks[np.argsort(-far)[:5]] = 1
    marks[[*np.flatnonzero(~HAS_VECTOR)[:6].tolist(), 1, 2]] = 2
    return marks


FAR_FROM: Final = 7
MARKS: Final = mark_rows()


def cited_by(number: int) -> tuple[int, ...]:
    return (number * 31 % ROWS, number * 17 % ROWS)


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    folder: Path = tmp_path_factory.mktemp("docs")
    docs = [
        {
            "number": number,
            "share": int(SHARES[number]),
            "mark": int(MARKS[number]),
            "body": " ".join(WORDS[: 1 + number % 4]),
            "v": VECTORS[number].tolist() if HAS_VECTOR[number] else None,
        }
        for number in range(ROWS)
    ]
    edges = [
        {"from": str(number), "to": str(other)}
        for number in range(ROWS)
        for other in cited_by(number)
    ]
    with pytest.MonkeyPatch.context() as patches:
        patches.setattr(search_options, "VECTOR_PARTITION_ROWS", 16)
        graph = omnigraph.init(folder / "graph", SCHEMA)
        graph.load({"Doc": docs, "Cites": edges}, engine="local")
        add_indexes(graph)
    return graph


@pytest.fixture(autouse=True)
def small_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuts, "CUT_TABLE_ROWS_MIN", 1000)
    monkeypatch.setattr(indexed_vectors, "VECTOR_PARTITION_ROWS", 16)


@pytest.fixture
def whole_rankings(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """The searches for which every distance is computed."""
    seen: list[object] = []
    rank = searching._rank_vectors

    def noting(search: Any, *more: Any) -> Any:
        seen.append(search)
        return rank(search, *more)

    monkeypatch.setattr(searching, "_rank_vectors", noting)
    return seen


def ask(graph: Graph, scope: str, query: np.ndarray, limit: int = 10, **more: Any) -> list[int]:
    text = f"""query q($v: Vector({DIMENSION})) {{ match {{ $d: Doc {scope} }}
        return {{ $d.number as number, nearest($d.v, $v) as far }}
        order {{ nearest($d.v, $v) }} limit {limit} }}"""
    return [row["number"] for row in graph.query(text, {"v": query.tolist()}, **more).rows()]


def best_of(rows: np.ndarray, query: np.ndarray, limit: int = 10) -> list[int]:
    """The nearest of these rows; those without a vector come last, by their ids."""
    far = distances(query)
    return sorted(np.flatnonzero(rows).tolist(), key=lambda row: (far[row], str(row)))[:limit]


@pytest.mark.parametrize("percent", [1, 10, 90])
def test_the_nearest_of_a_share_are_found_without_all_distances(graph, whole_rankings, percent):
    for number in range(1, 40, 7):
        query = VECTORS[number] + np.float32(0.01)
        found = ask(graph, f"$d.share < {percent}", query)
        assert found == best_of(np.less(SHARES, percent), query)
    assert not whole_rankings


@pytest.mark.parametrize("exact", [True, False])
def test_a_scope_far_from_what_is_looked_for_is_filled(graph, exact):
    """An index that is asked for the nearest finds none of them at first."""
    query = VECTORS[FAR_FROM]
    assert ask(graph, "$d.mark = 1", query, exact=exact) == best_of(MARKS == 1, query)


@pytest.mark.parametrize("share_max", [0.0, 1.0], ids=["by widening", "by its rows"])
def test_each_way_finds_the_nearest_behind_a_traversal(
    graph, monkeypatch, whole_rankings, share_max
):
    monkeypatch.setattr(cuts, "SCOPED_SHARE_MAX", share_max)
    monkeypatch.setattr(cuts, "CUT_CANDIDATES_PER_ROW", 1)
    sources = SHARES < 10
    within = np.zeros(ROWS, bool)
    for number in np.flatnonzero(sources).tolist():
        within[list(cited_by(number))] = True
    for number in range(1, 30, 7):
        query = VECTORS[number]
        found = ask(graph, "$s cites $d $s.share < 10", query, limit=20)
        # A document that two of them cite is two rows.
        unique = [*dict.fromkeys(found)]
        assert len(found) == 20
        assert unique == best_of(within, query, limit=len(unique))
    assert not whole_rankings


def test_rows_without_a_vector_fill_what_is_left(graph):
    query = VECTORS[3]
    found = ask(graph, "$d.mark = 2", query, limit=5)
    assert found[:2] == best_of(MARKS == 2, query, 2)
    assert len(found) == 5
    assert len(ask(graph, "$d.mark = 2", query, limit=50)) == 8


def test_a_scope_without_rows_is_an_empty_answer(graph):
    assert ask(graph, "$d.share > 1000", VECTORS[3]) == []


def test_the_comparison_finds_a_search_that_is_not_widened(graph, monkeypatch):
    query = VECTORS[3]
    nearest = [str(row) for row in best_of(HAS_VECTOR, query, 80)]
    some = pa.table({"id": nearest, "score": np.sort(distances(query))[:80]})
    monkeypatch.setattr(cuts.CutRun, "_find_best", lambda run: run._compute(run.cut.ranked, some))
    assert len(ask(graph, "$d.share < 1", query)) < 10


@pytest.mark.parametrize("percent", [1, 10, 90])
@pytest.mark.parametrize("words", ["graph", "cold soup"])
def test_the_most_relevant_of_a_share_are_those_of_a_scan(graph, monkeypatch, percent, words):
    text = f"""query q($q: String) {{ match {{ $d: Doc $d.share < {percent} }}
        return {{ $d.number as number, bm25($d.body, $q) as score }}
        order {{ bm25($d.body, $q) }} limit 12 }}"""
    found = graph.query(text, {"q": words}).rows()
    monkeypatch.setattr(cuts, "CUT_TABLE_ROWS_MIN", 1 << 40)
    assert found == graph.query(text, {"q": words}).rows()
    assert len(found) == 12


FUSED: Final = f"""query q($v: Vector({DIMENSION}), $q: String) {{{{
    match {{{{ $d: Doc {{scope}} }}}}
    return {{{{ $d.number as number }}}}
    order {{{{ rrf(bm25($d.body, $q), nearest($d.v, $v), 60) }}}} limit 10 }}}}"""


def fuse(rows: np.ndarray, query: np.ndarray, relevance: dict[int, float]) -> list[int]:
    """The best of these rows by their ranks, of which the first hundred of each ranking count."""
    far = distances(query)
    numbers = np.flatnonzero(rows).tolist()
    near = sorted((far[row], str(row), row) for row in numbers if HAS_VECTOR[row])
    relevant = sorted((-relevance[row], str(row), row) for row in numbers if row in relevance)
    scores: dict[int, float] = {}
    for ranking in (relevant, near):
        for rank, (_, _, row) in enumerate(ranking[:100], 1):
            scores[row] = scores.get(row, 0.0) + 1 / (60 + rank)
    return sorted(scores, key=lambda row: (-scores[row], str(row)))[:10]


@pytest.mark.parametrize(
    ("scope", "rows"),
    [("$d.share = 1", SHARES == 1), ("$d.share < 20", SHARES < 20), ("$d.share < 90", SHARES < 90)],
    ids=["narrow", "wide", "most"],
)
def test_the_best_of_a_scope_by_several_rankings_are_found_without_all_distances(
    graph, whole_rankings, scope, rows
):
    words = "cold soup"
    text = """query q($q: String) { match { $d: Doc search($d.body, $q) }
        return { $d.number as number, bm25($d.body, $q) as score } }"""
    relevance = {row["number"]: row["score"] for row in graph.query(text, {"q": words}).rows()}
    for number in range(1, 40, 7):
        query = VECTORS[number] + np.float32(0.01)
        given = {"v": query.tolist(), "q": words}
        found = graph.query(FUSED.format(scope=scope), given).rows()
        assert [row["number"] for row in found] == fuse(rows, query, relevance)
    assert not whole_rankings


def test_a_fusion_behind_a_traversal_is_that_of_a_scan(graph, monkeypatch):
    text = FUSED.format(scope='$s cites $d $s.share < 30 search($d.body, "soup")')
    given = {"v": VECTORS[9].tolist(), "q": "cold soup"}
    found = graph.query(text, given).rows()
    monkeypatch.setattr(cuts, "CUT_TABLE_ROWS_MIN", 1 << 40)
    assert found == graph.query(text, given, exact=True).rows()
    assert len(found) == 10
