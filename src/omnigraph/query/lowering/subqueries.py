"""Subqueries as values: the rows of their blocks grouped by the rows that they are values of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from sqlglot import exp

from omnigraph.model.types import Scalar
from omnigraph.query import ir
from omnigraph.query.expressions import is_whole
from omnigraph.query.lowering.elimination import ColumnSum
from omnigraph.query.lowering.results import ROWS, Results
from omnigraph.query.lowering.row_tables import Rows
from omnigraph.query.lowering.state import LoweringState
from omnigraph.query.lowering.usage import Use
from omnigraph.query.lowering.weights import or_zero
from omnigraph.relational.expressions import WIDE
from omnigraph.relational.trees import column, named, table

_VALUES: Final = "x"
"""The alias of the table of values."""


def grouped_query(subquery: ir.Subquery, keys: Sequence[Use]) -> ir.ReadQuery:
    """The query whose rows are the keys of what is outside, and the value, where there is a row."""
    columns = [
        # The type makes no difference: keys are grouped and joined as they are.
        ir.Column(name, ir.ColumnValue(variable, name, Scalar.STRING, nullable=False))
        for variable, name in keys
    ]
    value: ir.Expression = ir.Constant(value=True, type=Scalar.BOOL)
    if subquery.function is not None:
        value = ir.Aggregate(
            subquery.function,
            subquery.argument or ir.Constant(1, Scalar.I64),
            distinct=False,
            type=subquery.type,
            nullable=subquery.nullable,
        )
    return ir.ReadQuery(
        name=subquery.name,
        description=None,
        instruction=None,
        parameters=(),
        match=subquery.block,
        variables=(),
        columns=(*columns, ir.Column(ir.VALUE, value)),
        order=(),
        tie_breakers=(),
        limit=None,
        reads=frozenset(),
        is_distinct=subquery.function is None,
    )


def join_value(
    state: LoweringState, rows: Rows, inner: Rows, subquery: ir.Subquery, keys: Sequence[Use]
) -> Rows:
    """The rows, each with the value of the subquery for it.

    Args:
        inner: The rows of the subquery's block, as its `grouped_query` uses them.
        keys: The columns by which they belong to those outside.
    """
    found, value = _values(state, inner, subquery, keys)
    name = f"v{len(rows.columns)}"
    query = exp.select(
        *(column(each, "k") for each in rows.values),
        named(_or_nothing(subquery, value), name),
    ).from_(table(rows.table, "k"))
    if keys:
        on = rows.same(keys, found, ours="k", theirs=_VALUES)
        query = query.join(table(found.table, _VALUES), on=on, join_type="left")
    else:
        query = query.join(table(found.table, _VALUES), join_type="cross")
    columns = {**rows.columns, (subquery.name, ir.VALUE): name}
    return replace(rows, table=state.builder.define(query), columns=columns)


def _values(
    state: LoweringState, inner: Rows, subquery: ir.Subquery, keys: Sequence[Use]
) -> tuple[Rows, exp.Expr]:
    """A table that has the keys of what is outside once, and the value in a row of it."""
    if (value := _message(inner, subquery)) is not None:
        return inner, value
    source = exp.Select().from_(table(inner.table, ROWS))
    grouped = Results(state, inner).grouped_select(grouped_query(subquery, keys), source)
    columns = {use: f"c{place}" for place, use in enumerate(keys)}
    return Rows(state.builder.define(grouped), columns, {}), column(f"c{len(keys)}", _VALUES)


def _message(inner: Rows, subquery: ir.Subquery) -> exp.Expr | None:
    """The value in a row of the inner rows, if they have each id once and what it needs."""
    if not subquery.outer or not inner.is_distinct or inner.weight is None:
        return None
    weight, argument = column(inner.weight, _VALUES), subquery.argument
    match subquery.function:
        case None:
            return exp.Not(this=exp.Is(this=weight, expression=exp.Null()))
        case ir.AggregateFunction.COUNT if argument is None or not argument.nullable:
            return weight
        case ir.AggregateFunction.SUM if isinstance(argument, ir.ColumnValue):
            name = inner.carried.get(ColumnSum(argument, counts=False))
            return None if name is None else column(name, _VALUES)
        case _:
            return None


def _or_nothing(subquery: ir.Subquery, value: exp.Expr) -> exp.Expr:
    """The value, or that of no rows; a whole number is as wide as it may become."""
    if subquery.function is None:
        return exp.Coalesce(this=value, expressions=[exp.false()])
    if subquery.function is ir.AggregateFunction.COUNT:
        value = or_zero(value)
    if is_whole(subquery.type):
        return exp.Cast(this=value, to=exp.DataType.build(WIDE))
    return value
