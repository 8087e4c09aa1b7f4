"""What a plan is put together on: relations, common tables, bound values and reductions so far."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from sqlglot import exp

from omnigraph.model.tables import TableKey
from omnigraph.query.lowering.operands import Given
from omnigraph.relational.expressions import Bindings
from omnigraph.relational.plans import MatchesColumn, Place, Reduction, Relation, TableRows
from omnigraph.relational.trees import alias
from omnigraph.schema.catalog import Catalog


@dataclass(slots=True)
class Workbench:
    """One plan in the making. Names are numbered, so that nothing a user wrote becomes one."""

    catalog: Catalog
    given: Given
    bindings: Bindings = field(default_factory=Bindings)
    relations: dict[str, Relation] = field(default_factory=dict)
    tables: list[exp.CTE] = field(default_factory=list)
    reductions: list[Reduction] = field(default_factory=list)
    seeds: list[Callable[[Given], Reduction]] = field(default_factory=list)
    """Reductions that depend on the values the query is run with."""

    def scan(self, table: TableKey, columns: Iterable[str]) -> str:
        """A new relation over the rows of a type; its name."""
        name = f"r{len(self.relations)}"
        self.relations[name] = TableRows(table, tuple(dict.fromkeys(columns)))
        return name

    def define(self, query: exp.Query, *, reused: bool = False) -> str:
        """Name an intermediate table; `reused` ones are worth computing once."""
        name = f"t{len(self.tables)}"
        self.tables.append(exp.CTE(this=query, alias=alias(name), materialized=reused or None))
        return name

    def link(self, places: Sequence[Place], onto: Sequence[Place]) -> None:
        """Let ids found at `places` cut down what is read at `onto`."""
        for place in places:
            for target in onto:
                if target.relation != place.relation:
                    by = MatchesColumn(place.relation, place.column)
                    self.reductions.append(Reduction(target.relation, target.column, by))

    def finished(self, query: exp.Query) -> exp.Query:
        """The whole query, with every intermediate table in front of it."""
        if self.tables:
            query.set("with_", exp.With(expressions=self.tables))
        return query
