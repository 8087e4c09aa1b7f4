"""Nearest vectors by an index: how many of the true ones are found, and that none is missing."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest

import omnigraph
from omnigraph.choices import Metric
from omnigraph.engine.local import indexed_vectors
from omnigraph.engine.local.indexed_vectors import IndexedVectorSearcher
from omnigraph.engine.snapshots import data_at
from omnigraph.graph import Graph
from omnigraph.model.settings import SearchSettings
from omnigraph.relational.searches import Nearness
from omnigraph.storage import search_options, vector_index

WANTED: Final = 10
RECALL_MIN: Final = 0.95
QUERY: Final = (
    "query q($v: Vector({dimension})) {{ match {{ $d: Doc {match} }} "
    "return {{ $d.name, nearest($d.v, $v) as far }} order {{ nearest($d.v, $v) }} limit {limit} }}"
)


def draw(shape: str, rows: int, dimension: int) -> np.ndarray:
    generator = np.random.default_rng(rows + dimension)
    noise = generator.standard_normal((rows, dimension)).astype(np.float32)
    if shape == "random":
        return noise
    centres = generator.standard_normal((50, dimension)).astype(np.float32)
    return np.asarray(centres[generator.integers(50, size=rows)] + 0.3 * noise)


def graph_of(folder: Path, vectors: np.ndarray, kind: str) -> Graph:
    schema = (
        f"node Doc {{ name: String @key  part: I32 "
        f' v: Vector({vectors.shape[1]})? @index(kind="{kind}") }}'
    )
    graph = omnigraph.init(folder, schema)
    rows = [
        {"name": f"d{number}", "part": number % 100, "v": vector.tolist()}
        for number, vector in enumerate(vectors)
    ]
    graph.load({"Doc": rows}, engine="local")
    return graph


def ask(graph: Graph, vector: np.ndarray, match: str = "", limit: int = WANTED) -> list[Any]:
    text = QUERY.format(dimension=len(vector), match=match, limit=limit)
    return graph.query(text, {"v": vector.tolist()}).rows()


def true_names(vectors: np.ndarray, vector: np.ndarray) -> set[str]:
    norms = np.linalg.norm(vectors, axis=1) * np.linalg.norm(vector)
    order = np.argsort(1 - vectors.astype(np.float64) @ vector / norms)
    return {f"d{number}" for number in order[:WANTED]}


def measure(folder: Path, shape: str, rows: int, dimension: int, kind: str) -> float:
    vectors = draw(shape, rows + 20, dimension)
    vectors, asked = vectors[:rows], vectors[rows:]
    graph = graph_of(folder, vectors, kind)
    text = QUERY.format(dimension=dimension, match="", limit=WANTED)
    explained = str(graph.explain(text, {"v": asked[0].tolist()}))
    assert f"approximate, by its index {kind}" in explained
    found = [{row["d.name"] for row in ask(graph, vector)} for vector in asked]
    hits = [len(own & true_names(vectors, v)) for own, v in zip(found, asked, strict=True)]
    return sum(hits) / (WANTED * len(asked))


@pytest.fixture
def small_partitions(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many partitions as a table of half a million rows has."""
    for module in (search_options, indexed_vectors):
        monkeypatch.setattr(module, "VECTOR_PARTITION_ROWS", 16)


@pytest.mark.usefixtures("small_partitions")
@pytest.mark.parametrize("shape", ["random", "clustered"])
def test_most_of_the_nearest_are_found(tmp_path, shape):
    assert measure(tmp_path / "graph", shape, 2000, 32, "ivf_flat") >= RECALL_MIN


@pytest.mark.usefixtures("small_partitions")
def test_codes_find_most_of_the_nearest(tmp_path):
    assert measure(tmp_path / "graph", "random", 1000, 16, "ivf_pq") >= RECALL_MIN


@pytest.mark.soak
@pytest.mark.parametrize("dimension", [256, 1536])
@pytest.mark.parametrize("shape", ["random", "clustered"])
@pytest.mark.parametrize("kind", ["ivf_flat", "ivf_pq", "ivf_hnsw_sq"])
def test_most_of_the_nearest_are_found_among_many(tmp_path, shape, dimension, kind):
    assert measure(tmp_path / "graph", shape, 12_000, dimension, kind) >= RECALL_MIN


