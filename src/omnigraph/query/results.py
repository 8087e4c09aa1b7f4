"""Results: the columns, groups, order and limit of a read query."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from omnigraph.model.types import ListType, Scalar, StructType
from omnigraph.query import ast, ir
from omnigraph.query.codes import QueryCode
from omnigraph.query.functions import AggregateFunction
from omnigraph.query.objects import object_of, properties_of
from omnigraph.query.operands import can_be_sorted, has_order, operand
from omnigraph.query.printer import print_expression
from omnigraph.query.scope import Scope
from omnigraph.query.searches import ranking

_LIMIT_MAX: Final = 2**63 - 1
_NEEDS_LIMIT: Final = frozenset({ast.SearchName.NEAREST, ast.SearchName.RRF})


@dataclass(frozen=True, slots=True)
class ResolvedResults:
    """What `return` and `with` have in common: what becomes of the rows of a match.

    Attributes:
        projections: The columns as they are written, one for each of `columns` unless an error was
            reported.
    """

    projections: tuple[PlainProjection, ...]
    columns: tuple[ir.Column, ...]
    order: tuple[ir.OrderKey, ...]
    tie_breakers: tuple[ir.Operand, ...]
    limit: int | ir.ParameterValue | None
    skip: int | ir.ParameterValue | None


def resolve_results(part: ast.Read | ast.Stage, scope: Scope) -> ResolvedResults:
    """Resolve what follows a match; if an error was reported, it serves only to find more."""
    projections = [each for syntax in part.projections for each in _expanded(syntax, scope)]
    columns = _columns(projections, scope, distinct=part.distinct)
    word = "with" if isinstance(part, ast.Stage) else "return"
    order = [
        key
        for ordering in part.orderings
        if (key := _order_key(ordering, columns, scope, distinct=part.distinct, word=word))
    ]
    if part.limit is None:
        _check_unlimited(part, scope)
    ids = map(scope.id_of, scope.all_variables())
    return ResolvedResults(
        tuple(projections),
        columns,
        tuple(order),
        _tie_breakers(columns, (*ids, *scope.kept_values()), distinct=part.distinct),
        _count(part.limit, scope),
        _count(part.skip, scope),
    )


def _tie_breakers(
    columns: Sequence[ir.Column], values: tuple[ir.Operand, ...], *, distinct: bool
) -> tuple[ir.Operand, ...]:
    """The values that tell rows apart: of groups, their keys."""
    expressions = [column.expression for column in columns]
    if distinct or any(isinstance(each, ir.Aggregate) for each in expressions):
        return tuple(each for each in expressions if isinstance(each, ir.Operand))
    return values


@dataclass(frozen=True, slots=True)
class PlainProjection:
    """One column as it is written."""

    expression: ast.Expression | ast.ObjectOf
    alias: ast.Name | None


def _expanded(projection: ast.Projection, scope: Scope) -> Iterator[PlainProjection]:
    """The column, or those that `$x.*` stands for."""
    if not isinstance(projection.expression, ast.AllOf):
        yield PlainProjection(projection.expression, projection.alias)
        return
    for value in properties_of(projection.expression, scope):
        yield PlainProjection(value, None)


def _columns(
    projections: Sequence[PlainProjection], scope: Scope, *, distinct: bool
) -> tuple[ir.Column, ...]:
    has_keys = any(
        not isinstance(projection.expression, ast.AggregateCall) for projection in projections
    )
    is_grouped = distinct or any(
        isinstance(projection.expression, ast.AggregateCall) for projection in projections
    )
    columns: dict[str, ir.Column] = {}
    for projection in projections:
        name = projection.alias.text if projection.alias else _default_name(projection.expression)
        expression = _expression(projection.expression, scope, has_keys=has_keys)
        if is_grouped and expression is not None:
            _check_group_key(expression, projection.expression, scope)
        if name in columns:
            span = projection.alias.span if projection.alias else projection.expression.span
            message = f"two columns are called {name[:200]}"
            hint = "name one of them with 'as'"
            scope.report.add(QueryCode.DUPLICATE_NAME, span, message, hint)
        elif expression is not None:
            columns[name] = ir.Column(name, expression)
        else:
            # Already reported; keep the name, so that an order by it is not reported too.
            columns[name] = ir.Column(name, ir.Constant(None, Scalar.STRING))
    return tuple(columns.values())


def _default_name(expression: ast.Expression | ast.ObjectOf) -> str:
    if isinstance(expression, ast.ObjectOf):
        return expression.variable.name
    return print_expression(expression, sigil="")


def _check_group_key(
    expression: ir.Expression, syntax: ast.Expression | ast.ObjectOf, scope: Scope
) -> None:
    match expression:
        case ir.Aggregate():
            return
        case ir.Nearest() | ir.Bm25() | ir.Rrf():
            message = "a ranking of rows has no meaning for groups of them"
            scope.report.add(QueryCode.CALL_PLACE, syntax.span, message)
        case ir.ObjectValue():
            message = "rows cannot be grouped or made distinct by an object"
            hint = "return its values as columns"
            scope.report.add(QueryCode.AGGREGATE_ARGUMENT, syntax.span, message, hint)
        case _:
            if not can_be_sorted(expression.type):
                message = f"rows cannot be grouped or made distinct by {expression.type}"
                scope.report.add(QueryCode.AGGREGATE_ARGUMENT, syntax.span, message)


def _expression(
    syntax: ast.Expression | ast.ObjectOf, scope: Scope, *, has_keys: bool
) -> ir.Expression | None:
    match syntax:
        case ast.ObjectOf():
            return object_of(syntax, scope)
        case ast.AggregateCall():
            return _aggregate(syntax, scope, has_keys=has_keys)
        case ast.SearchCall():
            return ranking(syntax, scope)
        case ast.Null():
            message = "a column cannot be null and nothing else"
            scope.report.add(QueryCode.NULL_VALUE, syntax.span, message)
            return None
        case _:
            return operand(syntax, scope)


def _aggregate(call: ast.AggregateCall, scope: Scope, *, has_keys: bool) -> ir.Aggregate | None:
    if isinstance(call.argument, ast.Star):
        # Each row has a value for each variable that is not optional, so any of them counts rows.
        names = [name for name in scope.all_variables() if not scope.is_optional(name)]
        some = ir.Constant(1, Scalar.I64)
        argument: ir.Operand | None = scope.id_of(names[0]) if names else some
    else:
        argument = operand(call.argument, scope)
    if argument is None:
        return None
    function = AggregateFunction(call.function)
    type_ = argument.type
    result = aggregate_type(function, argument)
    if result is None or (call.distinct and not can_be_sorted(type_)):
        word = "distinct " if call.distinct else ""
        message = f"{function}({word}…) does not take {type_}"
        scope.report.add(QueryCode.AGGREGATE_ARGUMENT, call.argument.span, message)
        return None
    # Without keys there is one group even of no rows, for which all aggregates but two are null.
    is_filled = function in (AggregateFunction.COUNT, AggregateFunction.COLLECT)
    nullable = not is_filled and (argument.nullable or not has_keys)
    return ir.Aggregate(function, argument, call.distinct, result, nullable)


def aggregate_type(function: AggregateFunction, argument: ir.Operand) -> Scalar | ListType | None:
    """The type of an aggregate; None if the function does not accept the argument's type."""
    type_ = argument.type
    if function is AggregateFunction.COUNT:
        return Scalar.I64
    if function is AggregateFunction.COLLECT and can_be_sorted(type_):
        return ListType(type_ if isinstance(type_, Scalar) else Scalar.STRING)
    if not isinstance(type_, Scalar) or not has_order(type_):
        return None
    if function in (AggregateFunction.MIN, AggregateFunction.MAX):
        return type_
    if not type_.is_numeric:
        return None
    if type_.is_float or function is AggregateFunction.AVG:
        return Scalar.F64
    return Scalar.U64 if type_ in (Scalar.U32, Scalar.U64) else Scalar.I64


