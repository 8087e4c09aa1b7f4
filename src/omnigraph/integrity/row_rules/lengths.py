"""Lengths: `@length` bounds the characters of a text, and the items of a list."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from omnigraph.integrity.rows import RowRule, value_of
from omnigraph.integrity.violations import Breach, Rule
from omnigraph.model.types import ListType, Scalar
from omnigraph.relational.expressions import Bindings
from omnigraph.schema.catalog import Length, SchemaType


def in_length(type_: SchemaType, length: Length) -> RowRule:
    """The length of every text or list is within the bounds, both included.

    A character is a Unicode code point, in every engine and in Python.
    """
    low, high = length.low, length.high
    is_list = isinstance(type_.property_named(length.property).type, ListType)

    def is_broken(bindings: Bindings) -> exp.Expr:  # noqa: ARG001  # a condition's
        value = value_of(length.property)
        count = exp.ArraySize(this=value) if is_list else exp.Length(this=value)
        outside: list[exp.Expr] = []
        if low is not None:
            outside.append(exp.LT(this=count, expression=exp.Literal.number(low)))
        if high is not None:
            outside.append(exp.GT(this=count.copy(), expression=exp.Literal.number(high)))
        # Spark may return -1 for the length of a null list.
        is_there = exp.Not(this=exp.Is(this=value.copy(), expression=exp.Null()))
        return exp.and_(is_there, exp.or_(*outside))

    def holds(values: pa.ChunkedArray) -> bool:
        counts = pc.list_value_length(values) if is_list else pc.utf8_length(values)
        extremes = pc.min_max(counts).as_py()
        shortest, longest = extremes["min"], extremes["max"]
        if shortest is None:
            return True
        return bool((low is None or low <= shortest) and (high is None or longest <= high))

    breach = Breach(Rule.LENGTH, type_.name, (length.property,))
    noun = "items" if is_list else "characters"
    complaint = f"must have {_format_bounds(low, high)} {noun}"
    return RowRule(breach, is_broken, holds, None if is_list else Scalar.STRING, complaint)


def _format_bounds(low: int | None, high: int | None) -> str:
    if low is None:
        return f"at most {high}"
    if high is None:
        return f"at least {low}"
    return str(low) if low == high else f"{low} to {high}"
