"""Searches of some rows of a table: what every engine computes of the rows that it has read."""

from __future__ import annotations

from typing import assert_never

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.relational.searches import Nearness, Search, TextSearch, TextTest
from omnigraph.search.analysis import TokenColumn, analyse
from omnigraph.search.distances import distances
from omnigraph.search.words import rows_with_any, rows_with_phrase, similar_terms, terms_of


def rows_that_pass(search: TextSearch, column: TokenColumn) -> np.ndarray:
    """The positions of the texts that pass a test, ascending."""
    phrase = analyse(search.analyzer, search.query)
    match search.test:
        case TextTest.SEARCH:
            return rows_with_any(column, terms_of(phrase))
        case TextTest.FUZZY:
            similar = (
                similar_terms(column.terms, term, search.edits_max) for term in terms_of(phrase)
            )
            return rows_with_any(column, [term for terms in similar for term in terms])
        case TextTest.MATCH_TEXT:
            return rows_with_phrase(column, phrase)
        case _:
            assert_never(search.test)


def columns_of(search: Search) -> list[str]:
    """The columns that a search reads beside `id`: what is searched, and perhaps notes of it."""
    if isinstance(search, Nearness) and search.notes is not None:
        return [search.column, search.notes]
    return [search.column]


def measure_distances(search: Nearness, vectors: pa.Array, notes: pa.Array | None) -> np.ndarray:
    """The distance of each vector, NaN for a missing one.

    Args:
        notes: What the vectors were made from, if the search asks for it.
    """
    measured = distances(search.metric, vectors, search.query)
    if notes is None:
        return measured
    is_current = pc.fill_null(pc.starts_with(notes, search.note_prefix), fill_value=False)
    return np.where(is_current.to_numpy(zero_copy_only=False), measured, np.nan)


def are_best(scores: np.ndarray, best: int, *, descending: bool) -> np.ndarray:
    """Which scores are the best, and as good as the last of these.

    >>> are_best(np.array([3.0, 1.0, 2.0, 2.0]), 2, descending=True)
    array([ True, False,  True,  True])
    """
    if len(scores) <= best or not best:
        return np.full(len(scores), bool(best))
    place = len(scores) - best if descending else best - 1
    last = np.partition(scores, place)[place]
    return np.asarray(scores >= last if descending else scores <= last)
