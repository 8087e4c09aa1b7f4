"""Proof by statements: rules that a mutation cannot break, whatever its values are."""

from __future__ import annotations

from collections.abc import Iterable
from typing import assert_never

from omnigraph.integrity.cardinalities import CardinalityMax, CardinalityMin
from omnigraph.integrity.ends import DanglingEdge, Endpoint
from omnigraph.integrity.keys import DistinctIds, NewIds
from omnigraph.integrity.proofs.proof import Proof
from omnigraph.integrity.rows import RowRules
from omnigraph.integrity.rules import SetRule
from omnigraph.integrity.uniques import Unique
from omnigraph.model.tables import TableKey
from omnigraph.query import ir
from omnigraph.schema.catalog import Catalog


def by_statements(statements: Iterable[ir.Statement], catalog: Catalog) -> Proof:
    """Prove the rules that committed rows keep and the statements cannot break.

    Pending rows have distinct ids, unless they are those of a match that gives ids or keys; an
    update changes neither ids nor ends, and a statement that deletes a node deletes its edges.
    """
    inserted: set[TableKey] = set()
    matched: set[TableKey] = set()
    assigned: set[tuple[TableKey, str]] = set()
    deletes = False
    for statement in statements:
        match statement:
            case ir.InsertNode(type_name) | ir.InsertEdge(type_name):
                inserted.add(catalog.type_named(type_name).table_key)
            case ir.InsertMatched(type_name):
                type_ = catalog.type_named(type_name)
                inserted.add(type_.table_key)
                if type_.key or not statement.is_minted:
                    matched.add(type_.table_key)
            case ir.Update(table, assignments):
                assigned.update((table, assignment.property) for assignment in assignments)
            case ir.UpdateMatched(table):
                assigned.update((table, name) for name in statement.properties)
            case ir.Delete() | ir.DeleteMatched():
                deletes = True
            case _:
                assert_never(statement)

    def is_proven(rule: RowRules | SetRule) -> bool:
        match rule:
            case RowRules():
                return False
            case DistinctIds(type_):
                return type_.table_key not in matched
            case NewIds() | DanglingEdge():
                return True
            case Unique(type_, members):
                key = type_.table_key
                return key not in inserted and not any((key, name) in assigned for name in members)
            case Endpoint(edge) | CardinalityMax(edge):
                return edge.table_key not in inserted
            case CardinalityMin(edge, node):
                return not deletes and inserted.isdisjoint({edge.table_key, node.table_key})
            case _:
                assert_never(rule)

    return is_proven
