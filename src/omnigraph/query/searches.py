"""Searches: type-checks the functions that test and rank texts and vectors."""

from __future__ import annotations

from typing import Final

from omnigraph.model.types import ListType, PropertyType, Scalar, VectorType
from omnigraph.query import ast, ir
from omnigraph.query.codes import QueryCode
from omnigraph.query.literals import vector
from omnigraph.query.operands import operand
from omnigraph.query.scope import Scope
from omnigraph.query.several import SeveralTypes
from omnigraph.relational.searches import TextTest
from omnigraph.schema.catalog import SchemaType
from omnigraph.schema.embeds import EmbeddedVector, embedded_vectors
from omnigraph.schema.indexes import text_options, vector_options

RRF_K: Final = 60
"""The default `k` of `rrf`, from the paper that introduced it."""

_EDITS_MAX: Final = 2
"""With more edits any two short words would match, and no index supports it."""

_RANKINGS: Final = frozenset({ast.SearchName.NEAREST, ast.SearchName.BM25, ast.SearchName.RRF})

_ARGUMENTS: Final = {
    ast.SearchName.SEARCH: "search($x.text, query)",
    ast.SearchName.FUZZY: "fuzzy($x.text, query, edits?)",
    ast.SearchName.MATCH_TEXT: "match_text($x.text, query)",
    ast.SearchName.NEAREST: "nearest($x.vector, query)",
    ast.SearchName.BM25: "bm25($x.text, query)",
    ast.SearchName.RRF: "rrf(nearest(…), bm25(…), …, k?)",
}


def text_match(call: ast.SearchCall, scope: Scope) -> ir.TextMatch | None:
    """A test of a text; None if an error was reported."""
    if call.function in _RANKINGS:
        hint = f"order {{ {call.function}(…) }}"
        message = f"{call.function} ranks rows, and keeps them all"
        scope.report.add(QueryCode.CALL_PLACE, call.span, message, hint)
        return None
    match call.function, call.arguments:
        case (_, (syntax, query)) | (ast.SearchName.FUZZY, (syntax, query, _)):
            text = _text(syntax, scope)
            query_text = _row_independent_value(query, Scalar.STRING, scope)
            edits: ir.ParameterValue | ir.Constant | None = None
            if len(call.arguments) == 3:
                edits = _whole_number(call.arguments[2], scope, low=0, high=_EDITS_MAX)
                if edits is None:
                    return None
            if text is None or query_text is None:
                return None
            type_ = _type_of(text, scope)
            analyzer = text_options(type_, text.column).analyzer
            test = TextTest(call.function)
            return ir.TextMatch(test, text, query_text, edits, type_.table_key, analyzer)
        case _:
            _report_arguments(call, scope)
            return None


def ranking(call: ast.SearchCall, scope: Scope) -> ir.Ranking | None:
    """A score or a distance; None if an error was reported."""
    match call.function, call.arguments:
        case ast.SearchName.NEAREST, (syntax, query):
            return _nearest(syntax, query, scope)
        case ast.SearchName.BM25, (syntax, query):
            text = _text(syntax, scope)
            query_text = _row_independent_value(query, Scalar.STRING, scope)
            if text is None or query_text is None:
                return None
            type_ = _type_of(text, scope)
            analyzer = text_options(type_, text.column).analyzer
            return ir.Bm25(text, query_text, type_.table_key, analyzer)
        case ast.SearchName.RRF, (_, _, *_):
            return _rrf(call.arguments, scope)
        case ((ast.SearchName.SEARCH | ast.SearchName.FUZZY | ast.SearchName.MATCH_TEXT), _):
            operand(call, scope)
            return None
        case _:
            pass
    _report_arguments(call, scope)
    return None


def _nearest(syntax: ast.Expression, query: ast.Expression, scope: Scope) -> ir.Nearest | None:
    column = _column(syntax, scope)
    if column is None:
        return None
    if not isinstance(column.type, VectorType):
        message = f"{column.column} is {column.type}, not a Vector"
        scope.report.add(QueryCode.ARGUMENTS, syntax.span, message)
        return None
    type_ = _type_of(column, scope)
    metric = vector_options(type_, column.column).metric
    embedded = _embedded(type_, column.column)
    if isinstance(query, ast.ListLiteral):
        constant = vector(query, column.type.dimension, scope.report)
        if constant is None:
            return None
        return ir.Nearest(column, constant, type_.table_key, metric, embedded)
    value = operand(query, scope)
    if isinstance(value, ir.GivenValue) and value.type is Scalar.STRING:
        if embedded is None:
            message = f"{column.column} has no @embed, so no model can embed a text to look for"
            hint = f"look for a {column.type}, or add @embed to the property"
            scope.report.add(QueryCode.ARGUMENTS, query.span, message, hint)
            return None
        vector_value = ir.ParameterValue(
            _vector_name(embedded, value), column.type, nullable=value.nullable
        )
        return ir.Nearest(column, vector_value, type_.table_key, metric, embedded, value)
    query_vector = _row_independent_value(query, column.type, scope)
    if query_vector is None:
        return None
    return ir.Nearest(column, query_vector, type_.table_key, metric, embedded)


