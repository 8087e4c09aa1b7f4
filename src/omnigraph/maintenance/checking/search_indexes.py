"""Checks of what indexes for search have: every row that they cover, with its own words."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
import pyarrow as pa

from omnigraph.choices import Analyzer, Metric, VectorKind
from omnigraph.schema.catalog import TextOptions, VectorOptions
from omnigraph.search.analysis import TokenColumn, analyse_column, words_of
from omnigraph.search.distances import distances
from omnigraph.search.words import count_words
from omnigraph.storage.indexes import TableIndex
from omnigraph.storage.tables import ROW_ADDRESS, Table
from omnigraph.storage.vector_index import count_indexed
from omnigraph.storage.word_search import find_addresses

_WORDS_COMPARED: Final = 64
"""The most frequent words of a part of a column that are looked up, and about as many others."""

_WORDS_LOOKED_UP_MAX: Final = 1_024
"""Words that are looked up in all."""

_NO_ROWS: Final = np.zeros(0, np.uint64)


def find_fault(table: Table, index: TableIndex) -> str | None:
    """What is wrong with an index for search; None if nothing was found. Reads its column.

    Of texts, the rows of some words are compared. Of vectors, the rows are counted; an index by
    graphs is not, since it finds no more than most of them.
    """
    assert index.spec is not None, "it is of a kind of ours"
    match index.spec.options:
        case TextOptions(analyzer=analyzer):
            return _find_words_missed(table, index, analyzer)
        case VectorOptions(kind=VectorKind.IVF_FLAT | VectorKind.IVF_PQ, metric=metric):
            return _compare_counts(table, index, metric)
        case _:
            return None


def _read(table: Table, index: TableIndex) -> Iterator[tuple[np.ndarray, pa.Array]]:
    """The column of the fragments that an index covers, and where each row is."""
    covered = sorted(index.fragments.intersection(table.handle.fragment_ids()))
    for fragment_id in covered:
        for batch in table.scan([_column(index), ROW_ADDRESS], fragment_ids=[fragment_id]):
            yield batch.column(1).to_numpy(), batch.column(0)


def _find_words_missed(table: Table, index: TableIndex, analyzer: Analyzer) -> str | None:
    """Compare the rows that have some words with those that the index finds by them.

    It may find more: rows that were updated are found by their former words, too.
    """
    found: dict[str, np.ndarray] = {}
    missed = [_NO_ROWS]
    for addresses, texts in _read(table, index):
        column = analyse_column(analyzer, texts)
        for term in _sample_terms(column):
            rows = count_words(column, [term]).rows
            if term not in found:
                if len(found) >= _WORDS_LOOKED_UP_MAX:
                    continue
                word = words_of(analyzer, texts[int(rows[0])].as_py())[term]
                found[term] = find_addresses(table, _column(index), word)
            own = addresses[rows]
            missed.append(own[np.isin(own, found[term], invert=True)])
    count = len(np.unique(np.concatenate(missed)))
    return f"it misses {count:,} rows by words that they have" if count else None


def _sample_terms(column: TokenColumn) -> tuple[str, ...]:
    """The most frequent terms, and then some of the others."""
    terms = [*column.terms]
    by_count = np.argsort(-np.bincount(column.numbers, minlength=len(terms)), kind="stable")
    others = by_count[:: 1 + len(terms) // _WORDS_COMPARED]
    return tuple(dict.fromkeys(terms[place] for place in (*by_count[:_WORDS_COMPARED], *others)))


def _compare_counts(table: Table, index: TableIndex, metric: Metric) -> str | None:
    query, expected = [1.0] * table.schema.field(_column(index)).type.list_size, 0
    for _, vectors in _read(table, index):
        # Under COSINE a vector of zeros has no distance, and an index does not have it.
        expected += int(np.count_nonzero(~np.isnan(distances(metric, vectors, query))))
    found = count_indexed(table, index, query)
    if found == expected:
        return None
    return f"it finds {found:,} rows, and the files that it covers have {expected:,} vectors"


def _column(index: TableIndex) -> str:
    assert index.spec is not None, "it is of a kind of ours"
    return index.spec.column
