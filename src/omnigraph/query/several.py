"""Several types of one variable: which types they are, and the properties that they share."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from omnigraph.model.names import TypeName
from omnigraph.schema.catalog import Catalog, EdgeType, NodeType, Property, SchemaType


@dataclass(frozen=True, slots=True)
class SeveralTypes:
    """Two types or more, of nodes or of edges, in the order of their names."""

    members: tuple[NodeType, ...] | tuple[EdgeType, ...]

    @property
    def name(self) -> str:
        """Their names as a query writes them."""
        return " | ".join(member.name for member in self.members)

    @property
    def properties(self) -> tuple[Property, ...]:
        """The properties that all have, with one type; nullable if one of them is."""
        first, *others = self.members
        shared = []
        for property_ in first.properties:
            same = [each for other in others for each in other.properties]
            same = [each for each in same if each.name == property_.name]
            if len(same) == len(others) and all(each.type == property_.type for each in same):
                nullable = any(each.nullable for each in (property_, *same))
                shared.append(Property(property_.name, property_.type, nullable))
        return tuple(shared)


BoundType = NodeType | EdgeType | SeveralTypes
"""What a variable of a query may be."""


def together(types: Iterable[SchemaType]) -> BoundType:
    """The type of a variable that may be of any of these; there is one at least."""
    by_name = {type_.name: type_ for type_ in types}
    members = [by_name[name] for name in sorted(by_name)]
    if len(members) == 1:
        return members[0]
    nodes = tuple(member for member in members if isinstance(member, NodeType))
    edges = tuple(member for member in members if isinstance(member, EdgeType))
    assert not (nodes and edges), "a variable is a node or an edge"
    return SeveralTypes(nodes or edges)


def members_of(type_: BoundType) -> tuple[SchemaType, ...]:
    """The one type, or each of several."""
    return type_.members if isinstance(type_, SeveralTypes) else (type_,)


def names_of(type_: BoundType) -> tuple[TypeName, ...]:
    """The names of all types."""
    return tuple(TypeName(member.name) for member in members_of(type_))


def is_node(type_: BoundType | None) -> bool:
    """Whether a variable of this type is a node."""
    return type_ is not None and isinstance(members_of(type_)[0], NodeType)


def implementers(interface: str, catalog: Catalog) -> tuple[NodeType, ...]:
    """The node types that implement an interface."""
    return tuple(node for node in catalog.node_types if interface in node.implements)
