"""Matches of mutations: the rows that `insert … from match { … }` writes, or a block selects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from omnigraph.lang.source import Span
from omnigraph.model.types import Scalar
from omnigraph.query import ast, ir
from omnigraph.query.blocks import resolve_block
from omnigraph.query.codes import QueryCode
from omnigraph.query.operands import can_be_sorted
from omnigraph.query.reads import tables_of
from omnigraph.query.scope import ENDS, Scope
from omnigraph.query.several import names_of
from omnigraph.schema.catalog import EdgeType, NodeType, SchemaType

_ANY: Final = "any row"
"""The column of a match of which only matters whether it has a row; no property has such a name."""


def resolve_match(clauses: Sequence[ast.Clause], span: Span, scope: Scope) -> ir.Block:
    """The match of an insert; the scope then has its variables."""
    block = resolve_block(clauses, scope)
    if scope.optional == scope.variables.keys():
        hint = "write $x: Type outside of the optional" if scope.variables else "write $x: Type"
        scope.report.add(QueryCode.NOTHING_BOUND, span, "the match binds no variable", hint)
    return block


def check_ends(syntax: ast.Insert, type_: EdgeType, scope: Scope) -> None:
    """Report an end that is a node of another type than the edge joins."""
    types = {"from": type_.source, "to": type_.target}
    for assignment in syntax.assignments:
        name, value = assignment.property.text, assignment.value
        if name not in ENDS or not isinstance(value, ast.Variable):
            continue
        bound = scope.bound_type(value.name)
        if bound is None or names_of(bound) == (types[name],):
            continue
        message = f"{name} of {type_.name} is a {types[name]}, and ${value.name} a {bound.name}"
        hint = f"bind ${value.name}: {types[name]}"
        scope.report.add(QueryCode.WRONG_END, value.span, message, hint)


def matched_rows(
    values: Mapping[str, ir.Operand | None],
    block: ir.Block,
    parameters: tuple[ir.Parameter, ...],
    scope: Scope,
    *,
    distinct: bool,
) -> ir.ReadQuery:
    """The query of the rows of a match: the values that depend on it, by name."""
    columns = [
        ir.Column(name, value)
        for name, value in values.items()
        if value is not None and not isinstance(value, ir.GivenValue)
    ]
    block = replace(block, subqueries=tuple(scope.subqueries))
    query = ir.ReadQuery(
        name="",
        description=None,
        instruction=None,
        parameters=parameters,
        match=block,
        variables=tuple(sorted(scope.variables)),
        columns=tuple(columns or [ir.Column(_ANY, ir.Constant(value=True, type=Scalar.BOOL))]),
        order=(),
        tie_breakers=(),
        limit=None,
        reads=frozenset(tables_of(block, scope.catalog)),
        is_distinct=distinct,
    )
    return replace(query, tie_breakers=query.group_keys)


def row_clause(name: str, type_name: ast.Name, type_: SchemaType) -> ast.Clause:
    """The clause of a match that binds the row of an update or a delete."""
    variable = ast.Variable(name, type_name.span)
    if isinstance(type_, NodeType):
        return ast.Binding(variable, type_name, ())
    end = ast.Variable("_", type_name.span)
    word = ast.Name(type_.word, type_name.span)
    return ast.Traversal(end, variable, word, undirected=False, hops=None, destination=end)


def check_distinct(syntax: ast.Insert, match: ir.ReadQuery, scope: Scope) -> None:
    """Report values of types by which rows cannot be made distinct."""
    columns = zip(match.columns, match.group_keys, strict=True)
    types = {column.name: key.type for column, key in columns}
    for assignment in syntax.assignments:
        name = assignment.property.text
        type_ = types.get(ENDS.get(name, name))
        if type_ is not None and not can_be_sorted(type_):
            message = f"rows cannot be made distinct by {type_}, so the match cannot give {name}"
            hint = "give a literal or a parameter, or leave it out and update it"
            scope.report.add(QueryCode.AGGREGATE_ARGUMENT, assignment.value.span, message, hint)
