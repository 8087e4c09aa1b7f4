"""Operands over columns of rows, and what filters say about single columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from datetime import date, datetime
from typing import Any, Final, TypeAlias, assert_never

from sqlglot import exp

from omnigraph.model.types import ListType, PropertyType, Scalar
from omnigraph.query import ir
from omnigraph.relational.expressions import (
    MIRROR,
    Known,
)
from omnigraph.relational.numbers import Comparator, rewrite_comparison
from omnigraph.relational.plans import BoundValue, IsOneOf, IsWithin

Scope: TypeAlias = "Mapping[tuple[str, str], exp.Expr]"
"""The expression of each (variable, column) in a row."""

COMPARATORS: Final[Mapping[ir.Operator, Comparator]] = {
    ir.Operator.EQ: Comparator.EQ,
    ir.Operator.NE: Comparator.NE,
    ir.Operator.LT: Comparator.LT,
    ir.Operator.LE: Comparator.LE,
    ir.Operator.GT: Comparator.GT,
    ir.Operator.GE: Comparator.GE,
}
"""The comparisons of two values of one kind."""

_BOUNDING: Final = COMPARATORS.keys() - {ir.Operator.NE}
"""The comparisons with a value that leave a range of values, or one."""

NOW: Final = "now()"
"""The source of a query's instant; no parameter has such a name."""


@dataclass(frozen=True, slots=True)
class Given:
    """The arguments of a run: the values of a query's parameters, and its instant.

    Attributes:
        unconverted: The parameters whose numbers and vectors enter no tree, or enter it as they are
            (`unconverted_parameters`).
    """

    values: Mapping[str, ir.Value]
    now: datetime
    unconverted: frozenset[str] = frozenset()

    def known(self, operand: ir.GivenValue) -> Known:
        """The value of an operand that depends on no row."""
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

    def rebind(self, bound: BoundValue) -> BoundValue:
        """The same placeholder with these values."""
        if bound.source is None:
            return bound
        value = self.now if bound.source == NOW else self.values[bound.source]
        return BoundValue(value, bound.type, bound.source)

    @property
    def shape(self) -> Hashable:
        """Everything a tree depends on: of late values only their presence, of others the value."""
        return tuple(
            (name, None if self._is_late(name) else (type(value), repr(value)))
            for name, value in sorted(self.values.items())
        )

    def _is_late(self, name: str) -> bool:
        """Whether a value enters a tree only as a placeholder.

        Nulls and lists change the tree's form, and so do most numbers: they are converted to the
        type of the other side of the comparison.
        """
        value = self.values[name]
        if isinstance(value, int | tuple) and name in self.unconverted:
            return True
        return isinstance(value, str | bool | bytes | date)


def unconverted_parameters(query: ir.ReadQuery) -> frozenset[str]:
    """The parameters that no tree depends on, whatever their values.

    They are whole numbers that are only compared with columns of their own type, and vectors that
    are only looked for.
    """
    all_uses = Counter(_parameters_in(query))
    exact = [each for part in query.selections for each in _exact_comparisons(part.match)]
    compared = Counter(_parameters_in(exact))
    vectors = Counter(_vectors_looked_for(query))
    names = {
        parameter.name
        for parameter in query.parameters
        if isinstance(parameter.type, Scalar)
        and parameter.type.is_integer
        and all_uses[parameter.name] == compared[parameter.name]
    }
    return frozenset(names | {name for name, uses in vectors.items() if uses == all_uses[name]})


def _vectors_looked_for(query: ir.ReadQuery) -> Iterator[str]:
    """The name of each parameter that is a vector, once per search for it."""
    for expression in (each for selection in query.selections for each in _results(selection)):
        for part in expression.rankings if isinstance(expression, ir.Rrf) else (expression,):
            if isinstance(part, ir.Nearest) and isinstance(part.query, ir.ParameterValue):
                yield part.query.name


def _results(selection: ir.Selection) -> Iterator[ir.Expression]:
    yield from (column.expression for column in selection.columns)
    yield from (key.expression for key in selection.order)


def _exact_comparisons(block: ir.Block) -> Iterator[ir.Comparison]:
    """The comparisons that use a number without converting it."""
    for condition in block.filters:
        if not isinstance(condition, ir.Comparison) or condition.operator not in COMPARATORS:
            continue
        has_column = ir.ColumnValue in (type(condition.left), type(condition.right))
        if has_column and condition.left.type == condition.right.type:
            yield condition
    for part in block.parts:
        yield from _exact_comparisons(part.block)


def _parameters_in(node: object) -> Iterator[str]:
    """The name of each parameter, once per occurrence in a part of a query."""
    if isinstance(node, ir.ParameterValue):
        yield node.name
    elif isinstance(node, tuple | list):
        for child in node:
            yield from _parameters_in(child)
    elif is_dataclass(node):
        for child in fields(node):
            yield from _parameters_in(getattr(node, child.name))


def texts_column(condition: ir.Filter, given: Given) -> ir.ColumnValue | None:
    """The column that a filter restricts to a list of texts; None for any other filter."""
    column, known = _known_comparison(condition, given)
    values = _items(known)
    return column if values and all(isinstance(value, str) for value in values) else None


