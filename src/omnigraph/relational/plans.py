"""Plans: a sqlglot tree, the relations it names, the values it binds, its result columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any, TypeAlias, assert_never

from sqlglot import exp

from omnigraph.model.tables import TableKey
from omnigraph.model.types import PropertyType, ResultType
from omnigraph.relational.numbers import Comparator
from omnigraph.relational.patterns import LinkWay, PatternPlan
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
    type: ResultType
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


def searches_of(reduction: Reduction) -> tuple[str, ...]:
    """The relations whose ids determine the rows of a relation by its own; none for other tests."""
    if reduction.column != "id":
        return ()
    match reduction.by:
        case IsFoundBy(relations):
            return relations
        case MatchesColumn(relation, "id"):
            return (relation,)
        case _:
            return ()


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
        unmatched: Why there is no `matching`, if there is none.
        cut: Set if the result is the best rows of a scope: an engine need not rank all others.
        best: Set if the result is the best rows of a type: what its searches find may be enough.
        scopes: What rankings by vectors rank: an engine need not rank others.
        stages: Set if the result can be found stage by stage: an engine may run these instead.
        parts: Set if values of its rows can be found by other plans, each for itself: an engine
            may run these instead, where it matches them by other means.
        paths: Set if the tree finds paths: an engine may find them by other means.
    """

    tree: exp.Query
    relations: Mapping[str, Relation]
    columns: tuple[OutputColumn, ...]
    values: Mapping[str, BoundValue] = field(default_factory=dict)
    reductions: tuple[Reduction, ...] = ()
    lookup: Lookup | None = None
    matching: PatternPlan | None = None
    unmatched: str = "it follows no edges"
    cut: Cut | None = None
    best: Best | None = None
    scopes: tuple[RankedScope, ...] = ()
    stages: StagedPlans | None = None
    parts: StagedPlans | None = None
    paths: PathPlans | None = None


@dataclass(frozen=True, slots=True)
class PathSearch:
    """Best walks between nodes of one type, as a relation (`query.ir.Path` defines them).

    Its columns: `a` and `b` are the ids of the first and the last node; `c0` and so on are what
    `columns` names: `length`, `nodes` or `cost`.

    Attributes:
        hops: The least and the greatest number of edges.
        weight: The property of edges that is added up; None if edges are counted.
        sources: Finds the ids that walks start from, in one column; None for all nodes. The
            relation may lack walks that start elsewhere.
        targets: Likewise for the ids that they lead to.
    """

    relation: str
    edges: TableKey
    nodes: TableKey
    way: LinkWay
    hops: tuple[int, int]
    weight: str | None
    columns: tuple[str, ...]
    sources: Plan | None = None
    targets: Plan | None = None


@dataclass(frozen=True, slots=True)
class PathPlans:
    """A plan that has the result of another, given the relations of paths."""

    searches: tuple[PathSearch, ...]
    plan: Plan


@dataclass(frozen=True, slots=True)
class StagePlan:
    """The plan of one stage.

    Attributes:
        relation: The given relation of the plan after it that its rows are, by the names of its
            columns.
    """

    plan: Plan
    relation: str


@dataclass(frozen=True, slots=True)
class StagedPlans:
    """Plans that together have the result of another, the last with the rows of those before it.

    Attributes:
        before: One or more. Of stages, each has the rows of the one before it.
        last: The one whose result it is.
    """

    before: tuple[StagePlan, ...]
    last: Plan


@dataclass(frozen=True, slots=True)
class Fusion:
    """Rankings fused by ranks: the sum of 1 / (k + rank) (docs/decisions/0019).

    Attributes:
        window: How many rows of each ranking count.
    """

    k: int
    window: int


@dataclass(frozen=True, slots=True)
class Best:
    """A result that is the first rows of a whole type by one ranking, and then by their ids.

    Rows that have no score come last: if fewer than `skip + limit` have one, they are in it, too.

    Attributes:
        searches: The relations of the rankings.
        columns: The property that each column of the result has; None for the score.
        fusion: How several rankings, or a single one that is left of them, become one.
    """

    searches: tuple[str, ...]
    limit: int
    skip: int
    columns: tuple[str | None, ...]
    fusion: Fusion | None = None

    @property
    def end(self) -> int:
        """How many rows are ranked before the result is complete."""
        return self.skip + self.limit


@dataclass(frozen=True, slots=True)
class Cut:
    """A result that is the first rows by one ranking, of those that the rest of a match leaves.

    Attributes:
        search: The relation of the ranking.
        limit: How many rows the result has, if so many match.
        ranked: The plan of the same result without rows that the ranking gave no score. It is the
            result if it has `limit` rows, also where the ranking lacks rows that are no better
            than those it has.
        scope: The plan of the ids that the ranking ranks: one column, each once.
    """

    search: str
    limit: int
    ranked: Plan
    scope: Plan


@dataclass(frozen=True, slots=True)
class RankedScope:
    """What a ranking by vectors ranks, if that is less than a whole type.

    Attributes:
        search: The relation of the ranking.
        scope: The plan of the ids that it ranks: one column, each once.
        window: How many of the best of these matter; None for all. An engine may leave out others.
        found: The plan of those ids of the scope that the ranking has a score for.
    """

    search: str
    scope: Plan
    window: int | None = None
    found: Plan | None = None


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
