"""Lowers a typed read query and its arguments to one plan."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final, assert_never

from sqlglot import exp

from omnigraph.query import ir
from omnigraph.query.lowering.elimination import ColumnSum, adds_up, eliminate
from omnigraph.query.lowering.keys import key_lookup
from omnigraph.query.lowering.matching import MatchingTemplate, match_pattern
from omnigraph.query.lowering.operands import Given, Scope
from omnigraph.query.lowering.rows import Rows, block_rows
from omnigraph.query.lowering.scores import rankings_of, score_rows
from omnigraph.query.lowering.searching import rebind, searches_texts
from omnigraph.query.lowering.state import LoweringState
from omnigraph.query.lowering.usage import uses_of_block, uses_of_results
from omnigraph.query.lowering.weights import counted, or_zero, sum_weights, summand
from omnigraph.relational.expressions import without_negative_zero
from omnigraph.relational.plans import Lookup, OutputColumn, Plan, Reduction
from omnigraph.relational.trees import column, named, table
from omnigraph.schema.catalog import Catalog

_ROWS: Final = "q"


@dataclass(frozen=True, slots=True)
class Template:
    """A lowered query, valid for all values of one `Given.shape`.

    Attributes:
        unseeded: The plan for the values that the query was lowered with, without `seeds`.
        seeds: Reductions that depend on the values; None for values that reduce nothing.
    """

    unseeded: Plan
    seeds: tuple[Callable[[Given], Reduction | None], ...]
    lookup: Callable[[Given], Lookup] | None = None
    matching: MatchingTemplate | None = None

    def plan(self, given: Given) -> Plan:
        """The plan whose rows are the query's answer, in its order.

        Raises:
            InvalidParameterError: a search looks for nothing that could be found.
        """
        plan = self.unseeded
        return replace(
            plan,
            relations=rebind(plan.relations, given),
            values={name: given.rebind(bound) for name, bound in plan.values.items()},
            reductions=(*filter(None, (seed(given) for seed in self.seeds)), *plan.reductions),
            lookup=None if self.lookup is None else self.lookup(given),
            matching=None if self.matching is None else self.matching.matching(given),
        )


def lower(query: ir.ReadQuery, catalog: Catalog, given: Given) -> Template:
    """Lower a query for all values that have the shape of the given ones."""
    state = LoweringState(catalog, given)
    uses = frozenset([*uses_of_block(query.match), *uses_of_results(query)])
    elimination = eliminate(query)
    block = query.match if elimination is None else elimination.block
    rows = block_rows(state, block, uses, elimination=elimination)
    limit = _limit(query, given.values)
    rows = score_rows(query, state, rows, limit)
    plan = _results_plan(query, state, rows, limit)
    lookup = key_lookup(query, catalog, given)
    matching = None
    # What a search finds is a relation, which arrays do not have.
    searches = bool(rankings_of(query)) or searches_texts(query.match)
    if query.match.traversals and not searches:
        results = partial(_results_plan, query, limit=limit)
        matching = match_pattern(query, LoweringState(catalog, given), limit, results)
    return Template(plan, tuple(state.seeds), lookup, matching)


def _results_plan(query: ir.ReadQuery, state: LoweringState, rows: Rows, limit: int | None) -> Plan:
    """The plan of the query's results over a table of its rows."""
    results = _Results(state, rows)
    source = exp.Select().from_(table(rows.table, _ROWS))
    tree = (
        results.grouped_select(query, source)
        if query.is_grouped
        else results.plain_select(query, source)
    )
    if limit is not None:
        tree = tree.limit(limit)
    columns = (
        OutputColumn(column_.name, column_.expression.type, column_.expression.nullable)
        for column_ in query.columns
    )
    return state.builder.plan(tree, columns)


