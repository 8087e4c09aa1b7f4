"""Blocks: the clauses of a match or a negation made into bindings, traversals and filters."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import assert_never

from omnigraph.model.names import TypeName
from omnigraph.query import ast, ir
from omnigraph.query.codes import QueryCode
from omnigraph.query.filters import comparison, null_test, property_match
from omnigraph.query.operands import operand
from omnigraph.query.scope import Scope, column, edge_named, node_type
from omnigraph.query.searches import text_match
from omnigraph.query.traversals import resolve_traversals
from omnigraph.schema.catalog import NodeType


def resolve_block(written: Sequence[ast.Clause], scope: Scope) -> ir.Block:
    """What these clauses mean together; the scope then has every variable they bind.

    Clauses may stand in any order: bindings are made first, then traversals, then all that reads
    them. If something was reported, the block is only good for finding more.
    """
    clauses = [_as_meant(each, scope) for each in written]
    for each in clauses:
        if isinstance(each, ast.Binding):
            _bind(each, scope)
    walks = [each for each in clauses if isinstance(each, ast.Traversal)]
    traversals = resolve_traversals(walks, scope)
    filters = [found for each in clauses for found in _filters(each, scope)]
    negations = [_negation(each, scope) for each in clauses if isinstance(each, ast.Negation)]
    return ir.Block(tuple(_nodes(clauses, scope)), traversals, tuple(filters), tuple(negations))


def _as_meant(clause: ast.Clause, scope: Scope) -> ast.Clause:
    """`$a contains $b` is a traversal if the schema has such an edge and both may be nodes."""
    match clause:
        case ast.Comparison(ast.Variable() as left, sign, ast.Variable() as right):
            no_parameter = not {left.name, right.name} & scope.parameters.keys()
            if no_parameter and edge_named(sign, scope.catalog):
                # The word is all that stands between the two variables.
                word = ast.Name(str(sign), clause.span)
                return ast.Traversal(
                    left, None, word, undirected=False, hops=None, destination=right
                )
        case _:
            pass
    return clause


def _bind(written: ast.Binding, scope: Scope) -> None:
    name = written.variable.name
    type_ = node_type(written.type, scope.catalog, scope.report)
    if written.variable.is_anonymous:
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
    scope.report.add(QueryCode.CONFLICTING_NAME, written.variable.span, message, hint)


def _filters(clause: ast.Clause, scope: Scope) -> Iterator[ir.Filter]:
    found: ir.Filter | None = None
    match clause:
        case ast.Binding():
            yield from _property_matches(clause, scope)
        case ast.Comparison():
            found = comparison(clause, scope)
        case ast.NullTest(tested, negated):
            value = operand(tested, scope)
            if isinstance(value, ir.ColumnValue):
                found = null_test(value, tested.span, scope, negated=negated)
        case ast.SearchCall():
            found = text_match(clause, scope)
        case ast.Traversal() | ast.Negation():
            pass
        case _:
            assert_never(clause)
    if found is not None:
        yield found


def _property_matches(written: ast.Binding, scope: Scope) -> Iterator[ir.Comparison]:
    name = written.variable.name
    type_ = scope.bound_type(name)
    if not isinstance(type_, NodeType):
        return
    for each in written.matches:
        value = column(name, type_, each.property, scope.report)
        found = None if value is None else property_match(value, each.value, scope)
        if found is not None:
            yield found


def _negation(written: ast.Negation, scope: Scope) -> ir.Negation:
    inner = scope.inner(written.clauses)
    block = resolve_block(written.clauses, inner)
    if not inner.outer:
        message = "this 'not' uses no variable from outside, so it would keep all rows or none"
        hint = "use a variable that the clauses around it bind"
        scope.report.add(QueryCode.NOTHING_BOUND, written.span, message, hint)
    return ir.Negation(block, tuple(sorted(inner.outer)))


def _nodes(clauses: Sequence[ast.Clause], scope: Scope) -> Iterator[ir.NodeBinding]:
    """The nodes that this block binds, in the order of the text."""
    seen: set[str] = set()
    for each in clauses:
        match each:
            case ast.Binding(variable):
                named = [variable]
            case ast.Traversal():
                named = [each.source, each.destination]
            case _:
                continue
        for variable in named:
            type_ = scope.variables.get(variable.name)
            if variable.name not in seen and isinstance(type_, NodeType):
                seen.add(variable.name)
                yield ir.NodeBinding(variable.name, TypeName(type_.name))
