"""Blocks: resolves the clauses of a match or a negation to bindings, traversals and filters."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import assert_never

from omnigraph.model.names import TypeName
from omnigraph.query import ast, ir
from omnigraph.query.codes import QueryCode
from omnigraph.query.filters import comparison, null_test, property_match
from omnigraph.query.operands import operand
from omnigraph.query.scope import Scope, column, find_edge_type, node_type
from omnigraph.query.searches import text_match
from omnigraph.query.traversals import resolve_traversals
from omnigraph.schema.catalog import NodeType


def resolve_block(syntax: Sequence[ast.Clause], scope: Scope) -> ir.Block:
    """Resolve clauses to a block; the scope then has every variable they bind.

    Clauses may be in any order: bindings are resolved first, then traversals, then the clauses
    that read them. If an error was reported, the block serves only to find further errors.
    """
    clauses = [_reinterpret(clause, scope) for clause in syntax]
    for clause in clauses:
        if isinstance(clause, ast.Binding):
            _bind(clause, scope)
    walks = [clause for clause in clauses if isinstance(clause, ast.Traversal)]
    traversals = resolve_traversals(walks, scope)
    filters = [filter_ for clause in clauses for filter_ in _filters(clause, scope)]
    negations = [_negation(clause, scope) for clause in clauses if isinstance(clause, ast.Negation)]
    return ir.Block(tuple(_nodes(clauses, scope)), traversals, tuple(filters), tuple(negations))


def _reinterpret(clause: ast.Clause, scope: Scope) -> ast.Clause:
    """Turn `$a contains $b` into a traversal if the schema has the edge and both may be nodes."""
    match clause:
        case ast.Comparison(ast.Variable() as left, sign, ast.Variable() as right):
            are_variables = not {left.name, right.name} & scope.parameters.keys()
            if are_variables and find_edge_type(sign, scope.catalog):
                # A comparison has no span for its sign alone, so the word gets that of the clause.
                word = ast.Name(str(sign), clause.span)
                return ast.Traversal(
                    left, None, word, undirected=False, hops=None, destination=right
                )
        case _:
            pass
    return clause


def _bind(syntax: ast.Binding, scope: Scope) -> None:
    name = syntax.variable.name
    type_ = node_type(syntax.type, scope.catalog, scope.report)
    if syntax.variable.is_anonymous:
        message, hint = "$_ binds nothing", "give it a name"
    elif name in scope.parameters:
        message, hint = f"${name} is a parameter", "give the node another name"
    elif not scope.binds(name):
        scope.variables[name] = type_
        return
    else:
        bound = scope.bound_type(name)
        if type_ is None or bound is None or bound.name == type_.name:
            return
        message, hint = f"${name} is a {bound.name}, so not a {type_.name}", ""
    scope.report.add(QueryCode.CONFLICTING_NAME, syntax.variable.span, message, hint)


def _filters(clause: ast.Clause, scope: Scope) -> Iterator[ir.Filter]:
    filter_: ir.Filter | None = None
    match clause:
        case ast.Binding():
            yield from _property_matches(clause, scope)
        case ast.Comparison():
            filter_ = comparison(clause, scope)
        case ast.NullTest(column_syntax, negated):
            value = operand(column_syntax, scope)
            if isinstance(value, ir.ColumnValue):
                filter_ = null_test(value, column_syntax.span, scope, negated=negated)
        case ast.SearchCall():
            filter_ = text_match(clause, scope)
        case ast.Traversal() | ast.Negation():
            pass
        case _:
            assert_never(clause)
    if filter_ is not None:
        yield filter_


def _property_matches(syntax: ast.Binding, scope: Scope) -> Iterator[ir.Comparison]:
    name = syntax.variable.name
    type_ = scope.bound_type(name)
    if not isinstance(type_, NodeType):
        return
    for match in syntax.matches:
        value = column(name, type_, match.property, scope.report)
        condition = None if value is None else property_match(value, match.value, scope)
        if condition is not None:
            yield condition


def _negation(syntax: ast.Negation, scope: Scope) -> ir.Negation:
    inner = scope.inner(syntax.clauses)
    block = resolve_block(syntax.clauses, inner)
    if not inner.outer:
        message = "this 'not' uses no variable from outside, so it would keep all rows or none"
        hint = "use a variable that the clauses around it bind"
        scope.report.add(QueryCode.NOTHING_BOUND, syntax.span, message, hint)
    return ir.Negation(block, tuple(sorted(inner.outer)))


def _nodes(clauses: Sequence[ast.Clause], scope: Scope) -> Iterator[ir.NodeBinding]:
    """The nodes that this block binds, in the order of the text."""
    seen: set[str] = set()
    for clause in clauses:
        match clause:
            case ast.Binding(variable):
                variables = [variable]
            case ast.Traversal():
                variables = [clause.source, clause.destination]
            case _:
                continue
        for variable in variables:
            type_ = scope.variables.get(variable.name)
            if variable.name not in seen and isinstance(type_, NodeType):
                seen.add(variable.name)
                yield ir.NodeBinding(variable.name, TypeName(type_.name))
