"""Reading less: relations that a few ids decide are looked up by Lance before DuckDB sees them.

DuckDB pushes neither IN lists nor join keys into a Lance scan (docs/substrate.md, Filters), so a
query from one node would read whole edge tables. A plan says which ids can matter; where an index
or memory finds them (`storage.lookups`), the few rows are fetched and replace the table.
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
    """The answer of a plan that asks for one row by its id, if ids are found cheaply."""
    if plan.lookup is None:
        return None
    table = data.table(plan.lookup.table)
    if not _pays(table, "id", 1):
        return None
    columns = plan.lookup.columns
    found = _lookup(table, dict.fromkeys(columns), "id", {plan.lookup.id})
    return pa.Table.from_arrays(
        [found[name] for name in columns], names=[*map(str, range(len(columns)))]
    )


@dataclass(slots=True)
class Reducer:
    """Applies a plan's reductions as far as they pay: for few ids, and where those are found."""

    plan: Plan
    data: Data
    found: dict[str, pa.Table] = field(default_factory=dict)

    def run(self) -> dict[str, pa.Table]:
        """The relations that could be cut down, with the rows that are left of each."""
        waiting = list(self.plan.reductions)
        # Each round fetches at least one more relation, so there are at most as many rounds.
        while ready := [each for each in waiting if self._fetch(each)]:
            waiting = [each for each in waiting if each not in ready]
        return self.found

    def _fetch(self, reduction: Reduction) -> bool:
        """Fetch the rows of one relation, if it is not there yet and its ids are known and few."""
        if reduction.relation in self.found:
            return False
        relation = self.plan.relations[reduction.relation]
        if not isinstance(relation, TableRows):
            return False
        match reduction.by:
            case IsOneOf(values):
                keys = set(values)
            case MatchesColumn(other, column) | ReachedFrom(other, column):
                known = self._known(other)
                # A load may bring more rows than should ever become Python objects.
                if known is None or pc.count_distinct(known[column]).as_py() > REDUCED_KEYS_MAX:
                    return False
                keys = _texts(known, column)
        table = self.data.table(relation.table)
        if not _pays(table, reduction.column, len(keys)):
            return False
        if isinstance(reduction.by, ReachedFrom):
            rows = _reached(table, relation.columns, reduction.column, reduction.by, keys)
        else:
            rows = _lookup(table, relation.columns, reduction.column, keys)
        if rows is None:
            return False
        self.found[reduction.relation] = rows
        return True

    def _known(self, name: str) -> pa.Table | None:
        """The rows of a relation that are at hand: given with the plan, or fetched by now."""
        if isinstance(self.plan.relations[name], GivenRows):
            return self.data.given[name]
        return self.found.get(name)


def _pays(table: Table, column: str, key_count: int) -> bool:
    """Whether looking so many ids up reads less than the table, or less again and again."""
    if column in indexed_columns(table):
        return key_count <= REDUCED_KEYS_MAX
    return key_count <= UNINDEXED_KEYS_MAX and lookups.is_found_cheaply(table, column)


def _lookup(table: Table, columns: Iterable[str], column: str, keys: set[str]) -> pa.Table:
    return lookups.find(table, column, keys, columns=list(columns))


def _reached(
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
