"""Catalog to `.pg` text in one canonical layout, which reads back as the same catalog."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from datetime import date
from typing import assert_never

from omnigraph.lang.spelling import positional, quoted
from omnigraph.model.types import PropertyType, Scalar
from omnigraph.schema.catalog import (
    UNLIMITED,
    Annotation,
    Catalog,
    Declaration,
    EdgeType,
    Interface,
    NodeType,
    Property,
    Value,
)


def print_schema(catalog: Catalog) -> str:
    """The text of a catalog: interfaces, node types, then edge types, each in order of name.

    What a node type has from its interfaces is printed with it, so each declaration says all there
    is to know; `parse_schema` of the text gives an equal catalog.

    >>> person = NodeType("Person", (Property("name", Scalar.STRING),), key=("name",))
    >>> print(print_schema(Catalog(node_types=(person,))), end="")
    node Person {
      name: String @key
    }
    """
    declarations: tuple[Declaration, ...] = (
        *catalog.interfaces,
        *catalog.node_types,
        *catalog.edge_types,
    )
    return "\n".join(_declaration(each) for each in declarations)


def _declaration(each: Declaration) -> str:
    body = [*(f"  {_property(each, property_)}\n" for property_ in each.properties)]
    body += [f"  {constraint}\n" for constraint in _constraints(each)]
    if not body and isinstance(each, EdgeType):
        return f"{_header(each)}\n"
    return f"{_header(each)} {{\n{''.join(body)}}}\n" if body else f"{_header(each)} {{}}\n"


def _header(each: Declaration) -> str:
    match each:
        case Interface():
            words = [f"interface {each.name}", *_remarks(each, None)]
        case NodeType():
            words = [f"node {each.name}", *_remarks(each, each.rename_from)]
            if each.implements:
                words.append(f"implements {', '.join(each.implements)}")
        case EdgeType():
            words = [f"edge {each.name}: {each.source} -> {each.target}"]
            if each.cardinality != UNLIMITED:
                high = "" if each.cardinality.maximum is None else each.cardinality.maximum
                words.append(f"@card({each.cardinality.minimum}..{high})")
            words += _remarks(each, each.rename_from)
        case _:
            assert_never(each)
    return " ".join(words)


def _property(owner: Declaration, each: Property) -> str:
    words = [f"{each.name}: {each.type}{'?' if each.nullable else ''}"]
    if owner.key == (each.name,):
        words.append("@key")
    if (each.name,) in owner.uniques:
        words.append("@unique")
    if each.name in owner.indexes:
        words.append("@index")
    if each.default is not None:
        words.append(f"@default({_value(each.type, each.default)})")
    if each.embed is not None:
        model = "" if each.embed.model is None else f", model={quoted(each.embed.model)}"
        words.append(f"@embed({quoted(each.embed.source)}{model})")
    return " ".join([*words, *_remarks(each, each.rename_from)])


def _constraints(owner: Declaration) -> Iterator[str]:
    """The constraints that no single property carries."""
    properties = {each.name: each for each in owner.properties}
    if len(owner.key) > 1 or (owner.key and owner.key[0] not in properties):
        yield f"@key({', '.join(owner.key)})"
    for members in owner.uniques:
        if len(members) > 1 or members[0] not in properties:
            yield f"@unique({', '.join(members)})"
    if isinstance(owner, Interface):
        return
    for range_ in owner.ranges:
        type_ = properties[range_.property].type
        low = "" if range_.low is None else _value(type_, range_.low)
        high = "" if range_.high is None else _value(type_, range_.high)
        yield f"@range({range_.property}, {low}..{high})"
    for check in owner.checks:
        yield f"@check({check.property}, {quoted(check.pattern)})"


def _remarks(each: Declaration | Property, rename_from: str | None) -> Iterator[str]:
    if rename_from is not None:
        yield f"@rename_from({quoted(rename_from)})"
    if each.description is not None:
        yield f"@description({quoted(each.description)})"
    yield from map(_annotation, each.annotations)


def _annotation(each: Annotation) -> str:
    if each.value is None:
        return f"@{each.name}"
    named = [f"{name}={_literal(value)}" for name, value in each.arguments]
    return f"@{each.name}({', '.join([_literal(each.value), *named])})"


def _value(type_: PropertyType, value: Value) -> str:
    if type_ is Scalar.F32 and isinstance(value, float):
        return positional(_shortest_f32(value))
    return _literal(value)


def _literal(value: Value) -> str:
    match value:
        case bool():
            return str(value).lower()
        case int():
            return str(value)
        case float():
            return positional(value)
        case str():
            return quoted(value)
        case date():
            return quoted(value.isoformat().replace("+00:00", "Z"))
        case _:
            assert_never(value)


def _shortest_f32(value: float) -> str:
    """The fewest digits that still name this 32-bit float; nine always do."""
    spellings = (f"{value:.{digits}g}" for digits in range(1, 10))
    return next(
        each for each in spellings if struct.pack("f", float(each)) == struct.pack("f", value)
    )
