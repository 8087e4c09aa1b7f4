"""The selection: the edge types that an algorithm follows, and the node types that they connect."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from omnigraph.errors import InvalidInputError
from omnigraph.schema.catalog import Catalog, EdgeType, NodeType
from omnigraph.transaction.view import View


@dataclass(frozen=True, slots=True)
class EdgeSelection:
    """What an algorithm sees of a graph at one commit.

    Attributes:
        edges: The edge types, by name.
        nodes: The node types at their ends, by name; all of their nodes are in it.
    """

    view: View
    edges: tuple[EdgeType, ...]
    nodes: tuple[NodeType, ...]

    @property
    def edge_count(self) -> int:
        """How many edges there are."""
        return sum(self.view.snapshot.row_count(edge.table_key) for edge in self.edges)

    @property
    def node_count(self) -> int:
        """How many nodes there are."""
        return sum(self.view.snapshot.row_count(node.table_key) for node in self.nodes)

    def place_of(self, name: str) -> int:
        """The place of a node type, by which nodes are ordered before their ages."""
        return [node.name for node in self.nodes].index(name)


def select(view: View, names: Iterable[str] | None) -> EdgeSelection:
    """The edge types of these names, or all of the schema, with the node types at their ends."""
    catalog = view.catalog
    types = catalog.types_named(names)
    if names is not None and (wrong := [type_ for type_ in types if isinstance(type_, NodeType)]):
        message = f"{wrong[0].name} is a node type; an algorithm follows edge types"
        raise InvalidInputError(message, hint=_hint(catalog))
    edges = sorted(
        (type_ for type_ in types if isinstance(type_, EdgeType)), key=lambda edge: edge.name
    )
    if not edges:
        message = "the schema has no edge type that an algorithm could follow"
        raise InvalidInputError(message, hint="add one with 'omnigraph schema apply'")
    ends = sorted({name for edge in edges for name in (edge.source, edge.target)})
    nodes = [type_ for name in ends if isinstance(type_ := catalog.type_named(name), NodeType)]
    return EdgeSelection(view, tuple(edges), tuple(nodes))


def _hint(catalog: Catalog) -> str:
    edges = [type_.name for type_ in catalog.types if isinstance(type_, EdgeType)]
    return f"name some of {', '.join(edges)}" if edges else "the schema has no edge type"
