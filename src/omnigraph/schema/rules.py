"""Rules about declarations: names, types, defaults, annotations, and what refers to what."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, assert_never

from omnigraph.lang.diagnostics import did_you_mean
from omnigraph.limits import TYPE_NAME_LENGTH_MAX
from omnigraph.model.types import (
    VECTOR_DIMENSION_MAX,
    BlobType,
    EnumType,
    ListType,
    Scalar,
    VectorType,
)
from omnigraph.schema.catalog import (
    RESERVED_NAMES,
    Annotation,
    Declaration,
    EdgeType,
    Interface,
    NodeType,
    Property,
)
from omnigraph.schema.constraints import constraint_findings
from omnigraph.schema.findings import Finding, Path, SchemaCode, repeats
from omnigraph.schema.interfaces import expanded_properties, interface_findings
from omnigraph.schema.values import Misfit, fit, is_unicode

KNOWN_ANNOTATIONS: Final = frozenset(
    {
        "key",
        "unique",
        "index",
        "range",
        "check",
        "card",
        "default",
        "embed",
        "rename_from",
        "description",
    }
)
"""Annotations with a meaning; any other is metadata."""

_TYPE_NAME: Final = re.compile(r"[A-Z][A-Za-z0-9_]*")
_IDENT: Final = re.compile(r"[a-z_][A-Za-z0-9_]*")
_ENUM_VALUE: Final = re.compile(r"[A-Za-z0-9_-]+")
_CARDINALITY_MAX: Final = 2**63 - 1


def findings_in(declarations: Sequence[Declaration]) -> Iterator[Finding]:
    """Everything the declarations break, in their order; warnings included.

    The declarations are as written: interfaces not yet expanded, values not yet fitted.
    """
    interfaces = {each.name: each for each in declarations if isinstance(each, Interface)}
    nodes = {each.name: each for each in declarations if isinstance(each, NodeType)}
    yield from _shared_names(declarations)
    for index, each in enumerate(declarations):
        at: Path = (index,)
        yield from _names_and_texts(at, each)
        properties = each.properties
        if isinstance(each, NodeType):
            properties = expanded_properties(each, interfaces)
        columns = {property_.name: property_ for property_ in reversed(properties)}
        for position, property_ in enumerate(each.properties):
            place = (*at, "properties", position)
            yield from _property_findings(place, each, property_)
            yield from _embed_findings((*place, "embed"), each, property_, columns)
        yield from _repeated_properties(at, each, properties)
        yield from constraint_findings(at, each, columns)
        match each:
            case Interface():
                pass
            case NodeType():
                yield from interface_findings(at, each, interfaces)
            case EdgeType():
                yield from _endpoint_findings(at, each, nodes, declarations)
                yield from _cardinality_findings(at, each)
            case _:
                assert_never(each)


def _shared_names(declarations: Sequence[Declaration]) -> Iterator[Finding]:
    first: dict[str, Declaration] = {}
    edges: dict[str, str] = {}
    former: dict[tuple[type, str], str] = {}
    for index, each in enumerate(declarations):
        at: Path = (index, "name")
        if each.name in first:
            message = f"{_called(each)} takes a name that {_called(first[each.name])} has"
            yield Finding(SchemaCode.DUPLICATE_TYPE, at, message, "rename one of them")
        elif isinstance(each, EdgeType) and each.name.casefold() in edges:
            other = edges[each.name.casefold()]
            message = f"edges {other} and {each.name} differ only by case"
            yield Finding(SchemaCode.EDGE_NAME_CASE, at, message, "queries match edges by any case")
        first.setdefault(each.name, each)
        if isinstance(each, EdgeType):
            edges.setdefault(each.name.casefold(), each.name)
        if isinstance(each, NodeType | EdgeType) and each.rename_from is not None:
            claim = (type(each), each.rename_from)
            if claim in former:
                message = f"{former[claim]} and {each.name} were both {each.rename_from}"
                yield Finding(SchemaCode.RENAME, (index, "rename_from"), message)
            former.setdefault(claim, each.name)


def _names_and_texts(at: Path, each: Declaration) -> Iterator[Finding]:
    called = _called(each)
    if wrong := _name_fault(each.name, _TYPE_NAME):
        message = f"{called}: the name {wrong}"
        hint = "a type name is A-Z followed by letters, digits or _"
        yield Finding(SchemaCode.INVALID_NAME, (*at, "name"), message, hint)
    if isinstance(each, NodeType | EdgeType):
        yield from _rename_findings(at, called, each.name, each.rename_from, _TYPE_NAME)
    yield from _text_findings((*at, "description"), called, each.description)
    yield from _annotation_findings((*at, "annotations"), called, each.annotations)


def _property_findings(at: Path, owner: Declaration, each: Property) -> Iterator[Finding]:
    called = f"{_called(owner)}, property {each.name[:200]}"
    if wrong := _name_fault(each.name, _IDENT):
        message = f"{called}: the name {wrong}"
        hint = "a property name is a-z or _ followed by letters, digits or _"
        yield Finding(SchemaCode.INVALID_NAME, (*at, "name"), message, hint)
    if each.name.casefold() in RESERVED_NAMES:
        message = f"{called}: the name is reserved"
        yield Finding(SchemaCode.RESERVED_NAME, (*at, "name"), message, "choose another name")
    yield from _type_findings((*at, "type"), called, each)
    if each.default is not None:
        if isinstance(each.default, str):
            yield from _text_findings((*at, "default"), called, each.default)
        if isinstance(misfit := fit(each.type, each.default), Misfit):
            message = f"{called}: the default does not fit: {misfit.reason}"
            yield Finding(SchemaCode.DEFAULT, (*at, "default"), message, misfit.hint)
    yield from _rename_findings(at, called, each.name, each.rename_from, _IDENT)
    yield from _text_findings((*at, "description"), called, each.description)
    yield from _annotation_findings((*at, "annotations"), called, each.annotations)


def _type_findings(at: Path, called: str, each: Property) -> Iterator[Finding]:
    match each.type:
        case EnumType(values):
            if not values:
                yield Finding(SchemaCode.INVALID_ENUM, at, f"{called}: the enum has no values")
            for position, value in enumerate(values):
                if not _ENUM_VALUE.fullmatch(value):
                    message = f"{called}: {value[:100]!r} is not an enum value"
                    hint = "use letters, digits, _ and -"
                    yield Finding(SchemaCode.INVALID_ENUM, (*at, position), message, hint)
            for position in repeats(values):
                message = f"{called}: the enum has {values[position][:100]} twice"
                yield Finding(SchemaCode.INVALID_ENUM, (*at, position), message)
        case VectorType(dimension):
            if not 1 <= dimension <= VECTOR_DIMENSION_MAX:
                message = f"{called}: a vector cannot have this dimension"
                hint = f"between 1 and {VECTOR_DIMENSION_MAX}"
                yield Finding(SchemaCode.INVALID_VECTOR, at, message, hint)
        case Scalar() | ListType() | BlobType():
            pass
        case _:
            assert_never(each.type)


def _embed_findings(
    at: Path, owner: Declaration, each: Property, columns: Mapping[str, Property]
) -> Iterator[Finding]:
    if each.embed is None:
        return
    called = f"{_called(owner)}, property {each.name}"
    yield from _text_findings(at, called, each.embed.model)
    if not isinstance(each.type, VectorType):
        message = f"{called}: only a Vector can be embedded, not {each.type}"
        yield Finding(SchemaCode.EMBED, at, message)
    source = columns.get(each.embed.source)
    if source is None:
        message = f"{called}: {owner.name} has no property {each.embed.source[:100]} to embed"
        yield Finding(SchemaCode.EMBED, at, message, did_you_mean(each.embed.source, columns))
    elif source.type is not Scalar.STRING:
        message = f"{called}: {source.name} is {source.type}; an embedding needs a String"
        yield Finding(SchemaCode.EMBED, at, message)


def _rename_findings(
    at: Path, called: str, name: str, former: str | None, spelling: re.Pattern[str]
) -> Iterator[Finding]:
    if former is None:
        return
    at = (*at, "rename_from")
    if wrong := _name_fault(former, spelling):
        yield Finding(SchemaCode.RENAME, at, f"{called}: the former name {wrong}")
    elif former == name:
        yield Finding(SchemaCode.RENAME, at, f"{called}: the former name is the name it has")


def _repeated_properties(
    at: Path, each: Declaration, properties: Sequence[Property]
) -> Iterator[Finding]:
    """Names and former names that two properties share, those from interfaces included."""
    named: dict[str, str] = {}
    former: dict[str, str] = {}
    for position, property_ in enumerate(properties):
        place: Path = (*at, "properties", position)
        folded = property_.name.casefold()
        if folded in named:
            message = f"{_called(each)}: property {property_.name} is declared twice"
            if named[folded] != property_.name:
                both = f"{named[folded]} and {property_.name}"
                message = f"{_called(each)}: properties {both} differ only by case"
            yield Finding(SchemaCode.DUPLICATE_PROPERTY, (*place, "name"), message)
        named.setdefault(folded, property_.name)
        if property_.rename_from is None:
            continue
        if property_.rename_from in former:
            message = (
                f"{_called(each)}: properties {former[property_.rename_from]} and "
                f"{property_.name} were both {property_.rename_from}"
            )
            yield Finding(SchemaCode.RENAME, (*place, "rename_from"), message)
        former.setdefault(property_.rename_from, property_.name)


def _annotation_findings(
    at: Path, called: str, annotations: Iterable[Annotation]
) -> Iterator[Finding]:
    for position, each in enumerate(annotations):
        place: Path = (*at, position)
        names = (each.name, *(name for name, _ in each.arguments))
        if each.name in KNOWN_ANNOTATIONS:
            message = f"{called}: @{each.name} has a meaning, so it cannot be metadata"
            yield Finding(SchemaCode.MISUSED_ANNOTATION, place, message)
            continue
        for name in names:
            if wrong := _name_fault(name, _IDENT):
                yield Finding(SchemaCode.INVALID_NAME, place, f"{called}: annotation name {wrong}")
        for again in repeats([name for name, _ in each.arguments]):
            message = f"{called}: @{each.name} has the argument {each.arguments[again][0]} twice"
            yield Finding(SchemaCode.MISUSED_ANNOTATION, place, message)
        if each.arguments and each.value is None:
            message = f"{called}: @{each.name} has named arguments but no value before them"
            yield Finding(SchemaCode.MISUSED_ANNOTATION, place, message)
        for value in (each.value, *(value for _, value in each.arguments)):
            yield from _text_findings(place, called, value)
        message = f"{called}: @{each.name} has no meaning here and is kept as metadata"
        hint = did_you_mean(each.name, sorted(KNOWN_ANNOTATIONS))
        yield Finding(SchemaCode.UNKNOWN_ANNOTATION, place, message, hint)


def _endpoint_findings(
    at: Path,
    edge: EdgeType,
    nodes: Mapping[str, NodeType],
    declarations: Sequence[Declaration],
) -> Iterator[Finding]:
    for end, name in (("source", edge.source), ("target", edge.target)):
        if name in nodes:
            continue
        other = next((each for each in declarations if each.name == name), None)
        message = f"edge {edge.name}: there is no node type {name[:200]}"
        hint = did_you_mean(name, nodes)
        if other is not None:
            message = f"edge {edge.name}: {_called(other)} is not a node type"
            hint = "an edge joins node types"
        yield Finding(SchemaCode.UNKNOWN_NODE_TYPE, (*at, end), message, hint)


def _cardinality_findings(at: Path, edge: EdgeType) -> Iterator[Finding]:
    low, high = edge.cardinality.minimum, edge.cardinality.maximum
    at = (*at, "cardinality")
    if not 0 <= low <= _CARDINALITY_MAX or (high is not None and high > _CARDINALITY_MAX):
        message = f"edge {edge.name}: a cardinality counts from 0 to {_CARDINALITY_MAX}"
        yield Finding(SchemaCode.CARDINALITY, at, message)
    elif high is not None and high < low:
        message = f"edge {edge.name}: the cardinality's minimum {low} exceeds its maximum {high}"
        yield Finding(SchemaCode.CARDINALITY, at, message, f"write @card({high}..{low})")


def _text_findings(at: Path, called: str, value: object) -> Iterator[Finding]:
    if isinstance(value, str) and not is_unicode(value):
        message = f"{called}: the text has half of a surrogate pair"
        yield Finding(SchemaCode.INVALID_TEXT, at, message)
    if isinstance(value, float) and not math.isfinite(value):
        yield Finding(SchemaCode.INVALID_TEXT, at, f"{called}: the number is not finite")
    if isinstance(value, int) and not -(2**63) <= value < 2**64:
        yield Finding(SchemaCode.INVALID_TEXT, at, f"{called}: the number exceeds 64 bits")


def _name_fault(name: str, spelling: re.Pattern[str]) -> str | None:
    if len(name) > TYPE_NAME_LENGTH_MAX:
        return f"is longer than {TYPE_NAME_LENGTH_MAX} characters"
    if not spelling.fullmatch(name):
        return f"{name!r} is not spelt as one"
    return None


def _called(each: Declaration) -> str:
    match each:
        case Interface():
            kind = "interface"
        case NodeType():
            kind = "node"
        case EdgeType():
            kind = "edge"
        case _:
            assert_never(each)
    return f"{kind} {each.name[:200]}"
