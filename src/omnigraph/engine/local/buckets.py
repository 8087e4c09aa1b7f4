"""Buckets: values spread evenly, so that equal ones come together in any process."""

from __future__ import annotations

from functools import cache

import duckdb
import numpy as np
import pyarrow as pa


def buckets_of(values: pa.ChunkedArray, count: int) -> np.ndarray:
    """The bucket of each value, from 0; equal values have the same, wherever they are asked for.

    >>> found = buckets_of(pa.chunked_array([["a", "b", "a"]]), 8)
    >>> bool(found[0] == found[2]), bool((found < 8).all())
    (True, True)
    """
    if count == 1:
        return np.zeros(len(values), np.uint16)
    cursor = _connection().cursor()
    cursor.register("given", pa.table({"value": values}))
    found = cursor.sql(f"SELECT CAST(hash(value) % {int(count)} AS USMALLINT) AS place FROM given")
    places: np.ndarray = found.to_arrow_table()["place"].to_numpy()
    return places


@cache
def _connection() -> duckdb.DuckDBPyConnection:
    # One thread: the caller is one of several tasks, and rows come back in their order.
    return duckdb.connect(config={"threads": 1})
