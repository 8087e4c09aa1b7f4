"""Buckets: a hash of values that distributes them evenly, equal in any process."""

from __future__ import annotations

from functools import cache

import duckdb
import numpy as np
import pyarrow as pa


def buckets_of(values: pa.ChunkedArray, count: int) -> np.ndarray:
    """The bucket of each value, from 0; equal values have the same one in any process.

    >>> buckets = buckets_of(pa.chunked_array([["a", "b", "a"]]), 8)
    >>> bool(buckets[0] == buckets[2]), bool((buckets < 8).all())
    (True, True)
    """
    if count == 1:
        return np.zeros(len(values), np.uint16)
    cursor = _connection().cursor()
    cursor.register("given", pa.table({"value": values}))
    hashes = cursor.sql(f"SELECT CAST(hash(value) % {int(count)} AS USMALLINT) AS place FROM given")
    buckets: np.ndarray = hashes.to_arrow_table()["place"].to_numpy()
    return buckets


@cache
def _connection() -> duckdb.DuckDBPyConnection:
    # One thread: the caller is one of several tasks, and rows must keep their order.
    return duckdb.connect(config={"threads": 1})
