"""The rule set: everything that a catalog demands of data, compiled once for every writer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Self

from omnigraph.integrity.cardinalities import Least, Most
from omnigraph.integrity.deltas import Shape
from omnigraph.integrity.ends import Endpoint, Stranded
from omnigraph.integrity.keys import DistinctIds, NewIds
from omnigraph.integrity.rows import RowRules, row_rules
from omnigraph.integrity.uniques import Unique
from omnigraph.integrity.violations import Rule
from omnigraph.schema.catalog import Catalog, EdgeType, NodeType

SetRule = DistinctIds | NewIds | Unique | Endpoint | Most | Least | Stranded
"""A rule about rows together. Each says to what deltas it applies and finds its offenders."""


@dataclass(frozen=True, slots=True)
class RuleSet:
    """The rules of one catalog, in its order. It holds no data and may be kept and shared."""

    catalog: Catalog
    row_rules: tuple[RowRules, ...]
    set_rules: tuple[SetRule, ...]

    @classmethod
    def compile(cls, catalog: Catalog) -> Self:
        """Everything that the catalog demands."""
        return cls(
            catalog,
            row_rules=tuple(map(row_rules, catalog.types)),
            set_rules=tuple(_set_rules(catalog)),
        )

    def leaving_out(self, rule: Rule) -> RuleSet:
        """The same but for the row rules of one kind."""
        others = (
            replace(each, rules=tuple(one for one in each.rules if one.breach.rule is not rule))
            for each in self.row_rules
        )
        return replace(self, row_rules=tuple(others))

    def row_rules_for(self, shape: Shape) -> Iterator[RowRules]:
        """The row rules of the types that a delta writes rows of."""
        return (each for each in self.row_rules if each.type.table_key in shape.upserted)

    def set_rules_for(self, shape: Shape) -> Iterator[SetRule]:
        """The rules about rows together that a delta of this shape could break."""
        return (each for each in self.set_rules if each.applies(shape))


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
            yield Stranded(edge, end, node)
        if edge.cardinality.maximum is not None:
            yield Most(edge, edge.cardinality.maximum)
        if edge.cardinality.minimum:
            yield Least(edge, catalog.node_type(edge.source), edge.cardinality.minimum)


def _ends(catalog: Catalog, edge: EdgeType) -> tuple[tuple[str, NodeType], ...]:
    return ("src", catalog.node_type(edge.source)), ("dst", catalog.node_type(edge.target))
