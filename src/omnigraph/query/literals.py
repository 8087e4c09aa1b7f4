"""Literals: the value and the type of a literal in a comparison or an assignment."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, assert_never

from omnigraph.lang.diagnostics import did_you_mean
from omnigraph.model.types import (
    INTEGER_BOUNDS,
    EnumType,
    ListType,
    PropertyType,
    Scalar,
    VectorType,
)
from omnigraph.query import ast, ir
from omnigraph.query.codes import QueryCode
from omnigraph.query.report import Report
from omnigraph.schema.catalog import Value
from omnigraph.schema.values import Misfit, fit

_QUOTE_HINTS: Final = {
    Scalar.DATE: 'write date("2024-12-31")',
    Scalar.DATETIME: 'write datetime("2024-12-31T23:59:59Z")',
}


def compared_constant(
    literal: ast.Literal, type_: PropertyType, report: Report
) -> ir.Constant | None:
    """The constant of a literal that is compared with a value of this type.

    The other type decides: a text compared with an enum must be one of its values, a whole number
    must be in the range of the other type. None if the two are never comparable, which has then
    been reported.
    """
    match literal, type_:
        case ast.Null(), _:
            hint = "write $x.name is null"
            report.add(QueryCode.NULL_VALUE, literal.span, "nothing equals null", hint)
            return None
        case ast.Text(value), EnumType():
            return _enum_value(literal, value, type_, report)
        case ast.Integer(value), Scalar() if type_.is_numeric:
            return _compared_integer(literal, value, type_, report)
        case ast.Decimal(value), Scalar.F32:
            return _fit_constant(literal, value, type_, QueryCode.NUMBER_RANGE, report)
        case ast.Decimal(value), Scalar() if type_.is_numeric:
            return ir.Constant(value, Scalar.F64)
        case _:
            constant = standalone_constant(literal, report)
            if constant is None or constant.type == type_:
                return constant
            _report_mismatch(literal, constant.type, type_, report)
            return None


def standalone_constant(literal: ast.Literal, report: Report) -> ir.Constant | None:
    """The constant of a literal without context; None if an error was reported."""
    match literal:
        case ast.Text(text):
            return ir.Constant(text, Scalar.STRING)
        case ast.Boolean(truth):
            return ir.Constant(truth, Scalar.BOOL)
        case ast.Decimal(number):
            return ir.Constant(number, Scalar.F64)
        case ast.Integer(whole):
            return _standalone_integer(literal, whole, report)
        case ast.Moment(kind, text):
            type_ = Scalar.DATE if kind is ast.MomentKind.DATE else Scalar.DATETIME
            return _fit_constant(literal, text, type_, QueryCode.MOMENT, report)
        case ast.ListLiteral(items):
            return _list([standalone_constant(item, report) for item in items], literal, report)
        case ast.Null():
            return compared_constant(literal, Scalar.STRING, report)
        case _:
            assert_never(literal)


def compared_items(
    literal: ast.ListLiteral, type_: PropertyType, report: Report
) -> ir.Constant | None:
    """The constant of a list literal that is searched for a value of this type."""
    return _list(
        [compared_constant(item, type_, report) for item in literal.items], literal, report
    )


def assigned_constant(
    literal: ast.Literal, type_: PropertyType, report: Report
) -> ir.Constant | None:
    """The constant of a literal assigned to a property of this type; None if an error was reported.

    The caller handles null, which depends on the property and not on its type.
    """
    match literal, type_:
        case ast.ListLiteral(items), ListType(item):
            values = [assigned_constant(literal, item, report) for literal in items]
            return _collect(values, type_)
        case ast.ListLiteral(items), VectorType(dimension):
            return vector(literal, dimension, report)
        case ast.Text(value), EnumType():
            return _enum_value(literal, value, type_, report)
        case ast.Integer(value), Scalar() if type_.is_numeric:
            return _fit_constant(literal, value, type_, QueryCode.NUMBER_RANGE, report)
        case ast.Decimal(value), Scalar() if type_.is_float:
            return _fit_constant(literal, value, type_, QueryCode.NUMBER_RANGE, report)
        case ast.Null(), _:
            report.add(QueryCode.NULL_VALUE, literal.span, "an item of a list may not be null")
            return None
        case _:
            constant = standalone_constant(literal, report)
            if constant is None or constant.type == type_:
                return constant
            _report_mismatch(
                literal, constant.type, type_, report, list_hint="write it between [ and ]"
            )
            return None


def vector(literal: ast.ListLiteral, dimension: int, report: Report) -> ir.Constant | None:
    """The vector of a list of numbers; None if an error was reported."""
    if len(literal.items) != dimension:
        message = f"{len(literal.items)} numbers are no Vector({dimension})"
        report.add(QueryCode.MISMATCH, literal.span, message)
        return None
    values = [assigned_constant(item, Scalar.F32, report) for item in literal.items]
    return _collect(values, VectorType(dimension))


def _collect(
    items: Sequence[ir.Constant | None], type_: ListType | VectorType
) -> ir.Constant | None:
    values = [_item_value(item.value) for item in items if item is not None]
    return ir.Constant(tuple(values), type_) if len(values) == len(items) else None


def _enum_value(
    literal: ast.Text, value: str, type_: EnumType, report: Report
) -> ir.Constant | None:
    if value in type_.values:
        return ir.Constant(value, type_)
    hint = did_you_mean(value, type_.values, otherwise=f"one of {', '.join(type_.values[:20])}")
    report.add(QueryCode.ENUM_VALUE, literal.span, f"{value[:100]!r} is not of {type_}"[:300], hint)
    return None


def _standalone_integer(literal: ast.Integer, value: int, report: Report) -> ir.Constant | None:
    for type_ in (Scalar.I64, Scalar.U64):
        low, high = INTEGER_BOUNDS[type_]
        if low <= value <= high:
            return ir.Constant(value, type_)
    report.add(QueryCode.NUMBER_RANGE, literal.span, "the number exceeds 64 bits")
    return None


def _compared_integer(
    literal: ast.Integer, value: int, type_: Scalar, report: Report
) -> ir.Constant | None:
    if type_.is_integer:
        return _fit_constant(literal, value, type_, QueryCode.NUMBER_RANGE, report)
    number = fit(type_, value)
    # If no float equals the number, it stays an integer, so that comparing does not round.
    if isinstance(number, float) and number == value:
        return ir.Constant(number, type_)
    return _standalone_integer(literal, value, report)


def _fit_constant(
    literal: ast.Literal, value: Value, type_: Scalar, code: QueryCode, report: Report
) -> ir.Constant | None:
    fitted = fit(type_, value)
    if isinstance(fitted, Misfit):
        report.add(code, literal.span, fitted.reason, fitted.hint)
        return None
    return ir.Constant(fitted, type_)


def _list(
    items: Sequence[ir.Constant | None], literal: ast.ListLiteral, report: Report
) -> ir.Constant | None:
    """The list of these constants: of their common type, or of a number type that holds all."""
    constants = [item for item in items if item is not None]
    if len(constants) < len(items):
        return None
    if not constants:
        report.add(QueryCode.TEXT_OPERATOR, literal.span, "an empty list contains nothing")
        return None
    types = {
        Scalar.STRING if isinstance(constant.type, EnumType) else constant.type
        for constant in constants
    }
    scalars = {type_ for type_ in types if isinstance(type_, Scalar)}
    if len(types) == len(scalars) == 1:
        return ir.Constant(
            tuple(_item_value(constant.value) for constant in constants), ListType(*scalars)
        )
    if types == scalars and all(scalar.is_numeric for scalar in scalars):
        numbers = [
            constant.value for constant in constants if isinstance(constant.value, int | float)
        ]
        if min(numbers) >= 0 and all(isinstance(number, int) for number in numbers):
            return ir.Constant(tuple(numbers), ListType(Scalar.U64))
        if all(float(number) == number for number in numbers):
            return ir.Constant(tuple(map(float, numbers)), ListType(Scalar.F64))
    report.add(QueryCode.MISMATCH, literal.span, "the items of a list must have one type")
    return None


def _item_value(value: ir.Value) -> Value:
    assert value is not None, "no literal inside a list is null"
    assert not isinstance(value, tuple | bytes), "lists do not nest, and no literal is bytes"
    return value


def _report_mismatch(
    literal: ast.Literal,
    actual: PropertyType,
    expected: PropertyType,
    report: Report,
    *,
    list_hint: str = "contains looks for an item in a list",
) -> None:
    hint = ""
    if isinstance(literal, ast.Text) and isinstance(expected, Scalar):
        hint = _QUOTE_HINTS.get(expected, "leave the quotes out" if expected.is_numeric else "")
    elif expected is Scalar.STRING and isinstance(actual, Scalar):
        hint = "quote it"
    elif isinstance(expected, ListType) and not isinstance(actual, ListType):
        hint = list_hint
    report.add(QueryCode.MISMATCH, literal.span, f"{actual} is not {expected}", hint)
