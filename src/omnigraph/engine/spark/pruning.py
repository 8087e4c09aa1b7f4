"""Pruning: a plan without the columns that no part of it uses.

Rows come to Spark from a function that it cannot look into, so it reads all columns that the
function was told to return. Each of them is copied, value by value, from Arrow to Spark's rows.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace

from sqlglot import exp
from sqlglot.optimizer.pushdown_projections import pushdown_projections
from sqlglot.optimizer.scope import traverse_scope

from omnigraph.relational.plans import Relation, TableRows


def prune(
    tree: exp.Query, relations: Mapping[str, Relation]
) -> tuple[exp.Query, Mapping[str, Relation]]:
    """The same rows from fewer columns: a copy of the tree, and the relations that it reads.

    A tree that does not say of each column which table has it is returned as it is.
    """
    if not _is_qualified(tree):
        return tree, relations
    pruned = pushdown_projections(tree.copy())
    used = _columns_used(pruned)
    return pruned, {
        name: _prune_relation(relation, used[name])
        for name, relation in relations.items()
        if name in used
    }


def _is_qualified(tree: exp.Query) -> bool:
    columns_are = all(node.table for node in tree.find_all(exp.Column))
    return columns_are and not any(select.is_star for select in tree.find_all(exp.Select))


def _columns_used(tree: exp.Query) -> dict[str, set[str]]:
    """By the name of each table that is read, the columns that are read of it."""
    used: dict[str, set[str]] = defaultdict(set)
    for scope in traverse_scope(tree):
        for alias, _ in scope.references:
            source = scope.sources.get(alias)
            if isinstance(source, exp.Table):
                used[source.name] |= {node.name for node in scope.columns if node.table == alias}
    return used


def _prune_relation(relation: Relation, used: set[str]) -> Relation:
    if not isinstance(relation, TableRows):
        return relation
    return replace(relation, columns=tuple(name for name in relation.columns if name in used))
