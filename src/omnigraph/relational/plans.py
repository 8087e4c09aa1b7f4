"""Plans: a sqlglot tree, the relations it names, the values it binds, its result columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any, TypeAlias, assert_never

from sqlglot import exp

from omnigraph.model.tables import TableKey
from omnigraph.model.types import PropertyType
from omnigraph.relational.numbers import Comparator
from omnigraph.relational.patterns import PatternPlan
from omnigraph.relational.searches import Search


@dataclass(frozen=True, slots=True)
class TableRows:
    """The rows of one type at the snapshot that a plan is run on.

    Attributes:
        columns: The columns that the plan uses; an engine reads no other.
    """

    table: TableKey
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class GivenRows:
    """Rows that the caller provides with the plan, such as the delta of a write."""


@dataclass(frozen=True, slots=True)
class SearchRows:
    """What a search finds, at the snapshot that a plan is run on: `id`, and `score` of a ranking.

    Attributes:
        best: How many rows of a ranking matter, those of equal score with the last of them
            included; None for all. An engine may leave out the others.
    """

    search: Search
    best: int | None = None


Relation = TableRows | GivenRows | SearchRows


@dataclass(frozen=True, slots=True)
class BoundValue:
    """A value that is passed to the engine outside the text.

    Attributes:
        source: The parameter (or `now()`) it is from, if the tree is valid for its other values.
    """

    value: Any
    type: PropertyType
    source: str | None = None


@dataclass(frozen=True, slots=True)
class OutputColumn:
    """One column of a plan's result, in the type that the caller receives."""

    name: str
    type: PropertyType
    nullable: bool


@dataclass(frozen=True, slots=True)
class Place:
    """A column of a relation that holds ids."""

    relation: str
    column: str


PlainValue: TypeAlias = "str | bool | int | float | date | datetime"
"""A value of a scalar type or an enum. Numbers are exactly those of their column's type."""


@dataclass(frozen=True, slots=True)
class IsOneOf:
    """The column of a relation holds one of these values, in every row that can matter."""

    values: tuple[PlainValue, ...]

    def __str__(self) -> str:
        return f"{len(self.values)} given value{'s' * (len(self.values) != 1)}"


@dataclass(frozen=True, slots=True)
class IsWithin:
    """The column holds a value on one side of a bound, in every row that can matter.

    Attributes:
        comparator: Any but `EQ` and `NE`.
    """

    comparator: Comparator
    bound: PlainValue

    def __str__(self) -> str:
        return f"values {self.comparator.value} {self.bound}"


@dataclass(frozen=True, slots=True)
class MatchesColumn:
    """The column holds a value of another relation's column, in every row that can matter."""

    relation: str
    column: str

    def __str__(self) -> str:
        return f"what {self.relation}.{self.column} holds"


@dataclass(frozen=True, slots=True)
class IsFoundBy:
    """The column holds an id that a search found, in every row that can matter.

    Attributes:
        relations: What searches find; an id is in one of them at least.
        enough: How many rows one of them must have: with fewer, rows that no search found matter.
    """

    relations: tuple[str, ...]
    enough: int

    def __str__(self) -> str:
        return f"what {' or '.join(self.relations)} found, if that is {self.enough:,} rows"


@dataclass(frozen=True, slots=True)
class ReachedFrom:
    """The rows are edges that a walk from another relation's column can use.

    Attributes:
        onward: The column that the walk continues from.
        hops_max: How many edges the walk has at most.
        both_ways: Whether edges are walked from `onward` too.
    """

    relation: str
    column: str
    onward: str
    hops_max: int
    both_ways: bool

    def __str__(self) -> str:
        return f"what {self.hops_max} hops reach from {self.relation}.{self.column}"


@dataclass(frozen=True, slots=True)
class Reduction:
    """Permission to read less: rows of `relation` that break the condition change no answer.

    An engine may use any reductions of a plan, in any order, or none.

    Attributes:
        has_few_values: Whether the column has few different values, so that one may be in very many
            rows.
    """

    relation: str
    column: str
    by: IsOneOf | IsWithin | MatchesColumn | IsFoundBy | ReachedFrom
    has_few_values: bool = False


@dataclass(frozen=True, slots=True)
class Lookup:
    """A read of the row with one id, if there is one, and of some of its columns."""

    table: TableKey
    id: str
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """One query for an engine to run.

    Attributes:
        tree: A query over the named relations. Its columns are positional: their names in the tree
            are ignored, so names that engines would fold or refuse cannot matter.
        values: The value of each placeholder of the tree.
        columns: The columns of the result, in the order of the tree's columns.
        lookup: Set if the answer is one row with a known id: the `Lookup` is equivalent to the
            tree, and an engine with an index on ids may read just that row.
        matching: Set if the tree matches a graph: an engine may match it by other means.
    """

    tree: exp.Query
    relations: Mapping[str, Relation]
    columns: tuple[OutputColumn, ...]
    values: Mapping[str, BoundValue] = field(default_factory=dict)
    reductions: tuple[Reduction, ...] = ()
    lookup: Lookup | None = None
    matching: PatternPlan | None = None


def tables_read(plan: Plan) -> frozenset[TableKey]:
    """The types whose rows a plan reads, or searches."""
    tables = set()
    for relation in plan.relations.values():
        match relation:
            case TableRows(table):
                tables.add(table)
            case SearchRows(search):
                tables.add(search.table)
            case GivenRows():
                pass
            case _:
                assert_never(relation)
    return frozenset(tables)
