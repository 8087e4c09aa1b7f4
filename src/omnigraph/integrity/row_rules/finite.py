"""Finite numbers: the members of keys, and the numbers of vectors."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from omnigraph.integrity.rows import ITEM, RowRule, all_true, has_items, value_of
from omnigraph.integrity.violations import Breach, Rule
from omnigraph.model.types import Scalar, VectorType
from omnigraph.relational.expressions import Bindings, Known, Typed, compare, is_null, sql_type
from omnigraph.relational.numbers import Comparator
from omnigraph.schema.catalog import SchemaType


def finite_key(type_: SchemaType, name: str, kind: Scalar) -> RowRule:
    """A float that is part of a key is neither NaN nor infinite."""

    def is_broken(bindings: Bindings) -> exp.Expr:
        return _is_not_finite(Typed(value_of(name), kind), bindings)

    def holds(values: pa.ChunkedArray) -> bool:
        return all_true(pc.is_finite(values.drop_null()))

    breach = Breach(Rule.KEY, type_.name, (name,))
    complaint = "cannot be part of a key: it is not finite"
    return RowRule(breach, is_broken, holds, kind, complaint)


def finite_vector(type_: SchemaType, name: str, dimension: int) -> RowRule:
    """A vector has as many numbers as its type states, and all of them are finite."""

    def is_broken(bindings: Bindings) -> exp.Expr:
        # In the local engine vectors are arrays of fixed length, which few functions accept.
        numbers = exp.Cast(this=value_of(name), to=sql_type(VectorType(dimension)))
        item = Typed(exp.column(ITEM), Scalar.F32)
        wrong = exp.or_(is_null(item, bindings), _is_not_finite(item, bindings))
        length = exp.NEQ(this=exp.ArraySize(this=numbers), expression=exp.Literal.number(dimension))
        is_there = exp.Not(this=is_null(Typed(value_of(name), Scalar.F32), bindings))
        return exp.and_(is_there, exp.or_(length, has_items(numbers, wrong)))

    def holds(values: pa.ChunkedArray) -> bool:
        kind = values.type
        if not pa.types.is_fixed_size_list(kind) or kind.list_size != dimension:
            return False
        items = pc.list_flatten(values)
        return items.null_count == 0 and all_true(pc.is_finite(items))

    breach = Breach(Rule.TYPE, type_.name, (name,))
    return RowRule(breach, is_broken, holds, None, f"is not {dimension} finite numbers")


def _is_not_finite(value: Typed, bindings: Bindings) -> exp.Expr:
    infinite = [
        compare(Comparator.EQ, value, Known(bound, Scalar.F64), bindings)
        for bound in (float("inf"), float("-inf"))
    ]
    return exp.or_(exp.IsNan(this=value.tree.copy()), *infinite)
