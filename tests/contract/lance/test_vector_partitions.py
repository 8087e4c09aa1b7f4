"""Partitions of an index of vectors: a row is found by a look into as many as its rank says."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import omnigraph
from omnigraph.choices import Metric
from omnigraph.engine.snapshots import data_at
from omnigraph.storage import search_options
from omnigraph.storage.tables import Table
from omnigraph.storage.vector_index import find_vector_index, probe_nearest
from omnigraph.storage.vector_partitions import read_centres

ROWS, DIMENSION, PARTITION_ROWS = 600, 8, 30


@pytest.fixture(autouse=True)
def small_partitions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search_options, "VECTOR_PARTITION_ROWS", PARTITION_ROWS)


def write(place: Path, metric: Metric, *, loads: int) -> Table:
    schema = (
        f"node Doc {{ name: String @key  "
        f'v: Vector({DIMENSION}) @index(kind="ivf_flat", metric="{metric}") }}'
    )
    graph = omnigraph.init(place, schema)
    graph.settings.set("maintenance.optimize", "off")
    drawn = np.random.default_rng(3).standard_normal((ROWS, DIMENSION)).astype(np.float32)
    for part in np.array_split(np.arange(ROWS), loads):
        rows = [{"name": f"d{number}", "v": drawn[number].tolist()} for number in part]
        graph.load({"Doc": rows}, mode="append", engine="local")
    [key] = graph.snapshot().pins
    return data_at(graph._store, graph.snapshot()).table(key)


@pytest.mark.parametrize("metric", list(Metric))
def test_a_look_finds_the_rows_whose_partitions_come_first(tmp_path, metric):
    table = write(tmp_path / "graph", metric, loads=1)
    index = find_vector_index(table, "v", metric)
    assert index is not None
    centres = read_centres(table, index)
    assert centres is not None
    partitions = ROWS // PARTITION_ROWS
    assert len(centres.rows) == partitions
    rows = table.read(["id", "v"])
    vectors = rows["v"].combine_chunks().flatten().to_numpy().reshape(ROWS, DIMENSION)
    ids = np.array(rows["id"].to_pylist())
    for query in np.random.default_rng(4).standard_normal((3, DIMENSION)).astype(np.float32):
        ranks = centres.rank(metric, query, vectors)
        for probes in (1, 3, partitions):
            found = probe_nearest(
                table, index, query.tolist(), ROWS, columns=["id"], probes=probes, refine=1
            )
            assert set(found["id"].to_pylist()) == set(ids[ranks < probes].tolist())


def test_the_centres_of_several_segments_are_not_used(tmp_path):
    table = write(tmp_path / "graph", Metric.L2, loads=2)
    index = find_vector_index(table, "v", Metric.L2)
    assert index is not None
    assert len(index.segments) == 2
    assert read_centres(table, index) is None
