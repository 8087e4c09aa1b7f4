"""Searches: the functions that test and rank texts and vectors, checked argument by argument."""

from __future__ import annotations

from typing import Final

from omnigraph.model.types import ListType, PropertyType, Scalar, VectorType
from omnigraph.query import ast, ir
from omnigraph.query.codes import QueryCode
from omnigraph.query.literals import vector
from omnigraph.query.operands import operand
from omnigraph.query.scope import Scope

RRF_K: Final = 60
"""How much `rrf` evens out ranks when it is not told: the value its inventors use."""

_EDITS_MAX: Final = 2
"""More edits than this would make any two short words alike, and no index finds them."""

_RANKINGS: Final = frozenset({ast.SearchName.NEAREST, ast.SearchName.BM25, ast.SearchName.RRF})

_ARGUMENTS: Final = {
    ast.SearchName.SEARCH: "search($x.text, query)",
    ast.SearchName.FUZZY: "fuzzy($x.text, query, edits?)",
    ast.SearchName.MATCH_TEXT: "match_text($x.text, query)",
    ast.SearchName.NEAREST: "nearest($x.vector, query)",
    ast.SearchName.BM25: "bm25($x.text, query)",
    ast.SearchName.RRF: "rrf(nearest(…), bm25(…), k?)",
}


def text_match(call: ast.SearchCall, scope: Scope) -> ir.TextMatch | None:
    """A test of a text; None if that has been reported."""
    if call.function in _RANKINGS:
        hint = f"order {{ {call.function}(…) }}"
        message = f"{call.function} ranks rows, and keeps them all"
        scope.report.add(QueryCode.CALL_PLACE, call.span, message, hint)
        return None
    match call.function, call.arguments:
        case (_, (written, query)) | (ast.SearchName.FUZZY, (written, query, _)):
            text = _text(written, scope)
            found = _given(query, Scalar.STRING, scope)
            edits: ir.ParameterValue | ir.Constant | None = None
            if len(call.arguments) == 3:
                edits = _whole(call.arguments[2], scope, low=0, high=_EDITS_MAX)
                if edits is None:
                    return None
            if text is None or found is None:
                return None
            return ir.TextMatch(ir.TextTest(call.function), text, found, edits)
        case _:
            _report_arguments(call, scope)
            return None


def ranking(call: ast.SearchCall, scope: Scope) -> ir.Ranking | None:
    """A score or a distance; None if that has been reported."""
    match call.function, call.arguments:
        case ast.SearchName.NEAREST, (written, query):
            return _nearest(written, query, scope)
        case ast.SearchName.BM25, (written, query):
            text, found = _text(written, scope), _given(query, Scalar.STRING, scope)
            return None if text is None or found is None else ir.Bm25(text, found)
        case ast.SearchName.RRF, (first, second, *k):
            if len(k) <= 1:
                return _rrf(first, second, *k, scope=scope)
        case ((ast.SearchName.SEARCH | ast.SearchName.FUZZY | ast.SearchName.MATCH_TEXT), _):
            operand(call, scope)
            return None
        case _:
            pass
    _report_arguments(call, scope)
    return None


def _nearest(written: ast.Expression, query: ast.Expression, scope: Scope) -> ir.Nearest | None:
    column = _column(written, scope)
    if column is None:
        return None
    if not isinstance(column.type, VectorType):
        message = f"{column.column} is {column.type}, not a Vector"
        scope.report.add(QueryCode.ARGUMENTS, written.span, message)
        return None
    if isinstance(query, ast.ListLiteral):
        constant = vector(query, column.type.dimension, scope.report)
        return None if constant is None else ir.Nearest(column, constant)
    found = _given(query, column.type, scope)
    return None if found is None else ir.Nearest(column, found)


def _rrf(
    first: ast.Expression,
    second: ast.Expression,
    k: ast.Expression | None = None,
    *,
    scope: Scope,
) -> ir.Rrf | None:
    rankings = [_ranked(each, scope) for each in (first, second)]
    constant = ir.Constant(RRF_K, Scalar.I64)
    weight = constant if k is None else _whole(k, scope, low=1, high=None)
    match rankings:
        case [ir.Nearest() | ir.Bm25() as one, ir.Nearest() | ir.Bm25() as two] if weight:
            return ir.Rrf(one, two, weight)
        case _:
            return None


def _ranked(written: ast.Expression, scope: Scope) -> ir.Ranking | None:
    match written:
        case ast.SearchCall(ast.SearchName.NEAREST | ast.SearchName.BM25):
            return ranking(written, scope)
        case _:
            message = "rrf joins two of nearest(…) and bm25(…)"
            scope.report.add(QueryCode.ARGUMENTS, written.span, message)
            return None


def _text(written: ast.Expression, scope: Scope) -> ir.ColumnValue | None:
    column = _column(written, scope)
    if column is None or column.type is Scalar.STRING:
        return column
    message = f"{column.column} is {column.type}, not a String"
    scope.report.add(QueryCode.ARGUMENTS, written.span, message)
    return None


def _column(written: ast.Expression, scope: Scope) -> ir.ColumnValue | None:
    if isinstance(written, ast.PropertyOf):
        found = operand(written, scope)
        return found if isinstance(found, ir.ColumnValue) else None
    message = "the first argument is a property: $x.name"
    scope.report.add(QueryCode.ARGUMENTS, written.span, message)
    return None


def _given(written: ast.Expression, type_: PropertyType, scope: Scope) -> ir.GivenValue | None:
    """A value of this type that the query has before it looks at any row."""
    found = operand(written, scope)
    if found is None:
        return None
    if isinstance(found, ir.ColumnValue):
        message, hint = "what is looked for may not depend on a row", "pass it as a parameter"
    elif found.type != type_:
        message, hint = f"what is looked for is {found.type}, not {type_}", ""
        if isinstance(type_, VectorType) and isinstance(found.type, ListType | Scalar):
            hint = f"declare the parameter as {type_}"
    else:
        return found
    scope.report.add(QueryCode.ARGUMENTS, written.span, message, hint)
    return None


def _whole(
    written: ast.Expression, scope: Scope, *, low: int, high: int | None
) -> ir.ParameterValue | ir.Constant | None:
    """A whole number within bounds, or a parameter that `parameters.bind` keeps within them."""
    found = operand(written, scope)
    match found:
        case None:
            return None
        case ir.Constant(int() as value, Scalar.I64):
            if low <= value and (high is None or value <= high):
                return found
        case ir.ParameterValue(name, Scalar() as type_, nullable):
            if type_.is_integer and not nullable:
                scope.uses.bound(name, low, high)
                return found
        case _:
            pass
    range_ = f"from {low} up" if high is None else f"from {low} to {high}"
    message = f"this must be a whole number {range_}, or a parameter that is one"
    scope.report.add(QueryCode.ARGUMENTS, written.span, message)
    return None


def _report_arguments(call: ast.SearchCall, scope: Scope) -> None:
    message = f"{call.function} does not take {len(call.arguments)} arguments"
    hint = f"write {_ARGUMENTS[call.function]}"
    scope.report.add(QueryCode.ARGUMENTS, call.span, message, hint)
