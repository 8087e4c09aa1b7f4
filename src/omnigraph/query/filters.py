"""Filters: type-checks comparisons and null tests."""

from __future__ import annotations

from typing import Final

from omnigraph.lang.source import Span
from omnigraph.model.types import ListType, PropertyType, Scalar
from omnigraph.query import ast, ir
from omnigraph.query.codes import QueryCode
from omnigraph.query.literals import compared_items
from omnigraph.query.operands import are_comparable, has_order, operand
from omnigraph.query.scope import Scope
from omnigraph.schema.catalog import SchemaType

OPERATORS: Final = {
    ast.Sign.EQ: ir.Operator.EQ,
    ast.Sign.NE: ir.Operator.NE,
    ast.Sign.LT: ir.Operator.LT,
    ast.Sign.LE: ir.Operator.LE,
    ast.Sign.GT: ir.Operator.GT,
    ast.Sign.GE: ir.Operator.GE,
}
"""The signs that mean one operator, whatever their operands."""

_ORDER_OPERATORS: Final = frozenset(
    {ir.Operator.LT, ir.Operator.LE, ir.Operator.GT, ir.Operator.GE}
)


def comparison(syntax: ast.Comparison, scope: Scope) -> ir.Comparison | None:
    """A comparison of two values of a row; None if an error was reported."""
    match syntax.sign:
        case ast.Sign.CONTAINS:
            return _contains(syntax, scope)
        case ast.Sign.STARTS_WITH:
            return _text_comparison(syntax, ir.Operator.STARTS_WITH, scope)
        case _:
            left, right = _sides(syntax, scope)
            if left is None or right is None or not _is_one_kind_of_row(syntax, scope):
                return None
            return check_comparison(left, OPERATORS[syntax.sign], right, syntax.span, scope)


def check_comparison(
    left: ir.Operand, operator: ir.Operator, right: ir.Operand, span: Span, scope: Scope
) -> ir.Comparison | None:
    """The comparison of two typed values; None, with an error reported, if the types forbid it."""
    if not are_comparable(left.type, right.type):
        message = f"{left.type} and {right.type} are not comparable"
        scope.report.add(QueryCode.MISMATCH, span, message, _advice(left.type, right.type))
        return None
    if operator in _ORDER_OPERATORS and not (has_order(left.type) and has_order(right.type)):
        message = f"{left.type} has no order"
        scope.report.add(QueryCode.MISMATCH, span, message, "it can be compared with = and !=")
        return None
    return ir.Comparison(left, operator, right)


def property_match(
    column: ir.ColumnValue, value: ast.Expression, scope: Scope
) -> ir.Comparison | None:
    """`{p: v}` of a binding: equality, or membership where `p` is a list."""
    span = value.span
    if not isinstance(column.type, ListType):
        other = operand(value, scope, compared_with=column.type)
        if other is None:
            return None
        return check_comparison(column, ir.Operator.EQ, other, span, scope)
    other = operand(value, scope, compared_with=column.type.item)
    return None if other is None else _membership(column, column.type, other, span, scope)


def null_test(column: ir.ColumnValue, span: Span, scope: Scope, *, negated: bool) -> ir.NullTest:
    """A test for null, with a warning if its outcome is always the same."""
    if not column.nullable:
        outcome = "true" if negated else "false"
        message = f"{column.column} is never null, so this is always {outcome}"
        scope.report.add(QueryCode.NEVER_NULL, span, message)
    return ir.NullTest(column, negated)


def _sides(syntax: ast.Comparison, scope: Scope) -> tuple[ir.Operand | None, ir.Operand | None]:
    """Both sides; the other side determines the type of a literal."""
    if isinstance(syntax.left, ast.Literal) and not isinstance(syntax.right, ast.Literal):
        right = operand(syntax.right, scope)
        left = operand(syntax.left, scope, compared_with=None if right is None else right.type)
        return (left if right is not None else None), right
    left = operand(syntax.left, scope)
    right = operand(syntax.right, scope, compared_with=None if left is None else left.type)
    return left, right


