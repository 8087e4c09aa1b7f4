"""Operands: typed values that are defined for one row."""

from __future__ import annotations

from typing import assert_never

from omnigraph.model.types import EnumType, PropertyType, Scalar
from omnigraph.query import ast, ir
from omnigraph.query.codes import QueryCode
from omnigraph.query.expressions import computed
from omnigraph.query.functions import AggregateFunction, ValueFunction
from omnigraph.query.literals import compared_constant, standalone_constant
from omnigraph.query.paths import path_value
from omnigraph.query.scope import Scope, row_column
from omnigraph.query.several import SeveralTypes


def operand(
    syntax: ast.Expression, scope: Scope, *, compared_with: PropertyType | None = None
) -> ir.Operand | None:
    """The value of an expression for one row; None if an error was reported.

    Args:
        compared_with: The type of the other side of a comparison, which determines the type of a
            literal. The caller compares the types of anything else.
    """
    match syntax:
        case ast.PropertyOf(variable, name):
            return _property(variable, name, scope)
        case ast.Variable():
            return _variable(syntax, scope)
        case ast.Now():
            return ir.Now()
        case ast.TypeOf(variable):
            return _type_of(variable, scope)
        case ast.Alias(name) if scope.row is not None:
            return row_column(scope.row, name, scope)
        case ast.Alias(name):
            return scope.kept_value(name)
        case ast.PathCall(function, variable):
            return path_value(function, variable, scope)
        case ast.FunctionCall(ValueFunction.LENGTH, (ast.Variable(name) as variable,)) if (
            scope.path(name) is not None
        ):
            return path_value(ValueFunction.LENGTH, variable, scope)
        case ast.Arithmetic() | ast.FunctionCall() | ast.Case():
            return computed(syntax, scope, operand)
        case ast.Existence() | ast.Subquery():
            assert scope.subquery is not None, "it is set where queries are compiled"
            return scope.subquery(syntax, scope)
        case ast.AggregateCall(function) | ast.SearchCall(function):
            message = f"{function}(…) has no value for a single row"
            scope.report.add(QueryCode.CALL_PLACE, syntax.span, message, _place(function))
            return None
        case _:
            if compared_with is None:
                return standalone_constant(syntax, scope.report)
            return compared_constant(syntax, compared_with, scope.report)


def are_comparable(left: PropertyType, right: PropertyType) -> bool:
    """Whether values of the two types may be equal.

    >>> are_comparable(Scalar.I32, Scalar.F64), are_comparable(Scalar.STRING, Scalar.DATE)
    (True, False)
    """
    match left, right:
        case Scalar(), Scalar():
            return left is right or (left.is_numeric and right.is_numeric)
        case EnumType(), EnumType():
            return left == right
        case (EnumType(), Scalar.STRING) | (Scalar.STRING, EnumType()):
            return True
        case _:
            return False


def has_order(type_: PropertyType) -> bool:
    """Whether one value of the type may be less than another."""
    return isinstance(type_, Scalar) and type_ is not Scalar.BOOL


def can_be_sorted(type_: PropertyType) -> bool:
    """Whether rows can be sorted, grouped and made distinct by values of the type."""
    return isinstance(type_, Scalar | EnumType)


def _property(variable: ast.Variable, name: ast.Name, scope: Scope) -> ir.ColumnValue | None:
    type_ = scope.read(variable)
    if isinstance(type_, ir.Parameter):
        message = f"${variable.name} is a parameter, and has no properties"
        scope.report.add(QueryCode.UNKNOWN_PROPERTY, name.span, message)
        return None
    if type_ is None:
        return None
    return scope.column(variable.name, type_, name)


def _variable(variable: ast.Variable, scope: Scope) -> ir.Operand | None:
    target = scope.read(variable)
    match target:
        case None:
            return None
        case ir.Parameter(name, type_, nullable):
            return ir.ParameterValue(name, type_, nullable)
        case _:
            return scope.id_of(variable.name)


def _type_of(variable: ast.Variable, scope: Scope) -> ir.Operand | None:
    """The name of a variable's type; null where the variable is."""
    type_ = scope.read(variable)
    match type_:
        case None:
            return None
        case ir.Parameter(name):
            message = f"${name} is a parameter, and has no type of the schema"
            scope.report.add(QueryCode.ARGUMENTS, variable.span, message)
            return None
        case SeveralTypes():
            is_optional = scope.is_optional(variable.name)
            return ir.ColumnValue(variable.name, ir.TYPE, Scalar.STRING, is_optional)
        case _:
            constant = ir.Constant(type_.name, Scalar.STRING)
            if not scope.is_optional(variable.name):
                return constant
            is_there = ir.NullTest(scope.id_of(variable.name), negated=True)
            nothing = ir.Constant(None, Scalar.STRING)
            return ir.Case(((is_there, constant),), nothing, Scalar.STRING, nullable=True)


def _place(function: AggregateFunction | ast.SearchName) -> str:
    match function:
        case AggregateFunction():
            return "an aggregate stands in return or order, outside any other"
        case ast.SearchName.NEAREST | ast.SearchName.BM25 | ast.SearchName.RRF:
            return "a ranking stands in return or order"
        case ast.SearchName.SEARCH | ast.SearchName.FUZZY | ast.SearchName.MATCH_TEXT:
            return "it is a clause of match by itself"
        case _:
            assert_never(function)
