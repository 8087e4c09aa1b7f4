"""Identity rules: an id occurs once in a delta, and `append` has none that exists."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from omnigraph.integrity.deltas import POSITION, Shape
from omnigraph.integrity.drafts import (
    Draft,
    Offenders,
    Reliance,
    alias_columns,
    position_of,
    semi_join,
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
from omnigraph.model.types import Scalar
from omnigraph.relational.plans import Place
from omnigraph.relational.trees import column, table
from omnigraph.schema.catalog import SchemaType


@dataclass(frozen=True, slots=True)
class DistinctIds:
    """No id occurs twice among the rows to write. An offender is an id, not a row."""

    type: SchemaType

    @property
    def breach(self) -> Breach:
        """The breach of an offender."""
        return Breach(Rule.KEY, self.type.name, self.type.key or ("id",))

    def applies(self, shape: Shape) -> bool:
        """Whether a delta of this shape could break it."""
        return self.type.table_key in shape.upserted

    def offenders(self, shape: Shape) -> Offenders:
        """The ids that occur more than once, with two of their positions."""
        draft = Draft(shape)
        relation = draft.upserts(self.type.table_key, "id", POSITION)
        times = exp.Count(this=exp.Star())
        columns = alias_columns(
            position=exp.Min(this=position_of("d")),
            id=column("id", "d"),
            last=exp.Max(this=position_of("d")),
            times=times,
        )
        query = (
            exp.select(*columns)
            .from_(table(relation, "d"), copy=False)
            .where(exp.Not(this=exp.Is(this=column("id", "d"), expression=exp.Null())), copy=False)
            .group_by(column("id", "d"), copy=False)
            .having(exp.GT(this=times.copy(), expression=exp.Literal.number(1)), copy=False)
        )
        return draft.offenders(query, ("last", Scalar.I64), ("times", Scalar.I64))

    def describe(self, row: dict[str, object], to_origin: ToOrigin = no_origin) -> Violation:
        """The violation for a row of `offenders`."""
        row_id = str(row["id"])
        message = f"duplicate key: {self.type.name} {shorten(row_id)} occurs {row['times']} times"
        if row["last"] != row["position"]:
            message += f", also at {origin_at(row['last'], to_origin)}"
        origin = origin_at(row["position"], to_origin)
        return Violation(self.breach, row_id, row_id, origin, message)


@dataclass(frozen=True, slots=True)
class NewIds:
    """In `append`, no id is that of a remaining committed row."""

    type: SchemaType

    @property
    def breach(self) -> Breach:
        """The breach of an offender."""
        return Breach(Rule.EXISTS, self.type.name, self.type.key or ("id",))

    def applies(self, shape: Shape) -> bool:
        """Whether a delta of this shape could break it."""
        key = self.type.table_key
        return key in shape.only_new & shape.upserted - shape.overwritten

    def offenders(self, shape: Shape) -> Offenders:
        """The rows of the delta whose id exists."""
        draft = Draft(shape)
        key = self.type.table_key
        relation = draft.upserts(key, "id", POSITION)
        remaining = draft.remaining_rows(
            key,
            "id",
            by="id",
            among=Place(relation, "id"),
            replaced=True,
            reliance=Reliance.ABSENCE,
        )
        assert remaining is not None, "nothing remains where all is overwritten"
        query = exp.select(*alias_columns(position=position_of("d"), id=column("id", "d")))
        query = query.from_(table(relation, "d"), copy=False)
        query = semi_join(query, column("id", "d"), remaining, "c")
        return draft.offenders(query)

    def describe(self, row: dict[str, object], to_origin: ToOrigin = no_origin) -> Violation:
        """The violation for a row of `offenders`."""
        row_id = str(row["id"])
        message = f"duplicate key: {self.type.name} {shorten(row_id)} already exists"
        origin = origin_at(row["position"], to_origin)
        return Violation(self.breach, row_id, row_id, origin, message)
