"""Searches end when their time is up or they are cancelled, and hold no more than they may."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

import omnigraph
from omnigraph import Cancellation, Graph
from omnigraph.engine.local import cuts, execute, indexed_vectors, searching
from omnigraph.engine.search_parts import measure_distances
from omnigraph.errors import CancelledError, ErrorCode, LimitExceededError
from omnigraph.model import query_limits
from omnigraph.search.words import count_words
from omnigraph.storage import vector_index

PARTS: Final = 3
ROWS_PER_PART: Final = 400
SCHEMA: Final = """
node Doc {
  number: I64 @key
  body: String
  plain: Vector(2)
  v: Vector(2) @index(kind="ivf_flat", metric="l2")
}
"""
BM25: Final = "bm25($d.body, $q)"
EXACT: Final = "nearest($d.plain, $v)"
NEAREST: Final = "nearest($d.v, $v)"


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    folder: Path = tmp_path_factory.mktemp("budgets")
    graph = omnigraph.init(folder / "graph", SCHEMA)
    graph.settings.set("maintenance.optimize", "off")
    for part in range(PARTS):
        numbers = range(part * ROWS_PER_PART, (part + 1) * ROWS_PER_PART)
        rows = [
            {"number": number, "body": f"graph lake {number}", "plain": v, "v": v}
            for number in numbers
            for v in [[number % 37, number % 11]]
        ]
        graph.load({"Doc": rows}, mode="append", engine="local")
    return graph


def ask(graph: Graph, ranking: str, match: str = "", **more: Any) -> list[Any]:
    parameter = "$q: String" if "$q" in ranking + match else "$v: Vector(2)"
    values = {"q": "graph"} if "$q" in parameter else {"v": [1.0, 2.0]}
    text = f"""query q({parameter}) {{ match {{ $d: Doc {match} }}
        return {{ $d.number, {ranking} as score }} order {{ score }} limit 5 }}"""
    return graph.query(text, values, **more).rows()


@pytest.fixture
def cancel_in(monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[Cancellation, list[int]]]:
    """Cancels a query while a function runs for the first time, and counts its runs."""

    def plant(owner: object, name: str, original: Any) -> tuple[Cancellation, list[int]]:
        cancellation, runs = Cancellation(), [0]

        def cancelling(*given: Any, **more: Any) -> Any:
            runs[0] += 1
            cancellation.cancel()
            return original(*given, **more)

        monkeypatch.setattr(owner, name, cancelling)
        return cancellation, runs

    return plant


@pytest.mark.parametrize(
    ("ranking", "match", "owner", "name", "original"),
    [
        (BM25, "", searching, "count_words", count_words),
        (EXACT, "", searching, "measure_distances", measure_distances),
        (NEAREST, "", indexed_vectors, "probe_nearest", vector_index.probe_nearest),
        (NEAREST, "$d.number < 9", cuts, "measure_distances", measure_distances),
    ],
    ids=["texts", "vectors", "an index", "a scope"],
)
def test_a_search_stops_at_the_next_part_of_its_rows(
    graph, cancel_in, monkeypatch, ranking, match, owner, name, original
):
    monkeypatch.setattr(cuts, "CUT_TABLE_ROWS_MIN", 0)
    monkeypatch.setattr(cuts, "SCOPED_SHARE_MAX", 0.5)
    cancellation, runs = cancel_in(owner, name, original)
    with pytest.raises(CancelledError):
        ask(graph, ranking, match, engine="local", cancel=cancellation)
    assert runs == [1]


@pytest.mark.parametrize("ranking", [BM25, EXACT, NEAREST])
@pytest.mark.parametrize("engine", ["local", "spark"])
def test_a_search_whose_time_is_up_ends(request, graph, engine, ranking):
    if engine == "spark":
        request.getfixturevalue("spark")
    with pytest.raises(LimitExceededError) as refused:
        ask(graph, ranking, engine=engine, timeout=0.001)
    assert refused.value.code is ErrorCode.QUERY_TIMEOUT
    cancellation = Cancellation()
    cancellation.cancel()
    with pytest.raises(CancelledError):
        ask(graph, ranking, engine=engine, cancel=cancellation)
    assert len(ask(graph, ranking, engine=engine)) == 5


@pytest.mark.parametrize(
    ("ranking", "match"),
    [(BM25, "$d.number >= 0"), (EXACT, "$d.number >= 0"), (BM25, "search($d.body, $q)")],
)
def test_what_is_found_counts_for_the_memory_before_any_of_it_is_joined(
    graph, monkeypatch, ranking, match
):
    monkeypatch.setattr(query_limits, "QUERY_BYTES_MIN", 1)
    monkeypatch.setattr(execute, "bounded_database", None)
    with pytest.raises(LimitExceededError) as refused:
        ask(graph, ranking, match, engine="local", memory="1KB")
    assert refused.value.code is ErrorCode.QUERY_MEMORY
