"""Kinds of vector indexes that a schema asks for, and those that are built."""

import numpy as np
import pyarrow as pa

import omnigraph
from omnigraph.choices import VectorKind
from omnigraph.schema.catalog import VectorOptions


def test_vectors_of_a_property_called_flat_are_indexed_as_codes(tmp_path):
    schema = 'node Doc { number: I64 @key  flat: Vector(8)? @index(kind="ivf_flat") }'
    graph = omnigraph.init(tmp_path / "graph", schema)
    vectors = np.random.default_rng(1).standard_normal((300, 8)).astype(np.float32)
    rows = {"number": np.arange(300), "flat": list(vectors)}

    graph.load({"Doc": pa.table(rows)}, engine="local")
    again = graph.ensure_indices(engine="local")

    assert not again.built
    [status] = [index for index in graph.indexes.list() if index.column == "flat"]
    assert (status.state, status.options) == ("complete", VectorOptions(VectorKind.IVF_PQ))
