"""Interfaces: expansion of the node types that implement them, and mismatches between the two."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from omnigraph.lang.diagnostics import did_you_mean
from omnigraph.schema.catalog import Interface, NodeType, Property
from omnigraph.schema.findings import Finding, Path, SchemaCode

Interfaces = Mapping[str, Interface]


def expand(node: NodeType, interfaces: Interfaces) -> NodeType:
    """The node type with its interfaces' properties, and the constraints on those properties.

    A property that the node declares itself receives nothing from an interface; only its type must
    match. Expanding twice is expanding once.
    """
    own = {property_.name for property_ in node.properties}
    key, uniques, indexes = node.key, list(node.uniques), list(node.indexes)
    for interface in _implemented_interfaces(node, interfaces):
        if interface.key and not own.intersection(interface.key):
            key = key or interface.key
        uniques += [set_ for set_ in interface.uniques if not own.intersection(set_)]
        indexes += [index for index in interface.indexes if index.property not in own]
    return replace(
        node,
        properties=expanded_properties(node, interfaces),
        key=key,
        uniques=tuple(dict.fromkeys(uniques)),
        # The index of the first interface, as its property.
        indexes=tuple({index.property: index for index in reversed(indexes)}.values()),
    )


def expanded_properties(node: NodeType, interfaces: Interfaces) -> tuple[Property, ...]:
    """The node's own properties, then those its interfaces add, in the order it names them."""
    named = {property_.name: property_ for property_ in reversed(node.properties)}
    added: dict[str, Property] = {}
    for interface in _implemented_interfaces(node, interfaces):
        for property_ in interface.properties:
            if property_.name not in named:
                added.setdefault(property_.name, property_)
    return (*node.properties, *added.values())


def interface_findings(at: Path, node: NodeType, interfaces: Interfaces) -> Iterator[Finding]:
    """Unknown and repeated interfaces, mismatched properties, and competing keys."""
    seen: set[str] = set()
    key = node.key
    own = {
        property_.name: position
        for position, property_ in reversed(list(enumerate(node.properties)))
    }
    have = {
        property_.name: property_ for property_ in reversed(expanded_properties(node, interfaces))
    }
    for position, name in enumerate(node.implements):
        place: Path = (*at, "implements", position)
        if name in seen:
            message = f"node {node.name}: interface {name} is implemented twice"
            yield Finding(SchemaCode.DUPLICATE_CONSTRAINT, place, message)
            continue
        seen.add(name)
        interface = interfaces.get(name)
        if interface is None:
            message = f"node {node.name}: interface {name[:200]} does not exist"
            hint = did_you_mean(name, interfaces)
            yield Finding(SchemaCode.UNKNOWN_INTERFACE, place, message, hint)
            continue
        for promised in interface.properties:
            actual = have[promised.name]
            if (actual.type, actual.nullable) != (promised.type, promised.nullable):
                where = own.get(promised.name)
                yield Finding(
                    SchemaCode.INTERFACE_MISMATCH,
                    place if where is None else (*at, "properties", where, "type"),
                    f"node {node.name}: property {promised.name} is {_format_type(actual)}, but "
                    f"interface {name} promises {_format_type(promised)}",
                    f"make it {_format_type(promised)}, or leave it to the interface",
                )
        inherited_key = interface.key if not own.keys() & set(interface.key) else ()
        if key and inherited_key and key != inherited_key:
            message = (
                f"node {node.name} has the key {_format_names(key)}; "
                f"{name} brings {_format_names(inherited_key)}"
            )
            yield Finding(SchemaCode.SECOND_KEY, place, message, "a type has one key")
        key = key or inherited_key


def _implemented_interfaces(node: NodeType, interfaces: Interfaces) -> list[Interface]:
    return [interfaces[name] for name in node.implements if name in interfaces]


def _format_type(property_: Property) -> str:
    return f"{property_.type}{'?' if property_.nullable else ''}"


def _format_names(names: tuple[str, ...]) -> str:
    return f"({', '.join(names)})"
