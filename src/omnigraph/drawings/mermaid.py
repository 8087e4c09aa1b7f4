"""A schema as Mermaid's entity diagram, which many pages and editors draw by themselves."""

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
    for each in node.properties:
        yield f"    {_attribute(node, each)}"
    yield "  }"


def _attribute(node: NodeType, each: Property) -> str:
    marks = []
    if each.name in node.key:
        marks.append("PK")
    if any(each.name in members for members in node.uniques):
        marks.append("UK")
    said = []
    if each.nullable:
        said.append("optional")
    if isinstance(each.type, EnumType):
        said.append(f"one of {', '.join(each.type.values)}")
    words = [_word(each.type), each.name]
    words += [", ".join(marks)] if marks else []
    words += [f'"{"; ".join(said)}"'] if said else []
    return " ".join(words)


def _word(type_: PropertyType) -> str:
    """A type as one word, which is all that Mermaid takes."""
    if isinstance(type_, EnumType):
        return "enum"
    if isinstance(type_, ListType):
        return f"{type_.item}[]"
    return str(type_)


def _relation(edge: EdgeType) -> str:
    has = f" ({', '.join(each.name for each in edge.properties)})" if edge.properties else ""
    ends = f"{edge.source} }}o--{_ending(edge.cardinality)} {edge.target}"
    return f'  {ends} : "{edge.name}{has}"'


def _ending(cardinality: Cardinality) -> str:
    """How many targets one source has, as a crow's foot.

    >>> [_ending(Cardinality(*each)) for each in ((0, 1), (1, 1), (0, None), (2, 5))]
    ['o|', '||', 'o{', '|{']
    """
    least = "o" if cardinality.minimum == 0 else "|"
    return least + ("|" if cardinality.maximum == 1 else "{")
