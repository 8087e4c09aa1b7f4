"""Rules that a mutation keeps by the way it works, and that need not be asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import assert_never

from omnigraph.integrity.cardinalities import Least, Most
from omnigraph.integrity.ends import Endpoint, Stranded
from omnigraph.integrity.keys import DistinctIds, NewIds
from omnigraph.integrity.rules import SetRule
from omnigraph.integrity.uniques import Unique
from omnigraph.model.tables import TableKey
from omnigraph.query import ir
from omnigraph.schema.catalog import Catalog


def kept_by(statements: Iterable[ir.Statement], catalog: Catalog) -> Callable[[SetRule], bool]:
    """Whether statements cannot break a rule that what is committed keeps.

    Pending rows have distinct ids, an update changes neither ids nor ends, and what deletes a node
    deletes its edges.
    """
    inserted: set[TableKey] = set()
    assigned: set[tuple[TableKey, str]] = set()
    deletes = False
    for each in statements:
        match each:
            case ir.InsertNode(type_name) | ir.InsertEdge(type_name):
                inserted.add(catalog.type_named(type_name).table_key)
            case ir.Update(table, assignments):
                assigned.update((table, assignment.property) for assignment in assignments)
            case ir.Delete():
                deletes = True
            case _:
                assert_never(each)

    def is_kept(rule: SetRule) -> bool:
        match rule:
            case DistinctIds() | NewIds() | Stranded():
                return True
            case Unique(type_, members):
                key = type_.table_key
                return key not in inserted and not any((key, name) in assigned for name in members)
            case Endpoint(edge) | Most(edge):
                return edge.table_key not in inserted
            case Least(edge, node):
                return not deletes and inserted.isdisjoint({edge.table_key, node.table_key})
            case _:
                assert_never(rule)

    return is_kept
