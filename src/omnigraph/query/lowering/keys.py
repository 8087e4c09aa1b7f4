"""Keys that a query fixes: the id they determine, and queries for exactly that row."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import cast

from omnigraph.choices import TableKind
from omnigraph.model.identity import KeyType, identity_of
from omnigraph.model.tables import TableKey
from omnigraph.model.types import EnumType, Scalar
from omnigraph.query import ir
from omnigraph.query.lowering.operands import (
    Given,
    compared_column,
    texts_allowed,
    texts_column,
    values_allowed,
)
from omnigraph.relational.plans import IsOneOf, Lookup, Reduction
from omnigraph.schema.catalog import ENDPOINTS, Catalog, EdgeType, SchemaType
from omnigraph.schema.indexes import wanted_indexes


@dataclass(frozen=True, slots=True)
class FixedKey:
    """A key whose every member a filter fixes to a value known before any row is read."""

    types: tuple[KeyType, ...]
    operands: tuple[ir.GivenValue, ...]

    def identity(self, given: Given) -> str:
        """The id of the one row that has this key."""
        values = [given.known(operand).value for operand in self.operands]
        return identity_of(self.types, values)


def fixed_key(type_: SchemaType, filters: Iterable[ir.Filter], given: Given) -> FixedKey | None:
    """The key of a type that these filters on it fix, if they fix all of it."""
    operands = dict(filter(None, (_equals(filter_, given) for filter_ in filters)))
    if not type_.key or not operands.keys() >= set(type_.key):
        return None
    return FixedKey(key_types(type_), tuple(operands[name] for name in type_.key))


def fixes(type_: SchemaType, condition: ir.Filter, given: Given) -> bool:
    """Whether a filter fixes a member of a type's key to one value."""
    equals = _equals(condition, given)
    return equals is not None and equals[0] in type_.key


def key_types(type_: SchemaType) -> tuple[KeyType, ...]:
    """The types of the members of a type's key, in declared order."""
    return tuple(_member_type(type_, name) for name in type_.key)


def _member_type(type_: SchemaType, name: str) -> KeyType:
    if isinstance(type_, EdgeType) and name in ENDPOINTS:
        return Scalar.STRING
    return cast("KeyType", type_.property_named(name).type)


def seeds_of(
    type_: SchemaType, relation: str, filters: Sequence[ir.Filter], given: Given
) -> Iterator[Callable[[Given], Reduction | None]]:
    """What the filters on rows of a type allow of ids, texts and indexed columns."""
    wanted = wanted_indexes(type_)
    indexed = {index.column for index in wanted if not index.kind.is_for_search}
    for condition in filters:
        if at := texts_column(condition, given):
            yield partial(_texts_seed, relation, at, condition)
        elif (at := compared_column(condition)) and at.column in indexed:
            yield partial(_values_seed, relation, at, condition)
    key = fixed_key(type_, filters, given)
    if key is not None:
        yield partial(_key_seed, relation, key)


def _texts_seed(relation: str, at: ir.ColumnValue, condition: ir.Filter, given: Given) -> Reduction:
    is_enum = isinstance(at.type, EnumType)
    return Reduction(
        relation, at.column, IsOneOf(texts_allowed(condition, given)), has_few_values=is_enum
    )


def _values_seed(
    relation: str, at: ir.ColumnValue, condition: ir.Filter, given: Given
) -> Reduction | None:
    by = values_allowed(condition, given)
    return None if by is None else Reduction(relation, at.column, by)


def _key_seed(relation: str, key: FixedKey, given: Given) -> Reduction:
    return Reduction(relation, "id", IsOneOf((key.identity(given),)))


def key_lookup(
    query: ir.Selection, catalog: Catalog, given: Given
) -> Callable[[Given], Lookup] | None:
    """A lookup that answers the query, if it selects one node by its key and nothing else."""
    block = query.match
    if query.follows_stage:
        return None
    is_plain = len(block.nodes) == 1 and not block.traversals and not block.parts
    columns = [column.expression for column in query.columns]
    if not is_plain or query.limit is not None or query.skip is not None or query.is_grouped:
        return None
    if not all(isinstance(expression, ir.ColumnValue) for expression in columns):
        return None
    (node,) = block.nodes
    if node.other_types:
        return None
    key = fixed_key(catalog.node_type(node.type_name), block.filters, given)
    # An id matches exactly the rows of its key, so no filter beyond the key may remain.
    if key is None or len(block.filters) != len(key.operands):
        return None
    names = tuple(
        expression.column for expression in columns if isinstance(expression, ir.ColumnValue)
    )
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
