"""Equality of stored values, as a diff compares them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


def are_equal(left: pa.ChunkedArray, right: pa.ChunkedArray) -> np.ndarray:
    """Whether the values at each place are equal.

    Null equals only null, NaN equals NaN, and zeros of either sign are equal.

    >>> left = pa.chunked_array([[[1.0, 2.0], [float("nan")], [], None, [0.0]]])
    >>> right = pa.chunked_array([[[1.0, 3.0], [float("nan")], [], [], [-0.0]]])
    >>> are_equal(left, right).tolist()
    [False, True, True, False, True]
    """
    if pa.types.is_nested(left.type):
        return _are_lists_equal(left, right)
    is_equal = pc.equal(left, right)
    if pa.types.is_floating(left.type):
        is_equal = pc.or_(is_equal, pc.and_(pc.is_nan(left), pc.is_nan(right)))
    are_null = pc.and_(left.is_null(), right.is_null())
    equal: np.ndarray = pc.or_(pc.fill_null(is_equal, fill_value=False), are_null).to_numpy()
    return equal


def _are_lists_equal(left: pa.ChunkedArray, right: pa.ChunkedArray) -> np.ndarray:
    lengths, others = (
        pc.fill_null(pc.cast(pc.list_value_length(lists), pa.int64()), -1).to_numpy()
        for lists in (left, right)
    )
    equal: np.ndarray = lengths == others
    filled = np.flatnonzero(equal & (lengths > 0))
    if len(filled):
        # Arrow does not compare lists, so their items are compared, and joined for each list.
        items = are_equal(*(pc.list_flatten(lists.take(filled)) for lists in (left, right)))
        starts = np.cumsum(lengths[filled]) - lengths[filled]
        equal[filled] = np.logical_and.reduceat(items, starts)
    return equal
