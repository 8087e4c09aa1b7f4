"""The builder of plans: it numbers relations, intermediate tables and bound values."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from sqlglot import exp

from omnigraph.model.tables import TableKey
from omnigraph.relational.expressions import Bindings
from omnigraph.relational.plans import (
    GivenRows,
    MatchesColumn,
    OutputColumn,
    Place,
    Plan,
    Reduction,
    Relation,
    SearchRows,
    TableRows,
)
from omnigraph.relational.searches import Search
from omnigraph.relational.trees import alias


@dataclass(slots=True)
class PlanBuilder:
    """One plan under construction. Names are numbered, so that nothing a user wrote becomes one."""

    bindings: Bindings = field(default_factory=Bindings)
    _relations: dict[str, Relation] = field(default_factory=dict)
    _tables: list[exp.CTE] = field(default_factory=list)
    _reductions: list[Reduction] = field(default_factory=list)

    def scan(self, key: TableKey, columns: Iterable[str]) -> str:
        """Add a relation over the rows of a type; returns its name."""
        return self._add(TableRows(key, tuple(dict.fromkeys(columns))))

    def give(self) -> str:
        """Add a relation whose rows the caller of the plan provides; returns its name."""
        return self._add(GivenRows())

    def search(self, search: Search, best: int | None = None) -> str:
        """Add a relation of what a search finds; returns its name."""
        return self._add(SearchRows(search, best))

    def define(self, query: exp.Query, *, reused: bool = False) -> str:
        """Add an intermediate table; `reused` ones are worth computing once. Returns its name."""
        name = f"t{len(self._tables)}"
        self._tables.append(exp.CTE(this=query, alias=alias(name), materialized=reused or None))
        return name

    def reduce(self, reduction: Reduction) -> None:
        """Let an engine read less of a relation."""
        self._reductions.append(reduction)

    def link(self, places: Sequence[Place], onto: Sequence[Place]) -> None:
        """Let ids found at `places` reduce what is read at `onto`."""
        for place in places:
            for target in onto:
                if target.relation != place.relation:
                    by = MatchesColumn(place.relation, place.column)
                    self.reduce(Reduction(target.relation, target.column, by))

    def plan(self, query: exp.Query, columns: Iterable[OutputColumn]) -> Plan:
        """The plan of a query over what was added so far; the builder may make others after it."""
        if self._tables:
            # A tree has one parent, and each plan needs the tables in a tree of its own.
            query.set("with_", exp.With(expressions=[each.copy() for each in self._tables]))
        # A comparison that no value fulfils drops its operands, with all that they bind.
        used = {each.name for each in query.find_all(exp.Placeholder)}
        return Plan(
            tree=query,
            relations=dict(self._relations),
            columns=tuple(columns),
            values={name: bound for name, bound in self.bindings.values.items() if name in used},
            reductions=tuple(self._reductions),
        )

    def _add(self, relation: Relation) -> str:
        name = f"r{len(self._relations)}"
        self._relations[name] = relation
        return name
