"""Distances between vectors, as Lance defines them, computed in 64 bits from the stored 32."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, assert_never

import numpy as np
import pyarrow as pa

from omnigraph.choices import Metric

_BLOCK_NUMBERS: Final = 1 << 20
"""Numbers that are converted to 64 bits at once."""


def distances(metric: Metric, vectors: pa.Array, query: Sequence[float]) -> np.ndarray:
    """The distance of each vector from the query; NaN for a missing one.

    A vector that is null has none, and under COSINE neither has one that is zero. A distance
    depends on its vector alone, to the last bit.

    >>> rows = pa.array([[1.0, 0.0], [3.0, 4.0], None], pa.list_(pa.float32(), 2))
    >>> distances(Metric.L2, rows, [0.0, 0.0])
    array([ 1., 25., nan])
    >>> distances(Metric.COSINE, rows, [0.0, 2.0])
    array([1. , 0.2, nan])
    """
    target = np.asarray(query, np.float32).astype(np.float64)
    computed = np.full(len(vectors), np.nan)
    present = np.flatnonzero(vectors.is_valid().to_numpy(zero_copy_only=False))
    numbers = vectors.drop_null().flatten().to_numpy(zero_copy_only=False)
    rows = numbers.reshape(len(present), len(target))
    for block in _blocks(len(rows), len(target)):
        computed[present[block]] = _measure(metric, rows[block].astype(np.float64), target)
    return computed


def _blocks(row_count: int, dimension: int) -> Iterator[slice]:
    step = max(1, _BLOCK_NUMBERS // max(1, dimension))
    yield from (slice(start, start + step) for start in range(0, row_count, step))


def _measure(metric: Metric, rows: np.ndarray, target: np.ndarray) -> np.ndarray:
    # Sums along rows, and no product of matrices: that adds up differently by the number of rows.
    match metric:
        case Metric.L2:
            measured = np.square(rows - target).sum(axis=1)
        case Metric.DOT:
            measured = 1.0 - (rows * target).sum(axis=1)
        case Metric.COSINE:
            norms = np.sqrt(np.square(rows).sum(axis=1)) * np.sqrt(np.square(target).sum())
            with np.errstate(invalid="ignore", divide="ignore"):
                measured = 1.0 - (rows * target).sum(axis=1) / norms
            measured[norms == 0] = np.nan
        case _:
            assert_never(metric)
    return np.asarray(measured)
