"""Identity rules: an id stands once in a delta, and `append` brings none that exists."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from omnigraph.integrity.deltas import POSITION, Shape
from omnigraph.integrity.drafts import Draft, Offenders, Reliance, aliased, among, position_of
from omnigraph.integrity.violations import (
    Breach,
    Rule,
    ToOrigin,
    Violation,
    no_origin,
    origin_at,
    shortened,
)
from omnigraph.model.types import Scalar
from omnigraph.relational.plans import Place
from omnigraph.relational.trees import column, table
from omnigraph.schema.catalog import SchemaType


@dataclass(frozen=True, slots=True)
class DistinctIds:
    """No id stands twice among the rows to write. An offender is an id, not a row."""

    type: SchemaType

    @property
    def breach(self) -> Breach:
        """What an offender breaks."""
        return Breach(Rule.KEY, self.type.name, self.type.key or ("id",))

    def applies(self, shape: Shape) -> bool:
        """Whether a delta of this shape could break it."""
        return self.type.table_key in shape.upserted

    def offenders(self, shape: Shape) -> Offenders:
        """The ids that stand more than once, with two of the places."""
        draft = Draft(shape)
        relation = draft.upserts(self.type.table_key, "id", POSITION)
        times = exp.Count(this=exp.Star())
        columns = aliased(
            position=exp.Min(this=position_of("d")),
            id=column("id", "d"),
            last=exp.Max(this=position_of("d")),
            times=times,
        )
        query = (
            exp.select(*columns)
            .from_(table(relation, "d"))
            .where(exp.Not(this=exp.Is(this=column("id", "d"), expression=exp.Null())))
            .group_by(column("id", "d"))
            .having(exp.GT(this=times.copy(), expression=exp.Literal.number(1)))
        )
        return draft.offenders(query, ("last", Scalar.I64), ("times", Scalar.I64))

    def described(self, row: dict[str, object], to_origin: ToOrigin = no_origin) -> Violation:
        """The violation that a row of `offenders` is."""
        found = str(row["id"])
        message = f"{self.type.name} {shortened(found)} stands {row['times']} times"
        if row["last"] != row["position"]:
            message += f", also at {origin_at(row['last'], to_origin)}"
        origin = origin_at(row["position"], to_origin)
        return Violation(self.breach, found, found, origin, message)


@dataclass(frozen=True, slots=True)
class NewIds:
    """Where only new rows are wanted, no id is that of a committed row which stays."""

    type: SchemaType

    @property
    def breach(self) -> Breach:
        """What an offender breaks."""
        return Breach(Rule.EXISTS, self.type.name, self.type.key or ("id",))

    def applies(self, shape: Shape) -> bool:
        """Whether a delta of this shape could break it."""
        key = self.type.table_key
        return key in shape.only_new & shape.upserted - shape.overwritten

    def offenders(self, shape: Shape) -> Offenders:
        """The rows of the delta whose id is taken."""
        draft = Draft(shape)
        key = self.type.table_key
        relation = draft.upserts(key, "id", POSITION)
        left = draft.remaining(
            key,
            "id",
            by="id",
            among=Place(relation, "id"),
            replaced=True,
            reliance=Reliance.ABSENCE,
        )
        assert left is not None, "nothing exists where all is overwritten"
        query = exp.select(*aliased(position=position_of("d"), id=column("id", "d")))
        query = among(query.from_(table(relation, "d")), column("id", "d"), left, "c")
        return draft.offenders(query)

    def described(self, row: dict[str, object], to_origin: ToOrigin = no_origin) -> Violation:
        """The violation that a row of `offenders` is."""
        found = str(row["id"])
        message = f"{self.type.name} {shortened(found)} exists already"
        origin = origin_at(row["position"], to_origin)
        return Violation(self.breach, found, found, origin, message)
