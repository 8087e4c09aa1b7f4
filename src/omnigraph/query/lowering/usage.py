"""Which columns of which variables a query uses, so that no other is read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from omnigraph.query import ir
from omnigraph.query.lowering.operands import id_of, operands_of, plain_operands

Use = tuple[str, str]
"""A variable and a column of it."""


def uses_of_block(block: ir.Block) -> Iterator[Use]:
    """The columns that the filters of a block and of those in it use, and the joining ids."""
    for condition in block.filters:
        yield from _uses(operands_of(condition))
    for part in block.parts:
        # What is no row has no id: its values are used one by one.
        yield from ((variable, "id") for variable in part.outer if ir.is_row(variable))
        yield from uses_of_block(part.block)
    for subquery in block.subqueries:
        yield from uses_of_argument(subquery)


def uses_of_argument(subquery: ir.Subquery) -> Iterator[Use]:
    """The columns that what a subquery aggregates is made of."""
    if subquery.argument is not None:
        yield from _uses(plain_operands(subquery.argument))


def uses_of_results(query: ir.Selection) -> Iterator[Use]:
    """The columns that the result, the order and its tie breakers use."""
    columns = [column.expression for column in query.columns]
    for expression in (*columns, *(key.expression for key in query.order)):
        yield from _uses(_operands(expression))
    yield from _uses(each for key in query.tie_breakers for each in plain_operands(key))


def _operands(expression: ir.Expression) -> tuple[ir.Operand, ...]:
    match expression:
        case ir.Aggregate(_, argument):
            return plain_operands(argument)
        case ir.Nearest(vector):
            return (id_of(vector),)
        case ir.Bm25(text):
            return (id_of(text),)
        case ir.ObjectValue(of, values):
            operands = (of, *(value for _, value in values))
            return tuple(each for operand in operands for each in plain_operands(operand))
        case ir.Rrf(rankings):
            return tuple(each for ranking in rankings for each in _operands(ranking))
        case _:
            return plain_operands(expression)


def _uses(operands: Iterable[ir.Operand]) -> Iterator[Use]:
    return (
        (operand.variable, operand.column)
        for operand in operands
        if isinstance(operand, ir.ColumnValue)
    )
