"""Paths: resolves `as $path by weight` of a traversal, and what is read of a path."""

from __future__ import annotations

from collections.abc import Sequence

from omnigraph.limits import HOPS_MAX
from omnigraph.model.types import INTEGER_BOUNDS, ListType, Scalar
from omnigraph.query import ast, ir
from omnigraph.query.codes import QueryCode
from omnigraph.query.functions import ValueFunction
from omnigraph.query.scope import BoundPath, Scope
from omnigraph.query.several import together
from omnigraph.schema.catalog import EdgeType


def bind_path(syntax: ast.Traversal, edges: Sequence[EdgeType], scope: Scope) -> None:
    """Make the path of a traversal a variable of the scope, if it has one.

    Args:
        edges: The edge types of the traversal; none if they are not known.
    """
    path = syntax.path
    if path is None:
        return
    variable, name = path.variable, path.variable.name
    if variable.is_anonymous:
        message, hint = "$_ binds nothing", "leave as $_ out"
    elif name in scope.parameters:
        message, hint = f"${name} is a parameter", "give the path another name"
    elif scope.binds(name) or variable in (syntax.source, syntax.destination):
        message, hint = f"${name} is bound already", "a path is bound by one traversal only"
    else:
        scope.paths[name] = BoundPath(_weight_type(path.weight, edges, scope))
        return
    scope.report.add(QueryCode.CONFLICTING_NAME, variable.span, message, hint)


def check_path_ends(syntax: ast.Traversal, scope: Scope) -> None:
    """Report ends of a traversal that are paths, and a path whose ends have no names."""
    for end in (syntax.source, syntax.destination):
        if not end.is_anonymous and scope.path(end.name) is not None:
            message = f"${end.name} is a path, and an edge joins nodes"
            scope.report.add(QueryCode.CONFLICTING_NAME, end.span, message)
        elif end.is_anonymous and syntax.path is not None:
            message, hint = "a path leads from one node to another", "give this end a name"
            scope.report.add(QueryCode.PATH, end.span, message, hint)


def resolve_path(
    syntax: ast.Traversal, hops_min: int, scope: Scope, *, is_one: bool
) -> ir.Path | None:
    """The path of a traversal; None if it has none, or if an error was reported.

    Args:
        is_one: Whether its edges are of one type, or all between nodes of one.
    """
    path = syntax.path
    if path is None:
        return None
    if not is_one:
        message = "a path along several edge types needs edges between nodes of one type"
        scope.report.add(QueryCode.PATH, path.variable.span, message)
        return None
    bound = scope.paths.get(path.variable.name)
    if path.weight is not None and hops_min > 1:
        assert syntax.hops is not None, "one hop is the least"
        message = "the best walk by a weight may have any number of edges up to the greatest"
        scope.report.add(QueryCode.PATH, syntax.hops.span, message, "start with 1")
        return None
    variable = ir.path_variable(path.variable.name)
    if path.weight is None:
        return ir.Path(variable)
    weight = None if bound is None else bound.weight
    return None if weight is None else ir.Path(variable, path.weight.text, weight)


def path_value(
    function: ast.PathFunction | ValueFunction, variable: ast.Variable, scope: Scope
) -> ir.ColumnValue | None:
    """What is read of a path; None if an error was reported."""
    path = scope.path(variable.name)
    if path is None:
        if variable.name in scope.parameters or scope.binds(variable.name):
            message = f"{function}(…) takes a path, and ${variable.name} is not one"
            hint = f"write … as ${variable.name} after a walk"
            scope.report.add(QueryCode.PATH, variable.span, message, hint)
        else:
            scope.read(variable)
        return None
    owner = ir.path_variable(variable.name)
    match function:
        case ast.PathFunction.NODES:
            return ir.ColumnValue(owner, ir.NODES, ListType(Scalar.STRING), path.nullable)
        case ast.PathFunction.COST if path.weight is None:
            message = f"${variable.name} has no weight, so it has no cost"
            hint = f"write … as ${variable.name} by weight"
            scope.report.add(QueryCode.PATH, variable.span, message, hint)
            return None
        case ast.PathFunction.COST:
            assert path.weight is not None, "it is above"
            return _cost(owner, path.weight, nullable=path.nullable)
        case _:
            return ir.ColumnValue(owner, ir.LENGTH, Scalar.I64, path.nullable)


def _cost(owner: str, weight: Scalar, *, nullable: bool) -> ir.ColumnValue:
    if weight.is_float:
        return ir.ColumnValue(owner, ir.COST, Scalar.F64, nullable)
    type_ = Scalar.U64 if weight in (Scalar.U32, Scalar.U64) else Scalar.I64
    magnitude = HOPS_MAX * max(map(abs, INTEGER_BOUNDS[weight]))
    return ir.ColumnValue(owner, ir.COST, type_, nullable, magnitude)


def _weight_type(weight: ast.Name | None, edges: Sequence[EdgeType], scope: Scope) -> Scalar | None:
    """The type of a weight; None if it does not exist, or if an error was reported."""
    if weight is None or not edges:
        return None
    type_ = together(edges)
    properties = {each.name: each.type for each in type_.properties}
    found = properties.get(weight.text)
    if isinstance(found, Scalar) and found.is_numeric:
        return found
    if found is not None:
        message = f"{weight.text} is {found}, and a weight is a number"
        scope.report.add(QueryCode.PATH, weight.span, message)
        return None
    message = f"{type_.name} has no property {weight.text[:200]}"
    scope.report.add_unknown_name(
        QueryCode.UNKNOWN_PROPERTY, weight.text, weight.span, message, properties
    )
    return None
