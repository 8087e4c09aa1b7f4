"""The rule set: everything that a catalog requires of data, compiled once for every writer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Self, assert_never

from omnigraph.integrity.cardinalities import CardinalityMax, CardinalityMin
from omnigraph.integrity.deltas import Shape
from omnigraph.integrity.ends import DanglingEdge, Endpoint
from omnigraph.integrity.keys import DistinctIds, NewIds
from omnigraph.integrity.row_rules.checks import matches
from omnigraph.integrity.row_rules.enums import one_of
from omnigraph.integrity.row_rules.finite import finite_key, finite_vector
from omnigraph.integrity.row_rules.lengths import in_length
from omnigraph.integrity.row_rules.ranges import in_range
from omnigraph.integrity.row_rules.required import required_items, required_value
from omnigraph.integrity.rows import RowRule, RowRules
from omnigraph.integrity.uniques import Unique
from omnigraph.integrity.violations import Rule
from omnigraph.model.types import BlobType, EnumType, ListType, Scalar, VectorType
from omnigraph.schema.arrow import table_schema
from omnigraph.schema.catalog import Catalog, EdgeType, NodeType, Property, SchemaType

SetRule = DistinctIds | NewIds | Unique | Endpoint | CardinalityMax | CardinalityMin | DanglingEdge
"""A rule about several rows. Each states to which deltas it applies, and finds its offenders."""


@dataclass(frozen=True, slots=True, eq=False)
class RuleSet:
    """The rules of one catalog, in its order. It holds no data and may be cached and shared.

    Two are equal only if they are one: a cache must not compare the whole catalog each time.
    """

    catalog: Catalog
    row_rules: tuple[RowRules, ...]
    set_rules: tuple[SetRule, ...]

    @classmethod
    def compile(cls, catalog: Catalog) -> Self:
        """Every rule that the catalog states."""
        return cls(
            catalog,
            row_rules=tuple(RowRules(type_, tuple(_row_rules(type_))) for type_ in catalog.types),
            set_rules=tuple(_set_rules(catalog)),
        )

    def without(self, rule: Rule) -> RuleSet:
        """The same rule set without the row rules of one kind."""
        others = (
            replace(rules, rules=tuple(other for other in rules.rules if other.breach.rule != rule))
            for rules in self.row_rules
        )
        return replace(self, row_rules=tuple(others))

    def of_rows(self) -> RuleSet:
        """The rules that a row keeps or breaks by itself."""
        return replace(self, set_rules=())

    def of_sets(self) -> RuleSet:
        """The rules about several rows."""
        return replace(self, row_rules=())

    def row_rules_for(self, shape: Shape) -> Iterator[RowRules]:
        """The row rules of the types that a delta writes rows of."""
        return (rules for rules in self.row_rules if rules.type.table_key in shape.upserted)

    def set_rules_for(self, shape: Shape) -> Iterator[SetRule]:
        """The set rules that a delta of this shape could break."""
        return (rule for rule in self.set_rules if rule.applies(shape))


def _row_rules(type_: SchemaType) -> Iterator[RowRule]:
    """The row rules that a type states, in the order of its columns."""
    names = table_schema(type_).names
    for name in names[: len(names) - len(type_.properties)]:
        yield required_value(type_, name)
    for property_ in type_.properties:
        if not property_.nullable:
            yield required_value(type_, property_.name)
        yield from _type_rules(type_, property_)
    for range_ in type_.ranges:
        yield in_range(type_, range_)
    for check in type_.checks:
        yield matches(type_, check)
    for length in type_.lengths:
        yield in_length(type_, length)


def _type_rules(type_: SchemaType, property_: Property) -> Iterator[RowRule]:
    """What the type of a property requires of its values."""
    match property_.type:
        case EnumType() as enum:
            yield one_of(type_, property_.name, enum)
        case ListType():
            yield required_items(type_, property_.name)
        case VectorType(dimension):
            yield finite_vector(type_, property_.name, dimension)
        case Scalar() as scalar:
            if scalar.is_float and property_.name in type_.key:
                yield finite_key(type_, property_.name, scalar)
        case BlobType():
            return
        case _:
            assert_never(property_.type)


def _set_rules(catalog: Catalog) -> Iterator[SetRule]:
    for type_ in catalog.types:
        yield DistinctIds(type_)
        yield NewIds(type_)
        for members in type_.uniques:
            yield Unique(type_, members)
    for edge in catalog.edge_types:
        ends = _ends(catalog, edge)
        for end, node in ends:
            yield Endpoint(edge, end, node)
        for end, node in ends:
            yield DanglingEdge(edge, end, node)
        if edge.cardinality.maximum is not None:
            yield CardinalityMax(edge, edge.cardinality.maximum)
        if edge.cardinality.minimum:
            yield CardinalityMin(edge, catalog.node_type(edge.source), edge.cardinality.minimum)


def _ends(catalog: Catalog, edge: EdgeType) -> tuple[tuple[str, NodeType], ...]:
    return ("src", catalog.node_type(edge.source)), ("dst", catalog.node_type(edge.target))
