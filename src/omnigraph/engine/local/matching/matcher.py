"""The matcher: plans that match a graph, answered on arrays where that is cheaper than by SQL."""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from omnigraph.engine.budget import Budget
from omnigraph.engine.local.matching.conditions import Run
from omnigraph.engine.local.matching.match import MatchedGraph, tables_of
from omnigraph.engine.local.matching.memory import Memory
from omnigraph.engine.local.matching.results import answer
from omnigraph.engine.local.matching.sources import UnmatchableError
from omnigraph.engine.local.reduce import Reducer
from omnigraph.engine.local.topology.topologies import ArrayCost, EdgeTables, Topologies
from omnigraph.engine.protocol import Data
from omnigraph.relational.patterns import GraphPattern
from omnigraph.relational.plans import Plan
from omnigraph.storage.tables import TableAddress

KEYED_QUERIES_MAX: Final = 16
"""Queries from a key or an indexed property that indexes answer before arrays are made for them."""


@dataclass(frozen=True, slots=True)
class Means:
    """By what a plan is answered, and the reason in one sentence.

    Attributes:
        is_early: Whether arrays would answer it, once such plans have come often.
    """

    on_arrays: bool
    why: str
    is_early: bool = False

    def __str__(self) -> str:
        return f"{'arrays' if self.on_arrays else 'SQL'} ({self.why})"


class PatternMatcher:
    """Matches patterns on the topologies that a graph handle keeps; threads may share it."""

    def __init__(self, run_sql: Run, topologies: Topologies | None = None) -> None:
        self.topologies = Topologies() if topologies is None else topologies
        self._run_sql = run_sql
        self._keyed: Counter[TableAddress] = Counter()
        self._lock = threading.Lock()

    def run(self, plan: Plan, data: Data) -> pa.Table | None:
        """The rows of a plan, in its order; None if it is for SQL."""
        matching = plan.matching
        if matching is None:
            return None
        means = self.choose(plan, data)
        if means.is_early:
            self._count(matching.pattern, data)
        if not means.on_arrays:
            return None
        memory = Memory(data.budget.bytes_max)
        graph = MatchedGraph(data, self.topologies, matching.values, self._run_sql, memory)
        try:
            return answer(matching, graph)
        except UnmatchableError:
            return None

    def choose(self, plan: Plan, data: Data) -> Means:
        """By what a plan is answered, as far as is known before it is run. Reads no rows."""
        if plan.matching is None:
            return Means(on_arrays=False, why=plan.unmatched)
        every = edge_tables(plan.matching.pattern)
        # An index leads to a few rows, sooner than arrays and columns are read or built.
        if not self._is_due(every, data) and not all(
            self.topologies.holds(data, tables) for tables in every
        ):
            if plan.matching.ids:
                why = "it starts from a key, and arrays are not there"
                return Means(on_arrays=False, why=why, is_early=True)
            if Reducer(plan, data).finds_few():
                why = "an index finds the few rows it starts from, and arrays are not there"
                return Means(on_arrays=False, why=why, is_early=True)
        costs: list[ArrayCost] = []
        for tables in every:
            cost = self.topologies.cost(data, tables)
            if cost is None:
                why = f"the arrays of {tables.edges} do not fit into memory"
                return Means(on_arrays=False, why=why)
            costs.append(cost)
        return _within(data.budget, costs)

    def _is_due(self, every: list[EdgeTables], data: Data) -> bool:
        """Whether queries that an index answers have come often enough to build arrays for them."""
        with self._lock:
            return all(
                self._keyed[data.table(tables.edges).address] >= KEYED_QUERIES_MAX
                for tables in every
            )

    def _count(self, pattern: GraphPattern, data: Data) -> None:
        with self._lock:
            for tables in edge_tables(pattern):
                self._keyed[data.table(tables.edges).address] += 1


def _within(budget: Budget, costs: list[ArrayCost]) -> Means:
    """Whether arrays fit into the memory of a query."""
    if budget.memory is None:
        return Means(on_arrays=True, why="its edges fit into memory")
    # One after the other is made, beside those that are there.
    extra = max((cost.bytes_made - cost.bytes_held for cost in costs), default=0)
    byte_count = sum(cost.bytes_held for cost in costs) + extra
    limit = f"the memory of {budget.memory.text} that it may hold"
    if budget.has_room(byte_count):
        return Means(on_arrays=True, why=f"its edges fit into {limit}")
    millions = f"{byte_count / 1_000_000:,.0f}MB"
    return Means(on_arrays=False, why=f"its arrays take {millions}, which do not fit into {limit}")


def edge_tables(pattern: GraphPattern) -> list[EdgeTables]:
    """The tables of all edges that a pattern follows, in its negations too."""
    tables = [tables_of(link) for link in pattern.links]
    for negation in pattern.negations:
        tables += edge_tables(negation.pattern)
    return list(dict.fromkeys(tables))
