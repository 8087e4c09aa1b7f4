"""A schema as Mermaid's entity diagram, which many sites and editors can render."""

from __future__ import annotations

from collections.abc import Iterator

from omnigraph.model.types import EnumType, ListType, PropertyType
from omnigraph.schema.catalog import Cardinality, Catalog, EdgeType, NodeType, Property


def schema_mermaid(catalog: Catalog) -> str:
    """The text of a diagram: an entity for each node type, a relation for each edge type."""
    lines = ["erDiagram"]
    for node in catalog.node_types:
        lines += _entity(node)
    lines += map(_relation, catalog.edge_types)
    return "\n".join(lines) + "\n"


def _entity(node: NodeType) -> Iterator[str]:
    if not node.properties:
        yield f"  {node.name}"
        return
    yield f"  {node.name} {{"
    for property_ in node.properties:
        yield f"    {_attribute(node, property_)}"
    yield "  }"


def _attribute(node: NodeType, property_: Property) -> str:
    marks = []
    if property_.name in node.key:
        marks.append("PK")
    if any(property_.name in members for members in node.uniques):
        marks.append("UK")
    remarks = []
    if property_.nullable:
        remarks.append("optional")
    if isinstance(property_.type, EnumType):
        remarks.append(f"one of {', '.join(property_.type.values)}")
    words = [_word(property_.type), property_.name]
    words += [", ".join(marks)] if marks else []
    words += [f'"{"; ".join(remarks)}"'] if remarks else []
    return " ".join(words)


def _word(type_: PropertyType) -> str:
    """A type as one word, because Mermaid accepts no more."""
    if isinstance(type_, EnumType):
        return "enum"
    if isinstance(type_, ListType):
        return f"{type_.item}[]"
    return str(type_)


def _relation(edge: EdgeType) -> str:
    names = ", ".join(property_.name for property_ in edge.properties)
    has = f" ({names})" if names else ""
    ends = f"{edge.source} }}o--{_ending(edge.cardinality)} {edge.target}"
    return f'  {ends} : "{edge.name}{has}"'


def _ending(cardinality: Cardinality) -> str:
    """The number of targets of one source, as a crow's foot.

    >>> [_ending(Cardinality(*each)) for each in ((0, 1), (1, 1), (0, None), (2, 5))]
    ['o|', '||', 'o{', '|{']
    """
    least = "o" if cardinality.minimum == 0 else "|"
    return least + ("|" if cardinality.maximum == 1 else "{")
