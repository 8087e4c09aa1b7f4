"""Indexes of texts and vectors built on Spark: by several tasks, and joined where Lance can."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pytest
from lance import LanceDataset
from lance.query import MatchQuery

import omnigraph
from omnigraph.engine.snapshots import data_at
from omnigraph.engine.spark import relations
from omnigraph.graph import Graph
from omnigraph.maintenance.spark import indexes as indexing

DIMENSION: Final = 8
ROWS_PER_LOAD: Final = 300
LOADS: Final = 3
WORDS: Final = ("graph", "lake", "table", "branch", "commit", "merge", "query")
SCHEMA: Final = f"""
node Doc {{
  number: I64 @key
  body: String? @index(positions=true)
  near: Vector({DIMENSION})? @index(kind="ivf_flat", metric="l2")
  codes: Vector({DIMENSION})? @index(kind="ivf_pq", metric="cosine")
  bytes: Vector({DIMENSION})? @index(kind="ivf_hnsw_sq", metric="l2")
}}
"""
pytestmark = pytest.mark.usefixtures("spark")


@pytest.fixture
def graph(tmp_path, monkeypatch) -> Graph:
    # Even a small table is indexed by several tasks.
    monkeypatch.setattr(relations, "SPARK_PARTITION_ROWS_MIN", 1)
    made = omnigraph.init(tmp_path / "graph", SCHEMA)
    for load in range(LOADS):
        made.load({"Doc": rows(load)}, mode="append", engine="local", index=False)
    return made


def rows(load: int) -> pa.Table:
    random = np.random.default_rng(load)
    vectors = random.standard_normal((ROWS_PER_LOAD, DIMENSION)).astype(np.float32)
    # The vectors of one load are not there yet, nor are some of the others.
    absent = np.array([load == 1 or number % 7 == 0 for number in range(ROWS_PER_LOAD)])
    column = pa.array(
        [None if gone else vector for gone, vector in zip(absent, vectors.tolist(), strict=True)],
        pa.list_(pa.float32(), DIMENSION),
    )
    texts = [" ".join(random.choice(WORDS, 2)) if number % 5 else None for number in range(300)]
    return pa.table(
        {
            "number": np.arange(ROWS_PER_LOAD) + load * ROWS_PER_LOAD,
            "body": texts,
            "near": column,
            "codes": column,
            "bytes": column,
        }
    )


def dataset(graph: Graph) -> LanceDataset:
    snapshot = graph.snapshot()
    [key] = snapshot.pins
    return data_at(graph._store, snapshot).table(key).handle


def test_parts_are_built_by_tasks_and_joined_and_find_what_a_scan_finds(graph, monkeypatch):
    parts: Counter[str] = Counter()
    build_parts = indexing.build_parts

    def noted(session: Any, given: Sequence[indexing.IndexPart], cores: int) -> object:
        parts.update(part.gap.spec.column for part in given)
        return build_parts(session, given, cores)

    monkeypatch.setattr(indexing, "build_parts", noted)
    graph.ensure_indices(engine="spark")

    assert {column: parts[column] for column in ("body", "near", "codes", "bytes")} == {
        "body": LOADS,
        "near": LOADS,
        "codes": LOADS,
        "bytes": 1,
    }
    table = dataset(graph)
    # A task that finds no vectors builds no segment; what it read is scanned.
    covered = {"near": {0, 2}, "codes": {0, 2}}
    for index in table.describe_indices():
        [column] = index.field_names
        [segment] = index.segments
        assert set(segment.fragment_ids) == covered.get(column, {0, 1, 2}), column
    require_words_found(table)
    for column, metric in (("near", "l2"), ("codes", "cosine"), ("bytes", "l2")):
        require_nearest_found(table, column, metric)


def require_words_found(table: LanceDataset) -> None:
    texts = table.to_table(["number", "body"]).to_pylist()
    for word in WORDS:
        expected = {row["number"] for row in texts if row["body"] and word in row["body"].split()}
        found = table.to_table(["number", "_score"], full_text_query=MatchQuery(word, "body"))
        assert set(found["number"].to_pylist()) == expected
        assert expected


def require_nearest_found(table: LanceDataset, column: str, metric: str) -> None:
    right = 0
    for vector in np.random.default_rng(9).standard_normal((10, DIMENSION)).astype(np.float32):
        search = {"column": column, "q": vector, "k": 10, "metric": metric}
        probes = {"nprobes": 8, "refine_factor": 10}
        near, exact = (
            set(table.to_table(["number", "_distance"], nearest={**search, **how})["number"])
            for how in (probes, {"use_index": False})
        )
        right += len(near & exact)
    assert right >= 98, column


def test_a_later_run_extends_them_by_what_came_since(graph):
    graph.ensure_indices(engine="spark")
    graph.load({"Doc": rows(LOADS)}, mode="append", engine="local", index=False)

    graph.ensure_indices(engine="spark")

    table = dataset(graph)
    for index in table.describe_indices():
        assert set(index.segments[-1].fragment_ids) == {3}, index.name
        assert len(index.segments) == 2, index.name
    require_words_found(table)
    require_nearest_found(table, "near", "l2")
