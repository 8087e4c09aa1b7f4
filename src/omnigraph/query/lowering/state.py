"""The state of a lowering: the catalog and values it uses, and the plan it builds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from omnigraph.query.lowering.operands import Given
from omnigraph.relational.builder import PlanBuilder
from omnigraph.relational.plans import Reduction
from omnigraph.relational.searches import Search
from omnigraph.schema.catalog import Catalog


@dataclass(slots=True)
class LoweringState:
    """One query that is being lowered.

    Attributes:
        seeds: Reductions that depend on the values the query is run with.
        given_paths: The paths whose ends the caller of the plan provides, by variable: the relation
            of each and its columns, once they are known.
    """

    catalog: Catalog
    given: Given
    builder: PlanBuilder = field(default_factory=PlanBuilder)
    seeds: list[Callable[[Given], Reduction | None]] = field(default_factory=list)
    searches: dict[Search, str] = field(default_factory=dict)
    given_paths: dict[str, tuple[str, tuple[str, ...]] | None] = field(default_factory=dict)

    def search(self, search: Search, best: int | None = None) -> str:
        """The relation of a search; equal searches have one."""
        if search not in self.searches:
            self.searches[search] = self.builder.search(search, best)
        return self.searches[search]
