"""Literals: the value and the type that a literal has beside another value, or in a property."""

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


def beside(literal: ast.Literal, type_: PropertyType, report: Report) -> ir.Constant | None:
    """The constant that a literal is when it is compared with a value of this type.

    The other type decides: a text beside an enum must be one of its values, a whole number must be
    one that the other could be. None if the two can never meet, which has then been reported.
    """
    match literal, type_:
        case ast.Null(), _:
            hint = "write $x.name is null"
            report.add(QueryCode.NULL_VALUE, literal.span, "nothing equals null", hint)
            return None
        case ast.Text(value), EnumType():
            return _enum_value(literal, value, type_, report)
        case ast.Integer(value), Scalar() if type_.is_numeric:
            return _integer_beside(literal, value, type_, report)
        case ast.Decimal(value), Scalar.F32:
            return _fitted(literal, value, type_, QueryCode.NUMBER_RANGE, report)
        case ast.Decimal(value), Scalar() if type_.is_numeric:
            return ir.Constant(value, Scalar.F64)
        case _:
            constant = alone(literal, report)
            if constant is None or constant.type == type_:
                return constant
            _report_mismatch(literal, constant.type, type_, report)
            return None


def alone(literal: ast.Literal, report: Report) -> ir.Constant | None:
    """The constant that a literal is by itself; None if that has been reported."""
    match literal:
        case ast.Text(text):
            return ir.Constant(text, Scalar.STRING)
        case ast.Boolean(truth):
            return ir.Constant(truth, Scalar.BOOL)
        case ast.Decimal(number):
            return ir.Constant(number, Scalar.F64)
        case ast.Integer(whole):
            return _integer_alone(literal, whole, report)
        case ast.Moment(kind, text):
            type_ = Scalar.DATE if kind is ast.MomentKind.DATE else Scalar.DATETIME
            return _fitted(literal, text, type_, QueryCode.MOMENT, report)
        case ast.ListLiteral(items):
            return _list([alone(each, report) for each in items], literal, report)
        case ast.Null():
            return beside(literal, Scalar.STRING, report)
        case _:
            assert_never(literal)


def items_beside(
    literal: ast.ListLiteral, type_: PropertyType, report: Report
) -> ir.Constant | None:
    """The list that a literal is when a value of this type is looked for in it."""
    return _list([beside(each, type_, report) for each in literal.items], literal, report)


def assigned(literal: ast.Literal, type_: PropertyType, report: Report) -> ir.Constant | None:
    """The constant that a property of this type is given; None if that has been reported.

    Null is not for this function: it depends on the property, not on its type.
    """
    match literal, type_:
        case ast.ListLiteral(items), ListType(item):
            values = [assigned(each, item, report) for each in items]
            return _collected(values, type_)
        case ast.ListLiteral(items), VectorType(dimension):
            return vector(literal, dimension, report)
        case ast.Text(value), EnumType():
            return _enum_value(literal, value, type_, report)
        case ast.Integer(value), Scalar() if type_.is_numeric:
            return _fitted(literal, value, type_, QueryCode.NUMBER_RANGE, report)
        case ast.Decimal(value), Scalar() if type_.is_float:
            return _fitted(literal, value, type_, QueryCode.NUMBER_RANGE, report)
        case ast.Null(), _:
            report.add(QueryCode.NULL_VALUE, literal.span, "an item of a list may not be null")
            return None
        case _:
            constant = alone(literal, report)
            if constant is None or constant.type == type_:
                return constant
            _report_mismatch(
                literal, constant.type, type_, report, list_hint="write it between [ and ]"
            )
            return None


def vector(literal: ast.ListLiteral, dimension: int, report: Report) -> ir.Constant | None:
    """The vector that a list of numbers is; None if that has been reported."""
    if len(literal.items) != dimension:
        message = f"{len(literal.items)} numbers are no Vector({dimension})"
        report.add(QueryCode.MISMATCH, literal.span, message)
        return None
    values = [assigned(each, Scalar.F32, report) for each in literal.items]
    return _collected(values, VectorType(dimension))


def _collected(
    items: Sequence[ir.Constant | None], type_: ListType | VectorType
) -> ir.Constant | None:
    values = [_plain(each.value) for each in items if each is not None]
    return ir.Constant(tuple(values), type_) if len(values) == len(items) else None


def _enum_value(
    literal: ast.Text, value: str, type_: EnumType, report: Report
) -> ir.Constant | None:
    if value in type_.values:
        return ir.Constant(value, type_)
    hint = did_you_mean(value, type_.values, otherwise=f"one of {', '.join(type_.values[:20])}")
    report.add(QueryCode.ENUM_VALUE, literal.span, f"{value[:100]!r} is not of {type_}"[:300], hint)
    return None


def _integer_alone(literal: ast.Integer, value: int, report: Report) -> ir.Constant | None:
    for type_ in (Scalar.I64, Scalar.U64):
        low, high = INTEGER_BOUNDS[type_]
        if low <= value <= high:
            return ir.Constant(value, type_)
    report.add(QueryCode.NUMBER_RANGE, literal.span, "the number exceeds 64 bits")
    return None


def _integer_beside(
    literal: ast.Integer, value: int, type_: Scalar, report: Report
) -> ir.Constant | None:
    if type_.is_integer:
        return _fitted(literal, value, type_, QueryCode.NUMBER_RANGE, report)
    number = fit(type_, value)
    # Where no float is this very number, the number stays whole, so that comparing does not round.
    if isinstance(number, float) and number == value:
        return ir.Constant(number, type_)
    return _integer_alone(literal, value, report)


def _fitted(
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
    """The list of these constants: of their one type, or of a number type that holds all."""
    found = [each for each in items if each is not None]
    if len(found) < len(items):
        return None
    if not found:
        report.add(QueryCode.TEXT_OPERATOR, literal.span, "an empty list contains nothing")
        return None
    types = {Scalar.STRING if isinstance(each.type, EnumType) else each.type for each in found}
    scalars = {each for each in types if isinstance(each, Scalar)}
    if len(types) == len(scalars) == 1:
        return ir.Constant(tuple(_plain(each.value) for each in found), ListType(*scalars))
    if types == scalars and all(each.is_numeric for each in scalars):
        numbers = [each.value for each in found if isinstance(each.value, int | float)]
        if min(numbers) >= 0 and all(isinstance(each, int) for each in numbers):
            return ir.Constant(tuple(numbers), ListType(Scalar.U64))
        if all(float(each) == each for each in numbers):
            return ir.Constant(tuple(map(float, numbers)), ListType(Scalar.F64))
    report.add(QueryCode.MISMATCH, literal.span, "the items of a list must have one type")
    return None


def _plain(value: ir.Value) -> Value:
    assert value is not None, "no literal inside a list is null"
    assert not isinstance(value, tuple | bytes), "lists do not nest, and no literal is bytes"
    return value


def _report_mismatch(
    literal: ast.Literal,
    found: PropertyType,
    wanted: PropertyType,
    report: Report,
    *,
    list_hint: str = "contains looks for an item in a list",
) -> None:
    hint = ""
    if isinstance(literal, ast.Text) and isinstance(wanted, Scalar):
        hint = _QUOTE_HINTS.get(wanted, "leave the quotes out" if wanted.is_numeric else "")
    elif wanted is Scalar.STRING and isinstance(found, Scalar):
        hint = "quote it"
    elif isinstance(wanted, ListType) and not isinstance(found, ListType):
        hint = list_hint
    report.add(QueryCode.MISMATCH, literal.span, f"{found} is not {wanted}", hint)
