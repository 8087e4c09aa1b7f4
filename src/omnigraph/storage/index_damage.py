"""Damaged indexes: rows that cannot be found by an index are found by a scan."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final, TypeVar

from omnigraph.errors import StorageError
from omnigraph.storage.tables import Table

_log: Final = logging.getLogger(__name__)

Result = TypeVar("Result")


def avoid_damaged_indexes(table: Table, read: Callable[[Table], Result]) -> Result:
    """Read a table and, if that fails, once more without its indexes: no answer depends on one.

    If rows can be read without indexes, an index was at fault. There is no other way to tell: Lance
    reports a lost file of an index like a lost file with rows.

    Args:
        read: Reads a table. It may be called twice.
    """
    try:
        return read(table)
    except StorageError as failure:
        if table.ignores_indexes or not _has_indexes(table):
            raise
        try:
            result = read(table.without_indexes())
        except StorageError:
            raise failure from failure.__cause__
        warn_of_damage(failure)
        return result


def warn_of_damage(failure: StorageError) -> None:
    """Log that an index cannot be read, and what to do."""
    _log.warning(
        "an index cannot be read, and a scan took its place: %s ('omnigraph check' finds such "
        "indexes, and 'omnigraph index --rebuild' builds them anew)",
        failure.message,
    )


def _has_indexes(table: Table) -> bool:
    return bool(table.handle.describe_indices())
