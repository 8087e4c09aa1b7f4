"""Drafts: a rule's plan under construction, over the rows of a delta and committed rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from sqlglot import exp

from omnigraph.integrity.deltas import POSITION, DeltaPart, DeltaRows, Shape
from omnigraph.limits import OFFENDERS_SHOWN_MAX
from omnigraph.model.tables import TableKey
from omnigraph.model.types import PropertyType, Scalar
from omnigraph.relational.builder import PlanBuilder
from omnigraph.relational.expressions import Bindings
from omnigraph.relational.plans import OutputColumn, Place, Plan
from omnigraph.relational.trees import column, named, table

_OFFENDERS: Final = "f"
"""The alias of the offenders in a plan."""

_LEADING: Final = (("position", Scalar.I64), ("id", Scalar.STRING))


class Reliance(Enum):
    """What a rule relies on in committed rows while its write is under way."""

    PRESENCE = "another writer must not delete the rows that the rule finds"
    ABSENCE = "another writer must not insert rows that the rule would find"
    NONE = "a writer that changes these rows checks the rule for both"


@dataclass(frozen=True, slots=True)
class Question:
    """A plan, and the part of the delta that each of its given relations stands for."""

    plan: Plan
    given: Mapping[str, DeltaRows]


@dataclass(slots=True)
class Draft:
    """One plan of a rule, for deltas of one shape."""

    shape: Shape
    _builder: PlanBuilder = field(default_factory=PlanBuilder)
    _given: dict[str, DeltaRows] = field(default_factory=dict)
    _reliances: list[tuple[TableKey, Reliance]] = field(default_factory=list)

    @property
    def bindings(self) -> Bindings:
        """The values that the plan binds."""
        return self._builder.bindings

    @property
    def delta_rows(self) -> Iterable[DeltaRows]:
        """The parts of the delta that the plan reads."""
        return self._given.values()

    def tables_relied_on(self, reliance: Reliance) -> Iterator[TableKey]:
        """The tables whose committed rows the plan reads and relies on in this way."""
        return (key for key, kind in self._reliances if kind is reliance)

    def upserts(self, key: TableKey, *columns: str) -> str:
        """A relation of the delta's rows of a table; the shape must have some."""
        assert key in self.shape.upserted, f"the delta upserts nothing into {key}"
        return self._give(DeltaRows(key, DeltaPart.UPSERTS, columns))

    def deletions(self, key: TableKey) -> str:
        """A relation of the ids that the delta deletes; the shape must have some."""
        assert key in self.shape.deleted, f"the delta deletes nothing from {key}"
        return self._give(DeltaRows(key, DeltaPart.DELETIONS, ("id",)))

    def committed_rows(
        self, key: TableKey, *columns: str, by: str, among: Place | None, reliance: Reliance
    ) -> str:
        """A relation of committed rows; only those whose column `by` is `among` others matter."""
        name = self._builder.scan(key, columns)
        self._reliances.append((key, reliance))
        if among is not None:
            self._builder.link([among], [Place(name, by)])
        return name

    def remaining_rows(
        self,
        key: TableKey,
        *columns: str,
        by: str,
        among: Place | None,
        replaced: bool,
        reliance: Reliance,
    ) -> str | None:
        """A table of the committed rows that remain; None where the delta overwrites all.

        Args:
            columns: `id` must be one of them.
            replaced: Whether rows that the delta upserts again count as remaining.
        """
        if key in self.shape.overwritten:
            return None
        relation = self.committed_rows(key, *columns, by=by, among=among, reliance=reliance)
        query = exp.select(*(column(name, "c") for name in columns))
        query = query.from_(table(relation, "c"), copy=False)
        if key in self.shape.deleted:
            query = anti_join(query, column("id", "c"), self.deletions(key), "d")
        if key in self.shape.upserted and not replaced:
            query = anti_join(query, column("id", "c"), self.upserts(key, "id"), "u")
        return self.define(query)

    def define(self, query: exp.Query) -> str:
        """Add an intermediate table; returns its name."""
        return self._builder.define(query)

    def offenders(self, query: exp.Select, *more: tuple[str, PropertyType]) -> Offenders:
        """The rows of a query: `position`, `id`, and more columns of these names and types."""
        return Offenders(self, self.define(query), (*_LEADING, *more))

    def question(self, query: exp.Query, columns: Sequence[OutputColumn]) -> Question:
        """The finished plan."""
        return Question(self._builder.plan(query, columns), dict(self._given))

    def _give(self, rows: DeltaRows) -> str:
        for name, given in self._given.items():
            if given == rows:
                return name
        name = self._builder.give()
        self._given[name] = rows
        return name


