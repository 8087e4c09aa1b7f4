"""Patterns: the graph that a plan matches, for engines that know which nodes edges connect."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from sqlglot import exp

from omnigraph.model.tables import TableKey

if TYPE_CHECKING:
    from omnigraph.relational.plans import BoundValue, Plan

VALUES: Final = "x"
"""The table that the tree of a condition reads."""

Use = tuple[str, str]
"""A variable and a column of it."""


class LinkWay(StrEnum):
    """How edges lead from the start of a link: from their source, from their target, or either."""

    OUT = "out"
    IN = "in"
    BOTH = "both"


@dataclass(frozen=True, slots=True)
class Link:
    """Pairs of nodes that edges connect.

    Without an edge variable they are a set: a pair belongs to it if the least number of hops
    between them is within bounds, and a node is connected with itself only by a loop, at one hop.
    With an edge variable there is one row for each edge, walked in either way one for each way, and
    a loop once.

    Attributes:
        edges: The table of the edges; `sources` and `targets` are those of their ends.
        start: The variable that the link leads from, and `end` to; they may be the same.
        edge: The edge variable.
    """

    edges: TableKey
    sources: TableKey
    targets: TableKey
    start: str
    end: str
    way: LinkWay
    hops_min: int = 1
    hops_max: int = 1
    edge: str | None = None

    def other(self, variable: str) -> str:
        """The variable at the other end."""
        return self.end if variable == self.start else self.start


@dataclass(frozen=True, slots=True)
class RowCondition:
    """A condition on the values of one row.

    Attributes:
        uses: The values that it reads.
        tree: True for exactly the rows that it keeps, over columns of `VALUES` that are named by
            their places in `uses`.
    """

    uses: tuple[Use, ...]
    tree: exp.Expr

    @property
    def variables(self) -> frozenset[str]:
        """The variables that it is about."""
        return frozenset(variable for variable, _ in self.uses)


@dataclass(frozen=True, slots=True)
class GraphPattern:
    """Variables, the links between them, and conditions: a match is a row that fulfils all.

    Attributes:
        nodes: The table of each node variable that is bound here.
        negations: No row of any of them goes with a match.
    """

    nodes: Mapping[str, TableKey]
    links: tuple[Link, ...]
    conditions: tuple[RowCondition, ...]
    negations: tuple[NegatedPattern, ...] = ()


@dataclass(frozen=True, slots=True)
class NegatedPattern:
    """A pattern around variables that are bound outside it.

    Attributes:
        outer: The tables of those variables.
    """

    pattern: GraphPattern
    outer: Mapping[str, TableKey]


@dataclass(frozen=True, slots=True)
class Sum:
    """A sum over the matches that a row stands for.

    Attributes:
        name: Its column among the rows.
        counts: Whether it is the number of values that are not null, instead of their sum.
        is_float: Whether the values are floats.
    """

    name: str
    use: Use
    counts: bool
    is_float: bool


class Function(StrEnum):
    """What a result does with the values of a group."""

    COUNT = "count"
    SUM = "sum"
    AVG = "avg"


@dataclass(frozen=True, slots=True)
class Total:
    """A count, sum or average over the matches of a group.

    Attributes:
        use: The values; None to count matches.
        nullable: Whether some of the values may be null.
    """

    function: Function
    use: Use | None
    nullable: bool


Result = Use | Total


@dataclass(frozen=True, slots=True)
class PlainResults:
    """The results of a match where they are plain: values, counts, sums and averages.

    Attributes:
        keys: What rows are grouped by; None if they are not grouped.
        order: What rows are sorted by, and whether descending; together a total order.
    """

    columns: tuple[Result, ...]
    keys: tuple[Use, ...] | None
    order: tuple[tuple[Result, bool], ...]
    limit: int | None


@dataclass(frozen=True, slots=True)
class PatternPlan:
    """Permission to answer a plan otherwise: match the pattern, then run the plan of its results.

    Attributes:
        kept: The variables whose values the results read. Each combination of them is one row.
        columns: The columns of the rows, by the values that they have.
        weight: The column with the number of matches of each row. Without one, each match is a row.
        sums: More columns, of variables that are not kept.
        results: A plan over one given relation, with exactly those columns.
        shape: The same results, if they are plain.
        values: The values of the placeholders in conditions.
        ids: The ids of variables whose keys are fixed, and the conditions that say nothing else.
    """

    pattern: GraphPattern
    kept: frozenset[str]
    columns: Mapping[Use, str]
    weight: str | None
    sums: tuple[Sum, ...]
    results: Plan
    shape: PlainResults | None
    values: Mapping[str, BoundValue] = field(default_factory=dict)
    ids: Mapping[str, str] = field(default_factory=dict)
