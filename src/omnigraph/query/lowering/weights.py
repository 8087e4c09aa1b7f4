"""Weights: how many rows one row stands for, and sums over those rows, as exact expressions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from sqlglot import exp

from omnigraph.model.types import Scalar
from omnigraph.query import ir
from omnigraph.query.expressions import is_wide
from omnigraph.query.lowering.elimination import ColumnSum
from omnigraph.relational.expressions import WIDE

WEIGHT: Final = "w"
"""The column of a table of rows or of a message that holds the number of rows."""

_WIDE: Final = WIDE
"""The type of products and sums of weights: both engines refuse what does not fit it."""


def product(weights: Sequence[exp.Expr]) -> exp.Expr | None:
    """The product of weights; None for none, which is 1."""
    if len(weights) <= 1:
        return weights[0].copy() if weights else None
    first, *others = (_cast(weight, _WIDE) for weight in weights)
    tree: exp.Expr = first
    for other in others:
        tree = exp.Mul(this=tree, expression=other)
    return tree


def sum_weights(weight: exp.Expr | None) -> exp.Expr:
    """The sum of weights over a group; without a weight, its number of rows."""
    if weight is None:
        return exp.Count(this=exp.Star())
    return exp.Sum(this=_cast(weight, _WIDE))


def summand(value: exp.Expr, argument: ir.Operand, weight: exp.Expr | None) -> exp.Expr:
    """The value times a weight, in a type whose sums neither round nor wrap; null stays null."""
    is_whole = isinstance(argument.type, Scalar) and argument.type.is_integer
    whole = _WIDE if is_wide(argument) else "DECIMAL(20, 0)"
    tree = _cast(value, whole if is_whole else "DOUBLE")
    if weight is None:
        return tree
    return exp.Mul(this=tree, expression=_cast(weight, _WIDE if is_whole else "DOUBLE"))


def counted(value: exp.Expr, weight: exp.Expr | None) -> exp.Expr:
    """The weight where the value is not null; null elsewhere."""
    is_value = exp.Not(this=exp.Is(this=value.copy(), expression=exp.Null()))
    one = exp.Literal.number(1) if weight is None else weight.copy()
    return exp.Case(ifs=[exp.If(this=is_value, true=_cast(one, _WIDE))])


def own(carried: ColumnSum, value: exp.Expr, weight: exp.Expr | None) -> exp.Expr:
    """What one row adds to what is carried, where its variable is."""
    if carried.counts:
        return counted(value, weight)
    return summand(value, carried.argument, weight)


def passed_on(carried: ColumnSum, total: exp.Expr, weight: exp.Expr | None) -> exp.Expr:
    """The same where a message has brought it, and other messages multiply it."""
    if weight is None:
        return total.copy()
    is_float = not carried.counts and carried.argument.type in (Scalar.F32, Scalar.F64)
    kind = "DOUBLE" if is_float else _WIDE
    return exp.Mul(this=_cast(total, kind), expression=_cast(weight, kind))


def or_zero(total: exp.Expr) -> exp.Expr:
    """A sum of counts: zero, not null, for no rows."""
    return exp.Coalesce(this=total, expressions=[exp.Literal.number(0)])


def or_one(weight: exp.Expr) -> exp.Expr:
    """The weight of what an optional part adds: one, not null, where it adds nothing."""
    return exp.Coalesce(this=weight, expressions=[exp.Literal.number(1)])


def _cast(tree: exp.Expr, kind: str) -> exp.Cast:
    return exp.Cast(this=tree.copy(), to=exp.DataType.build(kind))
