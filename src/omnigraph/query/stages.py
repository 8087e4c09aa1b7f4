"""Stages: resolves `with { … }`, which decides what later matches see of those before it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from omnigraph.choices import TableKind
from omnigraph.model.types import EnumType, ListType, Scalar
from omnigraph.query import ast, ir
from omnigraph.query.codes import QueryCode
from omnigraph.query.expressions import is_wide, kept_magnitude
from omnigraph.query.filters import conditions
from omnigraph.query.functions import AggregateFunction
from omnigraph.query.results import PlainProjection, resolve_results
from omnigraph.query.scope import Scope
from omnigraph.query.several import is_node, names_of

_RESERVED: Final = frozenset(
    {"and", "as", "asc", "contains", "desc", "else", "end", "false", "in", "is", "not", "null"}
    | {"by", "match", "or", "return", "starts_with", "then", "true", "when", "with"}
)
"""Words that mean something else after a value, so that no value can be called by them."""

_LATER: Final = "keep $x, and read its properties later"


def resolve_stage(
    syntax: ast.Stage,
    match: ir.Block,
    after: Sequence[ast.Clause],
    scope: Scope,
    *,
    follows_stage: bool,
) -> tuple[ir.Stage, Scope, tuple[ir.Filter, ...]]:
    """Resolve a stage after its match.

    Returns the stage, the scope of the block after it, and what `where` requires of that block: a
    condition on what is kept is one of the next match. If an error was reported, they serve only
    to find more.

    Args:
        after: The clauses of the next block.
        scope: That of the match.
    """
    results = resolve_results(_without_objects(syntax, scope), scope)
    columns = {column.name: column.expression for column in results.columns}
    variables: list[str] = []
    values: dict[str, ir.ColumnValue] = {}
    for projection in results.projections:
        if _is_kept_variable(projection, scope):
            assert isinstance(projection.expression, ast.Variable), "it is one"
            variables.append(projection.expression.name)
        elif (name := _value_name(projection, scope)) is not None:
            expression = columns[name.text]
            values[name.text] = ir.ColumnValue(
                ir.KEPT,
                name.text,
                _kept_type(expression, projection, scope),
                expression.nullable,
                kept_magnitude(expression),
            )
    stage = ir.Stage(
        replace(match, subqueries=tuple(scope.subqueries)),
        scope.all_variables(),
        results.columns,
        results.order,
        results.tie_breakers,
        results.limit,
        results.skip,
        syntax.distinct,
        tuple(_kept_variable(name, scope) for name in variables if scope.bound_type(name)),
        follows_stage,
    )
    outside, inner = scope.after_stage(variables, values, after)
    filters = () if syntax.condition is None else tuple(conditions(syntax.condition, outside))
    # A condition on what is kept is one of the next match, and so are the subqueries in it.
    inner.subqueries.extend(outside.subqueries)
    return stage, inner, filters


def _without_objects(syntax: ast.Stage, scope: Scope) -> ast.Stage:
    """The stage without what it cannot keep, which is reported."""
    single: list[ast.Projection] = []
    for projection in syntax.projections:
        if isinstance(projection.expression, ast.AllOf | ast.ObjectOf):
            message = "a stage keeps variables and single values"
            scope.report.add(QueryCode.STAGE, projection.expression.span, message, _LATER)
        else:
            single.append(projection)
    return replace(syntax, projections=tuple(single))


def _is_kept_variable(projection: PlainProjection, scope: Scope) -> bool:
    """Whether it is a variable of the match, whose name is then checked."""
    expression, alias = projection.expression, projection.alias
    if not isinstance(expression, ast.Variable) or not scope.binds(expression.name):
        return False
    if alias is not None:
        message = f"a stage keeps ${expression.name} under its own name"
        hint = f"write ${expression.name}, or ${expression.name}.id as {alias.text[:100]}"
        scope.report.add(QueryCode.STAGE, alias.span, message, hint)
    return True


def _value_name(projection: PlainProjection, scope: Scope) -> ast.Name | None:
    """The name of a value that is kept; None if an error was reported."""
    expression = projection.expression
    if projection.alias is not None:
        name = projection.alias.text
        if name in _RESERVED:
            message = f"'{name}' means something else where a value that is kept may stand"
            scope.report.add(QueryCode.STAGE, projection.alias.span, message, "use another name")
        return projection.alias
    if isinstance(expression, ast.Alias):
        return expression.name
    message = "a value that a stage keeps needs a name"
    scope.report.add(QueryCode.STAGE, expression.span, message, "write … as name")
    return None


def _kept_type(
    expression: ir.Expression, projection: PlainProjection, scope: Scope
) -> Scalar | EnumType | ListType:
    """The type of a value that is kept; another one, with an error reported, if it cannot be."""
    type_, span = expression.type, projection.expression.span
    match expression:
        case ir.Aggregate(AggregateFunction.COLLECT, argument) if is_wide(argument):
            message = "a list of computed numbers cannot be kept"
            hint = "collect a property, or collect where the list is returned"
            scope.report.add(QueryCode.STAGE, span, message, hint)
        case _:
            pass
    if isinstance(type_, Scalar | EnumType | ListType):
        return type_
    scope.report.add(QueryCode.STAGE, span, f"a stage cannot keep {type_}", _LATER)
    return Scalar.STRING


def _kept_variable(name: str, scope: Scope) -> ir.KeptVariable:
    type_ = scope.bound_type(name)
    assert type_ is not None, "it is bound"
    kind = TableKind.NODE if is_node(type_) else TableKind.EDGE
    return ir.KeptVariable(name, kind, names_of(type_), scope.is_optional(name))
