"""Selections: whether few rows pass a filter on indexed columns, by the indexes alone.

A filter that few rows pass is best answered by an index, which finds them wherever they are. One
that many rows pass is best answered by a scan: to read the index and then the rows one by one takes
longer than to read them all.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from omnigraph.errors import StorageError
from omnigraph.limits import OPENED_FRAGMENTS_MAX
from omnigraph.storage.indexes import covered_by_column
from omnigraph.storage.tables import Table

SELECTED_TABLE_ROWS_MIN: Final = 1 << 12
"""Rows of a table below which a filter on indexed columns is not looked up but scanned."""

SELECTED_SHARE_MAX: Final = 1 / 16
"""The share of a table's rows up to which a filter is answered by indexes. Measured: scattered rows
are found as fast by a scan from about a tenth on, and from a quarter on almost twice as fast."""

SELECTED_ROWS_MAX: Final = 200_000
"""Rows that indexes find for one relation of a query; these are held in memory."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """How many rows pass a filter.

    Attributes:
        row_count: Of the rows that indexes cover; all rows if that is unknown.
        is_few: Whether a scan would be slower than the indexes; None if that is unknown.
    """

    row_count: int
    is_few: bool | None = None


def estimate_rows(table: Table, filter_text: str, columns: Collection[str]) -> Estimate:
    """How many rows pass a filter, by its indexes.

    Unknown where there are no such indexes, where they do not cover so many fragments that these
    would be opened one by one, or where the table is so small that a scan is as good.

    Args:
        columns: All columns that the filter tests.
    """
    row_count = table.count_rows()
    if row_count < SELECTED_TABLE_ROWS_MIN:
        return Estimate(row_count)
    coverage = covered_by_column(table)
    every = frozenset(table.handle.fragment_ids())
    covered = every.intersection(*(coverage.get(column, frozenset()) for column in columns))
    loose = every - covered
    if not covered or len(loose) > OPENED_FRAGMENTS_MAX:
        return Estimate(row_count)
    fragments = (table.handle.get_fragment(id_) for id_ in loose)
    covered_rows = row_count - sum(part.metadata.num_rows for part in fragments if part is not None)
    try:
        passing = table.count_indexed(filter_text)
    except StorageError:
        # If an index is damaged, a scan has the answer; else it has the error.
        return Estimate(row_count, is_few=False)
    return Estimate(passing, passing <= min(SELECTED_ROWS_MAX, covered_rows * SELECTED_SHARE_MAX))
