"""Indexes for search: built, extended, replaced and removed as the schema and the rows change."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest

import omnigraph
from omnigraph.choices import Analyzer, IndexKind, IndexState, Metric, VectorKind
from omnigraph.engine.snapshots import data_at
from omnigraph.graph import Graph
from omnigraph.limits import INDEX_SEGMENTS_MAX, VECTOR_SEGMENT_ROWS_MIN
from omnigraph.schema.catalog import TextOptions, VectorOptions
from omnigraph.storage import vector_kinds
from omnigraph.storage.indexes import TableIndex, read_indexes
from omnigraph.storage.tables import Table
from tests.support.folding import eager_folds

SCHEMA: Final = """
node Doc {
  name: String @key
  body: String? @index
  face: Vector(8)? @index(kind="ivf_flat")
}
"""
ENOUGH: Final = VECTOR_SEGMENT_ROWS_MIN


def docs(first: int, last: int, *, has_vectors: bool = True) -> dict[str, list[dict[str, Any]]]:
    drawn = np.random.default_rng(first).standard_normal((last - first, 8)).astype(np.float32)
    return {
        "Doc": [
            {
                "name": f"d{number}",
                "body": f"word{number} of all",
                "face": drawn[number - first].tolist() if has_vectors else None,
            }
            for number in range(first, last)
        ]
    }


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    return omnigraph.init(tmp_path / "graph", SCHEMA)


def table_of(graph: Graph, branch: str = "main") -> Table:
    snapshot = graph.snapshot(branch=branch)
    [key] = snapshot.pins
    return data_at(graph._store, snapshot).table(key)


def index_of(graph: Graph, kind: IndexKind, branch: str = "main") -> TableIndex | None:
    found = [each for each in read_indexes(table_of(graph, branch)) if each.spec]
    return next((index for index in found if index.spec and index.spec.kind is kind), None)


def options_of(graph: Graph, kind: IndexKind) -> object:
    index = index_of(graph, kind)
    return index and index.spec and index.spec.options


def is_complete(graph: Graph, kind: IndexKind, branch: str = "main") -> bool:
    index = index_of(graph, kind, branch)
    every = set(table_of(graph, branch).handle.fragment_ids())
    return index is not None and index.fragments >= every


def load(graph: Graph, first: int, last: int, **more: Any) -> None:
    graph.load(docs(first, last), mode="append", engine="local", **more)


def test_a_load_builds_and_extends_both_kinds(graph):
    load(graph, 0, ENOUGH)
    load(graph, ENOUGH, 2 * ENOUGH)

    assert options_of(graph, IndexKind.INVERTED) == TextOptions()
    assert options_of(graph, IndexKind.VECTOR) == VectorOptions(VectorKind.IVF_FLAT)
    assert is_complete(graph, IndexKind.INVERTED)
    assert is_complete(graph, IndexKind.VECTOR)
    assert graph.check().findings == ()


def test_few_vectors_and_those_not_embedded_yet_wait_for_more(graph):
    load(graph, 0, ENOUGH - 1)
    assert index_of(graph, IndexKind.VECTOR) is None
    [face] = [status for status in graph.indexes.list() if status.column == "face"]
    assert face.state is IndexState.SCANNED

    nothing = docs(1000, 1000 + ENOUGH, has_vectors=False)
    graph.load(nothing, mode="append", engine="local")
    assert index_of(graph, IndexKind.VECTOR) is None
    assert graph.ensure_indices(engine="local").commit_id is None

    load(graph, ENOUGH - 1, ENOUGH)
    assert is_complete(graph, IndexKind.VECTOR)


@pytest.mark.parametrize(
    ("old", "new", "kind", "options"),
    [
        ("String? @index", 'String? @index(analyzer="simple")', IndexKind.INVERTED,
         TextOptions(Analyzer.SIMPLE)),
        ("String? @index", "String? @index(positions=true)", IndexKind.INVERTED,
         TextOptions(positions=True)),
        ('kind="ivf_flat"', 'kind="ivf_flat", metric="dot"', IndexKind.VECTOR,
         VectorOptions(VectorKind.IVF_FLAT, Metric.DOT)),
        ('kind="ivf_flat"', 'kind="ivf_pq"', IndexKind.VECTOR, VectorOptions(VectorKind.IVF_PQ)),
    ],
)  # fmt: skip
def test_other_options_are_built_by_the_next_run(graph, old, new, kind, options):
    load(graph, 0, ENOUGH)
    before = table_of(graph).version
    graph.schema.apply(SCHEMA.replace(old, new))
    assert table_of(graph).version == before
    [status] = [each for each in graph.indexes.list() if each.kind is kind and each.sources]
    assert (status.state, status.options) == (IndexState.MISSING, options)

    result = graph.ensure_indices(engine="local")

    assert set(result.built["Doc"]) == {status.column}
    assert options_of(graph, kind) == options
    assert is_complete(graph, kind)
    assert graph.ensure_indices(engine="local").commit_id is None


def test_an_index_that_the_schema_gives_up_is_removed(graph):
    load(graph, 0, ENOUGH)
    graph.schema.apply(SCHEMA.replace("String? @index", "String?").replace("@index(kind", "@x(kind")
                       .replace('@x(kind="ivf_flat")', ""))  # fmt: skip

    result = graph.ensure_indices(engine="local")

    assert set(result.removed["Doc"]) == {"body", "face"}
    assert index_of(graph, IndexKind.INVERTED) is index_of(graph, IndexKind.VECTOR) is None


def test_segments_stay_few_and_have_no_former_words(graph):
    for number in range(INDEX_SEGMENTS_MAX):
        load(graph, number * ENOUGH, (number + 1) * ENOUGH)
    graph.mutate('query q() { update Doc set { body: "changed" } where name = "d3" }')
    load(graph, 10_000, 10_000 + ENOUGH)

    words, vectors = (index_of(graph, kind) for kind in (IndexKind.INVERTED, IndexKind.VECTOR))
    assert words is not None
    assert vectors is not None
    assert len(words.segments) == len(vectors.segments) == 1
    assert is_complete(graph, IndexKind.INVERTED)
    assert is_complete(graph, IndexKind.VECTOR)


def test_optimize_and_folds_keep_texts_indexed(graph):
    load(graph, 0, 2 * ENOUGH)
    with eager_folds():
        for number in range(8):
            load(graph, 1000 + number, 1001 + number, index=False)
    graph.mutate('query q() { delete Doc where name = "d5" }')
    graph.optimize(engine="local")

    assert is_complete(graph, IndexKind.INVERTED)
    assert is_complete(graph, IndexKind.VECTOR)
    assert graph.optimize(engine="local").commit_id is None
    assert graph.check().findings == ()


def test_a_branch_inherits_and_extends_them(graph):
    load(graph, 0, ENOUGH)
    graph.branches.create("draft")
    assert is_complete(graph, IndexKind.VECTOR, "draft")
    load(graph, ENOUGH, 2 * ENOUGH, branch="draft")

    for kind in (IndexKind.INVERTED, IndexKind.VECTOR):
        assert is_complete(graph, kind, "draft")
        assert is_complete(graph, kind)
    graph.optimize(branch="draft", engine="local")
    assert is_complete(graph, IndexKind.VECTOR, "draft")


def test_a_rewritten_column_is_indexed_anew(graph):
    load(graph, 0, ENOUGH)
    graph.schema.apply(
        SCHEMA.replace("body: String? @index", "body: String? @index  more: String? @index"),
    )
    graph.mutate('query q() { update Doc set { more: "words" } where name = "d1" }')
    result = graph.ensure_indices(engine="local")
    assert "more" in result.built["Doc"]
    columns = {index.spec.column for index in read_indexes(table_of(graph)) if index.spec}
    assert columns == {"id", "name", "body", "face", "more"}


def test_the_number_of_rows_chooses_the_kind_once(tmp_path, monkeypatch):
    schema = SCHEMA.replace('(kind="ivf_flat")', "")
    graph = omnigraph.init(tmp_path / "other", schema)
    monkeypatch.setattr(vector_kinds, "VECTOR_INDEX_ROWS_MIN", 2 * ENOUGH)
    monkeypatch.setattr(vector_kinds, "VECTOR_FLAT_ROWS_MAX", 3 * ENOUGH)
    load(graph, 0, 2 * ENOUGH - 1)
    assert index_of(graph, IndexKind.VECTOR) is None
    assert dict(graph.ensure_indices(engine="local").waiting) == {"Doc": ("face",)}

    load(graph, 2 * ENOUGH, 2 * ENOUGH + 1)
    assert options_of(graph, IndexKind.VECTOR) == VectorOptions(VectorKind.IVF_FLAT)
    load(graph, 5000, 5000 + 2 * ENOUGH)
    assert options_of(graph, IndexKind.VECTOR) == VectorOptions(VectorKind.IVF_FLAT)

    graph.schema.apply(schema.replace("face", "other").replace("Vector(8)? @index",
        'Vector(8)? @index @rename_from("face")'))  # fmt: skip
    assert graph.ensure_indices(engine="local").commit_id is None
