"""The best rows of a scope, without a ranking of every row of the type.

Of a narrow scope, only the vectors of its own rows are read. Of a wide one, the best of the whole
type are tried, and then more: as many as the share of them that is in the scope lets expect.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.engine.local.searching import Searcher, properties_read
from omnigraph.engine.protocol import Data
from omnigraph.engine.search_parts import are_best, columns_of, measure_distances
from omnigraph.relational.plans import Cut, Plan, RankedScope, SearchRows
from omnigraph.relational.searches import SCORE, Nearness
from omnigraph.storage import lookups
from omnigraph.storage.columns import read_all_fragments
from omnigraph.storage.tables import Table

CUT_TABLE_ROWS_MIN: Final = 10_000
"""Rows of a type from which on the best of a scope are found without a ranking of all rows."""

CUT_CANDIDATES_PER_ROW: Final = 16
"""The best rows of a type that are tried for each row wanted of a scope."""

CUT_GROWTH_MIN: Final = 2
"""How many times as many are tried next, at least."""

CUT_CANDIDATES_MAX: Final = 1_024
"""The best rows of a type that are tried at most: to be sure of more, an index reads most of it."""

FUSED_CANDIDATES_PER_ROW: Final = 32
"""Likewise for each row of a ranking that a fusion counts."""

SCOPED_SHARE_MAX: Final = 1 / 32
"""The share of a type's rows that a scope has at most if only the vectors of these are read."""

LOOKED_UP_VECTORS_MAX: Final = 1_000
"""Rows whose vectors are looked up by their ids; for more, all ids are compared with them."""


Compute: TypeAlias = "Callable[[Plan, Data, int | None], pa.Table]"
"""Runs a plan whose searches are answered; of more rows than so many, it returns one more."""


