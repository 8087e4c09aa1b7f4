"""Filters as expressions that are true for exactly the rows they keep, and computed values.

A row is kept or not, so an expression need not tell what is unknown from what is false, as long as
no `NOT` is above it. So inversions are moved inwards, to the comparisons, which have opposites.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from typing import Final, assert_never

from sqlglot import exp

from omnigraph.model.types import ListType, PropertyType, Scalar
from omnigraph.query import ir
from omnigraph.query.expressions import is_native
from omnigraph.query.functions import ValueFunction
from omnigraph.query.lowering.operands import COMPARATORS, Given, Scope
from omnigraph.relational.expressions import (
    WIDE,
    Bindings,
    Known,
    Side,
    Typed,
    compare,
    contains_item,
    is_null,
    sql_type,
    without_negative_zero,
)

_OPPOSITE: Final = {
    ir.Operator.EQ: ir.Operator.NE,
    ir.Operator.NE: ir.Operator.EQ,
    ir.Operator.LT: ir.Operator.GE,
    ir.Operator.GE: ir.Operator.LT,
    ir.Operator.GT: ir.Operator.LE,
    ir.Operator.LE: ir.Operator.GT,
}
"""What holds of two values that are not null if an operator does not: their order is total."""

_OTHER_CONNECTIVE: Final = {
    ir.Connective.AND: ir.Connective.OR,
    ir.Connective.OR: ir.Connective.AND,
}


def filter_tree(
    condition: ir.Filter,
    scope: Scope,
    given: Given,
    bindings: Bindings,
    find: Callable[[ir.TextMatch], exp.Expr] | None = None,
) -> exp.Expr:
    """A condition that is true for exactly the rows the filter keeps.

    Args:
        find: Makes a condition of a test of texts, which is a relation of the plan.
    """
    return _Trees(scope, given, bindings, find).tree(condition)


def value_tree(operand: ir.Operand, scope: Scope, given: Given, bindings: Bindings) -> exp.Expr:
    """The value of an operand for one row."""
    return bindings.tree(_Trees(scope, given, bindings, None).side(operand))


class _Trees:
    """Makes expressions of conditions and values over one scope."""

    def __init__(
        self,
        scope: Scope,
        given: Given,
        bindings: Bindings,
        find: Callable[[ir.TextMatch], exp.Expr] | None,
    ) -> None:
        self._scope, self._given, self._bindings, self._find = scope, given, bindings, find

    def tree(self, condition: ir.Filter) -> exp.Expr:
        match condition:
            case ir.Comparison(left, operator, right):
                return self._comparison(operator, self.side(left), self.side(right))
            case ir.NullTest(operand, negated):
                test = is_null(self.side(operand), self._bindings)
                return exp.Not(this=test) if negated else test
            case ir.TextMatch():
                assert self._find is not None, "a test of texts is a relation"
                return self._find(condition)
            case ir.Junction(connective, conditions):
                return _joined(connective, [self.tree(each) for each in conditions])
            case ir.Inverse(inner):
                return self._inverse(inner)
            case _:
                assert_never(condition)

    def _inverse(self, condition: ir.Filter) -> exp.Expr:
        """True for exactly the rows for which the condition is false, and not unknown."""
        match condition:
            case ir.Comparison(left, operator, right) if operator in _OPPOSITE:
                return self.tree(ir.Comparison(left, _OPPOSITE[operator], right))
            case ir.Comparison(left, _, right):
                known = [ir.NullTest(side, negated=True) for side in (left, right)]
                found = exp.Coalesce(this=self.tree(condition), expressions=[exp.false()])
                return exp.and_(*map(self.tree, known), exp.Not(this=found))
            case ir.NullTest(operand, negated):
                return self.tree(ir.NullTest(operand, not negated))
            case ir.Junction(connective, conditions):
                parts = [self._inverse(each) for each in conditions]
                return _joined(_OTHER_CONNECTIVE[connective], parts)
            case ir.Inverse(inner):
                return self.tree(inner)
            case ir.TextMatch():
                message = "the compiler refuses a test of texts that is inverted"
                raise AssertionError(message)
            case _:
                assert_never(condition)

    def side(self, operand: ir.Operand) -> Side:
        """An operand over the columns of a row."""
        match operand:
            case ir.ColumnValue(variable, name, type_):
                is_wide = operand.magnitude is not None
                return Typed(self._scope[variable, name], type_, is_wide=is_wide)
            case ir.SubqueryValue(name, type_):
                return Typed(self._scope[name, ir.VALUE], type_, is_wide=_is_whole(type_))
            case ir.Call():
                sides = [self.side(each) for each in operand.arguments]
                return _CallTree(operand, sides, self._bindings).typed()
            case ir.Case(branches, otherwise, type_):
                ifs = [
                    exp.If(this=self.tree(condition), true=self._as(value, type_))
                    for condition, value in branches
                ]
                tree = exp.Case(ifs=ifs, default=self._as(otherwise, type_))
                return Typed(tree, type_, is_wide=_is_whole(type_))
            case _:
                return self._given.known(operand)

    def _as(self, operand: ir.Operand, type_: PropertyType) -> exp.Expr:
        return _converted(self.side(operand), type_, self._bindings)

    def _comparison(self, operator: ir.Operator, left: Side, right: Side) -> exp.Expr:
        match operator:
            case ir.Operator.CONTAINS_ITEM:
                return contains_item(left, right, self._bindings)
            case ir.Operator.CONTAINS_TEXT:
                trees = self._bindings.tree(left), self._bindings.tree(right)
                return exp.Contains(this=trees[0], expression=trees[1])
            case ir.Operator.STARTS_WITH:
                trees = self._bindings.tree(left), self._bindings.tree(right)
                return exp.StartsWith(this=trees[0], expression=trees[1])
            case _:
                return compare(COMPARATORS[operator], left, right, self._bindings)


def _joined(connective: ir.Connective, trees: list[exp.Expr]) -> exp.Expr:
    return exp.and_(*trees) if connective is ir.Connective.AND else exp.or_(*trees)


class _CallTree:
    """The expression of one function call."""

    def __init__(self, call: ir.Call, sides: list[Side], bindings: Bindings) -> None:
        self._call, self._sides, self._bindings = call, sides, bindings
        self._type, self._is_native = call.type, is_native(call)

    def typed(self) -> Typed:
        """The expression; whole numbers are as wide as they may become."""
        is_wide = _is_whole(self._type) and not self._is_native
        return Typed(self._tree(self._call.function), self._type, is_wide=is_wide)

    @property
    def _kind(self) -> exp.DataType:
        """The type that the result is computed in, and its operands if they are numbers."""
        return sql_type(self._type) if self._is_native else _wide_type(self._type)

    def _tree(self, function: ValueFunction) -> exp.Expr:
        match function:
            case ValueFunction.ADD | ValueFunction.SUBTRACT if self._sides[0].type is Scalar.DATE:
                return self._days(function)
            case ValueFunction.ADD | ValueFunction.SUBTRACT if (
                self._sides[0].type is Scalar.DATETIME
            ):
                return self._instants(function)
            case ValueFunction.ADD | ValueFunction.SUBTRACT | ValueFunction.MULTIPLY:
                return _ARITHMETIC[function](this=self._number(0), expression=self._number(1))
            case ValueFunction.DIVIDE:
                quotient = exp.Div(
                    this=self._number(0), expression=self._number(1), typed=False, safe=False
                )
                return self._unless_zero(quotient)
            case ValueFunction.REMAINDER:
                return self._unless_zero(exp.Mod(this=self._number(0), expression=self._number(1)))
            case ValueFunction.ABS:
                return _function("ABS", self._number(0))
            case ValueFunction.ROUND:
                rounded = _function("ROUND", self._number(0))
                return without_negative_zero(rounded, Scalar.F64)
            case ValueFunction.FLOOR | ValueFunction.CEIL:
                return self._towards(function)
            case ValueFunction.COALESCE:
                is_number = _is_whole(self._type) or self._type is Scalar.F64
                values = self._number if is_number else self._plain
                first, *others = map(values, range(len(self._sides)))
                return exp.Coalesce(this=first, expressions=others)
            case ValueFunction.SUBSTRING:
                return self._substring()
            case ValueFunction.TRIM:
                spaces = self._bindings.tree(Known(_SPACES, Scalar.STRING))
                return exp.Trim(this=self._plain(0), expression=spaces, position="BOTH")
            case ValueFunction.CONCAT:
                tree, *others = (self._plain(place) for place in range(len(self._sides)))
                for other in others:
                    tree = exp.DPipe(this=tree, expression=other, safe=True)
                return exp.Paren(this=tree)
            case ValueFunction.REPLACE:
                return _function("REPLACE", *(self._plain(place) for place in range(3)))
            case ValueFunction.LOWER:
                return exp.Lower(this=self._plain(0))
            case ValueFunction.UPPER:
                return exp.Upper(this=self._plain(0))
            case ValueFunction.LENGTH if isinstance(self._sides[0].type, ListType):
                return self._cast(exp.ArraySize(this=self._plain(0)))
            case (
                ValueFunction.LENGTH | ValueFunction.YEAR | ValueFunction.MONTH | ValueFunction.DAY
            ):
                return self._cast(_function(function.upper(), self._plain(0)))
            case _:
                assert_never(function)

    def _plain(self, place: int) -> exp.Expr:
        return self._bindings.tree(self._sides[place])

    def _number(self, place: int) -> exp.Expr:
        """An operand in the type of the result: one wide enough, or a float."""
        return exp.Paren(this=self._cast(self._bindings.tree(self._sides[place])))

    def _cast(self, tree: exp.Expr) -> exp.Expr:
        return exp.Cast(this=tree, to=self._kind)

    def _unless_zero(self, tree: exp.Expr) -> exp.Expr:
        is_zero = exp.EQ(this=self._number(1), expression=exp.Literal.number(0))
        nothing = self._cast(exp.Null())
        return exp.Case(ifs=[exp.If(this=is_zero, true=nothing)], default=tree)

    def _days(self, function: ValueFunction) -> exp.Expr:
        second = self._sides[1]
        if second.type is Scalar.DATE:
            return self._cast(
                exp.DateDiff(this=self._plain(0), expression=self._plain(1), unit=exp.var("DAY"))
            )
        days = _converted(second, Scalar.I64, self._bindings)
        if function is ValueFunction.SUBTRACT:
            days = exp.Neg(this=exp.Paren(this=days))
        start = self._plain(0)
        # Beyond these numbers of days no date is left, and engines would overflow.
        fits = exp.Between(
            this=exp.Paren(this=days),
            low=_days_to(date.min, start),
            high=_days_to(date.max, start),
        )
        few = exp.Cast(this=days.copy(), to=exp.DataType.build("INT"))
        moved = exp.DateAdd(this=start.copy(), expression=few, unit=exp.var("DAY"))
        moved_date = exp.Cast(this=moved, to=sql_type(Scalar.DATE))
        return exp.Case(ifs=[exp.If(this=fits, true=moved_date)])

    def _instants(self, function: ValueFunction) -> exp.Expr:
        start = exp.UnixMicros(this=self._plain(0))
        second = self._sides[1]
        if second.type is Scalar.DATETIME:
            between = exp.Paren(
                this=exp.Sub(this=start, expression=exp.UnixMicros(this=self._plain(1)))
            )
            floats = (
                exp.Cast(this=each, to=sql_type(Scalar.F64))
                for each in (between, exp.Literal.number(_DAY_MICROSECONDS))
            )
            return exp.Div(this=next(floats), expression=next(floats), typed=False, safe=False)
        days = exp.Paren(this=_converted(second, Scalar.I64, self._bindings))
        moved = _ARITHMETIC[function](
            this=_wide(start),
            expression=exp.Mul(this=days, expression=_wide(exp.Literal.number(_DAY_MICROSECONDS))),
        )
        fits = exp.Between(
            this=exp.Paren(this=moved),
            low=_wide(exp.Literal.number(_INSTANT_MIN)),
            high=_wide(exp.Literal.number(_INSTANT_MAX)),
        )
        # What does not fit is not computed by one engine, and null to the other.
        few = exp.Case(
            ifs=[exp.If(this=fits, true=exp.Cast(this=moved.copy(), to=sql_type(Scalar.I64)))]
        )
        return _function("MAKE_TIMESTAMPTZ", few)

    def _towards(self, function: ValueFunction) -> exp.Expr:
        number = self._number(0)
        # Greater floats are whole already, and Spark has no whole numbers for them.
        has_fraction = exp.LT(
            this=_function("ABS", number), expression=exp.Literal.number(_WHOLE_FLOATS_MIN)
        )
        whole = exp.Cast(this=_function(function.upper(), number.copy()), to=sql_type(Scalar.F64))
        tree = exp.Case(ifs=[exp.If(this=has_fraction, true=whole)], default=number.copy())
        return without_negative_zero(tree, Scalar.F64)

    def _substring(self) -> exp.Expr:
        text, first, *length = self._sides
        least = (1, 0)
        numbers = [_converted(side, Scalar.I64, self._bindings) for side in (first, *length)]
        fits = [
            exp.GTE(this=exp.Paren(this=number.copy()), expression=exp.Literal.number(low))
            for number, low in zip(numbers, least, strict=False)
        ]
        # No text has as many characters as the greatest number has. The least ones are replaced as
        # well, because an engine may cast a number that the condition excludes.
        places = [
            exp.Cast(
                this=exp.Greatest(
                    this=exp.Least(this=number, expressions=[exp.Literal.number(_PLACE_MAX)]),
                    expressions=[exp.Literal.number(0)],
                ),
                to=exp.DataType.build("INT"),
            )
            for number in numbers
        ]
        tree = _function("SUBSTRING", self._bindings.tree(text), *places)
        return exp.Case(ifs=[exp.If(this=exp.and_(*fits), true=tree)])


_ARITHMETIC: Final[dict[ValueFunction, type[exp.Binary]]] = {
    ValueFunction.ADD: exp.Add,
    ValueFunction.SUBTRACT: exp.Sub,
    ValueFunction.MULTIPLY: exp.Mul,
}
_WHOLE_FLOATS_MIN: Final = 2**52
_DAY_MICROSECONDS: Final = 86_400_000_000
_INSTANT_MIN: Final = -62_135_596_800_000_000
_INSTANT_MAX: Final = 253_402_300_799_999_999
"""The first and the last instant of the years 1 to 9999, in microseconds since 1970."""

_SPACES: Final = " \t\n\r"
_PLACE_MAX: Final = 2**31 - 2


def _converted(side: Side, type_: PropertyType, bindings: Bindings) -> exp.Expr:
    """A value as one of a computed type."""
    tree = bindings.tree(side)
    if _is_whole(type_) or type_ is Scalar.F64:
        return exp.Cast(this=tree, to=_wide_type(type_))
    return tree


def _wide_type(type_: PropertyType) -> exp.DataType:
    return exp.DataType.build(WIDE) if _is_whole(type_) else sql_type(type_)


def _wide(tree: exp.Expr) -> exp.Expr:
    return exp.Cast(this=tree, to=exp.DataType.build(WIDE))


def _days_to(limit: date, start: exp.Expr) -> exp.Expr:
    """The number of days from a date to the first or the last of all."""
    bound = exp.Cast(this=exp.Literal.string(limit.isoformat()), to=sql_type(Scalar.DATE))
    return exp.DateDiff(this=bound, expression=start.copy(), unit=exp.var("DAY"))


def _function(name: str, *arguments: exp.Expr) -> exp.Expr:
    """A function that both engines have with the same meaning, by its name in DuckDB.

    `engine.spark.dialect` has the names that differ.
    """
    return exp.Anonymous(this=name, expressions=list(arguments))


def _is_whole(type_: PropertyType) -> bool:
    return isinstance(type_, Scalar) and type_.is_integer