def _embedded(type_: SchemaType, name: str) -> EmbeddedVector | None:
    return next((one for one in embedded_vectors(type_) if one.name == name), None)


def _vector_name(embedded: EmbeddedVector, text: ir.GivenValue) -> str:
    """The parameter that has the vector of a text; no query can name it."""
    what = f"${text.name}" if isinstance(text, ir.ParameterValue) else repr(text)
    return f"the vector of {what} in {embedded.label}"


def _rrf(arguments: tuple[ast.Expression, ...], scope: Scope) -> ir.Rrf | None:
    """Two or more rankings, and perhaps a whole number after them."""
    syntaxes, k = arguments, None
    if len(arguments) > 2 and not isinstance(arguments[-1], ast.SearchCall):
        *syntaxes_, k = arguments
        syntaxes = tuple(syntaxes_)
    rankings = [_rrf_part(syntax, scope) for syntax in syntaxes]
    constant = ir.Constant(RRF_K, Scalar.I64)
    weight = constant if k is None else _whole_number(k, scope, low=1, high=None)
    parts = tuple(part for part in rankings if part is not None)
    return ir.Rrf(parts, weight) if weight and len(parts) == len(rankings) else None


def _rrf_part(syntax: ast.Expression, scope: Scope) -> ir.Nearest | ir.Bm25 | None:
    match syntax:
        case ast.SearchCall(ast.SearchName.NEAREST | ast.SearchName.BM25):
            part = ranking(syntax, scope)
            assert not isinstance(part, ir.Rrf), "the function is another"
            return part
        case _:
            message = "rrf joins two or more of nearest(…) and bm25(…)"
            scope.report.add(QueryCode.ARGUMENTS, syntax.span, message)
            return None


def _type_of(column: ir.ColumnValue, scope: Scope) -> SchemaType:
    type_ = scope.bound_type(column.variable)
    assert type_ is not None, "its column was resolved"
    assert not isinstance(type_, SeveralTypes), "only one type is searched"
    return type_


def _text(syntax: ast.Expression, scope: Scope) -> ir.ColumnValue | None:
    column = _column(syntax, scope)
    if column is None or column.type is Scalar.STRING:
        return column
    message = f"{column.column} is {column.type}, not a String"
    scope.report.add(QueryCode.ARGUMENTS, syntax.span, message)
    return None


def _column(syntax: ast.Expression, scope: Scope) -> ir.ColumnValue | None:
    if isinstance(syntax, ast.PropertyOf):
        column = operand(syntax, scope)
        if not isinstance(column, ir.ColumnValue):
            return None
        if not isinstance(scope.bound_type(column.variable), SeveralTypes):
            return column
        message = "what is searched has one type"
        hint = "search each type by itself"
        scope.report.add(QueryCode.ARGUMENTS, syntax.span, message, hint)
        return None
    message = "the first argument is a property: $x.name"
    scope.report.add(QueryCode.ARGUMENTS, syntax.span, message)
    return None


def _row_independent_value(
    syntax: ast.Expression, type_: PropertyType, scope: Scope
) -> ir.GivenValue | None:
    """A value of this type that is known before any row is read."""
    value = operand(syntax, scope)
    if value is None:
        return None
    if not isinstance(value, ir.GivenValue):
        message, hint = "the search value is not a literal or a parameter", "pass it as a parameter"
        if isinstance(value, ir.ColumnValue):
            message = "the search value must be a literal or a parameter"
    elif value.type != type_:
        message, hint = f"what is looked for is {value.type}, not {type_}", ""
        if isinstance(type_, VectorType) and isinstance(value.type, ListType | Scalar):
            hint = f"declare the parameter as {type_}"
    else:
        return value
    scope.report.add(QueryCode.ARGUMENTS, syntax.span, message, hint)
    return None


def _whole_number(
    syntax: ast.Expression, scope: Scope, *, low: int, high: int | None
) -> ir.ParameterValue | ir.Constant | None:
    """A whole number within bounds, or a parameter whose bounds `parameters.bind` checks."""
    number = operand(syntax, scope)
    match number:
        case None:
            return None
        case ir.Constant(int() as value, Scalar.I64):
            if low <= value and (high is None or value <= high):
                return number
        case ir.ParameterValue(name, Scalar() as type_, nullable):
            if type_.is_integer and not nullable:
                scope.uses.bound(name, low, high)
                return number
        case _:
            pass
    range_ = f"from {low} up" if high is None else f"from {low} to {high}"
    message = f"this must be a whole number {range_}, or a parameter that is one"
    scope.report.add(QueryCode.ARGUMENTS, syntax.span, message)
    return None


def _report_arguments(call: ast.SearchCall, scope: Scope) -> None:
    message = f"{call.function} does not take {len(call.arguments)} arguments"
    hint = f"write {_ARGUMENTS[call.function]}"
    scope.report.add(QueryCode.ARGUMENTS, call.span, message, hint)
