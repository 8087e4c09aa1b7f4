"""Operands and filters as expressions over the columns that rows have."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from datetime import date, datetime
from typing import Any, Final, TypeAlias, assert_never

from sqlglot import exp

from omnigraph.errors import ErrorCode, InvalidInputError
from omnigraph.model.types import ListType, Scalar
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
from omnigraph.relational.plans import BoundValue

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


NOW: Final = "now()"
"""The source of a query's instant; no parameter has such a name."""


@dataclass(frozen=True, slots=True)
class Given:
    """What a query is run with: the values of its parameters, and its instant.

    Attributes:
        numbers: The parameters whose numbers stand in a tree as they are (`unmoved_numbers`).
    """

    values: Mapping[str, ir.Value]
    now: datetime
    numbers: frozenset[str] = frozenset()

    def known(self, operand: ir.GivenValue) -> Known:
        """The value of an operand that needs no row."""
        match operand:
            case ir.ParameterValue(name, type_):
                value = self.values[name]
                return Known(value, type_, name if self._is_late(name) else None)
            case ir.Constant(value, type_):
                return Known(value, type_)
            case ir.Now():
                return Known(self.now, operand.type, NOW)
            case _:
                assert_never(operand)

    def side(self, operand: ir.Operand, scope: Scope) -> Side:
        """An operand over the columns of a row."""
        if isinstance(operand, ir.ColumnValue):
            return Typed(scope[operand.variable, operand.column], operand.type)
        return self.known(operand)

    def again(self, bound: BoundValue) -> BoundValue:
        """The same placeholder for these values."""
        if bound.source is None:
            return bound
        return replace(bound, value=self.now if bound.source == NOW else self.values[bound.source])

    @property
    def shape(self) -> Hashable:
        """What a tree depends on: of late values only that they are there, of others the value."""
        return tuple(
            (name, None if self._is_late(name) else (type(value), repr(value)))
            for name, value in sorted(self.values.items())
        )

    def _is_late(self, name: str) -> bool:
        """Whether a value stands in a tree as a placeholder and nothing else.

        Nulls and lists change the tree's form, and so do most numbers: they are moved into the type
        of what they are compared with.
        """
        value = self.values[name]
        if isinstance(value, int) and name in self.numbers:
            return True
        return isinstance(value, str | bool | bytes | date)


def unmoved_numbers(query: ir.ReadQuery) -> frozenset[str]:
    """The parameters that are whole numbers, and only compared with columns of their own type."""
    everywhere = Counter(_parameters_in(query))
    unmoved = Counter(_parameters_in([*_unmoving(query.match)]))
    return frozenset(
        each.name
        for each in query.parameters
        if isinstance(each.type, Scalar)
        and each.type.is_integer
        and everywhere[each.name] == unmoved[each.name]
    )


def _unmoving(block: ir.Block) -> Iterator[ir.Comparison]:
    """The comparisons that a number passes into as it is."""
    for each in block.filters:
        if not isinstance(each, ir.Comparison) or each.operator not in _COMPARATORS:
            continue
        has_column = ir.ColumnValue in (type(each.left), type(each.right))
        if has_column and each.left.type == each.right.type:
            yield each
    for negation in block.negations:
        yield from _unmoving(negation.block)


def _parameters_in(node: object) -> Iterator[str]:
    """The name of a parameter, once for each time that it stands in a part of a query."""
    if isinstance(node, ir.ParameterValue):
        yield node.name
    elif isinstance(node, tuple | list):
        for each in node:
            yield from _parameters_in(each)
    elif is_dataclass(node):
        for each in fields(node):
            yield from _parameters_in(getattr(node, each.name))


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


def texts_wanted(condition: ir.Filter, given: Given) -> ir.ColumnValue | None:
    """The column that must be one of a few texts, if that is what the filter says."""
    column, known = _wanted(condition, given)
    values = _listed(known)
    return column if values and all(isinstance(each, str) for each in values) else None


def texts_of(condition: ir.Filter, given: Given) -> tuple[str, ...]:
    """Those texts, for the values the query is run with now."""
    _, known = _wanted(condition, given)
    return tuple(_listed(known))


def _wanted(condition: ir.Filter, given: Given) -> tuple[ir.ColumnValue, Known] | tuple[None, None]:
    if not isinstance(condition, ir.Comparison):
        return None, None
    left, operator, right = condition.left, condition.operator, condition.right
    if operator is ir.Operator.EQ and isinstance(left, ir.ColumnValue):
        return (None, None) if isinstance(right, ir.ColumnValue) else (left, given.known(right))
    may_be_turned = operator in (ir.Operator.EQ, ir.Operator.CONTAINS_ITEM)
    if may_be_turned and isinstance(right, ir.ColumnValue) and not isinstance(left, ir.ColumnValue):
        return right, given.known(left)
    return None, None


def _listed(known: Known | None) -> tuple[Any, ...]:
    if known is None or known.value is None:
        return ()
    return tuple(known.value) if isinstance(known.type, ListType) else (known.value,)


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
    hint = "search functions come with a later release; use =, contains or starts_with"
    return InvalidInputError(message, hint=hint, code=ErrorCode.NOT_YET)
