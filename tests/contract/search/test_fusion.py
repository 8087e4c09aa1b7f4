"""Fusions of all rows of a type read as many of each ranking as count, and no more."""

import pytest

from omnigraph.query.lowering import scores
from tests.support.graphs import graph_with

SCHEMA = "node Doc { number: I64 @key  body: String  v: Vector(2) }"
QUERY = """query q($q: String, $v: Vector(2)) {
  match { $d: Doc %s }
  return { $d.number, rrf(bm25($d.body, $q), nearest($d.v, $v), 1) as score }
  order { score } limit 9
}"""
VALUES = {"q": "graph lake", "v": [1.0, 0.5]}


@pytest.mark.parametrize("window", [1, 2, 3, 1000])
def test_a_fusion_of_all_rows_is_that_of_a_scope_that_has_all_rows(tmp_path, monkeypatch, window):
    monkeypatch.setattr(scores, "RRF_WINDOW", window)
    # Some rows share a score, also the last that counts.
    bodies = ["graph", "lake", "graph", "graph lake", "none", "lake", "graph lake"]
    vectors = [[1, 0], [1, 0], [0, 1], [1, 1], [2, 1], [1, 1], [3, 1]]
    docs = [
        {"number": number, "body": body, "v": vector}
        for number, (body, vector) in enumerate(zip(bodies, vectors, strict=True))
    ]
    graph = graph_with(tmp_path / "graph", SCHEMA, {"Doc": docs})

    every = graph.query(QUERY % "", VALUES).rows()

    assert every == graph.query(QUERY % "$d.number >= 0", VALUES).rows()
    assert sum(row["score"] is not None for row in every) >= min(window, 6)