@pytest.mark.usefixtures("small_partitions")
def test_a_filter_leaves_as_many_rows_as_there_are(tmp_path):
    vectors = draw("clustered", 2000, 16)
    graph = graph_of(tmp_path / "graph", vectors, "ivf_flat")

    rows = ask(graph, vectors[3], "$d.part = 7")
    assert len(rows) == WANTED
    assert all(int(row["d.name"][1:]) % 100 == 7 for row in rows)
    assert len(ask(graph, vectors[3], limit=1500)) == 1500
    assert len(ask(graph, vectors[3], limit=5000)) == 2000


@pytest.mark.usefixtures("small_partitions")
def test_rows_that_changed_are_where_they_are_now(tmp_path):
    vectors = draw("clustered", 600, 8)
    graph = graph_of(tmp_path / "graph", vectors, "ivf_flat")
    near = [row["d.name"] for row in ask(graph, vectors[0])]
    moved = [{"name": name, "part": 0, "v": (-vectors[0]).tolist()} for name in near]
    graph.load({"Doc": moved}, mode="merge", engine="local")
    late = {"name": "late", "part": 0, "v": vectors[0].tolist()}
    graph.load({"Doc": [late]}, mode="merge", engine="local", index=False)

    for _ in range(2):
        rows = ask(graph, vectors[0])
        assert rows[0]["d.name"] == "late"
        assert not {row["d.name"] for row in rows} & set(near)
        assert len(rows) == WANTED
        graph.optimize(engine="local")


@pytest.mark.usefixtures("small_partitions")
def test_vectors_of_other_texts_are_skipped(tmp_path):
    vectors = draw("clustered", 300, 8)
    graph = graph_of(tmp_path / "graph", vectors, "ivf_flat")
    [key] = graph.snapshot().pins
    table = data_at(graph._store, graph.snapshot()).table(key)
    search = Nearness(key, "v", Metric.COSINE, tuple(vectors[0].tolist()))
    every = IndexedVectorSearcher().rank(table, search, WANTED, SearchSettings())
    assert every is not None

    # The names stand for notes of what vectors were made from.
    noted = replace(search, notes="name", note_prefix="d1")
    found = IndexedVectorSearcher().rank(table, noted, WANTED, SearchSettings())

    assert found is not None
    assert found.num_rows >= WANTED
    assert all(name.startswith("d1") for name in found["id"].to_pylist())


@pytest.mark.usefixtures("small_partitions")
@pytest.mark.parametrize(
    ("kind", "few", "many"),
    [
        ("ivf_flat", {"probes": 1}, {"probes": 1000}),
        ("ivf_pq", {"probes": 1000, "refine": 1}, {"refine": 20}),
    ],
)
def test_settings_trade_what_is_looked_into_for_recall(tmp_path, monkeypatch, kind, few, many):
    vectors = draw("random", 1020, 16)
    vectors, asked = vectors[:1000], vectors[1000:]
    graph = graph_of(tmp_path / "graph", vectors, kind)
    probed: list[tuple[int, int]] = []
    probe = vector_index.probe_nearest

    def noting(*given: Any, probes: int, **more: Any) -> Any:
        rows = probe(*given, probes=probes, **more)
        probed.append((probes, len(rows)))
        return rows

    monkeypatch.setattr(indexed_vectors, "probe_nearest", noting)

    def recall(settings: dict[str, int]) -> float:
        for name, value in settings.items():
            graph.settings.set(f"search.{name}", value)
        found = [{row["d.name"] for row in ask(graph, vector)} for vector in asked]
        hits = [len(own & true_names(vectors, v)) for own, v in zip(found, asked, strict=True)]
        return sum(hits) / (WANTED * len(asked))

    least = recall(few)
    assert [probes for probes, _ in probed].count(few["probes"]) == len(asked)
    # It is looked into once, and further only if that found too few rows.
    for (_, found), (probes, _) in pairwise(probed):
        assert probes == few["probes"] or found < WANTED
    most = recall(many)
    assert least < most
    assert most >= RECALL_MIN


def test_the_graph_says_whether_an_index_may_be_approximate(tmp_path):
    vectors = draw("clustered", 300, 8)
    graph = graph_of(tmp_path / "graph", vectors, "ivf_flat")
    text = QUERY.format(dimension=8, match="", limit=WANTED)
    values = {"v": vectors[0].tolist()}
    assert "approximate" in str(graph.explain(text, values))

    graph.settings.set("search.exact", "on")

    assert "approximate" not in str(graph.explain(text, values))
    assert "approximate" in str(graph.explain(text, values, exact=False))
    rows = graph.query(text, values).rows()
    assert {row["d.name"] for row in rows} == true_names(vectors, vectors[0])
