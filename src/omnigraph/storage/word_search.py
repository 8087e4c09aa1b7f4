"""Texts by their words, through Lance's scanner: candidates, which the caller looks at again.

An index of texts names rows by their ids, so it also finds rows by words that they had before they
were updated (docs/substrate.md, Indexes for search). It counts deleted rows in its own scores.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow as pa
from lance.query import FullTextOperator, MatchQuery

from omnigraph.choices import Analyzer
from omnigraph.schema.catalog import TextOptions
from omnigraph.storage.indexes import TableIndex, find_search_index
from omnigraph.storage.places import fragment_ids_of
from omnigraph.storage.tables import ROW_ADDRESS, Table

_LANCE_SCORE: Final = "_score"


def find_word_index(table: Table, column: str, analyzer: Analyzer) -> TableIndex | None:
    """The index of a column's words by this analyzer, or None. Reads nothing."""
    return find_search_index(
        table,
        column,
        lambda options: isinstance(options, TextOptions) and options.analyzer is analyzer,
    )


def find_texts(
    table: Table,
    column: str,
    text: str,
    *,
    columns: Sequence[str],
    fragment_ids: np.ndarray,
    has_all: bool = False,
    limit: int | None = None,
) -> tuple[pa.Table, bool]:
    """Rows of some fragments whose texts probably have words of a text, each row once.

    Args:
        fragment_ids: Fragments that the index covers; rows of others are left out.
        has_all: Whether a row must have all of the words.
        limit: Only so many rows, the best by Lance's scores.

    Returns:
        The rows in the order of Lance's scores, and whether there are no more.
    """
    operator = FullTextOperator.AND if has_all else FullTextOperator.OR
    with table.translate_errors("searching texts of"):
        found = table.handle.scanner(
            columns=list(dict.fromkeys([*columns, ROW_ADDRESS, _LANCE_SCORE])),
            full_text_query=MatchQuery(text, column, operator=operator),
            limit=limit,
            prefilter=True,
            # Rows that no segment covers are the caller's.
            fast_search=True,
        ).to_table()
    addresses = found[ROW_ADDRESS].to_numpy()
    _, firsts = np.unique(addresses, return_index=True)
    is_wanted = np.isin(fragment_ids_of(addresses[firsts]), fragment_ids)
    chosen = np.sort(firsts[is_wanted])
    is_everything = limit is None or found.num_rows < limit
    return found.select([*columns]).take(pa.array(chosen)), is_everything


def find_addresses(table: Table, column: str, text: str, *, has_all: bool = False) -> np.ndarray:
    """The addresses of rows that the index finds by the words of a text, ascending."""
    every = np.array([*table.handle.fragment_ids()])
    rows, _ = find_texts(
        table, column, text, columns=[ROW_ADDRESS], fragment_ids=every, has_all=has_all
    )
    return np.sort(rows[ROW_ADDRESS].to_numpy())
