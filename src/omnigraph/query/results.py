"""Results: the columns, groups, order and limit of a read query."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from omnigraph.model.tables import TableKey
from omnigraph.model.types import Scalar
from omnigraph.query import ast, ir
from omnigraph.query.blocks import resolve_block
from omnigraph.query.codes import QueryCode
from omnigraph.query.operands import can_be_sorted, has_order, operand
from omnigraph.query.printer import print_expression
from omnigraph.query.scope import Scope
from omnigraph.query.searches import ranking
from omnigraph.schema.catalog import Catalog

_LIMIT_MAX: Final = 2**63 - 1
_LIMITED: Final = frozenset({ast.SearchName.NEAREST, ast.SearchName.RRF})


def resolve_read(
    query: ast.QueryNode, read: ast.Read, parameters: tuple[ir.Parameter, ...], scope: Scope
) -> ir.ReadQuery:
    """What a read query means; if something was reported, only good for finding more."""
    match = resolve_block(read.clauses, scope)
    if not scope.variables:
        message = "the match binds no variable"
        scope.report.add(QueryCode.NOTHING_BOUND, query.name.span, message, "write $x: Type")
    columns = _columns(read.projections, scope)
    order = [key for each in read.orderings if (key := _order_key(each, columns, scope))]
    limit = _limit(read, scope)
    variables = tuple(sorted(scope.variables))
    ids = (ir.ColumnValue(name, "id", Scalar.STRING, nullable=False) for name in variables)
    resolved = ir.ReadQuery(
        query.name.text,
        query.description,
        query.instruction,
        parameters,
        match,
        variables,
        columns,
        tuple(order),
        tuple(ids),
        limit,
        frozenset(_tables(match, scope.catalog)),
    )
    return _grouped(resolved) if resolved.is_grouped else resolved


def _grouped(query: ir.ReadQuery) -> ir.ReadQuery:
    return replace(query, tie_breakers=query.group_keys)


def _columns(projections: Sequence[ast.Projection], scope: Scope) -> tuple[ir.Column, ...]:
    keyed = any(not isinstance(each.expression, ast.AggregateCall) for each in projections)
    grouped = any(isinstance(each.expression, ast.AggregateCall) for each in projections)
    columns: dict[str, ir.Column] = {}
    for each in projections:
        name = each.alias.text if each.alias else print_expression(each.expression, sigil="")
        expression = _expression(each.expression, scope, keyed=keyed)
        if grouped and expression is not None:
            _check_group_key(expression, each.expression, scope)
        if name in columns:
            span = each.alias.span if each.alias else each.expression.span
            message = f"two columns are called {name[:200]}"
            hint = "name one of them with 'as'"
            scope.report.add(QueryCode.DUPLICATE_NAME, span, message, hint)
        elif expression is not None:
            columns[name] = ir.Column(name, expression)
        else:
            # Reported already; the name is kept so that an order by it is not reported too.
            columns[name] = ir.Column(name, ir.Constant(None, Scalar.STRING))
    return tuple(columns.values())


def _check_group_key(found: ir.Expression, written: ast.Expression, scope: Scope) -> None:
    match found:
        case ir.Aggregate():
            return
        case ir.Nearest() | ir.Bm25() | ir.Rrf():
            message = "a ranking of rows has no meaning for groups of them"
            scope.report.add(QueryCode.CALL_PLACE, written.span, message)
        case _:
            if not can_be_sorted(found.type):
                message = f"rows cannot be grouped by {found.type}"
                scope.report.add(QueryCode.AGGREGATE_ARGUMENT, written.span, message)


def _expression(written: ast.Expression, scope: Scope, *, keyed: bool) -> ir.Expression | None:
    match written:
        case ast.AggregateCall():
            return _aggregate(written, scope, keyed=keyed)
        case ast.SearchCall():
            return ranking(written, scope)
        case ast.Null():
            message = "a column cannot be null and nothing else"
            scope.report.add(QueryCode.NULL_VALUE, written.span, message)
            return None
        case _:
            return operand(written, scope)


def _aggregate(call: ast.AggregateCall, scope: Scope, *, keyed: bool) -> ir.Aggregate | None:
    argument = operand(call.argument, scope)
    if argument is None:
        return None
    function = ir.AggregateFunction(call.function)
    type_ = argument.type
    result = _result_type(function, argument)
    if result is None or (call.distinct and not can_be_sorted(type_)):
        word = "distinct " if call.distinct else ""
        message = f"{function}({word}…) does not take {type_}"
        scope.report.add(QueryCode.AGGREGATE_ARGUMENT, call.argument.span, message)
        return None
    # Without keys there is one group even of no rows, and nothing but a count is known of that.
    nullable = function is not ir.AggregateFunction.COUNT and (argument.nullable or not keyed)
    return ir.Aggregate(function, argument, call.distinct, result, nullable)


def _result_type(function: ir.AggregateFunction, argument: ir.Operand) -> Scalar | None:
    """The type of an aggregate; None if the function does not take such an argument."""
    type_ = argument.type
    if function is ir.AggregateFunction.COUNT:
        return Scalar.I64
    if not isinstance(type_, Scalar) or not has_order(type_):
        return None
    if function in (ir.AggregateFunction.MIN, ir.AggregateFunction.MAX):
        return type_
    if not type_.is_numeric:
        return None
    if type_.is_float or function is ir.AggregateFunction.AVG:
        return Scalar.F64
    return Scalar.U64 if type_ in (Scalar.U32, Scalar.U64) else Scalar.I64


def _order_key(
    written: ast.Ordering, columns: tuple[ir.Column, ...], scope: Scope
) -> ir.OrderKey | None:
    grouped = any(isinstance(each.expression, ir.Aggregate) for each in columns)
    found = _ordered(written.expression, columns, scope)
    if found is None:
        return None
    descending = written.direction is ast.SortDirection.DESC
    wrong: tuple[str, str] | None = None
    if not can_be_sorted(found.type):
        wrong = f"rows cannot be sorted by {found.type}", ""
    elif isinstance(found, ir.Aggregate) and not grouped:
        wrong = "return has no aggregate, so there are no groups", "return an aggregate"
    elif grouped and not isinstance(found, ir.Aggregate) and not _is_column(found, columns):
        wrong = "a group has no such value", "order by a column of return, or by an aggregate"
    elif isinstance(written.expression, ast.SearchCall):
        descending = not isinstance(found, ir.Nearest)
        best = ast.SortDirection.DESC if descending else ast.SortDirection.ASC
        if written.direction not in (None, best):
            wrong = "a ranking starts with the best", "leave the direction out"
    if wrong is not None:
        scope.report.add(QueryCode.ORDER, written.expression.span, *wrong)
        return None
    return ir.OrderKey(found, descending)


def _is_column(found: ir.Expression, columns: tuple[ir.Column, ...]) -> bool:
    return any(each.expression == found for each in columns)


def _ordered(
    written: ast.Expression, columns: tuple[ir.Column, ...], scope: Scope
) -> ir.Expression | None:
    if isinstance(written, ast.Alias):
        for each in columns:
            if each.name == written.name.text:
                return each.expression
        name = written.name.text
        message = f"return has no column {name[:200]}"
        known = (each.name for each in columns)
        scope.report.add_misspelt(QueryCode.UNKNOWN_NAME, name, written.span, message, known)
        return None
    keyed = any(not isinstance(each.expression, ir.Aggregate) for each in columns)
    return _expression(written, scope, keyed=keyed)


def _limit(read: ast.Read, scope: Scope) -> int | ir.ParameterValue | None:
    written = read.limit
    if written is None:
        _check_unlimited(read, scope)
        return None
    if isinstance(written, ast.Integer):
        if 0 <= written.value <= _LIMIT_MAX:
            return written.value
        message = "a limit is a whole number from 0 up"
        scope.report.add(QueryCode.LIMIT, written.span, message)
        return None
    found = operand(written, scope)
    match found:
        case ir.ParameterValue(name, Scalar() as type_, nullable):
            if type_.is_integer and not nullable:
                scope.uses.bound(name, 0)
                return found
            spelling = f"{type_}?" if nullable else f"{type_}"
            message, hint = f"${name} is {spelling}", "declare it as I64"
        case None:
            return None
        case _:
            message, hint = f"${written.name} is not a number", "a limit is a number or a parameter"
    scope.report.add(QueryCode.LIMIT, written.span, message, hint)
    return None


def _check_unlimited(read: ast.Read, scope: Scope) -> None:
    projected = [each.expression for each in read.projections]
    for each in [*projected, *(key.expression for key in read.orderings)]:
        if isinstance(each, ast.SearchCall) and each.function in _LIMITED:
            message = f"{each.function} needs a limit: every row is near to some degree"
            scope.report.add(QueryCode.LIMIT, each.span, message, "write limit 10")
            return


def _tables(block: ir.Block, catalog: Catalog) -> Iterator[TableKey]:
    yield from (catalog.node_type(each.type_name).table_key for each in block.nodes)
    yield from (catalog.edge_type(each.edge_type).table_key for each in block.traversals)
    for negation in block.negations:
        yield from _tables(negation.block, catalog)
