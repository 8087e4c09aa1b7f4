"""Catalog to `.pg` text in one canonical layout that parses to the same catalog."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from datetime import date
from typing import assert_never

from omnigraph.lang.spelling import format_float, quote
from omnigraph.model.types import PropertyType, Scalar
from omnigraph.schema.catalog import (
    UNLIMITED,
    Annotation,
    Cardinality,
    Catalog,
    Check,
    Declaration,
    EdgeType,
    Embed,
    Index,
    IndexOptions,
    Interface,
    Length,
    NodeType,
    Property,
    Range,
    TextOptions,
    Value,
    VectorOptions,
)
from omnigraph.schema.embeds import is_implied


def print_schema(catalog: Catalog) -> str:
    """The text of a catalog: interfaces, node types, then edge types, each in order of name.

    A node type is printed with the properties of its interfaces, so each declaration is complete;
    `parse_schema` of the text returns an equal catalog.

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
    return "\n".join(print_declaration(declaration) for declaration in declarations)


def print_declaration(declaration: Declaration) -> str:
    """The text of one declaration, with a line end."""
    header = print_header(declaration)
    body = [
        f"  {print_property(declaration, property_)}\n"
        for place, property_ in enumerate(declaration.properties)
        if not is_implied(declaration, place)
    ]
    body += [f"  {constraint}\n" for constraint in _constraints(declaration)]
    if not body and isinstance(declaration, EdgeType):
        return f"{header}\n"
    return f"{header} {{\n{''.join(body)}}}\n" if body else f"{header} {{}}\n"


def print_header(declaration: Declaration) -> str:
    """What stands before the body of a declaration."""
    match declaration:
        case Interface():
            words = [f"interface {declaration.name}", *_remarks(declaration, None)]
        case NodeType():
            words = [f"node {declaration.name}", *_remarks(declaration, declaration.rename_from)]
            if declaration.implements:
                words.append(f"implements {', '.join(declaration.implements)}")
        case EdgeType():
            words = [f"edge {declaration.name}: {declaration.source} -> {declaration.target}"]
            if declaration.cardinality != UNLIMITED:
                words.append(print_cardinality(declaration.cardinality))
            words += _remarks(declaration, declaration.rename_from)
        case _:
            assert_never(declaration)
    return " ".join(words)


def print_cardinality(cardinality: Cardinality) -> str:
    """The annotation of a cardinality.

    >>> print_cardinality(Cardinality(1))
    '@card(1..)'
    """
    high = "" if cardinality.maximum is None else cardinality.maximum
    return f"@card({cardinality.minimum}..{high})"


def print_property(owner: Declaration, property_: Property) -> str:
    """A property with its annotations, and the constraints that name it alone."""
    words = [f"{property_.name}: {property_.type}{'?' if property_.nullable else ''}"]
    if owner.key == (property_.name,):
        words.append("@key")
    if (property_.name,) in owner.uniques:
        words.append("@unique")
    words += [
        _print_own_index(index) for index in owner.indexes if index.property == property_.name
    ]
    if property_.default is not None:
        words.append(print_default(property_.type, property_.default))
    if property_.embed is not None:
        words.append(print_embed(property_.embed))
    return " ".join([*words, *_remarks(property_, property_.rename_from)])


def print_default(type_: PropertyType, default: Value) -> str:
    """The annotation of a default."""
    return f"@default({_value(type_, default)})"


def _print_own_index(index: Index) -> str:
    options = print_options(index.options)
    return f"@index({options})" if options else "@index"


def print_index(index: Index) -> str:
    """The constraint of an index.

    >>> print_index(Index("body", TextOptions(positions=True)))
    '@index(body, positions=true)'
    """
    options = print_options(index.options)
    return f"@index({index.property}, {options})" if options else f"@index({index.property})"


def print_options(options: IndexOptions | None) -> str:
    """The options of an index that are not those it has by default, as its arguments."""
    words: list[str] = []
    match options:
        case None:
            pass
        case TextOptions(analyzer, positions):
            if analyzer != TextOptions().analyzer:
                words.append(f"analyzer={quote(analyzer)}")
            if positions:
                words.append("positions=true")
        case VectorOptions(kind, metric):
            if kind is not None:
                words.append(f"kind={quote(kind)}")
            if metric != VectorOptions().metric:
                words.append(f"metric={quote(metric)}")
        case _:
            assert_never(options)
    return ", ".join(words)


def print_embed(embed: Embed) -> str:
    """The annotation of an embedding."""
    arguments = [quote(source) for source in embed.sources]
    if embed.model is not None:
        arguments.append(f"model={quote(embed.model)}")
    return f"@embed({', '.join(arguments)})"


def _constraints(owner: Declaration) -> Iterator[str]:
    """The constraints that are not printed after a single property."""
    properties = {property_.name: property_ for property_ in owner.properties}
    if len(owner.key) > 1 or (owner.key and owner.key[0] not in properties):
        yield f"@key({', '.join(owner.key)})"
    for members in owner.uniques:
        if len(members) > 1 or members[0] not in properties:
            yield f"@unique({', '.join(members)})"
    if isinstance(owner, Interface):
        return
    for range_ in owner.ranges:
        yield print_range(properties[range_.property].type, range_)
    for check in owner.checks:
        yield print_check(check)
    for length in owner.lengths:
        yield print_length(length)


def print_range(type_: PropertyType, range_: Range) -> str:
    """The constraint of a range, whose bounds are of the type of its property."""
    low = "" if range_.low is None else _value(type_, range_.low)
    high = "" if range_.high is None else _value(type_, range_.high)
    return f"@range({range_.property}, {low}..{high})"


def print_check(check: Check) -> str:
    """The constraint of a pattern."""
    return f"@check({check.property}, {quote(check.pattern)})"


def print_length(length: Length) -> str:
    """The constraint of a length."""
    low = "" if length.low is None else str(length.low)
    high = "" if length.high is None else str(length.high)
    return f"@length({length.property}, {low}..{high})"


def _remarks(owner: Declaration | Property, rename_from: str | None) -> Iterator[str]:
    if rename_from is not None:
        yield f"@rename_from({quote(rename_from)})"
    if owner.description is not None:
        yield f"@description({quote(owner.description)})"
    yield from map(print_annotation, owner.annotations)


def print_annotation(annotation: Annotation) -> str:
    """An annotation that is metadata."""
    if annotation.value is None:
        return f"@{annotation.name}"
    arguments = [f"{name}={_literal(value)}" for name, value in annotation.arguments]
    return f"@{annotation.name}({', '.join([_literal(annotation.value), *arguments])})"


def _value(type_: PropertyType, value: Value) -> str:
    if type_ is Scalar.F32 and isinstance(value, float):
        return format_float(_shortest_f32(value))
    return _literal(value)


def _literal(value: Value) -> str:
    match value:
        case bool():
            return str(value).lower()
        case int():
            return str(value)
        case float():
            return format_float(value)
        case str():
            return quote(value)
        case date():
            return quote(value.isoformat().replace("+00:00", "Z"))
        case _:
            assert_never(value)


def _shortest_f32(value: float) -> str:
    """The fewest digits that identify this 32-bit float; nine are always enough."""
    spellings = (f"{value:.{digits}g}" for digits in range(1, 10))
    return next(
        spelling
        for spelling in spellings
        if struct.pack("f", float(spelling)) == struct.pack("f", value)
    )
