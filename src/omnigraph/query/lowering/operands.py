"""Operands and filters as expressions over the columns that rows have."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final, TypeAlias, assert_never

from sqlglot import exp

from omnigraph.errors import ErrorCode, InvalidInputError
from omnigraph.model.types import ListType
from omnigraph.query import ir
from omnigraph.relational.expressions import (
    Bindings,
    Known,
    Side,
    Typed,
    compare,
    contains_item,
    is_null,
)
from omnigraph.relational.numbers import Comparator

Scope: TypeAlias = "Mapping[tuple[str, str], exp.Expr]"
"""Where a row has the value of (variable, column)."""

_COMPARATORS: Final[Mapping[ir.Operator, Comparator]] = {
    ir.Operator.EQ: Comparator.EQ,
    ir.Operator.NE: Comparator.NE,
    ir.Operator.LT: Comparator.LT,
    ir.Operator.LE: Comparator.LE,
    ir.Operator.GT: Comparator.GT,
    ir.Operator.GE: Comparator.GE,
}


@dataclass(frozen=True, slots=True)
class Given:
    """What a query is run with: the values of its parameters, and its instant."""

    values: Mapping[str, ir.Value]
    now: datetime

    def known(self, operand: ir.GivenValue) -> Known:
        """The value of an operand that needs no row."""
        match operand:
            case ir.ParameterValue(name, type_):
                return Known(self.values[name], type_)
            case ir.Constant(value, type_):
                return Known(value, type_)
            case ir.Now():
                return Known(self.now, operand.type)
            case _:
                assert_never(operand)

    def side(self, operand: ir.Operand, scope: Scope) -> Side:
        """An operand over the columns of a row."""
        if isinstance(operand, ir.ColumnValue):
            return Typed(scope[operand.variable, operand.column], operand.type)
        return self.known(operand)


def filter_tree(condition: ir.Filter, scope: Scope, given: Given, bindings: Bindings) -> exp.Expr:
    """A condition that is true of exactly the rows the filter keeps."""
    match condition:
        case ir.Comparison(left, operator, right):
            sides = given.side(left, scope), given.side(right, scope)
            return _comparison(operator, *sides, bindings)
        case ir.NullTest(operand, negated):
            test = is_null(given.side(operand, scope), bindings)
            return exp.Not(this=test) if negated else test
        case ir.TextMatch(test):
            raise not_yet(test)
        case _:
            assert_never(condition)


def _comparison(operator: ir.Operator, left: Side, right: Side, bindings: Bindings) -> exp.Expr:
    match operator:
        case ir.Operator.CONTAINS_ITEM:
            return contains_item(left, right, bindings)
        case ir.Operator.CONTAINS_TEXT:
            return exp.Contains(this=bindings.tree(left), expression=bindings.tree(right))
        case ir.Operator.STARTS_WITH:
            return exp.StartsWith(this=bindings.tree(left), expression=bindings.tree(right))
        case _:
            return compare(_COMPARATORS[operator], left, right, bindings)


def texts_wanted(
    condition: ir.Filter, given: Given
) -> tuple[ir.ColumnValue, tuple[str, ...]] | None:
    """The column and the texts it must be one of, if that is what the filter says."""
    if not isinstance(condition, ir.Comparison):
        return None
    match condition.operator, condition.right:
        case (ir.Operator.EQ, ir.ColumnValue()) | (ir.Operator.CONTAINS_ITEM, _):
            left, right = condition.right, condition.left
        case ir.Operator.EQ, _:
            left, right = condition.left, condition.right
        case _:
            return None
    if not isinstance(left, ir.ColumnValue) or isinstance(right, ir.ColumnValue):
        return None
    known = given.known(right)
    values = known.value if isinstance(known.type, ListType) else (known.value,)
    if values is None or not all(isinstance(each, str) for each in values):
        return None
    return left, tuple(values)


def operands_of(condition: ir.Filter) -> tuple[ir.Operand, ...]:
    """The operands a filter looks at."""
    match condition:
        case ir.Comparison(left, _, right):
            return left, right
        case ir.NullTest(operand):
            return (operand,)
        case ir.TextMatch(_, text, query):
            return text, query
        case _:
            assert_never(condition)


def not_yet(what: str) -> InvalidInputError:
    """What to raise for a part of the language that no engine runs so far."""
    message = f"{what}(…) is understood, but cannot be run yet"
    hint = "search functions come with a later release; use = , contains or starts_with"
    return InvalidInputError(message, hint=hint, code=ErrorCode.NOT_YET)
