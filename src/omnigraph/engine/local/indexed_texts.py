"""Searches of texts that an index answers: as exact as a scan, by the counts that the index has.

The index says which rows have a word, and how often; rows that it does not cover are analysed. So
the cost follows the rows that have a word of the query, and those written since.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from omnigraph.choices import Analyzer
from omnigraph.engine.budget import Budget
from omnigraph.engine.search_parts import are_best, rows_that_pass
from omnigraph.limits import SCORED_ROWS_READ_MAX, TAKEN_SHARE_MAX
from omnigraph.relational.searches import READ, SCORE, Relevance, TextSearch, TextTest
from omnigraph.search.analysis import Token, TokenColumn, analyse
from omnigraph.search.bm25 import TextStatistics, scores
from omnigraph.search.words import (
    count_words,
    measure,
    rows_with_phrase,
    similar_terms,
    terms_of,
)
from omnigraph.storage.columns import read_all_fragments, read_fragments
from omnigraph.storage.row_positions import PositionShelf, take_rows
from omnigraph.storage.tables import Table
from omnigraph.storage.word_index import IndexedTexts, WordPart, WordShelf, find_word_index

Analyse = Callable[[Analyzer, pa.Array, Budget], TokenColumn]


@dataclass(frozen=True, slots=True)
class _Loose:
    """Rows that an index does not cover.

    Attributes:
        positions: Where they are in a scan of the table.
    """

    ids: pa.Array
    tokens: TokenColumn
    positions: np.ndarray


@dataclass(frozen=True, slots=True)
class _Hits:
    """Rows that have a word of a query, how often they have each, and their lengths.

    Attributes:
        positions: Where they are in a scan of the table.
        ids: Their ids, if these are in memory.
    """

    positions: np.ndarray
    counts: np.ndarray
    lengths: np.ndarray
    ids: pa.Array | None = None


@dataclass(frozen=True, slots=True)
class _TextScores:
    """The rows that have a word of a query, part by part, and the score of each."""

    hits: list[_Hits]
    scores: list[np.ndarray]


class IndexedTextSearcher:
    """Answers searches of texts by their indexes; threads may share it, with what it keeps."""

    def __init__(self, analyse_texts: Analyse, positions: PositionShelf) -> None:
        self._analyse = analyse_texts
        self._shelf = WordShelf(positions)

    def rank(
        self,
        table: Table,
        search: Relevance,
        best: int | None,
        budget: Budget,
        *,
        beside: Sequence[str] = (),
    ) -> pa.Table | None:
        """The ids of rows that have a word of the query, and their scores; None without an index.

        Args:
            beside: Properties that are read of these rows, if they are few.

        Raises:
            StorageError: the index or the table could not be read.
            LimitExceededError: the budget does not suffice.
        """
        scored = self._score(table, search, budget)
        if scored is None:
            return None
        every = np.concatenate([np.zeros(0), *scored.scores])
        least = _least_of_best(every, best)
        chosen = [np.flatnonzero(part >= least) for part in scored.scores]
        ranked = {SCORE: every[every >= least]}
        hits = scored.hits
        # Many texts may share the last score of the best.
        are_few = len(ranked[SCORE]) <= max(SCORED_ROWS_READ_MAX, best or 0)
        if beside and best is not None and are_few:
            names = list(dict.fromkeys(["id", *beside]))
            places = [own.positions[rows] for own, rows in zip(hits, chosen, strict=True)]
            rows = take_rows(table, np.concatenate([np.zeros(0, np.int64), *places]), names)
            budget.require_bytes(rows.nbytes)
            return pa.table(
                {"id": rows["id"], **ranked, **{f"{READ}{name}": rows[name] for name in beside}}
            )
        ids = [
            self._ids_at(table, own, rows, budget) for own, rows in zip(hits, chosen, strict=True)
        ]
        return pa.table({"id": pa.chunked_array(ids, pa.string()), **ranked})

    def _score(self, table: Table, search: Relevance, budget: Budget) -> _TextScores | None:
        texts = self._open(table, search)
        if texts is None:
            return None
        terms = terms_of(analyse(search.analyzer, search.query))
        statistics = TextStatistics(texts.texts, texts.tokens)
        hits: list[_Hits] = []
        for part in texts.parts:
            budget.check()
            own = _Hits(*part.count(terms))
            statistics += _frequencies(terms, own.counts)
            hits.append(own)
        for loose in self._loose(table, texts, search, budget):
            counted = count_words(loose.tokens, terms)
            statistics += measure(loose.tokens, terms, counted)
            positions, ids = loose.positions[counted.rows], loose.ids.take(pa.array(counted.rows))
            hits.append(_Hits(positions, counted.counts, counted.lengths, ids))
        return _TextScores(
            hits, [scores(terms, own.counts, own.lengths, statistics) for own in hits]
        )

    def test(self, table: Table, search: TextSearch, budget: Budget) -> pa.Table | None:
        """The ids of the rows whose texts pass; None without an index.

        Raises:
            StorageError: the index or the table could not be read.
            LimitExceededError: the budget does not suffice.
        """
        texts = self._open(table, search)
        if texts is None:
            return None
        phrase = analyse(search.analyzer, search.query)
        positions = [np.zeros(0, np.int64)]
        for part in texts.parts:
            budget.check()
            positions.append(_passing(part, search, phrase))
        candidates = np.concatenate(positions)
        if search.test is TextTest.MATCH_TEXT:
            ids = [self._with_phrase(table, search, phrase, candidates, budget)]
        else:
            ids = [self._ids(table, candidates, budget)]
        for each in self._loose(table, texts, search, budget):
            ids.append(each.ids.take(pa.array(rows_that_pass(search, each.tokens))))
        return pa.table({"id": pa.chunked_array(ids, pa.string())})

    def _open(self, table: Table, search: Relevance | TextSearch) -> IndexedTexts | None:
        index = find_word_index(table, search.column, search.analyzer)
        return None if index is None else self._shelf.open(table, index)

    def _loose(
        self, table: Table, texts: IndexedTexts, search: Relevance | TextSearch, budget: Budget
    ) -> list[_Loose]:
        if not texts.uncovered:
            return []
        rows = read_fragments(table, ["id", search.column], texts.uncovered)
        ids, start = rows["id"].combine_chunks(), 0
        parts = []
        for chunk in rows[search.column].chunks:
            tokens = self._analyse(search.analyzer, chunk, budget)
            positions = texts.uncovered_positions[start : start + len(chunk)]
            parts.append(_Loose(ids.slice(start, len(chunk)), tokens, positions))
            start += len(chunk)
        return parts

    def _with_phrase(
        self,
        table: Table,
        search: TextSearch,
        phrase: Sequence[Token],
        candidates: np.ndarray,
        budget: Budget,
    ) -> pa.Array:
        """The ids of those rows that have all words of a phrase, and have them in its order."""
        if not len(candidates):
            return pa.array([], pa.string())
        rows = table.take(np.sort(candidates).tolist(), ["id", search.column])
        budget.require_bytes(rows.nbytes)
        tokens = self._analyse(search.analyzer, rows[search.column].combine_chunks(), budget)
        kept = rows_with_phrase(tokens, phrase)
        return rows["id"].combine_chunks().take(pa.array(kept))

    def _ids_at(self, table: Table, hits: _Hits, rows: np.ndarray, budget: Budget) -> pa.Array:
        if hits.ids is not None:
            return hits.ids.take(pa.array(rows))
        return self._ids(table, hits.positions[rows], budget)

    def _ids(self, table: Table, positions: np.ndarray, budget: Budget) -> pa.Array:
        if not len(positions):
            return pa.array([], pa.string())
        if len(positions) > TAKEN_SHARE_MAX * table.count_rows():
            ids = read_all_fragments(table, ["id"])["id"].take(pa.array(positions))
        else:
            ids = take_rows(table, positions, ["id"])["id"]
        budget.require_bytes(ids.nbytes)
        return pa.concat_arrays(ids.chunks)


def _passing(part: WordPart, search: TextSearch, phrase: Sequence[Token]) -> np.ndarray:
    """The positions of texts that pass; for a phrase, of those that have all of its words."""
    terms = terms_of(phrase)
    if search.test is TextTest.FUZZY:
        words = part.file.all_words
        similar = (similar_terms(words, term, search.edits_max) for term in terms)
        terms = tuple(dict.fromkeys(term for own in similar for term in own))
    positions, counts, _ = part.count(terms)
    if search.test is TextTest.MATCH_TEXT:
        return positions[(counts > 0).all(axis=1)]
    return positions


def _frequencies(terms: Sequence[str], counts: np.ndarray) -> TextStatistics:
    having = (np.count_nonzero(counts[:, place]) for place in range(len(terms)))
    return TextStatistics(
        frequencies={term: int(count) for term, count in zip(terms, having, strict=True)}
    )


def _least_of_best(values: np.ndarray, best: int | None) -> float:
    """The score from which on a row is among the best, or as good as the last of these."""
    if best is None:
        return -np.inf
    return float(values[are_best(values, best, descending=True)].min(initial=np.inf))
