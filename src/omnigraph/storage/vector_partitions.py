"""Partitions of an index of vectors: which of them a vector is in, by their centres.

Lance looks into the partitions whose centres are the nearest to what is looked for, and does not
say which of them it found a row in. The centres do (docs/substrate.md, Indexes for search).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, assert_never

import numpy as np

from omnigraph.choices import Metric
from omnigraph.storage.indexes import TableIndex
from omnigraph.storage.tables import Table
from omnigraph.storage.translate import translate_errors

_PRODUCTS_AT_ONCE: Final = 1 << 18
"""Numbers that are multiplied at once. More are divided among threads, which on a busy machine wait
for each other ten times as long as one takes."""


@dataclass(frozen=True, slots=True, eq=False)
class Centres:
    """The centres of the partitions of a segment, in rows, and the square of the length of each."""

    rows: np.ndarray
    squares: np.ndarray

    def rank(self, metric: Metric, query: np.ndarray, vectors: np.ndarray) -> np.ndarray:
        """For each vector, how many centres are nearer to the query than its own."""
        step = max(1, _PRODUCTS_AT_ONCE // self.rows.size)
        starts = range(0, len(vectors), step)
        parts = (self._distances(metric, vectors[start : start + step]) for start in starts)
        own = np.concatenate([np.zeros(0, np.int64), *(part.argmin(axis=1) for part in parts)])
        (asked,) = self._distances(metric, query[None])
        return np.asarray(np.searchsorted(np.sort(asked), asked[own]))

    def _distances(self, metric: Metric, vectors: np.ndarray) -> np.ndarray:
        """How far each vector is from each centre, but for what is the same for all centres."""
        match metric:
            case Metric.COSINE:
                lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
                units = vectors / np.where(lengths > 0, lengths, 1)
                return np.asarray(self.squares - 2 * (units @ self.rows.T))
            case Metric.L2:
                return np.asarray(self.squares - 2 * (vectors @ self.rows.T))
            case Metric.DOT:
                return np.asarray(-(vectors @ self.rows.T))
            case _:
                assert_never(metric)


def read_centres(table: Table, index: TableIndex) -> Centres | None:
    """The centres of the partitions of an index; None if its segments have centres of their own."""
    if len(index.segments) != 1:
        # Lance returns the centres of one of them.
        return None
    return table.fact(("centres", index.name), lambda: _read_centres(table, index))


def _read_centres(table: Table, index: TableIndex) -> Centres:
    with translate_errors("reading an index of", table.address.uri):
        centres = table.handle.centroids(index_name=index.name)
    dimension = centres.type.list_size
    rows = centres.flatten().to_numpy().astype(np.float32).reshape(-1, dimension)
    return Centres(rows, np.square(rows).sum(axis=1))
