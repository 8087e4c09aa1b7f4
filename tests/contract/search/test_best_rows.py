"""Where a result is the best rows of a type, no others are read, and the result is the same."""

from pathlib import Path

import pytest

from omnigraph.engine.local import scans
from omnigraph.graph import Graph
from tests.support.graphs import add_indexes, graph_with

SCHEMA = "node Doc { number: I64 @key  body: String  v: Vector(2)? }"
BODIES = ["graph", "lake", "graph", "graph lake", "none", "lake", "graph lake", "none"]
VECTORS = [[1, 0], [1, 0], [0, 1], [1, 1], None, [1, 1], [3, 1], None]
SCORED_COUNT = 6
"""How many rows have a score, by words and by vectors alike."""

VALUES = {"q": "graph lake", "v": [1.0, 0.5]}
BM25 = "bm25($d.body, $q)"
NEAREST = "nearest($d.v, $v)"
RRF = f"rrf({BM25}, {NEAREST}, 1)"


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    folder: Path = tmp_path_factory.mktemp("docs")
    docs = [
        {"number": number, "body": body, "v": vector}
        for number, (body, vector) in enumerate(zip(BODIES, VECTORS, strict=True))
    ]
    graph = graph_with(folder / "graph", SCHEMA, {"Doc": docs})
    add_indexes(graph)
    return graph


@pytest.fixture
def whole_reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The tables that are read whole."""
    reads: list[str] = []
    joinable = scans.joinable

    def noting(table, columns):
        reads.append(str(table.address))
        return joinable(table, columns)

    monkeypatch.setattr("omnigraph.engine.local.execute.joinable", noting)
    return reads


def numbers(graph: Graph, ranking: str, order: str, limit: int, scope: str = "") -> list[object]:
    query = f"""query q($q: String, $v: Vector(2)) {{
      match {{ $d: Doc {scope} }}
      return {{ $d.number, {ranking} as score }}
      order {{ {order} }} limit {limit}
    }}"""
    return [(row["d.number"], row["score"]) for row in graph.query(query, VALUES).rows()]


@pytest.mark.parametrize("limit", [1, 3, SCORED_COUNT, SCORED_COUNT + 1, 20])
@pytest.mark.parametrize("ranking", [BM25, NEAREST, RRF])
@pytest.mark.parametrize("order", ["score", "score asc", "score desc", "$d.number desc"])
def test_the_best_of_a_type_are_those_of_a_scope_that_has_all_rows(graph, ranking, order, limit):
    everything = numbers(graph, ranking, order, limit)

    assert everything == numbers(graph, ranking, order, limit, "$d.number >= 0")
    assert len(everything) == min(limit, len(BODIES))


@pytest.mark.parametrize("ranking", [BM25, NEAREST, RRF])
def test_only_rows_that_were_found_are_read_if_they_suffice(graph, whole_reads, ranking):
    numbers(graph, ranking, "score", SCORED_COUNT)

    assert not whole_reads


@pytest.mark.parametrize("ranking", [BM25, NEAREST, RRF])
@pytest.mark.parametrize("order", ["score", "$d.number"])
def test_all_rows_are_read_if_others_may_be_in_the_result(graph, whole_reads, ranking, order):
    numbers(graph, ranking, order, SCORED_COUNT + 1)

    assert len(whole_reads) == 1