def _is_one_kind_of_row(syntax: ast.Comparison, scope: Scope) -> bool:
    """Whether two bare variables could be the same row; ids of different types never match."""
    if not (isinstance(syntax.left, ast.Variable) and isinstance(syntax.right, ast.Variable)):
        return True
    types = [scope.bound_type(variable.name) for variable in (syntax.left, syntax.right)]
    known_types: list[SchemaType] = [type_ for type_ in types if type_ is not None]
    if len(known_types) < 2 or known_types[0].name == known_types[1].name:
        return True
    message = f"a {known_types[0].name} is never a {known_types[1].name}"
    hint = "compare their ids with .id, if that is what you mean"
    scope.report.add(QueryCode.MISMATCH, syntax.span, message, hint)
    return False


def _contains(syntax: ast.Comparison, scope: Scope) -> ir.Comparison | None:
    if isinstance(syntax.left, ast.ListLiteral):
        item = operand(syntax.right, scope)
        if item is None:
            return None
        items = compared_items(syntax.left, item.type, scope.report)
        if items is None:
            return None
        assert isinstance(items.type, ListType), "a list literal is a list"
        return _membership(items, items.type, item, syntax.span, scope)
    left = operand(syntax.left, scope)
    if left is None:
        operand(syntax.right, scope)
        return None
    if not isinstance(left.type, ListType):
        return _text_comparison(syntax, ir.Operator.CONTAINS_TEXT, scope)
    item = operand(syntax.right, scope, compared_with=left.type.item)
    if item is None:
        return None
    return _membership(left, left.type, item, syntax.span, scope)


def _membership(
    left: ir.Operand, type_: ListType, item: ir.Operand, span: Span, scope: Scope
) -> ir.Comparison | None:
    if are_comparable(type_.item, item.type):
        return ir.Comparison(left, ir.Operator.CONTAINS_ITEM, item)
    message = f"{type_} has no item of type {item.type}"
    hint = "look for one item at a time" if isinstance(item.type, ListType) else ""
    scope.report.add(QueryCode.TEXT_OPERATOR, span, message, hint)
    return None


def _text_comparison(
    syntax: ast.Comparison, operator: ir.Operator, scope: Scope
) -> ir.Comparison | None:
    # A literal that is not text is reported below. No `compared_with`: a part of an enum's value
    # need not be one of its values.
    left, right = operand(syntax.left, scope), operand(syntax.right, scope)
    if left is None or right is None:
        return None
    for side, operand_ in ((syntax.left, left), (syntax.right, right)):
        if isinstance(side, ast.Variable) and isinstance(operand_, ir.ColumnValue):
            message = f"${side.name} is a whole row, and {syntax.sign} compares texts"
            hint = f"write ${side.name}.id if that is what you mean"
            scope.report.add(QueryCode.TEXT_OPERATOR, side.span, message, hint)
            return None
    if left.type is Scalar.STRING and right.type is Scalar.STRING:
        return ir.Comparison(left, operator, right)
    needs = "a list and an item, or two Strings" if syntax.sign == "contains" else "two Strings"
    message = f"{syntax.sign} needs {needs}, not {left.type} and {right.type}"
    scope.report.add(QueryCode.TEXT_OPERATOR, syntax.span, message)
    return None


def _advice(left: PropertyType, right: PropertyType) -> str:
    types = {left, right}
    if types == {Scalar.STRING, Scalar.DATE}:
        return 'write date("2024-12-31"), or declare the parameter as Date'
    if types == {Scalar.STRING, Scalar.DATETIME}:
        return 'write datetime("2024-12-31T23:59:59Z"), or declare the parameter as DateTime'
    if any(isinstance(type_, ListType) for type_ in types):
        return "contains looks for an item in a list"
    return ""
