"""Unique rules: no two rows, of the delta or remaining, share a tuple without nulls."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from omnigraph.integrity.deltas import POSITION, Shape
from omnigraph.integrity.drafts import (
    Draft,
    Offenders,
    Reliance,
    alias_columns,
    no_position,
    position_of,
    semi_join_on,
    union_all,
)
from omnigraph.integrity.violations import (
    Breach,
    Rule,
    ToOrigin,
    Violation,
    no_origin,
    origin_at,
    shorten,
)
from omnigraph.model.types import EnumType, PropertyType, Scalar
from omnigraph.relational.expressions import without_negative_zero
from omnigraph.relational.plans import Place
from omnigraph.relational.trees import column, table
from omnigraph.schema.catalog import ENDPOINTS, SchemaType

_ID: exp.DataType = exp.DataType.build("TEXT")


@dataclass(frozen=True, slots=True)
class Unique:
    """One `@unique` of a type. An offender is a tuple, however many rows share it.

    Rows that the delta deletes, replaces or overwrites hold no tuple: theirs may be claimed.
    """

    type: SchemaType
    members: tuple[str, ...]

    @property
    def breach(self) -> Breach:
        """The breach of an offender."""
        return Breach(Rule.UNIQUE, self.type.name, self.members)

    def applies(self, shape: Shape) -> bool:
        """Whether a delta of this shape could break it: only written rows claim a tuple."""
        return self.type.table_key in shape.upserted

    def offenders(self, shape: Shape) -> Offenders:
        """The tuples that several ids claim, with ids that do."""
        draft = Draft(shape)
        key = self.type.table_key
        relation = draft.upserts(key, *dict.fromkeys(["id", POSITION, *self.members]))
        claims = draft.define(self._claims(relation))
        remaining = draft.remaining_rows(
            key,
            *dict.fromkeys(["id", *self.members]),
            by=self._lookup or "",
            among=Place(relation, self._lookup) if self._lookup else None,
            replaced=False,
            reliance=Reliance.ABSENCE,
        )
        holders = [
            exp.select(*map(_claim_column, self._columns("id", "mine", "o"))).from_(
                _claims_table(claims), copy=False
            )
        ]
        if remaining is not None:
            holders.append(self._rivals(remaining, claims))
        ids = exp.Count(this=exp.Distinct(expressions=[column("id", "h")]))
        shared = (
            exp.select(
                *alias_columns(
                    position=exp.Min(this=column("o", "h")),
                    id=exp.Min(this=column("mine", "h")),
                    least=exp.Min(this=column("id", "h")),
                    greatest=exp.Max(this=column("id", "h")),
                ),
                *(column(name, "h") for name in self._tuple),
            )
            .from_(table(draft.define(union_all(holders)), "h"), copy=False)
            .group_by(*(column(name, "h") for name in self._tuple), copy=False)
            .having(exp.GT(this=ids, expression=exp.Literal.number(1)), copy=False)
        )
        more: list[tuple[str, PropertyType]] = [
            ("least", Scalar.STRING),
            ("greatest", Scalar.STRING),
        ]
        values = zip(self._tuple, map(self._type_of, self.members), strict=True)
        return draft.offenders(shared, *more, *values)

    def describe(self, row: dict[str, object], to_origin: ToOrigin = no_origin) -> Violation:
        """The violation for a row of `offenders`."""
        row_id = str(row["id"])
        other = row["greatest"] if row["greatest"] != row_id else row["least"]
        values = tuple(row[name] for name in self._tuple)
        value = values[0] if len(values) == 1 else values
        message = (
            f"{self.type.name} {shorten(row_id)} and {shorten(other)} "
            f"share {', '.join(self.members)} {shorten(value)}"
        )
        origin = origin_at(row["position"], to_origin)
        return Violation(self.breach, row_id, value, origin, message, rival=str(other))

    @property
    def _tuple(self) -> list[str]:
        return [f"k{place}" for place in range(len(self.members))]

    @property
    def _lookup(self) -> str | None:
        """The member by whose texts committed rows may be looked up."""
        for name in self.members:
            if self._type_of(name) is Scalar.STRING:
                return name
        return None

    def _columns(self, *more: str) -> list[str]:
        return [*self._tuple, *more]

    def _type_of(self, name: str) -> Scalar | EnumType:
        if name in ENDPOINTS:
            return Scalar.STRING
        kind = self.type.property_named(name).type
        assert isinstance(kind, Scalar | EnumType), "a unique has scalars and enums only"
        return kind

    def _values(self, alias: str) -> dict[str, exp.Expr]:
        return {
            name: without_negative_zero(column(member, alias), self._type_of(member))
            for name, member in zip(self._tuple, self.members, strict=True)
        }

    def _claims(self, relation: str) -> exp.Select:
        has_all = [
            exp.Not(this=exp.Is(this=column(member, "d"), expression=exp.Null()))
            for member in self.members
        ]
        columns = alias_columns(
            **self._values("d"), id=column("id", "d"), mine=column("id", "d"), o=position_of("d")
        )
        query = exp.select(*columns).from_(table(relation, "d"), copy=False)
        return query.where(*has_all, copy=False)

    def _rivals(self, remaining: str, claims: str) -> exp.Select:
        """The remaining rows that hold a tuple which the delta claims."""
        values = self._values("c")
        same = [
            exp.EQ(this=tree.copy(), expression=column(name, "q")) for name, tree in values.items()
        ]
        no_id = exp.Cast(this=exp.Null(), to=_ID)
        columns = alias_columns(**values, id=column("id", "c"), mine=no_id, o=no_position())
        query = exp.select(*columns).from_(table(remaining, "c"), copy=False)
        return semi_join_on(query, exp.and_(*same, copy=False), claims, "q")


def _claim_column(name: str) -> exp.Column:
    return column(name, "q")


def _claims_table(claims: str) -> exp.Table:
    return table(claims, "q")
