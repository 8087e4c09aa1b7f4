"""Row rules as plans: one pass over the rows of a type counts the offenders of all its rules."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from omnigraph.integrity.deltas import POSITION, Shape
from omnigraph.integrity.drafts import Draft, Offenders, Question, alias_columns, position_of
from omnigraph.integrity.violations import (
    Breach,
    ToOrigin,
    Violation,
    no_origin,
    origin_at,
    shorten,
)
from omnigraph.model.types import EnumType, PropertyType, Scalar
from omnigraph.relational.expressions import Bindings
from omnigraph.relational.plans import OutputColumn
from omnigraph.relational.trees import column, named, table
from omnigraph.schema.catalog import SchemaType

_ROW: Final = "d"

ITEM: Final = "x"
"""The name of an item in the condition of `has_items`."""

Condition: TypeAlias = "Callable[[Bindings], exp.Expr]"
"""True of the rows that break a rule; false or null of all others."""

ColumnProof: TypeAlias = "Callable[[pa.ChunkedArray], bool]"
"""Whether Arrow proves that no value of a column breaks a rule; False where it is in doubt."""


@dataclass(frozen=True, slots=True)
class RowRule:
    """One rule about one column.

    Attributes:
        broken: The condition that an engine counts.
        holds: Where it is true of a column, no engine finds an offender.
        type: The type of the column's values, if an offender's value is worth showing.
        complaint: What is wrong, to follow the name of the type and the property.
    """

    breach: Breach
    is_broken: Condition
    holds: ColumnProof
    type: Scalar | EnumType | None
    complaint: str

    @property
    def column(self) -> str:
        """The column that it reads."""
        return self.breach.properties[0]

    def describe(self, row: dict[str, object], to_origin: ToOrigin = no_origin) -> Violation:
        """The violation for a row of `offenders`."""
        row_id = row["id"]
        value = row.get("value")
        value_text = f" {shorten(value)}" if self.type is not None else ""
        message = (
            f"{self.breach.type_name} {shorten(row_id)}: {self.column}{value_text} {self.complaint}"
            if self.column != "id"
            else f"{self.breach.type_name}: id {self.complaint}"
        )
        identity = None if row_id is None else str(row_id)
        origin = origin_at(row["position"], to_origin)
        return Violation(self.breach, identity, value, origin, message)


@dataclass(frozen=True, slots=True)
class RowRules:
    """All row rules of one type."""

    type: SchemaType
    rules: tuple[RowRule, ...]

    def hold(self, rows: pa.Table) -> bool:
        """Whether Arrow proves that no row breaks a rule; False where one is in doubt."""
        return all(rule.holds(rows[rule.column]) for rule in self.rules)

    def counts(self, shape: Shape) -> Question:
        """One row: how many rows of the delta break each rule. The delta is read once."""
        draft = Draft(shape)
        columns = dict.fromkeys(rule.column for rule in self.rules)
        relation = draft.upserts(self.type.table_key, *columns)
        one = exp.Literal.number(1)
        counts = [
            exp.Count(this=exp.Case(ifs=[exp.If(this=rule.is_broken(draft.bindings), true=one)]))
            for rule in self.rules
        ]
        query = exp.select(*(named(tree, f"n{place}") for place, tree in enumerate(counts)))
        outputs = [
            OutputColumn(f"n{place}", Scalar.I64, nullable=False) for place in range(len(counts))
        ]
        return draft.question(query.from_(table(relation, _ROW)), outputs)

    def offenders(self, rule: RowRule, shape: Shape) -> Offenders:
        """The rows of the delta that break one rule."""
        draft = Draft(shape)
        columns = dict.fromkeys(["id", POSITION, rule.column])
        relation = draft.upserts(self.type.table_key, *columns)
        outputs: dict[str, exp.Expr] = {"position": position_of(_ROW), "id": column("id", _ROW)}
        more: list[tuple[str, PropertyType]] = []
        if rule.type is not None:
            outputs["value"] = column(rule.column, _ROW)
            more.append(("value", rule.type))
        query = exp.select(*alias_columns(**outputs)).from_(table(relation, _ROW))
        return draft.offenders(query.where(rule.is_broken(draft.bindings)), *more)


def value_of(name: str) -> exp.Column:
    """A column of the rows that a condition tests."""
    return column(name, _ROW)


def has_items(items: exp.Expr, condition: exp.Expr) -> exp.Expr:
    """Whether a list has an item, named `ITEM`, that meets a condition."""
    # Not SQL's test whether any item meets a condition: a null makes all of that null.
    predicate = exp.Lambda(this=condition, expressions=[exp.to_identifier(ITEM)])
    count = exp.ArraySize(this=exp.ArrayFilter(this=items.copy(), expression=predicate))
    return exp.GT(this=count, expression=exp.Literal.number(0))


def all_true(values: pa.ChunkedArray) -> bool:
    """Whether none of the values is false."""
    return bool(pc.all(values, min_count=0).as_py())