@dataclass(frozen=True, slots=True)
class CutRun:
    """One run of a plan that has a cut.

    Attributes:
        data: With the rows of every search but that of the cut.
    """

    plan: Plan
    cut: Cut
    data: Data
    searcher: Searcher
    compute: Compute

    def run(self) -> pa.Table:
        """The rows of the plan."""
        rows = self._find_best() if self._is_worthwhile() else None
        if rows is not None:
            return rows
        return self._compute(self.plan, self.searcher.find(self._relation, self.data))

    def _is_worthwhile(self) -> bool:
        return self.cut.limit > 0 and self._table.count_rows() >= CUT_TABLE_ROWS_MIN

    def _find_best(self) -> pa.Table | None:
        """The result by less than a ranking of all rows; None if that is not less."""
        if (scoped := self._rank_scope()) is not None:
            return scoped
        limit, count = self.cut.limit, CUT_CANDIDATES_PER_ROW * self.cut.limit
        while count <= CUT_CANDIDATES_MAX:
            found = self._rank_by_index(count)
            if found is None:
                break
            # Every row that is not among these is no better than the last of them.
            rows = self._compute(self.cut.ranked, found)
            if rows.num_rows >= limit:
                return rows
            # Twice as many as would do if rows further away are in the scope as often.
            count *= max(2 * limit // max(rows.num_rows, 1), CUT_GROWTH_MIN)
        return None

    def _rank_by_index(self, count: int) -> pa.Table | None:
        """The best of the type; None without an index, or if not so many rows have a score."""
        beside = properties_read(self.cut.ranked, self.cut.search, self.data)
        wanted = replace(self._relation, best=count)
        found = self.searcher.find_by_index(wanted, self.data, beside)
        return None if found is None or found.num_rows < count else found

    def _rank_scope(self) -> pa.Table | None:
        """The result by the vectors of the scope alone; None if it is not narrow."""
        search = self._relation.search
        if not isinstance(search, Nearness):
            # An index of texts has scores without reading any row.
            return None
        found = _rank_narrow(search, self.cut.scope, self.data, self.compute)
        if found is None:
            return None
        if found.num_rows < self.cut.limit:
            return self._compute(self.plan, found)
        scores = found[SCORE].to_numpy()
        best = are_best(scores, self.cut.limit, descending=False)
        return self._compute(self.cut.ranked, found.filter(pa.array(best)))

    def _compute(self, plan: Plan, found: pa.Table) -> pa.Table:
        given = {**self.data.given, self.cut.search: found}
        return self.compute(plan, replace(self.data, given=given), self.data.budget.rows_max)

    @property
    def _relation(self) -> SearchRows:
        relation = self.plan.relations[self.cut.search]
        assert isinstance(relation, SearchRows), "a cut is by a ranking"
        return relation

    @property
    def _table(self) -> Table:
        return self.data.table(self._relation.search.table)


@dataclass(frozen=True, slots=True)
class ScopeRun:
    """One run of a ranking by vectors that ranks less than a whole type.

    Attributes:
        data: With the rows of every search but those of scopes.
    """

    relation: SearchRows
    scope: RankedScope
    data: Data
    searcher: Searcher
    compute: Compute

    def run(self) -> pa.Table:
        """The rows of the ranking that matter, and perhaps others."""
        found = None
        search = self.relation.search
        assert isinstance(search, Nearness), "others have scores without reading any row"
        if self.data.table(search.table).count_rows() >= CUT_TABLE_ROWS_MIN:
            found = _rank_narrow(search, self.scope.scope, self.data, self.compute)
            found = self._rank_by_index() if found is None else found
        return self.searcher.find(self.relation, self.data) if found is None else found

    def _rank_by_index(self) -> pa.Table | None:
        """The best of the type, with as many of the scope as matter; None if that is too far."""
        window, plan = self.scope.window, self.scope.found
        if window is None or plan is None:
            return None
        count = CUT_GROWTH_MIN * window
        while count <= FUSED_CANDIDATES_PER_ROW * window:
            found = self.searcher.find_by_index(replace(self.relation, best=count), self.data)
            if found is None or found.num_rows < count:
                return None
            given = {**self.data.given, self.scope.search: found}
            within = self.compute(plan, replace(self.data, given=given), None).num_rows
            if within >= window:
                return found
            count *= max(2 * window // max(within, 1), CUT_GROWTH_MIN)
        return None


def rank_scopes(plan: Plan, data: Data, searcher: Searcher, compute: Compute) -> Data:
    """The data with the rows of rankings that rank less than a whole type.

    Args:
        data: With the rows of every other search.
    """
    given = dict(data.given)
    for scope in plan.scopes:
        relation = plan.relations[scope.search]
        assert isinstance(relation, SearchRows), "a scope is of a ranking"
        given[scope.search] = ScopeRun(relation, scope, data, searcher, compute).run()
    return replace(data, given=given)


def _rank_narrow(search: Nearness, scope: Plan, data: Data, compute: Compute) -> pa.Table | None:
    """The distances of the rows of a scope by their vectors alone; None if it is not narrow."""
    table = data.table(search.table)
    most = int(SCOPED_SHARE_MAX * table.count_rows())
    ids = compute(scope, data, most).column(0)
    if len(ids) > most:
        return None
    data.budget.check()
    return _rank_rows(table, search, ids)


def _rank_rows(table: Table, search: Nearness, ids: pa.ChunkedArray) -> pa.Table:
    """The distances of the rows with these ids that have one."""
    names = columns_of(search)
    if len(ids) <= LOOKED_UP_VECTORS_MAX:
        rows = lookups.find(table, "id", ids, columns=["id", *names])
        own = rows["id"]
    else:
        every = read_all_fragments(table, ["id"])["id"]
        is_wanted = pc.is_in(every, value_set=ids.combine_chunks())
        places = np.flatnonzero(is_wanted.to_numpy())
        rows, own = table.take(places.tolist(), names), every.take(pa.array(places))
    vectors, *notes = (rows[name].combine_chunks() for name in names)
    measured = measure_distances(search, vectors, notes[0] if notes else None)
    has_distance = pa.array(~np.isnan(measured))
    return pa.table({"id": own, SCORE: measured}).filter(has_distance)
