"""Searches of some rows of a table: what every engine computes of the rows that it has read."""

from __future__ import annotations

from typing import assert_never

import numpy as np

from omnigraph.relational.searches import TextSearch, TextTest
from omnigraph.search.analysis import TokenColumn, analyse
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