@dataclass(frozen=True, slots=True)
class Offenders:
    """A table of offenders, with the plans that list and count them."""

    draft: Draft
    name: str
    columns: tuple[tuple[str, PropertyType], ...]

    def first(self) -> Question:
        """The first offenders, in the order of their positions, then of their ids and values."""
        return self.list_all(limit=OFFENDERS_SHOWN_MAX)

    def list_all(self, limit: int | None = None) -> Question:
        """All offenders, or the first `limit` of them, in the same order."""
        keys = [column(name, _OFFENDERS) for name, _ in self.columns]
        query = (
            exp.select(*(column(name, _OFFENDERS) for name, _ in self.columns))
            .from_(table(self.name, _OFFENDERS))
            .order_by(*(exp.Ordered(this=key, nulls_first=True) for key in keys))
        )
        if limit is not None:
            query = query.limit(limit)
        outputs = [OutputColumn(name, type_, nullable=True) for name, type_ in self.columns]
        return self.draft.question(query, outputs)

    def count(self) -> Question:
        """How many offenders there are, in one row."""
        query = exp.select(named(exp.Count(this=exp.Star()), "n")).from_(
            table(self.name, _OFFENDERS)
        )
        return self.draft.question(query, [OutputColumn("count", Scalar.I64, nullable=False)])


def position_of(alias: str) -> exp.Expr:
    """The position of a row of the delta."""
    return column(POSITION, alias)


def no_position() -> exp.Expr:
    """The position of a row that is not from the delta: null."""
    return exp.Cast(this=exp.Null(), to=exp.DataType.build("BIGINT"))


def alias_columns(**trees: exp.Expr) -> list[exp.Expr]:
    """Each expression under its name, quoted: some of the names are SQL keywords."""
    return [
        exp.Alias(this=tree, alias=exp.to_identifier(name, quoted=True))
        for name, tree in trees.items()
    ]


def semi_join(
    query: exp.Select, value: exp.Expr, name: str, alias: str, at: str = "id"
) -> exp.Select:
    """The rows of a query whose value occurs in a column of a table."""
    return semi_join_on(query, _equal(value, alias, at), name, alias)


def semi_join_on(query: exp.Select, on: exp.Expr, name: str, alias: str) -> exp.Select:
    """The rows of a query for which a table has a row that meets a condition."""
    return _join(query, on, name, alias, "SEMI")


def anti_join(
    query: exp.Select, value: exp.Expr, name: str, alias: str, at: str = "id"
) -> exp.Select:
    """The rows of a query whose value does not occur in a column of a table."""
    return _join(query, _equal(value, alias, at), name, alias, "ANTI")


def _equal(value: exp.Expr, alias: str, at: str) -> exp.Expr:
    return exp.EQ(this=value, expression=column(at, alias))


def _join(query: exp.Select, on: exp.Expr, name: str, alias: str, kind: str) -> exp.Select:
    # Not by `query.join`, which parses the kind of the join anew each time.
    query.append("joins", exp.Join(this=table(name, alias), on=on, kind=kind))
    return query


def union_all(queries: Sequence[exp.Select]) -> exp.Query:
    """The rows of all queries, duplicates included."""
    union: exp.Query = queries[0]
    for query in queries[1:]:
        union = exp.union(union, query, distinct=False, copy=False)
    return union
