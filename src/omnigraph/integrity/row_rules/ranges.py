"""Ranges: `@range` bounds the numbers, dates and instants of a property."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from omnigraph.integrity.rows import RowRule, all_true, value_of
from omnigraph.integrity.violations import Breach, Rule
from omnigraph.model.types import Scalar
from omnigraph.relational.expressions import Bindings, Known, Typed, compare
from omnigraph.relational.numbers import Comparator
from omnigraph.schema.catalog import Range, SchemaType, Value


def in_range(type_: SchemaType, range_: Range) -> RowRule:
    """Every value is within the bounds, both included; NaN is within none."""
    kind = type_.property_named(range_.property).type
    assert isinstance(kind, Scalar), "only numbers and dates have a range"
    low, high = range_.low, range_.high

    def is_broken(bindings: Bindings) -> exp.Expr:
        value = Typed(value_of(range_.property), kind)
        outside: list[exp.Expr] = []
        if low is not None:
            outside.append(compare(Comparator.LT, value, Known(low, kind), bindings))
        if high is not None:
            outside.append(compare(Comparator.GT, value, Known(high, kind), bindings))
        if kind.is_float:
            # Engines order NaN above every number: without an upper bound, only this excludes it.
            outside.append(exp.IsNan(this=value.tree.copy()))
        return exp.or_(*outside)

    def holds(values: pa.ChunkedArray) -> bool:
        if kind.is_float and not all_true(pc.is_finite(values.drop_null())):
            return False
        extremes = pc.min_max(values).as_py()
        least, greatest = extremes["min"], extremes["max"]
        if least is None:
            return True
        return bool((low is None or low <= least) and (high is None or greatest <= high))

    breach = Breach(Rule.RANGE, type_.name, (range_.property,))
    complaint = f"is not in {_format_bound(low)}..{_format_bound(high)}"
    return RowRule(breach, is_broken, holds, kind, complaint)


def _format_bound(bound: Value | None) -> str:
    return "" if bound is None else str(bound)
