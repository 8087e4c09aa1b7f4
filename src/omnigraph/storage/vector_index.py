"""Nearest vectors by an index: candidates, whose distances are computed again by whoever asks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from omnigraph.choices import Metric
from omnigraph.schema.catalog import VectorOptions
from omnigraph.storage.indexes import TableIndex, find_search_index
from omnigraph.storage.places import fragment_ids_of
from omnigraph.storage.tables import ROW_ADDRESS, ROW_ID, Table


def find_vector_index(table: Table, column: str, metric: Metric) -> TableIndex | None:
    """The index of a column's vectors by this metric, or None. Reads nothing."""
    return find_search_index(
        table,
        column,
        lambda options: isinstance(options, VectorOptions) and options.metric is metric,
    )


def probe_nearest(
    table: Table,
    index: TableIndex,
    query: Sequence[float],
    count: int,
    *,
    columns: Sequence[str],
    probes: int,
    refine: int,
) -> pa.Table:
    """Rows whose vectors are likely the nearest, with rows that the index does not cover.

    A row is there once, with its vector as it is now, whatever vector the index knows it by.

    Args:
        columns: What is read of each row.
        probes: Partitions of each segment that are looked into.
        refine: Rows for each one wanted, whose vectors are read to compare them; only for indexes
            that have codes in the place of vectors.
    """
    assert index.spec is not None, "it is an index of vectors"
    options = index.spec.options
    assert isinstance(options, VectorOptions), "it is an index of vectors"
    nearest: dict[str, object] = {
        "column": index.spec.column,
        "q": np.asarray(query, np.float32),
        "k": count,
        "metric": str(options.metric),
        "nprobes": probes,
    }
    if refine > 1:
        nearest["refine_factor"] = refine
    with table.translate_errors("searching vectors of"):
        found = table.handle.scanner(
            columns=[*columns, ROW_ID, "_distance"],
            nearest=nearest,
            prefilter=True,
        ).to_table()
    # A row is found by every segment that ever had it (docs/substrate.md, Indexes for search).
    _, firsts = np.unique(found[ROW_ID].to_numpy(), return_index=True)
    return found.select(list(columns)).take(pa.array(firsts))


def count_indexed(table: Table, index: TableIndex, query: Sequence[float]) -> int:
    """How many rows of the fragments that an index covers it has. Reads all of it.

    Args:
        query: Any vector that has a distance from every other.
    """
    assert index.spec is not None, "it is an index of vectors"
    options = index.spec.options
    assert isinstance(options, VectorOptions), "it is an index of vectors"
    rows = table.count_rows()
    if not rows:
        return 0
    nearest = {
        "column": index.spec.column,
        "q": np.asarray(query, np.float32),
        # A row is found by every segment that ever had it.
        "k": rows * len(index.segments),
        "metric": str(options.metric),
        "nprobes": rows,
    }
    with table.translate_errors("reading an index of vectors of"):
        found = table.handle.scanner(
            columns=[ROW_ADDRESS, "_distance"], nearest=nearest, prefilter=True, fast_search=True
        ).to_table()
    addresses = np.unique(found[ROW_ADDRESS].to_numpy())
    return int(np.isin(fragment_ids_of(addresses), [*index.fragments]).sum())
