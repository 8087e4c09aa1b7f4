"""Reductions: relations that a few ids determine are looked up by Lance, not scanned by DuckDB.

DuckDB pushes neither IN lists nor join keys into a Lance scan (docs/substrate.md, Filters), so a
query from one node would read whole edge tables. A plan names the ids that can matter; where a
lookup by an index or in memory is cheap (`storage.lookups`), the few rows replace the table.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.engine.protocol import Data
from omnigraph.limits import REDUCED_KEYS_MAX, UNINDEXED_KEYS_MAX
from omnigraph.relational.plans import (
    GivenRows,
    IsOneOf,
    MatchesColumn,
    Plan,
    ReachedFrom,
    Reduction,
    TableRows,
)
from omnigraph.storage import lookups
from omnigraph.storage.indexes import indexed_columns
from omnigraph.storage.tables import Table


def look_up(plan: Plan, data: Data) -> pa.Table | None:
    """The result of a plan that reads one row by its id, if a lookup is cheap; else None."""
    if plan.lookup is None:
        return None
    table = data.table(plan.lookup.table)
    if not _pays(table, "id", 1):
        return None
    columns = plan.lookup.columns
    row = _lookup(table, dict.fromkeys(columns), "id", {plan.lookup.id})
    return pa.Table.from_arrays(
        [row[name] for name in columns], names=[*map(str, range(len(columns)))]
    )


@dataclass(slots=True)
class Reducer:
    """Applies the reductions of a plan that pay: for few ids, where lookups are cheap."""

    plan: Plan
    data: Data
    fetched: dict[str, pa.Table] = field(default_factory=dict)

    def run(self) -> dict[str, pa.Table]:
        """The relations that could be reduced, with the remaining rows of each."""
        waiting = list(self.plan.reductions)
        # Each round fetches at least one more relation, so there are at most as many rounds.
        while ready := [reduction for reduction in waiting if self._fetch(reduction)]:
            waiting = [reduction for reduction in waiting if reduction not in ready]
        return self.fetched

    def _fetch(self, reduction: Reduction) -> bool:
        """Fetch the rows of one relation, if that is not done and its ids are known and few."""
        if reduction.relation in self.fetched:
            return False
        relation = self.plan.relations[reduction.relation]
        if not isinstance(relation, TableRows):
            return False
        match reduction.by:
            case IsOneOf(values):
                keys = set(values)
            case MatchesColumn(other, column) | ReachedFrom(other, column):
                rows = self._known_rows(other)
                # A load may have more rows than should ever become Python objects.
                if rows is None or pc.count_distinct(rows[column]).as_py() > REDUCED_KEYS_MAX:
                    return False
                keys = _texts(rows, column)
        table = self.data.table(relation.table)
        if not _pays(table, reduction.column, len(keys)):
            return False
        if isinstance(reduction.by, ReachedFrom):
            reduced = _reachable_edges(
                table, relation.columns, reduction.column, reduction.by, keys
            )
        else:
            reduced = _lookup(table, relation.columns, reduction.column, keys)
        if reduced is None:
            return False
        self.fetched[reduction.relation] = reduced
        return True

    def _known_rows(self, name: str) -> pa.Table | None:
        """The rows of a relation that are in memory: given with the plan, or already fetched."""
        if isinstance(self.plan.relations[name], GivenRows):
            return self.data.given[name]
        return self.fetched.get(name)


def _pays(table: Table, column: str, key_count: int) -> bool:
    """Whether looking so many ids up reads less than the table, or less again and again."""
    if column in indexed_columns(table):
        return key_count <= REDUCED_KEYS_MAX
    return key_count <= UNINDEXED_KEYS_MAX and lookups.is_found_cheaply(table, column)


def _lookup(table: Table, columns: Iterable[str], column: str, keys: set[str]) -> pa.Table:
    return lookups.find(table, column, keys, columns=list(columns))


def _reachable_edges(
    table: Table, columns: tuple[str, ...], column: str, walk: ReachedFrom, start: set[str]
) -> pa.Table | None:
    """Every edge that a walk of so many hops can use, or None if that becomes too many."""
    ways = [(column, walk.onward)]
    if walk.both_ways:
        ways.append((walk.onward, column))
    seen: set[str] = set()
    frontier = start
    parts = [_lookup(table, columns, column, set())]
    for _ in range(walk.hops_max):
        seen |= frontier
        if not all(_pays(table, from_column, len(seen)) for from_column, _ in ways):
            return None
        reached: set[str] = set()
        for from_column, to_column in ways:
            edges = _lookup(table, columns, from_column, frontier)
            parts.append(edges)
            reached |= _texts(edges, to_column)
        frontier = reached - seen
        if not frontier:
            break
    return pa.concat_tables(parts)


def _texts(table: pa.Table, column: str) -> set[str]:
    # Null equals nothing, so no row is looked up for it.
    return set(pc.unique(table[column]).drop_null().to_pylist())
