"""Joins of many keys with many others, in one thread."""

from __future__ import annotations

from functools import cache
from typing import Final

import duckdb
import pyarrow as pa

_WITH_KNOWN: Final = "SELECT given.* FROM given SEMI JOIN known USING ({key})"
_WITHOUT_KNOWN: Final = "SELECT given.* FROM given ANTI JOIN known USING ({key})"
_JOINED: Final = "SELECT given.*, known.* EXCLUDE ({key}) FROM given JOIN known USING ({key})"


def keep_known(given: pa.Table, known: pa.Table, *, key: str) -> pa.Table:
    """The rows whose key is known, in any order.

    >>> given, known = pa.table({"id": ["a", "b", "b"]}), pa.table({"id": ["b", "c"]})
    >>> keep_known(given, known, key="id")["id"].to_pylist()
    ['b', 'b']
    """
    return _run(_WITH_KNOWN, given, known, key)


def drop_known(given: pa.Table, known: pa.Table, *, key: str) -> pa.Table:
    """The rows whose key is not known, in any order.

    >>> given, known = pa.table({"id": ["a", "b", "b"]}), pa.table({"id": ["b", "c"]})
    >>> drop_known(given, known, key="id")["id"].to_pylist()
    ['a']
    """
    return _run(_WITHOUT_KNOWN, given, known, key)


def join_known(given: pa.Table, known: pa.Table, *, key: str) -> pa.Table:
    """The rows whose key is known, each with the other columns of the known row.

    >>> given, known = pa.table({"id": ["a", "b"]}), pa.table({"id": ["b"], "at": [7]})
    >>> join_known(given, known, key="id").to_pylist()
    [{'id': 'b', 'at': 7}]
    """
    return _run(_JOINED, given, known, key)


def _run(text: str, given: pa.Table, known: pa.Table, key: str) -> pa.Table:
    cursor = _connection().cursor()
    cursor.register("given", given)
    cursor.register("known", known)
    return cursor.sql(text.format(key=f'"{key}"')).to_arrow_table()


@cache
def _connection() -> duckdb.DuckDBPyConnection:
    # One thread: the caller is one of several tasks.
    return duckdb.connect(config={"threads": 1})
