"""Searches of a plan, answered by indexes where there are such, and else by scans.

By a scan, every text is analysed, and every distance computed. Columns of small tables stay in
memory, and so do their tokens, fragment by fragment: a commit adds what it adds. Tests of texts by
an index give the same answers. Rankings by an index are approximate, and `exact` turns them off.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, assert_never

import numpy as np
import pyarrow as pa

from omnigraph.choices import Analyzer
from omnigraph.engine.budget import Budget
from omnigraph.engine.local.indexed_texts import IndexedTextSearcher, split_texts
from omnigraph.engine.local.indexed_vectors import IndexedVectorSearcher, describe_index
from omnigraph.engine.local.side_by_side import run_side_by_side
from omnigraph.engine.protocol import Data
from omnigraph.engine.search_parts import (
    are_best,
    columns_of,
    measure_distances,
    rows_that_pass,
)
from omnigraph.limits import KEPT_TABLE_BYTES_MAX
from omnigraph.relational.plans import Plan, SearchRows, TableRows, searches_of
from omnigraph.relational.searches import (
    SCORE,
    Nearness,
    Relevance,
    Search,
    TextSearch,
)
from omnigraph.search.analysis import TokenColumn, analyse, analyse_column
from omnigraph.search.bm25 import TextStatistics, scores
from omnigraph.search.words import (
    WordCounts,
    count_words,
    measure,
    terms_of,
)
from omnigraph.storage.columns import is_blob, read_all_fragments
from omnigraph.storage.index_damage import avoid_damaged_indexes
from omnigraph.storage.tables import Table

KEPT_TOKENS_BYTES_MAX: Final = 256 << 20
"""Bytes of tokens of texts that an engine keeps in memory."""


@dataclass(frozen=True, slots=True)
class _Part:
    """Some rows of a table: their ids, one column of them, and perhaps notes of it."""

    ids: pa.ChunkedArray
    values: pa.Array
    notes: pa.Array | None = None

    def chosen(self, rows: np.ndarray) -> pa.ChunkedArray:
        """The ids of rows by their positions."""
        return self.ids.take(pa.array(rows))


class Searcher:
    """Answers searches; threads may share it, with the tokens that it keeps."""

    def __init__(self) -> None:
        self._tokens = _TokenShelf()
        self._texts = IndexedTextSearcher(self._tokens.of)
        self._vectors = IndexedVectorSearcher()

    def run(self, plan: Plan, data: Data) -> dict[str, pa.Table]:
        """The rows of each relation of a plan that is a search, but for those of a scope.

        Indexes are read side by side, by one thread each. Tables are scanned one after the other.
        """
        ranked_later = {scope.search for scope in plan.scopes}
        if plan.cut is not None:
            ranked_later.add(plan.cut.search)
        relations = {
            name: relation
            for name, relation in plan.relations.items()
            if isinstance(relation, SearchRows) and name not in ranked_later
        }
        found = run_side_by_side(
            [
                partial(self.find_by_index, relation, data, properties_read(plan, name, data))
                for name, relation in relations.items()
            ]
        )
        return {
            name: self._find_by_scan(relation, data) if rows is None else rows
            for (name, relation), rows in zip(relations.items(), found, strict=True)
        }

    def describe(self, plan: Plan, data: Data) -> dict[str, str]:
        """How each search of a plan is answered, for people. Reads no rows."""
        return {
            name: f"{relation.search}, {_describe_way(_tried(name, relation, plan), data)}"
            for name, relation in plan.relations.items()
            if isinstance(relation, SearchRows)
        }

    def find(self, relation: SearchRows, data: Data, beside: Sequence[str] = ()) -> pa.Table:
        """The rows of a search, by its index or by a scan.

        Args:
            beside: Properties that an index may read of the rows that it finds.
        """
        found = self.find_by_index(relation, data, beside)
        return self._find_by_scan(relation, data) if found is None else found

    def find_by_index(
        self, relation: SearchRows, data: Data, beside: Sequence[str] = ()
    ) -> pa.Table | None:
        """The rows of a search by its index; None if it does not exist, or may not be used."""
        table = data.table(relation.search.table)
        find = partial(self._find_by_index, relation, data, beside)
        return avoid_damaged_indexes(table, find)

    def _find_by_index(
        self, relation: SearchRows, data: Data, beside: Sequence[str], table: Table
    ) -> pa.Table | None:
        match relation.search:
            case TextSearch() as search:
                return self._texts.test(table, search, data.budget)
            case Relevance() as search:
                if data.search.exact:
                    return None
                return self._texts.rank(table, search, relation.best, data.budget, beside=beside)
            case Nearness() as search:
                if not _may_be_approximate(relation, data):
                    return None
                assert relation.best is not None, "only the best rows are found by an index"
                return self._vectors.rank(
                    table, search, relation.best, data.search, data.budget.check, beside=beside
                )
            case _:
                assert_never(relation.search)

    def _find_by_scan(self, relation: SearchRows, data: Data) -> pa.Table:
        match relation.search:
            case TextSearch() as search:
                return self._test(search, data)
            case Relevance() as search:
                return self._rank_texts(search, data, relation.best)
            case Nearness() as search:
                return _rank_vectors(search, data, relation.best)
            case _:
                assert_never(relation.search)

    def _test(self, search: TextSearch, data: Data) -> pa.Table:
        found = _IdCollector(data.budget)
        for part in _parts(search, data):
            column = self._tokens.of(search.analyzer, part.values, data.budget)
            rows = rows_that_pass(search, column)
            found.add(part.chosen(rows))
        return found.table()

    def _rank_texts(self, search: Relevance, data: Data, best: int | None) -> pa.Table:
        terms = terms_of(analyse(search.analyzer, search.query))
        found = _IdCollector(data.budget)
        statistics = TextStatistics()
        counted: list[WordCounts] = []
        for part in _parts(search, data):
            column = self._tokens.of(search.analyzer, part.values, data.budget)
            counts = count_words(column, terms)
            statistics += measure(column, terms, counts)
            counted.append(counts)
            found.add(part.chosen(counts.rows))
        parts = [scores(terms, each.counts, each.lengths, statistics) for each in counted]
        return _keep_best(found.table(parts), best, descending=True)


def properties_read(plan: Plan, name: str, data: Data) -> tuple[str, ...]:
    """The properties that a plan reads of no other rows than those that a search finds."""
    relation = plan.relations[name]
    assert isinstance(relation, SearchRows), "it is a search"
    names: dict[str, None] = {}
    if plan.best is not None and name in plan.best.searches:
        names.update(dict.fromkeys(column for column in plan.best.columns if column is not None))
    for reduction in plan.reductions:
        read = plan.relations[reduction.relation]
        if not isinstance(read, TableRows) or read.table != relation.search.table:
            continue
        if searches_of(reduction) == (name,):
            names.update(dict.fromkeys(read.columns))
    schema = data.table(relation.search.table).schema
    # A scan returns descriptors of blobs in the place of their bytes.
    return () if any(is_blob(schema.field(each)) for each in names) else tuple(names)


def _tried(name: str, relation: SearchRows, plan: Plan) -> SearchRows:
    """The search as it is tried first: that of a scope, for the best rows."""
    if plan.cut is not None and plan.cut.search == name:
        return replace(relation, best=plan.cut.limit)
    for scope in plan.scopes:
        if scope.search == name and scope.found is not None:
            return replace(relation, best=scope.window)
    return relation


def _may_be_approximate(relation: SearchRows, data: Data) -> bool:
    return relation.best is not None and relation.best > 0 and not data.search.exact


def _describe_way(relation: SearchRows, data: Data) -> str:
    search = relation.search
    table = data.table(search.table)
    match search:
        case TextSearch() | Relevance():
            split = split_texts(table, search)
            if split is None or not split.indexed:
                return "exact, by a scan"
            if isinstance(search, TextSearch):
                return "exact, by its index"
            return "exact, by a scan" if data.search.exact else "approximate, by its index"
        case Nearness():
            is_free = _may_be_approximate(relation, data)
            way = describe_index(table, search) if is_free else None
            return way or "exact, by a scan"
        case _:
            assert_never(search)


def _rank_vectors(search: Nearness, data: Data, best: int | None) -> pa.Table:
    found = _IdCollector(data.budget)
    measured: list[np.ndarray] = []
    for part in _parts(search, data):
        own = measure_distances(search, part.values, part.notes)
        rows = np.flatnonzero(~np.isnan(own))
        if best is not None:
            rows = rows[are_best(own[rows], best, descending=False)]
        measured.append(own[rows])
        found.add(part.chosen(rows))
    return _keep_best(found.table(measured), best, descending=False)


def _keep_best(rows: pa.Table, best: int | None, *, descending: bool) -> pa.Table:
    if best is None or rows.num_rows <= best:
        return rows
    return rows.filter(pa.array(are_best(rows[SCORE].to_numpy(), best, descending=descending)))


def _parts(search: Search, data: Data) -> Iterator[_Part]:
    """The rows of the table, the same for any two readers of its version."""
    table, names = data.table(search.table), ["id", *columns_of(search)]
    if table.count_bytes() <= KEPT_TABLE_BYTES_MAX:
        rows = read_all_fragments(table, names)
        start = 0
        for chunk in rows[search.column].chunks:
            data.budget.check()
            others = rows.slice(start, len(chunk))
            notes = others[names[2]].combine_chunks() if len(names) > 2 else None
            yield _Part(others["id"], chunk, notes)
            start += len(chunk)
        return
    yield from _scan(table, names, data.budget)


def _scan(table: Table, names: list[str], budget: Budget) -> Iterator[_Part]:
    for batch in table.scan(names):
        budget.check()
        ids, values, *notes = (batch.column(name) for name in names)
        yield _Part(pa.chunked_array([ids]), values, notes[0] if notes else None)


class _IdCollector:
    """Ids that were found, part by part, within a budget."""

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._chunks: list[pa.Array] = []
        self._byte_count = 0

    def add(self, ids: pa.ChunkedArray) -> None:
        """Keep more ids."""
        self._byte_count += ids.nbytes
        self._budget.require_bytes(self._byte_count)
        self._chunks += ids.chunks

    def table(self, parts: list[np.ndarray] | None = None) -> pa.Table:
        """The ids, and their scores where there are such."""
        columns = {"id": pa.chunked_array(self._chunks, pa.string())}
        if parts is not None:
            columns[SCORE] = pa.array(np.concatenate([np.zeros(0), *parts]), pa.float64())
        return pa.table(columns)


class _TokenShelf:
    """The tokens of texts that stay in memory, up to a number of bytes.

    Texts are known by where they are in memory. They are kept together with their tokens, so no
    others can be there meanwhile.
    """

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[object, ...], tuple[pa.Array, TokenColumn]] = OrderedDict()
        self._byte_count = 0
        self._lock = threading.Lock()

    def of(self, analyzer: Analyzer, texts: pa.Array, budget: Budget) -> TokenColumn:
        """The tokens of texts."""
        key = analyzer, len(texts), texts.offset, *_addresses(texts)
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key][1]
        column = analyse_column(analyzer, texts, budget.check)
        budget.require_bytes(column.byte_count)
        with self._lock:
            if key not in self._kept and column.byte_count <= KEPT_TOKENS_BYTES_MAX:
                self._kept[key] = texts, column
                self._byte_count += column.byte_count
            while self._byte_count > KEPT_TOKENS_BYTES_MAX:
                _, (_, oldest) = self._kept.popitem(last=False)
                self._byte_count -= oldest.byte_count
        return column


def _addresses(texts: pa.Array) -> Iterator[int | None]:
    return (None if buffer is None else buffer.address for buffer in texts.buffers())