def texts_allowed(condition: ir.Filter, given: Given) -> tuple[str, ...]:
    """The texts that such a filter allows, for these arguments."""
    _, known = _known_comparison(condition, given)
    return tuple(_items(known))


def compared_column(condition: ir.Filter) -> ir.ColumnValue | None:
    """The column that a filter compares with a value that is known before any row is read."""
    match condition:
        case ir.Comparison(ir.ColumnValue() as column, operator, right) if isinstance(
            right, ir.GivenValue
        ):
            return column if operator in _BOUNDING else None
        case ir.Comparison(left, operator, ir.ColumnValue() as column) if isinstance(
            left, ir.GivenValue
        ):
            is_bounding = operator in _BOUNDING or operator is ir.Operator.CONTAINS_ITEM
            return column if is_bounding else None
        case _:
            return None


def values_allowed(condition: ir.Filter, given: Given) -> IsOneOf | IsWithin | None:
    """The values that such a filter allows its column, for these arguments; None for any."""
    assert isinstance(condition, ir.Comparison), "it compares a column"
    left, operator, right = condition.left, condition.operator, condition.right
    if isinstance(left, ir.ColumnValue):
        assert isinstance(right, ir.GivenValue), "the other side is known"
        return _bound(left.type, COMPARATORS[operator], given.known(right))
    assert isinstance(right, ir.ColumnValue), "one side is a column"
    assert isinstance(left, ir.GivenValue), "the other side is known"
    known = given.known(left)
    if operator is ir.Operator.CONTAINS_ITEM:
        return _one_of(right.type, known)
    return _bound(right.type, MIRROR[COMPARATORS[operator]], known)


def _bound(type_: PropertyType, comparator: Comparator, known: Known) -> IsOneOf | IsWithin | None:
    value = known.value
    if isinstance(type_, Scalar) and type_.is_numeric and isinstance(value, int | float):
        outcome = rewrite_comparison(comparator, value, type_)
        if isinstance(outcome, bool):
            return None if outcome else IsOneOf(())
        comparator, value = outcome
    elif value is None or known.type != type_:
        return None
    if comparator is Comparator.EQ:
        return IsOneOf((value,))
    return IsWithin(comparator, value)


def _one_of(type_: PropertyType, known: Known) -> IsOneOf | None:
    """What a list allows; a column whose type is not that of the items may equal them otherwise."""
    assert isinstance(known.type, ListType), "it has items"
    if known.value is None or known.type.item != type_ or type_ in (Scalar.F32, Scalar.F64):
        return None
    return IsOneOf(tuple(known.value))


def _known_comparison(
    condition: ir.Filter, given: Given
) -> tuple[ir.ColumnValue, Known] | tuple[None, None]:
    if not isinstance(condition, ir.Comparison):
        return None, None
    left, operator, right = condition.left, condition.operator, condition.right
    if operator is ir.Operator.EQ and isinstance(left, ir.ColumnValue):
        return (left, given.known(right)) if isinstance(right, ir.GivenValue) else (None, None)
    may_be_turned = operator in (ir.Operator.EQ, ir.Operator.CONTAINS_ITEM)
    if may_be_turned and isinstance(right, ir.ColumnValue) and isinstance(left, ir.GivenValue):
        return right, given.known(left)
    return None, None


def _items(known: Known | None) -> tuple[Any, ...]:
    if known is None or known.value is None:
        return ()
    return tuple(known.value) if isinstance(known.type, ListType) else (known.value,)


PlainOperand = ir.ColumnValue | ir.GivenValue
"""A value that is not computed from others."""


def operands_of(condition: ir.Filter) -> tuple[PlainOperand, ...]:
    """The plain operands of a filter."""
    match condition:
        case ir.Comparison(left, _, right):
            return *plain_operands(left), *plain_operands(right)
        case ir.NullTest(operand):
            return plain_operands(operand)
        case ir.TextMatch(_, text, query):
            return id_of(text), query
        case ir.Junction(_, conditions):
            return tuple(each for part in conditions for each in operands_of(part))
        case ir.Inverse(inner):
            return operands_of(inner)
        case _:
            assert_never(condition)


def plain_operands(operand: ir.Operand) -> tuple[PlainOperand, ...]:
    """The operands that a value is computed from, or the operand itself."""
    match operand:
        case ir.Call(_, arguments):
            return tuple(plain for each in arguments for plain in plain_operands(each))
        case ir.Case(branches, otherwise):
            parts = [
                plain
                for condition, value in branches
                for plain in (*operands_of(condition), *plain_operands(value))
            ]
            return *parts, *plain_operands(otherwise)
        case ir.SubqueryValue():
            return (operand.column,)
        case _:
            return (operand,)


def columns_in(operand: ir.Operand) -> tuple[ir.ColumnValue, ...]:
    """The columns that a value depends on."""
    return tuple(each for each in plain_operands(operand) if isinstance(each, ir.ColumnValue))


def id_of(operand: ir.ColumnValue) -> ir.ColumnValue:
    """The id of the row that a column is of: what a search finds is joined by it."""
    return ir.ColumnValue(operand.variable, "id", Scalar.STRING, nullable=False)