def _order_key(
    syntax: ast.Ordering,
    columns: tuple[ir.Column, ...],
    scope: Scope,
    *,
    distinct: bool,
    word: str,
) -> ir.OrderKey | None:
    is_grouped = distinct or any(isinstance(column.expression, ir.Aggregate) for column in columns)
    expression = _order_expression(syntax.expression, columns, scope, word)
    if expression is None:
        return None
    descending = syntax.direction is ast.SortDirection.DESC
    fault: tuple[str, str] | None = None
    if isinstance(expression.type, StructType) or not can_be_sorted(expression.type):
        fault = f"rows cannot be sorted by {expression.type}", ""
    elif isinstance(expression, ir.Aggregate) and not _has_aggregate(columns):
        verb = "keep" if word == "with" else "return"
        fault = f"{word} has no aggregate, so there are no groups", f"{verb} an aggregate"
    elif (
        is_grouped
        and not isinstance(expression, ir.Aggregate)
        and not _is_column(expression, columns)
    ):
        fault = "a group has no such value", f"order by a column of {word}, or by an aggregate"
    elif isinstance(expression, ir.Ranking) and syntax.direction is None:
        descending = not isinstance(expression, ir.Nearest)
    if fault is not None:
        scope.report.add(QueryCode.ORDER, syntax.expression.span, *fault)
        return None
    return ir.OrderKey(expression, descending)


