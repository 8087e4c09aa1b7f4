"""Filters: comparisons and null tests, checked so that both sides can meet."""

from __future__ import annotations

from typing import Final

from omnigraph.lang.source import Span
from omnigraph.model.types import ListType, PropertyType, Scalar
from omnigraph.query import ast, ir
from omnigraph.query.codes import QueryCode
from omnigraph.query.literals import items_beside
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
"""The signs that mean one operator whatever stands beside them."""

_ORDERING: Final = frozenset({ir.Operator.LT, ir.Operator.LE, ir.Operator.GT, ir.Operator.GE})


def comparison(written: ast.Comparison, scope: Scope) -> ir.Comparison | None:
    """A comparison of two values of a row; None if that has been reported."""
    match written.sign:
        case ast.Sign.CONTAINS:
            return _contains(written, scope)
        case ast.Sign.STARTS_WITH:
            return _text_comparison(written, ir.Operator.STARTS_WITH, scope)
        case _:
            left, right = _sides(written, scope)
            if left is None or right is None or not _is_one_kind_of_row(written, scope):
                return None
            return compared(left, OPERATORS[written.sign], right, written.span, scope)


def compared(
    left: ir.Operand, operator: ir.Operator, right: ir.Operand, span: Span, scope: Scope
) -> ir.Comparison | None:
    """The comparison of two typed values, if their types allow it."""
    if not are_comparable(left.type, right.type):
        message = f"{left.type} and {right.type} are not comparable"
        scope.report.add(QueryCode.MISMATCH, span, message, _advice(left.type, right.type))
        return None
    if operator in _ORDERING and not (has_order(left.type) and has_order(right.type)):
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
        found = operand(value, scope, meets=column.type)
        if found is None:
            return None
        return compared(column, ir.Operator.EQ, found, span, scope)
    found = operand(value, scope, meets=column.type.item)
    return None if found is None else _membership(column, column.type, found, span, scope)


def null_test(column: ir.ColumnValue, span: Span, scope: Scope, *, negated: bool) -> ir.NullTest:
    """A test for null, with a warning where its outcome is known."""
    if not column.nullable:
        outcome = "true" if negated else "false"
        message = f"{column.column} is never null, so this is always {outcome}"
        scope.report.add(QueryCode.NEVER_NULL, span, message)
    return ir.NullTest(column, negated)


def _sides(written: ast.Comparison, scope: Scope) -> tuple[ir.Operand | None, ir.Operand | None]:
    """Both sides; a literal takes its meaning from the other side."""
    if isinstance(written.left, ast.Literal) and not isinstance(written.right, ast.Literal):
        right = operand(written.right, scope)
        left = operand(written.left, scope, meets=None if right is None else right.type)
        return (left if right is not None else None), right
    left = operand(written.left, scope)
    right = operand(written.right, scope, meets=None if left is None else left.type)
    return left, right


def _is_one_kind_of_row(written: ast.Comparison, scope: Scope) -> bool:
    """Whether two bare variables could be the same row; ids of different types only look alike."""
    if not (isinstance(written.left, ast.Variable) and isinstance(written.right, ast.Variable)):
        return True
    types = [scope.bound_type(each.name) for each in (written.left, written.right)]
    named: list[SchemaType] = [each for each in types if each is not None]
    if len(named) < 2 or named[0].name == named[1].name:
        return True
    message = f"a {named[0].name} is never a {named[1].name}"
    hint = "compare their ids with .id, if that is what you mean"
    scope.report.add(QueryCode.MISMATCH, written.span, message, hint)
    return False


def _contains(written: ast.Comparison, scope: Scope) -> ir.Comparison | None:
    if isinstance(written.left, ast.ListLiteral):
        item = operand(written.right, scope)
        if item is None:
            return None
        found = items_beside(written.left, item.type, scope.report)
        if found is None:
            return None
        assert isinstance(found.type, ListType), "a list literal is a list"
        return _membership(found, found.type, item, written.span, scope)
    left = operand(written.left, scope)
    if left is None:
        operand(written.right, scope)
        return None
    if not isinstance(left.type, ListType):
        return _text_comparison(written, ir.Operator.CONTAINS_TEXT, scope)
    found_item = operand(written.right, scope, meets=left.type.item)
    if found_item is None:
        return None
    return _membership(left, left.type, found_item, written.span, scope)


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
    written: ast.Comparison, operator: ir.Operator, scope: Scope
) -> ir.Comparison | None:
    # A literal that is no text is reported below; an enum has no say in what a part of it may be.
    left, right = operand(written.left, scope), operand(written.right, scope)
    if left is None or right is None:
        return None
    for side, found in ((written.left, left), (written.right, right)):
        if isinstance(side, ast.Variable) and isinstance(found, ir.ColumnValue):
            message = f"${side.name} is a whole row, and {written.sign} compares texts"
            hint = f"write ${side.name}.id if that is what you mean"
            scope.report.add(QueryCode.TEXT_OPERATOR, side.span, message, hint)
            return None
    if left.type is Scalar.STRING and right.type is Scalar.STRING:
        return ir.Comparison(left, operator, right)
    needs = "a list and an item, or two Strings" if written.sign == "contains" else "two Strings"
    message = f"{written.sign} needs {needs}, not {left.type} and {right.type}"
    scope.report.add(QueryCode.TEXT_OPERATOR, written.span, message)
    return None


def _advice(left: PropertyType, right: PropertyType) -> str:
    types = {left, right}
    if types == {Scalar.STRING, Scalar.DATE}:
        return 'write date("2024-12-31"), or declare the parameter as Date'
    if types == {Scalar.STRING, Scalar.DATETIME}:
        return 'write datetime("2024-12-31T23:59:59Z"), or declare the parameter as DateTime'
    if any(isinstance(each, ListType) for each in types):
        return "contains looks for an item in a list"
    return ""
