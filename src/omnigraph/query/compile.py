"""The entry point: `.gq` text and a catalog to typed queries, with all diagnostics."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import assert_never

from omnigraph.lang.diagnostics import Diagnostic, DiagnosticsError, errors_in
from omnigraph.lang.source import Source
from omnigraph.model.former_names import FormerNames
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
from omnigraph.query.filters import value_condition
from omnigraph.query.mutations import resolve_mutation
from omnigraph.query.parser import read
from omnigraph.query.reads import resolve_read
from omnigraph.query.report import Report
from omnigraph.query.scope import Scope, Uses
from omnigraph.query.subqueries import resolve_subquery
from omnigraph.schema.catalog import Catalog


@dataclass(frozen=True, slots=True)
class QueryReading:
    """The result of reading queries: typed queries unless there are errors, and all diagnostics."""

    source: Source
    queries: tuple[ir.Query, ...] | None
    diagnostics: tuple[Diagnostic, ...]


def compile_queries(
    text: str, catalog: Catalog, name: str = "query", former: FormerNames | None = None
) -> tuple[ir.Query, ...]:
    """The typed queries of a text, in its order.

    >>> from omnigraph.schema.parser import parse_schema
    >>> catalog = parse_schema("node Person { name: String @key }")
    >>> text = "query all() { match { $p: Person } return { $p.name } }"
    >>> [(each.name, [column.name for column in each.columns])
    ...  for each in compile_queries(text, catalog)]
    [('all', ['p.name'])]

    Args:
        name: What to call the text in diagnostics.
        former: The names that types and properties had before, for hints.
    """
    reading = read_queries(text, catalog, name, former)
    if reading.queries is None:
        raise DiagnosticsError(reading.diagnostics, reading.source)
    return reading.queries


def read_queries(
    text: str, catalog: Catalog, name: str = "query", former: FormerNames | None = None
) -> QueryReading:
    """Typed queries and all diagnostics, warnings included, in the order of the text.

    Never raises, whatever the text. An error in one query hides none in another.
    """
    source = Source(name, text)
    syntax = read(source)
    report = Report(former or FormerNames())
    _check_names(syntax.queries, report)
    queries = tuple(_query(query, catalog, report) for query in syntax.queries)
    diagnostics = [*syntax.diagnostics, *report.diagnostics]
    diagnostics.sort(key=lambda diagnostic: (diagnostic.span, diagnostic.code))
    has_errors = bool(errors_in(diagnostics))
    return QueryReading(source, None if has_errors else queries, tuple(diagnostics))


def _check_names(queries: Iterable[ast.QueryNode], report: Report) -> None:
    seen: set[str] = set()
    for query in queries:
        if query.name.text in seen:
            message = f"two queries are called {query.name.text[:200]}"
            report.add(QueryCode.DUPLICATE_NAME, query.name.span, message)
        seen.add(query.name.text)


def _query(query: ast.QueryNode, catalog: Catalog, report: Report) -> ir.Query:
    by_name = _parameters(query.parameters, report)
    parameters = tuple(parameter for parameter in by_name.values() if parameter is not None)
    scope = Scope(
        catalog,
        report,
        by_name,
        Uses(),
        condition=value_condition,
        subquery=resolve_subquery,
    )
    resolved: ir.Query
    match query.body:
        case ast.Read() as body:
            resolved = resolve_read(query, body, parameters, scope)
        case statements:
            resolved = resolve_mutation(query, statements, parameters, scope)
    _check_unused(query.parameters, scope)
    return replace(
        resolved, parameters=tuple(_with_bounds(parameter, scope.uses) for parameter in parameters)
    )


def _with_bounds(parameter: ir.Parameter, uses: Uses) -> ir.Parameter:
    low, high = uses.bounds.get(parameter.name, (None, None))
    return replace(parameter, minimum=low, maximum=high)


def _check_unused(parameters: Iterable[ast.ParameterNode], scope: Scope) -> None:
    for parameter in parameters:
        name = parameter.variable.name
        if name in scope.parameters and name not in scope.uses.parameters:
            message = f"the parameter ${name} is never used"
            scope.report.add(QueryCode.UNUSED_PARAMETER, parameter.variable.span, message)


def _parameters(
    nodes: Sequence[ast.ParameterNode], report: Report
) -> dict[str, ir.Parameter | None]:
    by_name: dict[str, ir.Parameter | None] = {}
    for node in nodes:
        name, span = node.variable.name, node.variable.span
        type_ = _type(node.type, report)
        if node.variable.is_anonymous:
            report.add(QueryCode.CONFLICTING_NAME, span, "$_ names nothing", "give it a name")
        elif name in by_name:
            report.add(QueryCode.DUPLICATE_NAME, span, f"two parameters are called ${name}")
        else:
            by_name[name] = None if type_ is None else ir.Parameter(name, type_, node.nullable)
    return by_name


def _type(node: ast.ParameterTypeNode, report: Report) -> PropertyType | None:
    match node:
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
            assert_never(node)


def _base(name: ast.Name, report: Report) -> Scalar | BlobType | None:
    if name.text in set(Scalar):
        return Scalar(name.text)
    if name.text == str(BlobType()):
        return BlobType()
    message = f"the language has no type {name.text[:200]}"
    known = [*map(str, Scalar), str(BlobType())]
    report.add_unknown_name(QueryCode.UNKNOWN_TYPE, name.text, name.span, message, known)
    return None
