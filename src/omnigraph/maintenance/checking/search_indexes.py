"""Checks of what indexes for search have: every row that they cover, with its own words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
import pyarrow as pa

from omnigraph.choices import Metric, VectorKind
from omnigraph.schema.catalog import TextOptions, VectorOptions
from omnigraph.search.analysis import TokenColumn, analyse_column
from omnigraph.search.distances import distances
from omnigraph.search.words import count_words
from omnigraph.storage.indexes import TableIndex
from omnigraph.storage.row_positions import PositionShelf
from omnigraph.storage.tables import Table
from omnigraph.storage.vector_index import count_indexed
from omnigraph.storage.word_index import IndexedTexts, WordShelf

_WORDS_COMPARED: Final = 64
"""Words of each part of an index whose texts are compared one by one."""

_NO_ROWS: Final = np.zeros(0, np.int64)


def find_fault(table: Table, index: TableIndex) -> str | None:
    """What is wrong with an index for search; None if nothing was found. Reads its column.

    Of texts, the number of words of every row is compared, and the rows of some words. Of vectors,
    the rows are counted; an index by graphs is not, since it finds no more than most of them.

    Raises:
        StorageError: the index or the table could not be read.
    """
    assert index.spec is not None, "it is of a kind of ours"
    match index.spec.options:
        case TextOptions(analyzer=analyzer):
            every = WordShelf(PositionShelf()).open(table, index)
            parts = (
                (start, analyse_column(analyzer, texts)) for start, texts in _read(table, index)
            )
            return _compare_words(table.count_rows(), every, parts)
        case VectorOptions(kind=VectorKind.IVF_FLAT | VectorKind.IVF_PQ, metric=metric):
            return _compare_counts(table, index, metric)
        case _:
            return None


def _read(table: Table, index: TableIndex) -> Iterator[tuple[int, pa.Array]]:
    """The column of the fragments that an index covers, and where each part starts in a scan."""
    start = 0
    for fragment in table.fragments():
        if fragment.id in index.fragments:
            at = start
            for batch in table.scan([_column(index)], fragment_ids=[fragment.id]):
                yield at, batch.column(0)
                at += batch.num_rows
        start += fragment.num_rows


def _compare_words(
    row_count: int, every: IndexedTexts, parts: Iterator[tuple[int, TokenColumn]]
) -> str | None:
    lengths = np.zeros(row_count, np.int64)
    for part in every.parts:
        is_left = part.positions >= 0
        # A row that is there twice has twice as many words.
        np.add.at(lengths, part.positions[is_left], part.file.lengths[is_left])
    words = _sample_words(every)
    lacking, differing = [_NO_ROWS], [_NO_ROWS]
    counted: list[tuple[np.ndarray, np.ndarray]] = []
    for start, column in parts:
        own = lengths[start : start + column.row_count]
        lacking.append(start + np.flatnonzero((own == 0) & (column.lengths > 0)))
        differing.append(start + np.flatnonzero(own != column.lengths))
        found = count_words(column, words)
        counted.append((start + found.rows, found.counts))
    indexed = [part.count(words)[:2] for part in every.parts]
    differing.append(_differing_rows(counted, indexed))
    lacks = np.concatenate(lacking)
    others = np.setdiff1d(np.concatenate(differing), lacks)
    if not len(lacks) and not len(others):
        return None
    return f"it lacks {len(lacks):,} rows that it covers, and has other words of {len(others):,}"


def _sample_words(every: IndexedTexts) -> tuple[str, ...]:
    """Words of each part, evenly from all of them."""
    words: dict[str, None] = {}
    for part in every.parts:
        own = part.file.all_words
        places = np.unique(np.linspace(0, max(len(own) - 1, 0), _WORDS_COMPARED).astype(int))
        words.update(dict.fromkeys(own[place] for place in places.tolist() if own))
    return tuple(words)


def _differing_rows(
    some: Sequence[tuple[np.ndarray, np.ndarray]], others: Sequence[tuple[np.ndarray, np.ndarray]]
) -> np.ndarray:
    """The rows that have other counts in one than in the other; a row without has zeros."""
    sides = [pair for side in (some, others) for pair in side]
    if not sides:
        return _NO_ROWS
    rows = np.unique(np.concatenate([_NO_ROWS, *(rows for rows, _ in sides)]))
    totals = np.zeros((len(rows), sides[0][1].shape[1]), np.int64)
    for sign, side in ((1, some), (-1, others)):
        for own, counts in side:
            np.add.at(totals, np.searchsorted(rows, own), sign * counts)
    return rows[totals.any(axis=1)]


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
