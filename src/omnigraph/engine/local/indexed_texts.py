"""Searches of texts by an index: candidates come from Lance's scanner, and we look at their texts.

A test of texts is exact: the index finds at least the rows that pass. A ranking is approximate.
Lance returns the best rows by its own scores, and we score a few more than are wanted by ours, with
the statistics of the snapshot (docs/decisions/0039). Rows of small fragments, and of those that the
index does not cover, are analysed and stay in memory.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np
import pyarrow as pa

from omnigraph.choices import Analyzer
from omnigraph.engine.budget import Budget
from omnigraph.engine.local.text_lengths import TextColumn, TextLengths
from omnigraph.engine.search_parts import are_best, rows_that_pass
from omnigraph.limits import INDEXED_TEXT_ROWS_MIN, KEPT_LOOKUP_ROWS_MAX, KEPT_TABLE_BYTES_MAX
from omnigraph.relational.searches import READ, SCORE, Relevance, TextSearch, TextTest
from omnigraph.search.analysis import TokenColumn, analyse, analyse_column, words_of
from omnigraph.search.bm25 import TextStatistics, scores
from omnigraph.search.words import count_words, measure, similar_terms, terms_of
from omnigraph.storage.columns import read_fragments
from omnigraph.storage.indexes import TableIndex
from omnigraph.storage.tables import ROW_ADDRESS, Table, TableAddress
from omnigraph.storage.word_search import find_texts, find_word_index

KEPT_WORD_COUNTS_MAX: Final = 1 << 14
"""Words of which an engine remembers how many texts of a version have them."""

TEXT_CANDIDATES_SPARE: Final = 8
"""Rows that an index of texts is asked for beyond those that are wanted."""

TEXT_CANDIDATES_GROWTH: Final = 4
"""How many times as many are asked for next, if the last of them may be among the best."""

TEXT_CANDIDATES_MAX: Final = 4_096
"""Rows that are scored again at most, unless more are wanted."""

TAKEN_SHARE_MAX: Final = 1 / 16
"""The share of the rows of a table from which on all texts are scanned, and not some looked up."""


Analyse = Callable[[Analyzer, pa.Array, Budget], TokenColumn]


@dataclass(frozen=True, slots=True)
class TextSplit:
    """The fragments of a version: those whose rows an index finds, and the others."""

    indexed: frozenset[int]
    loose: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Ranking:
    """A ranking of the texts of one version.

    Attributes:
        names: The columns that are read of each row.
    """

    table: Table
    search: Relevance
    split: TextSplit
    terms: tuple[str, ...]
    names: list[str]


@dataclass(frozen=True, slots=True)
class _TextScores:
    """Rows and their scores; minus infinity for rows that have no word of the query."""

    rows: pa.Table
    scores: np.ndarray


def split_texts(table: Table, search: Relevance | TextSearch) -> TextSplit | None:
    """How an index finds the texts of a table; None if a scan does. Reads nothing.

    An index of texts finds updated rows by their former words too, and these would count as texts
    that have the word. Updates are in small fragments, so those are analysed if they are few.
    """
    index = find_word_index(table, search.column, search.analyzer)
    if index is None:
        return None
    key = "text split", index.name, INDEXED_TEXT_ROWS_MIN
    return table.fact(key, lambda: _split(table, index))


def _split(table: Table, index: TableIndex) -> TextSplit | None:
    rows = {fragment.id: fragment.num_rows for fragment in table.fragments()}
    covered = index.fragments.intersection(rows)
    small = {id_ for id_ in covered if rows[id_] < INDEXED_TEXT_ROWS_MIN}
    if sum(rows[id_] for id_ in small) > KEPT_LOOKUP_ROWS_MAX:
        small = set()
    indexed = covered - small
    loose = tuple(id_ for id_ in rows if id_ not in indexed)
    are_few = sum(rows[id_] for id_ in loose) <= KEPT_LOOKUP_ROWS_MAX
    return TextSplit(indexed, loose) if indexed or are_few else None


def _are_few(table: Table, count: int) -> bool:
    """Whether it is faster to look at the texts of so many rows than to scan all of them."""
    # A scan of a smaller table is in memory, with its tokens.
    return table.count_bytes() > KEPT_TABLE_BYTES_MAX or count <= (
        TAKEN_SHARE_MAX * table.count_rows()
    )


class IndexedTextSearcher:
    """Answers searches of texts by their indexes; threads may share it, with what it keeps."""

    def __init__(self, analyse_texts: Analyse) -> None:
        self._analyse = analyse_texts
        self._lengths = TextLengths()
        self._having: OrderedDict[tuple[TableAddress, TextColumn, str, frozenset[int]], int]
        self._having = OrderedDict()
        self._lock = threading.Lock()

    def rank(
        self,
        table: Table,
        search: Relevance,
        best: int | None,
        budget: Budget,
        *,
        beside: Sequence[str] = (),
    ) -> pa.Table | None:
        """The ids of rows that have a word of the query, and their scores; None for a scan.

        Args:
            best: Only so many rows are needed, and those as good as the last of them.
            beside: Properties that are read of these rows, if only the best are needed.
        """
        split = split_texts(table, search)
        if split is None or best == 0:
            return None
        words = words_of(search.analyzer, search.query)
        column = TextColumn(search.column, search.analyzer)
        texts = self._lengths.measure(table, column, split.indexed, budget.check)
        statistics = texts.statistics(words)
        statistics += self._count_having(table, column, words, texts.uncounted)
        found_count = sum(statistics.frequencies.values())
        if best is None and not _are_few(table, found_count):
            return None
        shown = ["id", *beside] if best is not None else ["id"]
        names = list(dict.fromkeys([*shown, search.column]))
        ranking = _Ranking(table, search, split, tuple(words), names)
        counted = []
        for rows, tokens in self._loose(table, search, split, names, budget):
            own = count_words(tokens, ranking.terms)
            statistics += measure(tokens, ranking.terms, own)
            counted.append((rows.take(pa.array(own.rows)), own))
        loose = [
            _TextScores(rows, scores(ranking.terms, own.counts, own.lengths, statistics))
            for rows, own in counted
        ]
        parts = loose
        if split.indexed:
            parts = [*loose, self._find_best(ranking, best, statistics, loose, budget)]
        if not parts:
            return None
        every = np.concatenate([part.scores for part in parts])
        is_chosen = every > -np.inf
        if best is not None:
            is_chosen &= are_best(every, best, descending=True)
        chosen = pa.concat_tables(part.rows for part in parts).filter(pa.array(is_chosen))
        ranked = {"id": chosen["id"], SCORE: pa.array(every[is_chosen], pa.float64())}
        if best is not None:
            ranked |= {f"{READ}{name}": chosen[name] for name in beside}
        return pa.table(ranked)

    def test(self, table: Table, search: TextSearch, budget: Budget) -> pa.Table | None:
        """The ids of the rows whose texts pass; None for a scan."""
        split = split_texts(table, search)
        if split is None:
            return None
        has_all, fragment_ids = search.test is TextTest.MATCH_TEXT, np.array([*split.indexed])
        query = search.query
        if split.indexed and search.test is TextTest.FUZZY:
            similar = self._similar_words(table, search, split, budget)
            if similar is None:
                return None
            query = similar
        find = partial(
            find_texts,
            table,
            search.column,
            query,
            fragment_ids=fragment_ids,
            has_all=has_all,
        )
        names, parts = ["id", search.column], []
        if split.indexed and query:
            addresses, _ = find(columns=[ROW_ADDRESS])
            if not _are_few(table, addresses.num_rows):
                return None
            found, _ = find(columns=names)
            budget.require_bytes(found.nbytes)
            parts.append((found, self._tokens(search, found, budget)))
        parts += self._loose(table, search, split, names, budget)
        ids = []
        for rows, tokens in parts:
            ids += rows["id"].take(pa.array(rows_that_pass(search, tokens))).chunks
        return pa.table({"id": pa.chunked_array(ids, pa.string())})

    def _similar_words(
        self, table: Table, search: TextSearch, split: TextSplit, budget: Budget
    ) -> str | None:
        """The words that are similar to those of a query; None if a scan has to find them.

        Lance's own fuzzy search tries 50 similar words at most.
        """
        column = TextColumn(search.column, search.analyzer)
        vocabulary = self._lengths.measure(table, column, split.indexed, budget.check).vocabulary
        if vocabulary is None or search.analyzer is Analyzer.RAW:
            return None
        tokens = terms_of(analyse(search.analyzer, search.query))
        similar = {
            term for token in tokens for term in similar_terms(vocabulary, token, search.edits_max)
        }
        # Lance analyses words again, and some stems have another stem.
        if any(terms_of(analyse(search.analyzer, term)) != (term,) for term in similar):
            return None
        return " ".join(sorted(similar))

    def _find_best(
        self,
        ranking: _Ranking,
        best: int | None,
        statistics: TextStatistics,
        loose: Sequence[_TextScores],
        budget: Budget,
    ) -> _TextScores:
        """The rows that the index finds: more of them while the last may be among the best."""
        limit = None if best is None else best + max(best // 2, TEXT_CANDIDATES_SPARE)
        fragment_ids = np.array([*ranking.split.indexed])
        while True:
            rows, is_everything = find_texts(
                ranking.table,
                ranking.search.column,
                ranking.search.query,
                columns=ranking.names,
                fragment_ids=fragment_ids,
                limit=limit,
            )
            budget.check()
            budget.require_bytes(rows.nbytes)
            tokens = self._tokens(ranking.search, rows, budget)
            words = count_words(tokens, ranking.terms)
            own = np.full(rows.num_rows, -np.inf)
            own[words.rows] = scores(ranking.terms, words.counts, words.lengths, statistics)
            if limit is None or best is None or is_everything or limit >= TEXT_CANDIDATES_MAX:
                return _TextScores(rows, own)
            every = np.concatenate([own, *(part.scores for part in loose)])
            if len(every) > best:
                least = np.partition(every, len(every) - best)[len(every) - best]
                if own[-max(len(own) // 4, 1) :].max(initial=-np.inf) < least and len(own):
                    return _TextScores(rows, own)
            limit *= TEXT_CANDIDATES_GROWTH

    def _count_having(
        self,
        table: Table,
        column: TextColumn,
        words: Mapping[str, str],
        fragment_ids: frozenset[int],
    ) -> TextStatistics:
        """How many rows of some fragments the index finds by each word, by the word's token."""
        counts: dict[str, int] = {}
        for token, word in words.items() if fragment_ids else ():
            key = table.address, column, token, fragment_ids
            with self._lock:
                known = self._having.get(key)
            if known is None:
                found, _ = find_texts(
                    table,
                    column.name,
                    word,
                    columns=[ROW_ADDRESS],
                    fragment_ids=np.array([*fragment_ids]),
                )
                known = found.num_rows
            with self._lock:
                self._having[key] = counts[token] = known
                self._having.move_to_end(key)
                while len(self._having) > KEPT_WORD_COUNTS_MAX:
                    self._having.popitem(last=False)
        return TextStatistics(frequencies=counts)

    def _loose(
        self,
        table: Table,
        search: Relevance | TextSearch,
        split: TextSplit,
        names: Sequence[str],
        budget: Budget,
    ) -> Iterator[tuple[pa.Table, TokenColumn]]:
        """The rows of fragments that are analysed, part by part, and their tokens."""
        if not split.loose:
            return
        rows, start = read_fragments(table, names, split.loose), 0
        for texts in rows[search.column].chunks:
            tokens = self._analyse(search.analyzer, texts, budget)
            yield rows.slice(start, len(texts)), tokens
            start += len(texts)

    def _tokens(
        self, search: Relevance | TextSearch, rows: pa.Table, budget: Budget
    ) -> TokenColumn:
        texts = rows[search.column].combine_chunks()
        return analyse_column(search.analyzer, texts, budget.check)
