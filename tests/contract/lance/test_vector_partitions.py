"""Partitions of an index of vectors: a row is found by a look into as many as its rank says."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import omnigraph
from omnigraph.choices import Metric
from omnigraph.engine.snapshots import data_at
from omnigraph.storage import search_options
from omnigraph.storage.places import fragment_ids_of
from omnigraph.storage.tables import ROW_ADDRESS, Table
from omnigraph.storage.vector_index import find_vector_index, probe_nearest
from omnigraph.storage.vector_partitions import CentreShelf

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


@pytest.mark.parametrize("loads", [1, 2])
@pytest.mark.parametrize("metric", list(Metric))
def test_a_look_finds_the_rows_whose_partitions_come_first(tmp_path, metric, loads):
    table = write(tmp_path / "graph", metric, loads=loads)
    index = find_vector_index(table, "v", metric)
    assert index is not None
    assert len(index.segments) == loads
    shelf = CentreShelf()
    partitions = ROWS // loads // PARTITION_ROWS
    assert shelf.count_partitions(table, index, DIMENSION) == partitions
    rows = table.read(["id", "v", ROW_ADDRESS])
    vectors = rows["v"].combine_chunks().flatten().to_numpy().reshape(ROWS, DIMENSION)
    fragment_ids = fragment_ids_of(rows[ROW_ADDRESS].to_numpy()).astype(np.int64)
    ids = np.array(rows["id"].to_pylist())
    for query in np.random.default_rng(4).standard_normal((3, DIMENSION)).astype(np.float32):
        ranks = shelf.rank_partitions(
            table, index, metric, query, vectors=vectors, fragment_ids=fragment_ids
        )
        for probes in (1, 3, partitions):
            found = probe_nearest(
                table, index, query.tolist(), ROWS, columns=["id"], probes=probes, refine=1
            )
            assert set(found["id"].to_pylist()) == set(ids[ranks < probes].tolist())


def test_rows_that_no_segment_covers_are_always_found(tmp_path):
    table = write(tmp_path / "graph", Metric.L2, loads=1)
    index = find_vector_index(table, "v", Metric.L2)
    assert index is not None
    ranks = CentreShelf().rank_partitions(
        table,
        index,
        Metric.L2,
        np.ones(DIMENSION, np.float32),
        vectors=np.full((2, DIMENSION), 9, np.float32),
        fragment_ids=np.array([1000, 1001]),
    )
    assert ranks.tolist() == [0, 0]
