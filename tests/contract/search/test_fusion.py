"""Fusions of all rows of a type read as many of each ranking as count, and no more."""

from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph.engine.local import execute, searching
from omnigraph.graph import Graph
from omnigraph.query.lowering import scores
from omnigraph.storage import search_options

SCHEMA = """node Doc {
  number: I64 @key
  body: String @index
  v: Vector(2) @index(kind="ivf_flat", metric="l2")
}"""
QUERY = """query %s($q: String, $v: Vector(2)) {
  match { $d: Doc %s }
  return { $d.number, rrf(bm25($d.body, $q), nearest($d.v, $v), 1) as score, $d.body }
  order { score } %s
}"""
VALUES = {"q": "graph lake", "v": [1.0, 0.5]}
# Some rows share a score, also the last that counts.
BODIES = ["graph", "lake", "graph", "graph lake", "none", "lake", "graph lake"]
VECTORS = [[1, 0], [1, 0], [0, 1], [1, 1], [2, 1], [1, 1], [3, 1]]
TIMES = 40
"""So many vectors are enough for an index."""


@pytest.fixture(scope="module", params=["scans", "indexes"])
def graph(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Graph:
    folder: Path = tmp_path_factory.mktemp("docs")
    docs = [
        {"number": number, "body": body, "v": vector}
        for number, (body, vector) in enumerate(zip(BODIES * TIMES, VECTORS * TIMES, strict=True))
    ]
    graph = omnigraph.init(folder / "graph", SCHEMA)
    with pytest.MonkeyPatch.context() as patches:
        patches.setattr(search_options, "VECTOR_PARTITION_ROWS", 50)
        graph.load({"Doc": docs}, engine="local", index=request.param == "indexes")
    return graph


def ask(graph: Graph, window: int, match: str, rest: str) -> list[Any]:
    # Each window has queries of its own: plans are kept.
    return graph.query(QUERY % (f"w{window}", match, rest), VALUES).rows()


@pytest.mark.parametrize("rest", ["limit 1", "limit 2", "limit 3", "skip 1 limit 2", "limit 500"])
@pytest.mark.parametrize("window", [1, 3, 100])
def test_a_fusion_of_all_rows_is_that_of_a_scope_that_has_all_rows(
    graph, monkeypatch, window, rest
):
    monkeypatch.setattr(scores, "RRF_WINDOW_MIN", window)

    every = ask(graph, window, "", rest)

    assert every == ask(graph, window, "$d.number >= 0", rest)
    # As many of each ranking count as are wanted, so that whoever is returned has a score.
    assert all(row["score"] is not None for row in every)


@pytest.mark.parametrize("graph", ["indexes"], indirect=True)
def test_the_best_of_several_rankings_by_indexes_need_no_sql(graph, monkeypatch):
    monkeypatch.setattr(scores, "RRF_WINDOW_MIN", 3)
    expected = ask(graph, 3, "$d.number >= 0", "limit 3")
    assert len(expected) == 3

    def refuse(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr(execute.LocalEngine, "_compute", refuse)
    monkeypatch.setattr(searching.Searcher, "_find_by_scan", refuse)
    assert ask(graph, 3, "", "limit 3") == expected
