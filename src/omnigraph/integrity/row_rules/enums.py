"""Enums: a text is one of the values of its type."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from omnigraph.integrity.rows import RowRule, all_true, value_of
from omnigraph.integrity.violations import Breach, Rule
from omnigraph.model.types import EnumType, Scalar
from omnigraph.relational.expressions import Bindings, Known
from omnigraph.schema.catalog import SchemaType


def one_of(type_: SchemaType, name: str, enum: EnumType) -> RowRule:
    """Every text is one of the enum's values."""

    def is_broken(bindings: Bindings) -> exp.Expr:
        values = [bindings.tree(Known(value, Scalar.STRING)) for value in enum.values]
        return exp.Not(this=exp.In(this=value_of(name), expressions=values))

    def holds(values: pa.ChunkedArray) -> bool:
        return all_true(pc.is_in(values.drop_null(), value_set=pa.array(enum.values, pa.utf8())))

    breach = Breach(Rule.ENUM, type_.name, (name,))
    return RowRule(
        breach, is_broken, holds, Scalar.STRING, f"is not one of {', '.join(enum.values)}"
    )
