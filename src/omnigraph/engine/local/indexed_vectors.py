"""Rankings by vectors that an index answers: approximate, and the better the more is looked into.

How much of an index is looked into follows the data, unless the graph's settings say it: more each
time, until that changes nothing. Vectors in clusters are found at once; of vectors without any
order, an index is read whole.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa

from omnigraph.choices import VectorKind
from omnigraph.engine.search_parts import columns_of, measure_distances
from omnigraph.limits import (
    VECTOR_PARTITION_ROWS,
    VECTOR_PROBES_GROWTH,
    VECTOR_PROBES_MIN,
)
from omnigraph.model.settings import SearchSettings
from omnigraph.relational.searches import READ, SCORE, Nearness
from omnigraph.schema.catalog import VectorOptions
from omnigraph.storage.indexes import TableIndex
from omnigraph.storage.tables import Table
from omnigraph.storage.vector_index import find_vector_index, probe_nearest


def rank_by_index(
    table: Table,
    search: Nearness,
    best: int,
    settings: SearchSettings,
    check: Callable[[], None] = lambda: None,
    *,
    beside: Sequence[str] = (),
) -> pa.Table | None:
    """The ids of rows that are likely the nearest, and their distances, nearest first.

    There are as many as asked for if so many rows have a distance.

    Args:
        beside: Properties that are read of these rows.

    Returns:
        None if there is no index of these vectors, or one of the wanted rows was not found by it.

    Raises:
        StorageError: the index or the table could not be read.
    """
    index = find_vector_index(table, search.column, search.metric)
    if index is None:
        return None
    refine = 1 if _has_vectors(index) else settings.refine
    probes, count = settings.probes or VECTOR_PROBES_MIN, 2 * best
    probes_max = 2 * _partitions(table, index)
    columns = list(dict.fromkeys(["id", *columns_of(search), *beside]))
    nearest: pa.Table | None = None
    while True:
        check()
        found = probe_nearest(
            table, index, search.query, count, columns=columns, probes=probes, refine=refine
        )
        before, nearest = nearest, _rank(search, found, best, beside)
        is_full = nearest.num_rows >= best
        is_settled = before is not None and before["id"].equals(nearest["id"])
        if is_full and (is_settled or settings.probes):
            return nearest
        if probes >= probes_max and count * refine >= table.count_rows():
            # All of it was looked into. Zero vectors and nulls have no distance.
            return nearest if is_full else None
        probes, count = VECTOR_PROBES_GROWTH * probes, min(2 * count, table.count_rows())


def describe_index(table: Table, search: Nearness) -> str | None:
    """How an index would answer a search, for people; None if there is none."""
    index = find_vector_index(table, search.column, search.metric)
    options = None if index is None or index.spec is None else index.spec.options
    return (
        f"approximate, by its index {options.kind}" if isinstance(options, VectorOptions) else None
    )


def _rank(search: Nearness, found: pa.Table, best: int, beside: Sequence[str]) -> pa.Table:
    vectors = found[search.column].combine_chunks()
    notes = None if search.notes is None else found[search.notes].combine_chunks()
    measured = measure_distances(search, vectors, notes)
    ids = found["id"].combine_chunks()
    order = np.lexsort((ids.to_numpy(zero_copy_only=False), measured))
    order = order[~np.isnan(measured[order])]
    # Those that are as near as the last of them belong to the best, too.
    order = order[measured[order] <= measured[order[:best]].max(initial=-np.inf)]
    ranked = {"id": ids.take(pa.array(order)), SCORE: measured[order]}
    return pa.table(
        ranked | {f"{READ}{name}": found[name].take(pa.array(order)) for name in beside}
    )


def _has_vectors(index: TableIndex) -> bool:
    """Whether an index has vectors, and not codes in their place."""
    options = None if index.spec is None else index.spec.options
    return isinstance(options, VectorOptions) and options.kind is VectorKind.IVF_FLAT


def _partitions(table: Table, index: TableIndex) -> int:
    """At least as many partitions as a segment of the index has."""
    rows = {fragment.id: fragment.physical_rows for fragment in table.fragments()}
    largest = max(
        (sum(rows.get(id_, 0) for id_ in segment.fragment_ids) for segment in index.segments),
        default=0,
    )
    return largest // VECTOR_PARTITION_ROWS + 1
