"""Rankings by vectors that an index answers: approximate, and the better the more is looked into.

How much of an index is looked into follows the data, unless the graph's settings say it: more each
time, until that changes nothing. Vectors in clusters are found at once; of vectors without any
order, an index is read whole. Of an index that has the vectors themselves, the partitions in which
the nearest are say whether less would have found the same; of one that has codes, it is tried.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from omnigraph.choices import VectorKind
from omnigraph.engine.search_parts import columns_of, measure_distances
from omnigraph.limits import VECTOR_PARTITION_ROWS
from omnigraph.model.settings import SearchSettings
from omnigraph.relational.searches import READ, SCORE, Nearness
from omnigraph.schema.catalog import VectorOptions
from omnigraph.storage.indexes import TableIndex
from omnigraph.storage.places import fragment_ids_of
from omnigraph.storage.tables import ROW_ADDRESS, Table
from omnigraph.storage.vector_index import find_vector_index, probe_nearest
from omnigraph.storage.vector_partitions import Centres, read_centres

VECTOR_PROBES_MIN: Final = 4
"""Partitions of an index of vectors that are looked into first."""

VECTOR_SPARE_ROWS: Final = 32
"""Rows that an index with vectors is asked for beyond those that are wanted."""

VECTOR_PROBES_GROWTH: Final = 4
"""How many times as many are looked into next, to see whether that changes the answer."""


@dataclass(frozen=True, slots=True)
class _NearestRows:
    """The nearest rows that one look into an index has found.

    Attributes:
        vectors: Their vectors, and `fragment_ids` where they are.
        has_ties: Whether all that were found and are as near as the last of them are there.
    """

    rows: pa.Table
    vectors: np.ndarray
    fragment_ids: np.ndarray
    has_ties: bool


class IndexedVectorSearcher:
    """Answers rankings by vectors by their indexes; threads may share it."""

    def rank(
        self,
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
            None if there is no index of these vectors, or one of the wanted rows was not found by
            it.
        """
        index = find_vector_index(table, search.column, search.metric)
        if index is None:
            return None
        has_vectors = _has_vectors(index)
        refine = 1 if has_vectors else settings.refine
        probes = settings.probes or (2 * VECTOR_PROBES_MIN if has_vectors else VECTOR_PROBES_MIN)
        # A few more than wanted show whether others are as near as the last of them.
        spare = min(best, VECTOR_SPARE_ROWS) if has_vectors else best
        probes_max, count = 2 * _partitions(table, index), best + spare
        columns = list(dict.fromkeys(["id", *columns_of(search), *beside, ROW_ADDRESS]))
        centres = read_centres(table, index) if has_vectors and not settings.probes else None
        nearest: _NearestRows | None = None
        while True:
            found = probe_nearest(
                table, index, search.query, count, columns=columns, probes=probes, refine=refine
            )
            check()
            # Several segments may find a row, and then fewer are left than there are.
            is_everything = found.num_rows < count and len(index.segments) == 1
            before = nearest
            nearest = _rank(search, found, best, beside, is_everything=is_everything)
            is_full = nearest.rows.num_rows >= best
            if is_full and (
                settings.probes
                or (
                    _is_settled(index, centres, search, nearest, probes)
                    if centres is not None
                    else before is not None and before.rows["id"].equals(nearest.rows["id"])
                )
            ):
                return nearest.rows
            if probes >= probes_max and count * refine >= table.count_rows():
                # All of it was looked into. Zero vectors and nulls have no distance.
                return nearest.rows if is_full else None
            probes, count = VECTOR_PROBES_GROWTH * probes, min(2 * count, table.count_rows())


def _is_settled(
    index: TableIndex, centres: Centres, search: Nearness, found: _NearestRows, probes: int
) -> bool:
    """Whether a look into fewer partitions would have found the same, or there are no more.

    Only of an index that has vectors, which misses nothing in what it looks into.
    """
    if not found.has_ties:
        return False
    if probes >= len(centres.rows):
        return True
    # Rows that the index does not cover are found by every look.
    is_covered = np.isin(found.fragment_ids, np.fromiter(index.fragments, np.int64))
    query = np.asarray(search.query, np.float32)
    ranks = centres.rank(search.metric, query, found.vectors[is_covered])
    return bool(ranks.max(initial=0) < max(1, probes // VECTOR_PROBES_GROWTH))


def describe_index(table: Table, search: Nearness) -> str | None:
    """How an index would answer a search, for people, or None."""
    index = find_vector_index(table, search.column, search.metric)
    options = None if index is None or index.spec is None else index.spec.options
    return (
        f"approximate, by its index {options.kind}" if isinstance(options, VectorOptions) else None
    )


def _rank(
    search: Nearness, found: pa.Table, best: int, beside: Sequence[str], *, is_everything: bool
) -> _NearestRows:
    vectors = found[search.column].combine_chunks()
    notes = None if search.notes is None else found[search.notes].combine_chunks()
    measured = measure_distances(search, vectors, notes)
    ids = found["id"].combine_chunks()
    order = np.lexsort((ids.to_numpy(zero_copy_only=False), measured))
    order = order[~np.isnan(measured[order])]
    # Those that are as near as the last of them belong to the best, too.
    is_near = measured[order] <= measured[order[:best]].max(initial=-np.inf)
    has_ties = is_everything or not is_near.all()
    order = order[is_near]
    chosen = pa.array(order)
    ranked = {"id": ids.take(chosen), SCORE: measured[order]}
    return _NearestRows(
        pa.table(ranked | {f"{READ}{name}": found[name].take(chosen) for name in beside}),
        vectors.take(chosen).flatten().to_numpy().reshape(len(order), -1),
        fragment_ids_of(found[ROW_ADDRESS].to_numpy()[order]).astype(np.int64),
        has_ties,
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
