"""Required values: columns that may not be null, and lists that may not have null items."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from omnigraph.integrity.rows import ITEM, RowRule, has_items, value_of
from omnigraph.integrity.violations import Breach, Rule
from omnigraph.model.types import Scalar
from omnigraph.relational.expressions import Bindings, Typed, is_null
from omnigraph.schema.catalog import SchemaType


def required_value(type_: SchemaType, name: str) -> RowRule:
    """No value of a column is null."""

    def is_broken(bindings: Bindings) -> exp.Expr:
        return is_null(Typed(value_of(name), Scalar.STRING), bindings)

    def holds(values: pa.ChunkedArray) -> bool:
        return bool(values.null_count == 0)

    breach = Breach(Rule.REQUIRED, type_.name, (name,))
    return RowRule(breach, is_broken, holds, None, "may not be null")


def required_items(type_: SchemaType, name: str) -> RowRule:
    """No list of a column has an item that is null."""

    def is_broken(bindings: Bindings) -> exp.Expr:  # noqa: ARG001  # a condition's
        is_missing = exp.Is(this=exp.column(ITEM), expression=exp.Null())
        return has_items(value_of(name), is_missing)

    def holds(values: pa.ChunkedArray) -> bool:
        return bool(pc.list_flatten(values).null_count == 0)

    breach = Breach(Rule.REQUIRED, type_.name, (name,))
    return RowRule(breach, is_broken, holds, None, "has an item that is null")
