"""Filters: type-checks conditions, from comparisons up to `and`, `or` and `not`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, assert_never

from omnigraph.lang.source import Span
from omnigraph.model.types import ListType, PropertyType, Scalar
from omnigraph.query import ast, ir
from omnigraph.query.codes import QueryCode
from omnigraph.query.expressions import is_wide
from omnigraph.query.functions import ValueFunction
from omnigraph.query.literals import compared_items
from omnigraph.query.operands import are_comparable, has_order, operand
from omnigraph.query.scope import Scope
from omnigraph.query.searches import text_match
from omnigraph.query.several import SeveralTypes, names_of

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


def conditions(syntax: ast.Condition, scope: Scope) -> Iterator[ir.Filter]:
    """The filters that a condition stands for: each part of an `and` is one of its own.

    Those in which an error was reported are omitted.
    """
    if isinstance(syntax, ast.Junction) and syntax.connective is ast.Connective.AND:
        for part in syntax.conditions:
            yield from conditions(part, scope)
    elif (filter_ := _condition(syntax, scope)) is not None:
        yield filter_


def value_condition(syntax: ast.Condition, scope: Scope) -> ir.Filter | None:
    """A condition inside a value, which is a value for each row; None if an error was reported."""
    return _condition(syntax, scope, within_value=True)


def _condition(
    syntax: ast.Condition, scope: Scope, *, inverted: bool = False, within_value: bool = False
) -> ir.Filter | None:
    """One condition; None if an error was reported.

    Args:
        inverted: Whether a `not` is around it.
        within_value: Whether it is in a `case`.
    """
    match syntax:
        case ast.Comparison():
            return comparison(syntax, scope)
        case ast.NullTest(tested, negated):
            value = operand(tested, scope)
            return None if value is None else _null_test(value, tested.span, scope, negated=negated)
        case ast.Existence():
            exists = operand(syntax, scope)
            true = ir.Constant(value=True, type=Scalar.BOOL)
            return None if exists is None else ir.Comparison(exists, ir.Operator.EQ, true)
        case ast.SearchCall(function) if scope.row is not None or within_value:
            where = "case" if within_value else "mutation"
            message, hint = f"{function}(…) has no place in a {where}", "compare a property"
            scope.report.add(QueryCode.CALL_PLACE, syntax.span, message, hint)
            return None
        case ast.SearchCall(function):
            if inverted:
                message = f"{function}(…) cannot be inverted by a word"
                hint = f"write not {{ {function}(…) }}"
                scope.report.add(QueryCode.CALL_PLACE, syntax.span, message, hint)
            return text_match(syntax, scope)
        case ast.Inverse(inner):
            condition = _condition(inner, scope, inverted=True, within_value=within_value)
            return None if condition is None else ir.Inverse(condition)
        case ast.Junction(connective, parts):
            filters = [
                _condition(part, scope, inverted=inverted, within_value=within_value)
                for part in parts
            ]
            found = tuple(each for each in filters if each is not None)
            if len(found) < len(parts):
                return None
            return ir.Junction(ir.Connective(connective), found)
        case _:
            assert_never(syntax)


def comparison(syntax: ast.Comparison, scope: Scope) -> ir.Comparison | None:
    """A comparison of two values of a row; None if an error was reported."""
    are_rows = _are_rows(syntax, scope)
    if not are_rows and not _has_plain_id(syntax, scope):
        return None
    match syntax.sign:
        case ast.Sign.CONTAINS:
            return _contains(syntax.left, syntax.right, syntax, scope)
        case ast.Sign.IN:
            return _in(syntax, scope)
        case ast.Sign.STARTS_WITH:
            return _text_comparison(syntax, ir.Operator.STARTS_WITH, scope)
        case _:
            left, right = _sides(syntax, scope)
            if left is None or right is None:
                return None
            if are_rows:
                rows = _identities(syntax, scope)
                if rows is None:
                    return None
                left, right = rows
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


def _null_test(value: ir.Operand, span: Span, scope: Scope, *, negated: bool) -> ir.NullTest:
    """A test for null, with a warning if its outcome is always the same."""
    if not value.nullable:
        outcome = "true" if negated else "false"
        name = value.column if isinstance(value, ir.ColumnValue) else "it"
        message = f"{name} is never null, so this is always {outcome}"
        scope.report.add(QueryCode.NEVER_NULL, span, message)
    return ir.NullTest(value, negated)


def _sides(syntax: ast.Comparison, scope: Scope) -> tuple[ir.Operand | None, ir.Operand | None]:
    """Both sides; the other side determines the type of a literal."""
    if isinstance(syntax.left, ast.Literal) and not isinstance(syntax.right, ast.Literal):
        right = operand(syntax.right, scope)
        left = operand(syntax.left, scope, compared_with=_literal_type(right))
        return (left if right is not None else None), right
    left = operand(syntax.left, scope)
    right = operand(syntax.right, scope, compared_with=_literal_type(left))
    return left, right


def _literal_type(other: ir.Operand | None) -> PropertyType | None:
    """The type that a literal takes beside a value; None for its own.

    A whole number that is computed may be any, so what it is compared with need not fit its type.
    """
    if other is None or is_wide(other):
        return None
    return other.type


def _identities(syntax: ast.Comparison, scope: Scope) -> tuple[ir.Operand, ir.Operand] | None:
    """Two bare variables, compared as rows; None if no row can be both, which is reported."""
    left, right = syntax.left, syntax.right
    assert isinstance(left, ast.Variable), "it is a bare variable"
    assert isinstance(right, ast.Variable), "it is a bare variable"
    types = [scope.bound_type(variable.name) for variable in (left, right)]
    known = [type_ for type_ in types if type_ is not None]
    assert len(known) == 2, "both are bound"
    if not set(names_of(known[0])) & set(names_of(known[1])):
        message = f"a {known[0].name} is never a {known[1].name}"
        hint = "compare their ids with .id, if that is what you mean"
        scope.report.add(QueryCode.MISMATCH, syntax.span, message, hint)
        return None
    ids = [scope.id_of(variable.name) for variable in (left, right)]
    are_several = [isinstance(type_, SeveralTypes) for type_ in known]
    if are_several[0] == are_several[1]:
        return ids[0], ids[1]
    first, second = (
        id_ if is_several else qualified(id_, type_.name)
        for id_, is_several, type_ in zip(ids, are_several, known, strict=True)
    )
    return first, second


def _has_plain_id(syntax: ast.Comparison, scope: Scope) -> bool:
    """Whether no variable of several types is compared with a text as if that were its id."""
    for side in (syntax.left, syntax.right):
        if isinstance(side, ast.Variable) and side.name not in scope.parameters:
            type_ = scope.bound_type(side.name)
            if isinstance(type_, SeveralTypes):
                message = f"${side.name} is one of {type_.name}, and no id alone says which"
                hint = f"write ${side.name}.id, and type(${side.name})"
                scope.report.add(QueryCode.MISMATCH, side.span, message, hint)
                return False
    return True


def qualified(id_: ir.ColumnValue, type_name: str) -> ir.Call:
    """The id of a variable of one type as that of a variable of several has it."""
    prefix = ir.Constant(f"{type_name}:", Scalar.STRING)
    return ir.Call(ValueFunction.CONCAT, (prefix, id_), Scalar.STRING, id_.nullable)


def _are_rows(syntax: ast.Comparison, scope: Scope) -> bool:
    """Whether two bare variables are compared, neither of which is a parameter."""
    sides = syntax.left, syntax.right
    return all(
        isinstance(side, ast.Variable) and scope.bound_type(side.name) is not None for side in sides
    )


def _in(syntax: ast.Comparison, scope: Scope) -> ir.Comparison | None:
    """`value in list`, which is `list contains value`."""
    if not isinstance(syntax.right, ast.ListLiteral):
        items = operand(syntax.right, scope)
        if items is None:
            operand(syntax.left, scope)
            return None
        if not isinstance(items.type, ListType):
            message = f"{items.type} is not a list, which in needs"
            hint = "a part of a text is looked for with contains"
            scope.report.add(QueryCode.TEXT_OPERATOR, syntax.right.span, message, hint)
            return None
    return _contains(syntax.right, syntax.left, syntax, scope)


def _contains(
    list_: ast.Expression, item_: ast.Expression, syntax: ast.Comparison, scope: Scope
) -> ir.Comparison | None:
    if isinstance(list_, ast.ListLiteral):
        item = operand(item_, scope)
        if item is None:
            return None
        items = compared_items(list_, _literal_type(item) or Scalar.I64, scope.report)
        if items is None:
            return None
        assert isinstance(items.type, ListType), "a list literal is a list"
        return _membership(items, items.type, item, syntax.span, scope)
    left = operand(list_, scope)
    if left is None:
        operand(item_, scope)
        return None
    if not isinstance(left.type, ListType):
        return _text_comparison(syntax, ir.Operator.CONTAINS_TEXT, scope)
    item = operand(item_, scope, compared_with=left.type.item)
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
