"""Subqueries: resolves `exists { … }`, `count { … }` and the like where their values are used."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from omnigraph.model.types import Scalar
from omnigraph.query import ast, ir
from omnigraph.query.blocks import resolve_block
from omnigraph.query.codes import QueryCode
from omnigraph.query.expressions import can_be_summed, kept_magnitude
from omnigraph.query.functions import AggregateFunction
from omnigraph.query.operands import operand
from omnigraph.query.results import aggregate_type
from omnigraph.query.scope import Scope


def resolve_subquery(syntax: ast.Existence | ast.Subquery, scope: Scope) -> ir.SubqueryValue | None:
    """The value of a subquery for a row of the scope's block; None if an error was reported.

    Equal subqueries of one block are one, so that rows can be sorted by a column that has one.
    """
    inner = scope.inner(syntax.clauses)
    block = resolve_block(syntax.clauses, inner)
    subquery: ir.Subquery | None
    if isinstance(syntax, ast.Existence):
        if not inner.outer:
            message = "this 'exists' uses no variable from outside, so it is the same for all rows"
            scope.report.add(QueryCode.NOTHING_BOUND, syntax.span, message, scope.outside_hint())
            return None
        subquery = ir.Subquery("", None, None, block, (), Scalar.BOOL, nullable=False)
    else:
        subquery = _aggregate(syntax, block, inner)
    if subquery is None:
        return None
    if not inner.outer and scope.row is not None and scope.row_variable == ir.ROW:
        message = "this block uses nothing of the row, so its value is the same for all rows"
        scope.report.add(QueryCode.SAME_FOR_ALL, syntax.span, message, scope.outside_hint())
    block = replace(block, subqueries=tuple(inner.subqueries))
    return _value(replace(subquery, block=block, outer=tuple(sorted(inner.outer))), scope)


def _aggregate(syntax: ast.Subquery, block: ir.Block, inner: Scope) -> ir.Subquery | None:
    function = AggregateFunction(syntax.function)
    if syntax.value is None:
        return ir.Subquery("", function, None, block, (), Scalar.I64, nullable=False)
    argument = operand(syntax.value, inner)
    if argument is None:
        return None
    type_ = aggregate_type(function, argument)
    if not isinstance(type_, Scalar):
        message = f"{function} {{ … }} does not take {argument.type}"
        inner.report.add(QueryCode.AGGREGATE_ARGUMENT, syntax.value.span, message)
        return None
    if function is AggregateFunction.SUM and not can_be_summed(argument):
        message = "the sum may have more than 38 digits"
        hint = "compute with numbers of narrower types, or with floats"
        inner.report.add(QueryCode.NUMBER_RANGE, syntax.value.span, message, hint)
        return None
    nullable = function is not AggregateFunction.COUNT
    return ir.Subquery("", function, argument, block, (), type_, nullable)


def _value(subquery: ir.Subquery, scope: Scope) -> ir.SubqueryValue:
    """The value of a subquery, which the scope then has."""
    name = _name_of(subquery, scope.subqueries)
    if name is None:
        # Blocks side by side may use one name, those around each other have different depths.
        name = f"#{scope.depth}.{len(scope.subqueries)}"
        scope.subqueries.append(replace(subquery, name=name))
    return ir.SubqueryValue(name, subquery.type, subquery.nullable, _magnitude(subquery))


def _magnitude(subquery: ir.Subquery) -> int | None:
    function, argument = subquery.function, subquery.argument
    if function is None or argument is None:
        return None
    type_, nullable = subquery.type, subquery.nullable
    aggregate = ir.Aggregate(function, argument, distinct=False, type=type_, nullable=nullable)
    return kept_magnitude(aggregate)


def _name_of(subquery: ir.Subquery, known: Sequence[ir.Subquery]) -> str | None:
    return next((each.name for each in known if replace(each, name="") == subquery), None)
