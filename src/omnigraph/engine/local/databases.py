"""The databases of DuckDB in this process: one that queries share, and some of bounded memory."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Final

# Imported where it is used: what is found by key does without.
if TYPE_CHECKING:
    import duckdb

IDLE_DATABASES_MAX: Final = 2
"""Databases of bounded memory that are kept for the next query with the same limit."""


_SETTINGS: Final = (
    "TimeZone = 'UTC'",
    # Nothing but the relations of a plan may be read: no variables, files, network, extensions.
    "python_enable_replacements = false",
    "autoinstall_known_extensions = false",
    "autoload_known_extensions = false",
    "enable_external_access = false",
    "lock_configuration = true",
)

_connecting: Final = threading.Lock()


def new_cursor(settings: tuple[str, ...] = ()) -> duckdb.DuckDBPyConnection:
    """A cursor of this process's DuckDB, for one thread of the caller.

    Args:
        settings: More settings, as assignments; there is one DuckDB for each choice of them.
    """
    # One at a time, or two threads make a DuckDB each. The one that nobody keeps would go with the
    # cursor of its thread; and a child that is forked meanwhile, as Spark's start does, lets go of
    # that cursor, waits for threads that it does not have, and dies.
    with _connecting:
        return _connected(os.getpid(), settings).cursor()


@cache
def _connected(pid: int, settings: tuple[str, ...]) -> duckdb.DuckDBPyConnection:  # noqa: ARG001 a child has its own
    """This process's DuckDB. To start one takes longer than a small query does."""
    return _connect(settings)


def _connect(settings: tuple[str, ...]) -> duckdb.DuckDBPyConnection:
    import duckdb

    connection = duckdb.connect(":memory:")
    for setting in (*settings, *_SETTINGS):
        connection.execute(f"SET GLOBAL {setting}")
    return connection


@contextmanager
def bounded_database(bytes_max: int) -> Iterator[duckdb.DuckDBPyConnection]:
    """A DuckDB for the caller alone, which holds at most so many bytes at once.

    DuckDB limits the memory of a database, never that of a query
    (tests/contract/duckdb/test_duckdb_limits.py). A query that fails takes its database with it.
    """
    key = os.getpid(), bytes_max
    with _idle_lock:
        kept = [each for each in _idle if each[0] == key]
        if kept:
            _idle.remove(kept[0])
    connection = kept[0][1] if kept else _connect(_bounds(bytes_max))
    try:
        yield connection
    except BaseException:
        connection.close()
        raise
    with _idle_lock:
        _idle.append((key, connection))
        spare = _idle.pop(0)[1] if len(_idle) > IDLE_DATABASES_MAX else None
    if spare is not None:
        spare.close()


_idle: Final[list[tuple[tuple[int, int], duckdb.DuckDBPyConnection]]] = []
"""Databases that no query uses, by process and bytes, the oldest first."""
_idle_lock: Final = threading.Lock()


def _bounds(bytes_max: int) -> tuple[str, ...]:
    # Without a directory it cannot spill: what does not fit is refused, and no disk fills up.
    return (f"memory_limit = '{bytes_max} B'", "temp_directory = ''")
