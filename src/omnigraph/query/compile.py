"""The way in: `.gq` text and a catalog to typed queries, with everything that is wrong."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import assert_never

from omnigraph.lang.diagnostics import Diagnostic, DiagnosticsError, errors_in
from omnigraph.lang.source import Source
from omnigraph.model.types import (
    VECTOR_DIMENSION_MAX,
    BlobType,
    ListType,
    PropertyType,
    Scalar,
    VectorType,
)
from omnigraph.query import ast, ir
from omnigraph.query.codes import QueryCode
from omnigraph.query.mutations import resolve_mutation
from omnigraph.query.parser import read
from omnigraph.query.report import Report
from omnigraph.query.results import resolve_read
from omnigraph.query.scope import Scope, Uses, names_hidden_in
from omnigraph.schema.catalog import Catalog


@dataclass(frozen=True, slots=True)
class QueryReading:
    """What came of reading queries: their meaning unless there are errors, and all diagnostics."""

    source: Source
    queries: tuple[ir.Query, ...] | None
    diagnostics: tuple[Diagnostic, ...]


def compile_queries(text: str, catalog: Catalog, name: str = "query") -> tuple[ir.Query, ...]:
    """The queries that a text means, in its order.

    >>> from omnigraph.schema.parser import parse_schema
    >>> catalog = parse_schema("node Person { name: String @key }")
    >>> text = "query all() { match { $p: Person } return { $p.name } }"
    >>> [(each.name, [column.name for column in each.columns])
    ...  for each in compile_queries(text, catalog)]
    [('all', ['p.name'])]

    Args:
        name: What to call the text in diagnostics.

    Raises:
        DiagnosticsError: the text is refused; the error has everything found in it.
    """
    reading = read_queries(text, catalog, name)
    if reading.queries is None:
        raise DiagnosticsError(reading.diagnostics, reading.source)
    return reading.queries


def read_queries(text: str, catalog: Catalog, name: str = "query") -> QueryReading:
    """Everything there is to say about queries, warnings included, in the order of the text.

    Never raises, whatever the text. An error in one query hides none in another.
    """
    source = Source(name, text)
    syntax = read(source)
    report = Report()
    _check_names(syntax.queries, report)
    queries = tuple(_query(each, catalog, report) for each in syntax.queries)
    diagnostics = [*syntax.diagnostics, *report.diagnostics]
    diagnostics.sort(key=lambda each: (each.span, each.code))
    refused = bool(errors_in(diagnostics))
    return QueryReading(source, None if refused else queries, tuple(diagnostics))


def _check_names(queries: Iterable[ast.QueryNode], report: Report) -> None:
    seen: set[str] = set()
    for each in queries:
        if each.name.text in seen:
            message = f"two queries are called {each.name.text[:200]}"
            report.add(QueryCode.DUPLICATE_NAME, each.name.span, message)
        seen.add(each.name.text)


def _query(query: ast.QueryNode, catalog: Catalog, report: Report) -> ir.Query:
    declared = _parameters(query.parameters, report)
    parameters = tuple(each for each in declared.values() if each is not None)
    scope = Scope(catalog, report, declared, Uses())
    found: ir.Query
    match query.body:
        case ast.Read() as body:
            scope.hidden = names_hidden_in(body.clauses)
            found = resolve_read(query, body, parameters, scope)
        case statements:
            found = resolve_mutation(query, statements, parameters, scope)
    _check_unused(query.parameters, scope)
    return replace(found, parameters=tuple(_bounded(each, scope.uses) for each in parameters))


def _bounded(parameter: ir.Parameter, uses: Uses) -> ir.Parameter:
    low, high = uses.bounds.get(parameter.name, (None, None))
    return replace(parameter, minimum=low, maximum=high)


def _check_unused(parameters: Iterable[ast.ParameterNode], scope: Scope) -> None:
    for each in parameters:
        name = each.variable.name
        if name in scope.parameters and name not in scope.uses.parameters:
            message = f"the parameter ${name} is never used"
            scope.report.add(QueryCode.UNUSED_PARAMETER, each.variable.span, message)


def _parameters(
    written: Sequence[ast.ParameterNode], report: Report
) -> dict[str, ir.Parameter | None]:
    declared: dict[str, ir.Parameter | None] = {}
    for each in written:
        name, span = each.variable.name, each.variable.span
        type_ = _type(each.type, report)
        if each.variable.is_anonymous:
            report.add(QueryCode.CONFLICTING_NAME, span, "$_ names nothing", "give it a name")
        elif name in declared:
            report.add(QueryCode.DUPLICATE_NAME, span, f"two parameters are called ${name}")
        else:
            declared[name] = None if type_ is None else ir.Parameter(name, type_, each.nullable)
    return declared


def _type(written: ast.ParameterTypeNode, report: Report) -> PropertyType | None:
    match written:
        case ast.NamedType(name):
            return _base(name, report)
        case ast.ListOf(name):
            item = _base(name, report)
            return None if item is None else ListType(item)
        case ast.VectorOf(dimension):
            if 1 <= dimension.value <= VECTOR_DIMENSION_MAX:
                return VectorType(dimension.value)
            message = f"a vector has 1 to {VECTOR_DIMENSION_MAX} dimensions"
            report.add(QueryCode.NUMBER_RANGE, dimension.span, message)
            return None
        case _:
            assert_never(written)


def _base(name: ast.Name, report: Report) -> Scalar | BlobType | None:
    if name.text in set(Scalar):
        return Scalar(name.text)
    if name.text == str(BlobType()):
        return BlobType()
    message = f"the language has no type {name.text[:200]}"
    known = [*map(str, Scalar), str(BlobType())]
    report.add_misspelt(QueryCode.UNKNOWN_TYPE, name.text, name.span, message, known)
    return None
