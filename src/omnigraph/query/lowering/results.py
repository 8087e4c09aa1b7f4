"""Results over a table of rows: columns, groups and their order, as one selection."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, assert_never

from sqlglot import exp

from omnigraph.query import ir
from omnigraph.query.expressions import is_wide
from omnigraph.query.functions import AggregateFunction
from omnigraph.query.lowering.elimination import ColumnSum, adds_up
from omnigraph.query.lowering.expressions import value_tree
from omnigraph.query.lowering.operands import Scope
from omnigraph.query.lowering.row_tables import Rows
from omnigraph.query.lowering.state import LoweringState
from omnigraph.query.lowering.weights import counted, or_zero, sum_weights, summand
from omnigraph.relational.expressions import WIDE, sql_type, without_negative_zero
from omnigraph.relational.trees import column, named, table

ROWS: Final = "q"
"""The alias of the table of rows."""


@dataclass(slots=True)
class Results:
    """Columns, groups and order over a table of rows."""

    state: LoweringState
    rows: Rows
    inner: dict[ir.Operand, str] = field(default_factory=dict)

    @property
    def scope(self) -> Scope:
        """The values of variables, in a row."""
        return self.rows.scope(ROWS)

    def operand(self, expression: ir.Expression) -> exp.Expr:
        """The value of an expression for one row."""
        match expression:
            case ir.Nearest() | ir.Bm25() | ir.Rrf():
                return column(self.rows.scores[expression], ROWS)
            case ir.ObjectValue():
                return self._object(expression)
            case ir.Aggregate():
                message = "an aggregate makes the query a grouped one"
                raise AssertionError(message)
            case _:
                state = self.state
                return value_tree(expression, self.scope, state.given, state.builder.bindings)

    def _object(self, object_: ir.ObjectValue) -> exp.Expr:
        is_there = exp.Not(this=exp.Is(this=self.operand(object_.of), expression=exp.Null()))

        def if_there(tree: exp.Expr) -> exp.Expr:
            if not object_.nullable:
                return tree
            return exp.Case(ifs=[exp.If(this=is_there.copy(), true=tree)])

        # By place: names of values may differ in case only, which engines ignore. A value that is
        # never null in an object that may be is more than Spark can pass on.
        members = [
            exp.PropertyEQ(
                this=exp.to_identifier(f"f{place}"), expression=if_there(self.operand(value))
            )
            for place, (_, value) in enumerate(object_.values)
        ]
        return if_there(exp.Struct(expressions=members))

    def plain_select(self, query: ir.Selection, source: exp.Select) -> exp.Select:
        """One result row per row."""
        columns = [self.operand(column.expression) for column in query.columns]
        order = self._order(query, self.operand)
        tree = source.select(*map(_number_column, range(len(columns)), columns))
        return tree.order_by(*order) if order else tree

    def grouped_select(self, query: ir.Selection, source: exp.Select) -> exp.Select:
        """Group rows by the plain columns.

        Group keys and aggregated values are computed first, under generated names: a constant is
        then a group key like any other, and no engine mistakes it for the number of a column.
        """
        columns = [self._over_groups(column.expression) for column in query.columns]
        order = self._order(query, self._over_groups)
        inner_columns = [
            named(without_negative_zero(self.operand(operand), operand.type), name)
            for operand, name in self.inner.items()
        ]
        if self.rows.weight is not None:
            weights = (self.rows.weight, *self.rows.carried.values())
            inner_columns += [named(column(name, ROWS), name) for name in weights]
        inner = self.state.builder.define(
            source.select(*(inner_columns or [_number_column(0, exp.true())]))
        )
        tree = exp.select(*map(_number_column, range(len(columns)), columns)).from_(
            table(inner, ROWS)
        )
        keys = [self._over_groups(key) for key in dict.fromkeys(query.group_keys)]
        if keys:
            tree = tree.group_by(*keys)
        return tree.order_by(*order) if keys and order else tree

    def _order(
        self, query: ir.Selection, value: Callable[[ir.Expression], exp.Expr]
    ) -> list[exp.Ordered]:
        keys = [(key.expression, key.descending) for key in query.order]
        keys += [(operand, False) for operand in query.tie_breakers]
        return [
            _ordered(key, value(key), descending=descending)
            for key, descending in keys
            if _varies(key)
        ]

    def _over_groups(self, expression: ir.Expression) -> exp.Expr:
        match expression:
            case ir.Aggregate(function, argument):
                if self.rows.weight is not None and adds_up(expression):
                    return self._weighted(function, argument, column(self.rows.weight, ROWS))
                counts_rows = function is AggregateFunction.COUNT and not expression.distinct
                if counts_rows and not argument.nullable:
                    # What is never null need not be made: that of several types is a new text.
                    return exp.Count(this=exp.Star())
                return _aggregate(expression, self._inner(argument))
            case ir.Nearest() | ir.Bm25() | ir.Rrf() | ir.ObjectValue():
                return self.operand(expression)
            case _:
                return self._inner(expression)

    def _weighted(
        self, function: AggregateFunction, argument: ir.Operand, weight: exp.Expr
    ) -> exp.Expr:
        """A count, sum or average where each row stands for as many as its weight says."""
        match function:
            case AggregateFunction.COUNT:
                return or_zero(self._number_of(argument, weight))
            case AggregateFunction.SUM:
                return self._sum_of(argument, weight)
            case _:
                total = exp.Cast(
                    this=self._sum_of(argument, weight), to=exp.DataType.build("DOUBLE")
                )
                number = exp.Cast(
                    this=self._number_of(argument, weight), to=exp.DataType.build("DOUBLE")
                )
                return exp.Div(this=total, expression=number, typed=False, safe=False)

    def _number_of(self, argument: ir.Operand, weight: exp.Expr) -> exp.Expr:
        if not argument.nullable:
            return sum_weights(weight)
        if name := self._carried(argument, counts=True):
            return exp.Sum(this=column(name, ROWS))
        return exp.Sum(this=counted(self._inner(argument), weight))

    def _sum_of(self, argument: ir.Operand, weight: exp.Expr) -> exp.Expr:
        if name := self._carried(argument, counts=False):
            return exp.Sum(this=column(name, ROWS))
        return exp.Sum(this=summand(self._inner(argument), argument, weight))

    def _carried(self, argument: ir.Operand, *, counts: bool) -> str | None:
        """The column that messages have filled for an argument whose variable is eliminated."""
        if not isinstance(argument, ir.ColumnValue):
            return None
        return self.rows.carried.get(ColumnSum(argument, counts=counts))

    def _inner(self, operand: ir.Operand) -> exp.Column:
        name = self.inner.setdefault(operand, f"g{len(self.inner)}")
        return column(name, ROWS)


def _aggregate(aggregate: ir.Aggregate, value: exp.Expr) -> exp.Expr:
    argument = aggregate.argument

    def over(kind: type[exp.AggFunc], tree: exp.Expr) -> exp.Expr:
        return kind(this=exp.Distinct(expressions=[tree]) if aggregate.distinct else tree)

    match aggregate.function:
        case AggregateFunction.COUNT:
            return over(exp.Count, value)
        case AggregateFunction.MIN:
            return exp.Min(this=value)
        case AggregateFunction.MAX:
            return exp.Max(this=value)
        case AggregateFunction.SUM:
            return over(exp.Sum, summand(value, argument, None))
        case AggregateFunction.AVG:
            total = over(exp.Sum, summand(value, argument, None))
            total = exp.Cast(this=total, to=exp.DataType.build("DOUBLE"))
            return exp.Div(this=total, expression=over(exp.Count, value), typed=False, safe=False)
        case AggregateFunction.COLLECT:
            is_value = exp.Not(this=exp.Is(this=value.copy(), expression=exp.Null()))
            items = exp.Filter(this=over(exp.ArrayAgg, value), expression=exp.Where(this=is_value))
            nothing = exp.Cast(this=exp.Array(), to=sql_type(aggregate.type))
            if is_wide(argument):
                nothing = exp.Cast(this=exp.Array(), to=exp.DataType.build(f"ARRAY<{WIDE}>"))
            listed = exp.Coalesce(this=items, expressions=[nothing])
            return exp.Anonymous(this="LIST_SORT", expressions=[listed])
        case _:
            assert_never(aggregate.function)


def _ordered(key: ir.Expression, tree: exp.Expr, *, descending: bool) -> exp.Ordered:
    # What has no score is the worst, from whichever end one looks.
    nulls_first = not descending and not isinstance(key, ir.Ranking)
    return exp.Ordered(this=tree, desc=descending, nulls_first=nulls_first)


def _varies(expression: ir.Expression) -> bool:
    """Whether rows can differ in it; sorting by anything else has no effect."""
    return not isinstance(expression, ir.ParameterValue | ir.Constant | ir.Now)


def _number_column(place: int, tree: exp.Expr) -> exp.Alias:
    return named(tree, f"c{place}")
