"""Keys that a query fixes: the id they make, and queries that ask for nothing but that row."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import cast

from omnigraph.model.identity import KeyType, identity_of
from omnigraph.model.names import TypeName
from omnigraph.model.tables import TableKey, TableKind
from omnigraph.query import ir
from omnigraph.query.lowering.operands import Given
from omnigraph.relational.plans import Lookup
from omnigraph.schema.catalog import Catalog


@dataclass(frozen=True, slots=True)
class FixedKey:
    """A key whose every member a filter fixes to a value that the query is given."""

    types: tuple[KeyType, ...]
    operands: tuple[ir.GivenValue, ...]

    def identity(self, given: Given) -> str:
        """The id of the one row that has this key."""
        values = [given.known(each).value for each in self.operands]
        return identity_of(self.types, values)


def fixed_key(
    type_name: TypeName, filters: Iterable[ir.Filter], catalog: Catalog, given: Given
) -> FixedKey | None:
    """The key of a node type that these filters on it fix, if they fix all of it."""
    node_type = catalog.node_type(type_name)
    fixed = dict(filter(None, (_equals(each, given) for each in filters)))
    if not node_type.key or not fixed.keys() >= set(node_type.key):
        return None
    types = [node_type.property_named(name).type for name in node_type.key]
    operands = tuple(fixed[name] for name in node_type.key)
    return FixedKey(tuple(cast("KeyType", each) for each in types), operands)


def key_lookup(
    query: ir.ReadQuery, catalog: Catalog, given: Given
) -> Callable[[Given], Lookup] | None:
    """How to look the answer up, if the query asks for one node by its key and nothing else."""
    block = query.match
    is_plain = len(block.nodes) == 1 and not block.traversals and not block.negations
    columns = [each.expression for each in query.columns]
    if not is_plain or query.limit is not None:
        return None
    if not all(isinstance(each, ir.ColumnValue) for each in columns):
        return None
    (node,) = block.nodes
    key = fixed_key(node.type_name, block.filters, catalog, given)
    # Keys that are equal, and only those, have one id: no other filter may be left to test.
    if key is None or len(block.filters) != len(key.operands):
        return None
    names = tuple(each.column for each in columns if isinstance(each, ir.ColumnValue))
    return partial(_lookup, TableKey(TableKind.NODE, node.type_name), key, names)


def _lookup(table: TableKey, key: FixedKey, columns: tuple[str, ...], given: Given) -> Lookup:
    return Lookup(table, key.identity(given), columns)


def _equals(condition: ir.Filter, given: Given) -> tuple[str, ir.GivenValue] | None:
    match condition:
        case ir.Comparison(
            ir.ColumnValue(_, name, type_),
            ir.Operator.EQ,
            (ir.Constant() | ir.ParameterValue()) as right,
        ):
            known = given.known(right)
            return (name, right) if known.type == type_ and _has_identity(known.value) else None
        case _:
            return None


def _has_identity(value: object) -> bool:
    return value is not None and not (isinstance(value, float) and not math.isfinite(value))