def _has_aggregate(columns: tuple[ir.Column, ...]) -> bool:
    return any(isinstance(column.expression, ir.Aggregate) for column in columns)


def _is_column(expression: ir.Expression, columns: tuple[ir.Column, ...]) -> bool:
    return any(column.expression == expression for column in columns)


def _order_expression(
    syntax: ast.Expression, columns: tuple[ir.Column, ...], scope: Scope, word: str
) -> ir.Expression | None:
    if isinstance(syntax, ast.Alias):
        for column in columns:
            if column.name == syntax.name.text:
                return column.expression
        name = syntax.name.text
        if any(value.column == name for value in scope.kept_values()):
            return scope.kept_value(syntax.name)
        message = f"{word} has no column {name[:200]}"
        known = (column.name for column in columns)
        scope.report.add_unknown_name(QueryCode.UNKNOWN_NAME, name, syntax.span, message, known)
        return None
    has_keys = any(not isinstance(column.expression, ir.Aggregate) for column in columns)
    return _expression(syntax, scope, has_keys=has_keys)


def _count(
    syntax: ast.Integer | ast.Variable | None, scope: Scope
) -> int | ir.ParameterValue | None:
    """The number of rows of a limit or a skip; None if it does not exist, or was refused."""
    if syntax is None:
        return None
    if isinstance(syntax, ast.Integer):
        if 0 <= syntax.value <= _LIMIT_MAX:
            return syntax.value
        message = "a limit is a whole number from 0 up"
        scope.report.add(QueryCode.LIMIT, syntax.span, message)
        return None
    limit = operand(syntax, scope)
    match limit:
        case ir.ParameterValue(name, Scalar() as type_, nullable):
            if type_.is_integer and not nullable:
                scope.uses.bound(name, 0)
                return limit
            spelling = f"{type_}?" if nullable else f"{type_}"
            message, hint = f"${name} is {spelling}", "declare it as I64"
        case None:
            return None
        case _:
            message, hint = f"${syntax.name} is not a number", "a limit is a number or a parameter"
    scope.report.add(QueryCode.LIMIT, syntax.span, message, hint)
    return None


def _check_unlimited(read: ast.Read | ast.Stage, scope: Scope) -> None:
    projections = [projection.expression for projection in read.projections]
    for expression in [*projections, *(key.expression for key in read.orderings)]:
        if isinstance(expression, ast.SearchCall) and expression.function in _NEEDS_LIMIT:
            message = f"{expression.function} needs a limit: every row is near to some degree"
            scope.report.add(QueryCode.LIMIT, expression.span, message, "write limit 10")
            return
