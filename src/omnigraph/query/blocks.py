"""Blocks: resolves the clauses of a match or a negation to bindings, traversals and filters."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from omnigraph.query import ast, ir
from omnigraph.query.codes import QueryCode
from omnigraph.query.filters import conditions, property_match
from omnigraph.query.scope import Scope, find_edge_type, node_types
from omnigraph.query.several import is_node, names_of
from omnigraph.query.traversals import resolve_traversals


def resolve_block(
    syntax: Sequence[ast.Clause], scope: Scope, required: Sequence[ir.Filter] = ()
) -> ir.Block:
    """Resolve clauses to a block; the scope then has every variable they bind.

    Clauses may be in any order: bindings are resolved first, then traversals, then the clauses
    that read them; only optional parts keep their order. If an error was reported, the block serves
    only to find further errors.

    Args:
        required: Filters of the block that are not among its clauses.
    """
    clauses = [*_apart(_reinterpret(clause, scope) for clause in syntax)]
    for clause in clauses:
        if isinstance(clause, ast.Binding):
            _bind(clause, scope)
    walks = [clause for clause in clauses if isinstance(clause, ast.Traversal)]
    traversals = resolve_traversals(walks, scope)
    optionals = [
        _optional(clause, scope) for clause in clauses if isinstance(clause, ast.OptionalPart)
    ]
    filters = [
        *required,
        *(filter_ for clause in clauses for filter_ in _filters(clause, scope)),
    ]
    negations = [
        _negation(clause, scope)
        for clause in clauses
        if isinstance(clause, ast.Negation | ast.Existence)
    ]
    return ir.Block(
        tuple(_nodes(clauses, scope)),
        traversals,
        tuple(filters),
        tuple(negations),
        tuple(optionals),
        tuple(scope.subqueries),
    )


def _apart(clauses: Iterable[ast.Clause]) -> Iterator[ast.Clause]:
    """The clauses; a part of an `and` that says what exists, or does not, is one of its own."""
    for clause in clauses:
        match clause:
            case ast.Junction(ast.Connective.AND, parts):
                yield from _apart(parts)
            case ast.Inverse(ast.Existence(inner), span):
                yield ast.Negation(inner, span)
            case _:
                yield clause


def _reinterpret(clause: ast.Clause, scope: Scope) -> ast.Clause:
    """Turn `$a contains $b` or `$a in $b` into a traversal if there is the edge, between nodes."""
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
    type_ = node_types(syntax.types, scope.catalog, scope.report)
    if syntax.variable.is_anonymous:
        message, hint = "$_ binds nothing", "give it a name"
    elif name in scope.parameters:
        message, hint = f"${name} is a parameter", "give the node another name"
    elif scope.path(name) is not None:
        message, hint = f"${name} is a path", "give the node another name"
    elif not scope.binds(name):
        scope.variables[name] = type_
        return
    else:
        bound = scope.bound_type(name)
        if type_ is None or bound is None or bound.name == type_.name:
            return
        message, hint = f"${name} is a {bound.name}, so not a {type_.name}", ""
        if set(names_of(type_)) < set(names_of(bound)):
            hint = " or ".join(f'type(${name}) = "{each}"' for each in names_of(type_))
    scope.report.add(QueryCode.CONFLICTING_NAME, syntax.variable.span, message, hint)


def _filters(clause: ast.Clause, scope: Scope) -> Iterator[ir.Filter]:
    match clause:
        case ast.Binding():
            name = clause.variable.name
            if name not in scope.variables and scope.is_optional(name):
                # It is a node here, so this block has no row if it is none.
                yield ir.NullTest(scope.id_of(name), negated=True)
            yield from _property_matches(clause, scope)
        case ast.Traversal() | ast.Negation() | ast.Existence() | ast.OptionalPart():
            pass
        case _:
            yield from conditions(clause, scope)


def _property_matches(syntax: ast.Binding, scope: Scope) -> Iterator[ir.Comparison]:
    name = syntax.variable.name
    type_ = scope.bound_type(name)
    if type_ is None or not is_node(type_):
        return
    for match in syntax.matches:
        value = scope.column(name, type_, match.property)
        condition = None if value is None else property_match(value, match.value, scope)
        if condition is not None:
            yield condition


def _negation(syntax: ast.Negation | ast.Existence, scope: Scope) -> ir.Negation:
    """A negation; what exists is what is not missing."""
    inner = scope.inner(syntax.clauses)
    block = resolve_block(syntax.clauses, inner)
    if not inner.outer:
        word = "not" if isinstance(syntax, ast.Negation) else "exists"
        message = f"this '{word}' uses no variable from outside, so it would keep all rows or none"
        scope.report.add(QueryCode.NOTHING_BOUND, syntax.span, message, scope.outside_hint())
    outer = tuple(sorted(inner.outer))
    negation = ir.Negation(block, outer)
    if isinstance(syntax, ast.Negation):
        return negation
    return ir.Negation(ir.Block((), (), (), (negation,)), outer)


def _optional(syntax: ast.OptionalPart, scope: Scope) -> ir.OptionalPart:
    """An optional part; the scope then has its variables."""
    inner = scope.inner(syntax.clauses)
    block = resolve_block(syntax.clauses, inner)
    fault: tuple[str, str] | None = None
    if not inner.outer:
        hint = "use a variable that the clauses around it bind, or an optional before it"
        fault = "this 'optional' uses no variable from outside", hint
    elif not inner.variables:
        hint = "clauses outside bind all that it names: move those that depend on it into it"
        fault = "this 'optional' binds no variable of its own, so it has no effect", hint
    if fault is not None:
        scope.report.add(QueryCode.NOTHING_BOUND, syntax.span, *fault)
    scope.take_optional(inner)
    return ir.OptionalPart(block, tuple(sorted(inner.outer)))


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
            if variable.name not in seen and type_ is not None and is_node(type_):
                seen.add(variable.name)
                first, *others = names_of(type_)
                yield ir.NodeBinding(variable.name, first, tuple(others))
