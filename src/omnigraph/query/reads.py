"""Read queries: resolves their matches, stage after stage, and the results of the last."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from omnigraph.model.tables import TableKey
from omnigraph.query import ast, ir
from omnigraph.query.blocks import resolve_block
from omnigraph.query.codes import QueryCode
from omnigraph.query.results import resolve_results
from omnigraph.query.scope import Scope, hidden_names
from omnigraph.query.stages import resolve_stage
from omnigraph.schema.catalog import Catalog


def resolve_read(
    query: ast.QueryNode, read: ast.Read, parameters: tuple[ir.Parameter, ...], scope: Scope
) -> ir.ReadQuery:
    """Resolve a read query; if an error was reported, the result serves only to find more."""
    parts: tuple[ast.Stage | ast.Read, ...] = (*read.stages, read)
    stages: list[ir.Stage] = []
    conditions: tuple[ir.Filter, ...] = ()
    scope.hidden = hidden_names(parts[0].clauses)
    for syntax, after in zip(read.stages, parts[1:], strict=True):
        match = resolve_block(syntax.clauses, scope, conditions)
        if not stages:
            _check_bound(query, scope)
        stage, scope, conditions = resolve_stage(
            syntax, match, after.clauses, scope, follows_stage=bool(stages)
        )
        stages.append(stage)
    match = resolve_block(read.clauses, scope, conditions)
    if not stages:
        _check_bound(query, scope)
    results = resolve_results(read, scope)
    match = replace(match, subqueries=tuple(scope.subqueries))
    blocks = (*(stage.match for stage in stages), match)
    return ir.ReadQuery(
        query.name.text,
        query.description,
        query.instruction,
        parameters,
        match,
        scope.all_variables(),
        results.columns,
        results.order,
        results.tie_breakers,
        results.limit,
        frozenset(table for block in blocks for table in tables_of(block, scope.catalog)),
        results.skip,
        read.distinct,
        tuple(stages),
    )


def _check_bound(query: ast.QueryNode, scope: Scope) -> None:
    if scope.optional == scope.variables.keys():
        message = "the match binds no variable"
        hint = "write $x: Type outside of the optional" if scope.variables else "write $x: Type"
        scope.report.add(QueryCode.NOTHING_BOUND, query.name.span, message, hint)


def tables_of(block: ir.Block, catalog: Catalog) -> Iterator[TableKey]:
    """The tables of all nodes and edges of a block, and of those in it."""
    for node in block.nodes:
        yield from (catalog.node_type(name).table_key for name in node.type_names)
    for traversal in block.traversals:
        yield from (catalog.edge_type(step.edge_type).table_key for step in traversal.steps)
    for part in block.parts:
        yield from tables_of(part.block, catalog)
