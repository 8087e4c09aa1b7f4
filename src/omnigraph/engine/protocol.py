"""What an engine is: it runs a plan over pinned tables and given rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, TypeAlias

import pyarrow as pa

from omnigraph.choices import EngineName
from omnigraph.engine.budget import UNLIMITED, Budget
from omnigraph.model.settings import SearchSettings
from omnigraph.model.tables import TableKey

if TYPE_CHECKING:
    from omnigraph.relational.plans import Plan
    from omnigraph.storage.tables import Table


@dataclass(frozen=True, slots=True)
class Data:
    """What a plan runs on.

    Attributes:
        table: Opens a type's table at the one snapshot that the whole run sees.
        given: The rows of each `GivenRows` relation of the plan: an Arrow table or, for Spark, a
            DataFrame of its session.
        budget: What the run may spend.
        search: How vectors may be searched by an index.
    """

    table: Callable[[TableKey], Table]
    given: Mapping[str, pa.Table] = field(default_factory=dict)
    budget: Budget = UNLIMITED
    search: SearchSettings = field(default_factory=SearchSettings)

    def within(self, budget: Budget) -> Data:
        """The same data for a run that may spend so much."""
        return Data(self.table, self.given, budget, self.search)


class Engine(Protocol):
    """Runs plans. The same plan on the same data gives the same rows on every engine."""

    @property
    def name(self) -> EngineName:
        """Which engine this is."""
        ...

    @property
    def dialect(self) -> str:
        """The SQL that this engine runs, as sqlglot names it."""
        ...

    def means(self, plan: Plan, data: Data) -> str:
        """By what it would answer the plan, and why, for people. Reads no rows."""
        ...

    def searches(self, plan: Plan, data: Data) -> Mapping[str, str]:
        """How it would answer each search of a plan, by relation, for people. Reads no rows."""
        ...

    def run(self, plan: Plan, data: Data) -> pa.Table:
        """The plan's rows, in its order, with exactly the columns it declares."""
        ...


Engines: TypeAlias = Callable[[EngineName], Engine]
"""Returns the engine of a name."""