@dataclass(slots=True)
class _Results:
    """Columns, groups and order over a table of rows."""

    state: LoweringState
    rows: Rows
    inner: dict[ir.Operand, str] = field(default_factory=dict)

    @property
    def scope(self) -> Scope:
        return self.rows.scope(_ROWS)

    def operand(self, expression: ir.Expression) -> exp.Expr:
        match expression:
            case ir.Nearest() | ir.Bm25() | ir.Rrf():
                return column(self.rows.scores[expression], _ROWS)
            case ir.Aggregate():
                message = "an aggregate makes the query a grouped one"
                raise AssertionError(message)
            case ir.ColumnValue() | ir.ParameterValue() | ir.Constant() | ir.Now():
                return self.state.builder.bindings.tree(
                    self.state.given.side(expression, self.scope)
                )
            case _:
                assert_never(expression)

    def plain_select(self, query: ir.ReadQuery, source: exp.Select) -> exp.Select:
        """One result row per row."""
        columns = [self.operand(column.expression) for column in query.columns]
        order = self._order(query, self.operand)
        tree = source.select(*map(_number_column, range(len(columns)), columns))
        return tree.order_by(*order) if order else tree

    def grouped_select(self, query: ir.ReadQuery, source: exp.Select) -> exp.Select:
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
            inner_columns += [named(column(name, _ROWS), name) for name in weights]
        inner = self.state.builder.define(
            source.select(*(inner_columns or [_number_column(0, exp.true())]))
        )
        tree = exp.select(*map(_number_column, range(len(columns)), columns)).from_(
            table(inner, _ROWS)
        )
        keys = [self._over_groups(key) for key in dict.fromkeys(query.group_keys)]
        if keys:
            tree = tree.group_by(*keys)
        return tree.order_by(*order) if keys and order else tree

    def _order(
        self, query: ir.ReadQuery, value: Callable[[ir.Expression], exp.Expr]
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
            case ir.Aggregate(function, argument, distinct):
                if self.rows.weight is not None and adds_up(expression):
                    return self._weighted(function, argument, column(self.rows.weight, _ROWS))
                return _aggregate(function, self._inner(argument), argument, distinct=distinct)
            case ir.Nearest() | ir.Bm25() | ir.Rrf():
                return self.operand(expression)
            case ir.ColumnValue() | ir.ParameterValue() | ir.Constant() | ir.Now():
                return self._inner(expression)
            case _:
                assert_never(expression)

    def _weighted(
        self, function: ir.AggregateFunction, argument: ir.Operand, weight: exp.Expr
    ) -> exp.Expr:
        """A count, sum or average where each row stands for as many as its weight says."""
        match function:
            case ir.AggregateFunction.COUNT:
                return or_zero(self._number_of(argument, weight))
            case ir.AggregateFunction.SUM:
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
            return exp.Sum(this=column(name, _ROWS))
        return exp.Sum(this=counted(self._inner(argument), weight))

    def _sum_of(self, argument: ir.Operand, weight: exp.Expr) -> exp.Expr:
        if name := self._carried(argument, counts=False):
            return exp.Sum(this=column(name, _ROWS))
        return exp.Sum(this=summand(self._inner(argument), argument.type, weight))

    def _carried(self, argument: ir.Operand, *, counts: bool) -> str | None:
        """The column that messages have filled for an argument whose variable is eliminated."""
        if not isinstance(argument, ir.ColumnValue):
            return None
        return self.rows.carried.get(ColumnSum(argument, counts=counts))

    def _inner(self, operand: ir.Operand) -> exp.Column:
        name = self.inner.setdefault(operand, f"g{len(self.inner)}")
        return column(name, _ROWS)


def _aggregate(
    function: ir.AggregateFunction, value: exp.Expr, argument: ir.Operand, *, distinct: bool
) -> exp.Expr:
    def over(kind: type[exp.AggFunc], tree: exp.Expr) -> exp.Expr:
        return kind(this=exp.Distinct(expressions=[tree]) if distinct else tree)

    match function:
        case ir.AggregateFunction.COUNT:
            return over(exp.Count, value)
        case ir.AggregateFunction.MIN:
            return exp.Min(this=value)
        case ir.AggregateFunction.MAX:
            return exp.Max(this=value)
        case ir.AggregateFunction.SUM:
            return over(exp.Sum, summand(value, argument.type, None))
        case ir.AggregateFunction.AVG:
            total = over(exp.Sum, summand(value, argument.type, None))
            total = exp.Cast(this=total, to=exp.DataType.build("DOUBLE"))
            return exp.Div(this=total, expression=over(exp.Count, value), typed=False, safe=False)
        case _:
            assert_never(function)


def _ordered(key: ir.Expression, tree: exp.Expr, *, descending: bool) -> exp.Ordered:
    # What has no score is the worst, from whichever end one looks.
    nulls_first = not descending and not isinstance(key, ir.Ranking)
    return exp.Ordered(this=tree, desc=descending, nulls_first=nulls_first)


def _varies(expression: ir.Expression) -> bool:
    """Whether rows can differ in it; sorting by anything else has no effect."""
    return not isinstance(expression, ir.ParameterValue | ir.Constant | ir.Now)


def _number_column(place: int, tree: exp.Expr) -> exp.Alias:
    return named(tree, f"c{place}")


def _limit(query: ir.ReadQuery, values: Mapping[str, ir.Value]) -> int | None:
    if not isinstance(query.limit, ir.ParameterValue):
        return query.limit
    value = values[query.limit.name]
    assert value is None or isinstance(value, int), "parameters.bind checks this"
    return value
