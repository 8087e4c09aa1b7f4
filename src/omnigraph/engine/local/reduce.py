"""Reductions: relations that a few ids determine are looked up by Lance, not scanned by DuckDB.

DuckDB pushes neither IN lists nor join keys into a Lance scan (docs/substrate.md, Filters), so a
query from one node would read whole edge tables. A plan names the ids that can matter; where a
lookup by an index or in memory is cheap (`storage.lookups`), the few rows replace the table.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, assert_never

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.engine.protocol import Data
from omnigraph.limits import KEPT_LOOKUP_ROWS_MAX
from omnigraph.relational.plans import (
    GivenRows,
    IsFoundBy,
    IsOneOf,
    IsWithin,
    MatchesColumn,
    Plan,
    ReachedFrom,
    Reduction,
    SearchRows,
    TableRows,
    searches_of,
)
from omnigraph.relational.searches import READ
from omnigraph.storage import filters, lookups
from omnigraph.storage.indexes import covered_by_column, indexed_columns
from omnigraph.storage.selections import Estimate, estimate_rows
from omnigraph.storage.tables import Table

UNINDEXED_KEYS_MAX: Final = 100
"""Ids a query carries to a table without an index; for more, a join in memory is faster."""

REDUCED_KEYS_MAX: Final = 10_000
"""Ids a query may carry from one relation to the next before it scans the table instead."""


def look_up(plan: Plan, data: Data) -> pa.Table | None:
    """The result of a plan that reads one row by its id, if a lookup is cheap; else None."""
    if plan.lookup is None:
        return None
    table = data.table(plan.lookup.table)
    if not _pays(table, "id", 1):
        return None
    columns = plan.lookup.columns
    distinct = dict.fromkeys(columns)
    row = _lookup(table, distinct, "id", {plan.lookup.id})
    if len(distinct) == len(columns):
        return row
    return pa.Table.from_arrays(
        [row[name] for name in columns], names=[*map(str, range(len(columns)))]
    )


@dataclass(slots=True)
class Reducer:
    """Applies the reductions of a plan that pay: for few ids, where lookups are cheap.

    Attributes:
        crowded: The relations of which indexes would find so many rows that a scan is faster.
    """

    plan: Plan
    data: Data
    fetched: dict[str, pa.Table] = field(default_factory=dict)
    crowded: set[str] = field(default_factory=set)

    def run(self) -> dict[str, pa.Table]:
        """The relations that could be reduced, with the remaining rows of each."""
        selections = {name: each for name, each in self._selections() if not each.is_lookup}
        waiting = [
            reduction
            for reduction in self.plan.reductions
            if reduction.relation not in selections or not is_test(reduction)
        ]
        self._fetch_all(waiting)
        # Ids lead to rows without a search, so properties are searched where no id has led.
        expected = {
            name: selection.expect_rows()
            for name, selection in selections.items()
            if name not in self.fetched
        }
        for name in sorted(expected, key=lambda name: expected[name].row_count):
            if name not in self.fetched:
                self._select(name, selections[name], expected[name])
                self._fetch_all(waiting)
        return self.fetched

    def finds_few(self) -> bool:
        """Whether an index of a property finds few rows that lead to all others. Reads no rows."""
        return any(
            self._leads_everywhere(name) and selection.expect_rows().is_few
            for name, selection in self._selections()
        )

    def _leads_everywhere(self, name: str) -> bool:
        """Whether rows of a relation reduce every other; those of a negation do not."""
        led, frontier = {name}, {name}
        while frontier:
            frontier = {
                each.relation
                for each in self.plan.reductions
                if isinstance(each.by, MatchesColumn | ReachedFrom) and each.by.relation in frontier
            } - led
            led |= frontier
        return led.issuperset(self.plan.relations)

    def _fetch_all(self, reductions: Sequence[Reduction]) -> None:
        """Fetch relations for as long as each leads to others."""
        waiting = list(reductions)
        # Each round fetches at least one more relation, so there are at most as many rounds.
        while ready := [reduction for reduction in waiting if self._fetch(reduction)]:
            waiting = [reduction for reduction in waiting if reduction not in ready]

    def _selections(self) -> Iterator[tuple[str, Selection]]:
        """The relations of which rows are found by tests of indexed properties."""
        tests: dict[str, list[Reduction]] = {}
        for reduction in filter(is_test, self.plan.reductions):
            tests.setdefault(reduction.relation, []).append(reduction)
        for name, own in tests.items():
            relation = self.plan.relations[name]
            if isinstance(relation, TableRows):
                selection = Selection.of(self.data.table(relation.table), own)
                if selection is not None:
                    yield name, selection

    def _select(self, name: str, selection: Selection, expected: Estimate) -> None:
        relation = self.plan.relations[name]
        assert isinstance(relation, TableRows), "no others have selections"
        if expected.is_few is None:
            # The values may still be found in memory.
            self._fetch_all(selection.tests)
        elif expected.is_few:
            columns, table = list(relation.columns), selection.table
            self.fetched[name] = table.read(columns, filter_text=selection.filter_text)
        else:
            self.crowded.add(name)

    def _fetch(self, reduction: Reduction) -> bool:
        """Fetch the rows of one relation, if that is not done and its ids are known and few."""
        if reduction.relation in self.fetched:
            return False
        self.data.budget.check()
        relation = self.plan.relations[reduction.relation]
        if not isinstance(relation, TableRows):
            return False
        match reduction.by:
            case IsOneOf(values):
                keys = {value for value in values if isinstance(value, str)}
                # Of no values one cannot tell whether they would be texts.
                if not keys or len(keys) != len(set(values)):
                    return False
            case IsWithin():
                return False
            case MatchesColumn(other, column) | ReachedFrom(other, column):
                rows = self._known_rows(other)
                # A load may have more rows than should ever become Python objects.
                if rows is None or pc.count_distinct(rows[column]).as_py() > REDUCED_KEYS_MAX:
                    return False
                keys = _texts(rows, column)
            case IsFoundBy(relations, enough):
                found = [rows for name in relations if (rows := self._known_rows(name)) is not None]
                counts = [rows.num_rows for rows in found]
                if max(counts, default=0) < enough or sum(counts) > REDUCED_KEYS_MAX:
                    return False
                keys = set[str]().union(*(_texts(rows, "id") for rows in found))
        if (read := self._rows_read(reduction, relation)) is not None:
            self.fetched[reduction.relation] = read
            return True
        table = self.data.table(relation.table)
        if reduction.has_few_values and table.count_rows() > KEPT_LOOKUP_ROWS_MAX:
            return False
        if not _pays(table, reduction.column, len(keys)):
            return False
        if isinstance(reduction.by, ReachedFrom):
            reduced = self._reachable_edges(table, relation.columns, reduction, keys)
        else:
            reduced = _lookup(table, relation.columns, reduction.column, keys)
        if reduced is None:
            return False
        self.fetched[reduction.relation] = reduced
        return True

    def _rows_read(self, reduction: Reduction, relation: TableRows) -> pa.Table | None:
        """The rows of a relation that one search has found, if it has read them already."""
        names = searches_of(reduction)
        search = self.plan.relations[names[0]] if len(names) == 1 else None
        if not isinstance(search, SearchRows) or search.search.table != relation.table:
            return None
        found = self._known_rows(names[0])
        read = [f"{READ}{name}" for name in relation.columns]
        if found is None or not set(read) <= set(found.column_names):
            return None
        return found.select(read).rename_columns(list(relation.columns))

    def _reachable_edges(
        self, table: Table, columns: tuple[str, ...], reduction: Reduction, start: set[str]
    ) -> pa.Table | None:
        """Every edge that a walk of so many hops can use, or None if that becomes too many."""
        walk, column = reduction.by, reduction.column
        assert isinstance(walk, ReachedFrom), "no other leads on"
        ways = [(column, walk.onward)]
        if walk.both_ways:
            ways.append((walk.onward, column))
        seen: set[str] = set()
        frontier = start
        parts = [_lookup(table, columns, column, set())]
        for _ in range(walk.hops_max):
            self.data.budget.check()
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

    def _known_rows(self, name: str) -> pa.Table | None:
        """The rows of a relation that are in memory: given, found by a search, or fetched."""
        if isinstance(self.plan.relations[name], GivenRows | SearchRows):
            # What a search finds is not known before it has run.
            return self.data.given.get(name)
        return self.fetched.get(name)


def is_test(reduction: Reduction) -> bool:
    """Whether it tests rows by themselves, without other relations."""
    return isinstance(reduction.by, IsOneOf | IsWithin)


@dataclass(frozen=True, slots=True)
class Selection:
    """Tests of one relation, of which some are of indexed properties.

    Attributes:
        columns: The columns that indexes serve; `filter_text` has the tests of these.
    """

    table: Table
    tests: tuple[Reduction, ...]
    columns: frozenset[str]
    filter_text: str

    @classmethod
    def of(cls, table: Table, tests: Sequence[Reduction]) -> Selection | None:
        """What indexes can do for these tests; None for nothing.

        Also None with tests of ids: lookups of these know the rows in memory too.
        """
        if any(test.column in lookups.KEY_COLUMNS for test in tests):
            return None
        indexed = covered_by_column(table)
        usable = [test for test in tests if test.column in indexed]
        filter_text = filters.conjoin(map(_filter_text, usable))
        if filter_text is None:
            return None
        return cls(table, tuple(tests), frozenset(test.column for test in usable), filter_text)

    @property
    def is_lookup(self) -> bool:
        """Whether it is of texts in a single ordered index: a lookup knows rows in memory too."""
        usable = [test for test in self.tests if test.column in self.columns]
        return len(usable) == 1 and _is_lookup(self.table, usable[0])

    def expect_rows(self) -> Estimate:
        """How many rows pass."""
        return estimate_rows(self.table, self.filter_text, self.columns)


def _is_lookup(table: Table, test: Reduction) -> bool:
    return (
        isinstance(test.by, IsOneOf)
        and not test.has_few_values
        and all(isinstance(value, str) for value in test.by.values)
        and test.column in indexed_columns(table)
    )


def _filter_text(test: Reduction) -> str:
    match test.by:
        case IsOneOf(values):
            return filters.is_one_of(test.column, values)
        case IsWithin(comparator, bound):
            return filters.compare(test.column, comparator.value, bound)
        case MatchesColumn() | IsFoundBy() | ReachedFrom():
            message = "the values of other relations are no test"
            raise AssertionError(message)
        case _:
            assert_never(test.by)


def _pays(table: Table, column: str, key_count: int) -> bool:
    """Whether looking so many ids up reads less than the table, or less again and again."""
    if column in indexed_columns(table):
        return key_count <= REDUCED_KEYS_MAX
    return key_count <= UNINDEXED_KEYS_MAX and lookups.is_found_cheaply(table, column)


def _lookup(table: Table, columns: Iterable[str], column: str, keys: set[str]) -> pa.Table:
    return lookups.find(table, column, keys, columns=list(columns))


def _texts(table: pa.Table, column: str) -> set[str]:
    # Null equals nothing, so no row is looked up for it.
    return set(pc.unique(table[column]).drop_null().to_pylist())
