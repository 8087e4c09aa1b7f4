"""Rules about declarations: names, types, defaults, annotations and references."""

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
from omnigraph.schema.embedding_models import PROVIDERS, provider_of
from omnigraph.schema.embeds import companion_name, unmade_reason
from omnigraph.schema.findings import Finding, Path, SchemaCode, repeated_positions
from omnigraph.schema.interfaces import expanded_properties, interface_findings
from omnigraph.schema.values import Misfit, fit, is_unicode

KNOWN_ANNOTATIONS: Final = frozenset(
    {
        "key",
        "unique",
        "index",
        "range",
        "check",
        "length",
        "card",
        "default",
        "embed",
        "rename_from",
        "description",
    }
)
"""Annotations with a meaning; any other is metadata."""

_ONCE_METADATA: Final = frozenset({"length"})
"""Annotations that were metadata in earlier releases, and still are in the graphs those made."""

_TYPE_NAME: Final = re.compile(r"[A-Z][A-Za-z0-9_]*")
_IDENT: Final = re.compile(r"[a-z_][A-Za-z0-9_]*")
_ENUM_VALUE: Final = re.compile(r"[A-Za-z0-9_-]+")
_CARDINALITY_MAX: Final = 2**63 - 1


def findings_in(declarations: Sequence[Declaration]) -> Iterator[Finding]:
    """Every rule the declarations break, in their order; warnings included.

    The declarations are as written: interfaces not yet expanded, values not yet fitted.
    """
    interfaces = {
        declaration.name: declaration
        for declaration in declarations
        if isinstance(declaration, Interface)
    }
    nodes = {
        declaration.name: declaration
        for declaration in declarations
        if isinstance(declaration, NodeType)
    }
    yield from _shared_names(declarations)
    for index, declaration in enumerate(declarations):
        at: Path = (index,)
        yield from _names_and_texts(at, declaration)
        properties = declaration.properties
        if isinstance(declaration, NodeType):
            properties = expanded_properties(declaration, interfaces)
        columns = {property_.name: property_ for property_ in reversed(properties)}
        for position, property_ in enumerate(declaration.properties):
            place = (*at, "properties", position)
            yield from _property_findings(place, declaration, property_)
            yield from _embed_findings((*place, "embed"), declaration, property_, columns)
        yield from _repeated_properties(at, declaration, properties)
        yield from constraint_findings(at, declaration, columns)
        match declaration:
            case Interface():
                pass
            case NodeType():
                yield from interface_findings(at, declaration, interfaces)
            case EdgeType():
                yield from _endpoint_findings(at, declaration, nodes, declarations)
                yield from _cardinality_findings(at, declaration)
            case _:
                assert_never(declaration)


def _shared_names(declarations: Sequence[Declaration]) -> Iterator[Finding]:
    first: dict[str, Declaration] = {}
    edges: dict[str, str] = {}
    former: dict[tuple[type, str], str] = {}
    for index, declaration in enumerate(declarations):
        at: Path = (index, "name")
        if declaration.name in first:
            message = (
                f"{_label(declaration)} takes a name that {_label(first[declaration.name])} has"
            )
            yield Finding(SchemaCode.DUPLICATE_TYPE, at, message, "rename one of them")
        elif isinstance(declaration, EdgeType) and declaration.name.casefold() in edges:
            other = edges[declaration.name.casefold()]
            message = f"edges {other} and {declaration.name} differ only by case"
            yield Finding(SchemaCode.EDGE_NAME_CASE, at, message, "queries match edges by any case")
        first.setdefault(declaration.name, declaration)
        if isinstance(declaration, EdgeType):
            edges.setdefault(declaration.name.casefold(), declaration.name)
        if isinstance(declaration, NodeType | EdgeType) and declaration.rename_from is not None:
            claim = (type(declaration), declaration.rename_from)
            if claim in former:
                message = (
                    f"{former[claim]} and {declaration.name} were both {declaration.rename_from}"
                )
                yield Finding(SchemaCode.RENAME, (index, "rename_from"), message)
            former.setdefault(claim, declaration.name)


def _names_and_texts(at: Path, declaration: Declaration) -> Iterator[Finding]:
    label = _label(declaration)
    if fault := _name_fault(declaration.name, _TYPE_NAME):
        message = f"{label}: the name {fault}"
        hint = "a type name is A-Z followed by letters, digits or _"
        yield Finding(SchemaCode.INVALID_NAME, (*at, "name"), message, hint)
    if isinstance(declaration, NodeType | EdgeType):
        yield from _rename_findings(
            at, label, declaration.name, declaration.rename_from, _TYPE_NAME
        )
    yield from _text_findings((*at, "description"), label, declaration.description)
    yield from _annotation_findings((*at, "annotations"), label, declaration.annotations)


def _property_findings(at: Path, owner: Declaration, property_: Property) -> Iterator[Finding]:
    label = f"{_label(owner)}, property {property_.name[:200]}"
    if fault := _name_fault(property_.name, _IDENT):
        message = f"{label}: the name {fault}"
        hint = "a property name is a-z or _ followed by letters, digits or _"
        yield Finding(SchemaCode.INVALID_NAME, (*at, "name"), message, hint)
    if property_.name.casefold() in RESERVED_NAMES:
        message = f"{label}: the name is reserved"
        yield Finding(SchemaCode.RESERVED_NAME, (*at, "name"), message, "choose another name")
    yield from _type_findings((*at, "type"), label, property_)
    if property_.default is not None:
        if isinstance(property_.default, str):
            yield from _text_findings((*at, "default"), label, property_.default)
        if isinstance(misfit := fit(property_.type, property_.default), Misfit):
            message = f"{label}: the default does not fit: {misfit.reason}"
            yield Finding(SchemaCode.DEFAULT, (*at, "default"), message, misfit.hint)
    yield from _rename_findings(at, label, property_.name, property_.rename_from, _IDENT)
    yield from _text_findings((*at, "description"), label, property_.description)
    yield from _annotation_findings((*at, "annotations"), label, property_.annotations)


def _type_findings(at: Path, label: str, property_: Property) -> Iterator[Finding]:
    match property_.type:
        case EnumType(values):
            if not values:
                yield Finding(SchemaCode.INVALID_ENUM, at, f"{label}: the enum has no values")
            for position, value in enumerate(values):
                if not _ENUM_VALUE.fullmatch(value):
                    message = f"{label}: {value[:100]!r} is not an enum value"
                    hint = "use letters, digits, _ and -"
                    yield Finding(SchemaCode.INVALID_ENUM, (*at, position), message, hint)
            for position in repeated_positions(values):
                message = f"{label}: the enum has {values[position][:100]} twice"
                yield Finding(SchemaCode.INVALID_ENUM, (*at, position), message)
        case VectorType(dimension):
            if not 1 <= dimension <= VECTOR_DIMENSION_MAX:
                message = f"{label}: a vector cannot have this dimension"
                hint = f"between 1 and {VECTOR_DIMENSION_MAX}"
                yield Finding(SchemaCode.INVALID_VECTOR, at, message, hint)
        case Scalar() | ListType() | BlobType():
            pass
        case _:
            assert_never(property_.type)


def _embed_findings(
    at: Path, owner: Declaration, property_: Property, columns: Mapping[str, Property]
) -> Iterator[Finding]:
    if property_.embed is None:
        return
    label = f"{_label(owner)}, property {property_.name}"
    yield from _text_findings(at, label, property_.embed.model)
    if not isinstance(property_.type, VectorType):
        message = f"{label}: only a Vector can be embedded, not {property_.type}"
        yield Finding(SchemaCode.EMBED, at, message)
    for position in repeated_positions(property_.embed.sources):
        message = f"{label}: {property_.embed.sources[position][:100]} is embedded twice"
        yield Finding(SchemaCode.EMBED, at, message, "name each text once")
    for name in property_.embed.sources:
        source = columns.get(name)
        if source is None:
            message = f"{label}: {owner.name} has no property {name[:100]} to embed"
            yield Finding(SchemaCode.EMBED, at, message, did_you_mean(name, columns))
        elif source.type is not Scalar.STRING:
            message = f"{label}: {source.name} is {source.type}; an embedding needs a String"
            yield Finding(SchemaCode.EMBED, at, message)
    yield from _companion_findings(at, label, property_.name, columns)
    provider = provider_of(property_.embed.model_name)
    if provider not in PROVIDERS:
        message = f"{label}: no provider {provider[:100]} makes embeddings"
        hint = did_you_mean(provider, PROVIDERS, otherwise=f"use one of {', '.join(PROVIDERS)}")
        yield Finding(SchemaCode.UNKNOWN_MODEL, at, message, hint)
    if (reason := unmade_reason(property_)) is not None:
        message = f"{label} is {property_.type}, and {reason}: its vectors come with the data"
        hint = 'name a model that makes them: model="…"'
        yield Finding(SchemaCode.UNMADE_VECTOR, at, message, hint)


def _companion_findings(
    at: Path, label: str, vector: str, columns: Mapping[str, Property]
) -> Iterator[Finding]:
    companion = columns.get(companion_name(vector))
    if companion is not None and (
        companion.type is not Scalar.STRING or not companion.nullable or companion.default
    ):
        message = (
            f"{label}: {companion.name} says what the vector was made from, "
            f"and cannot be a property of its own"
        )
        yield Finding(SchemaCode.EMBED, at, message, "give that property another name")


def _rename_findings(
    at: Path, label: str, name: str, former: str | None, spelling: re.Pattern[str]
) -> Iterator[Finding]:
    if former is None:
        return
    at = (*at, "rename_from")
    if fault := _name_fault(former, spelling):
        yield Finding(SchemaCode.RENAME, at, f"{label}: the former name {fault}")
    elif former == name:
        yield Finding(SchemaCode.RENAME, at, f"{label}: the former name is the name it has")


def _repeated_properties(
    at: Path, declaration: Declaration, properties: Sequence[Property]
) -> Iterator[Finding]:
    """Names and former names that two properties share, those from interfaces included."""
    names: dict[str, str] = {}
    former: dict[str, str] = {}
    for position, property_ in enumerate(properties):
        place: Path = (*at, "properties", position)
        folded = property_.name.casefold()
        if folded in names:
            message = f"{_label(declaration)}: property {property_.name} is declared twice"
            if names[folded] != property_.name:
                both = f"{names[folded]} and {property_.name}"
                message = f"{_label(declaration)}: properties {both} differ only by case"
            yield Finding(SchemaCode.DUPLICATE_PROPERTY, (*place, "name"), message)
        names.setdefault(folded, property_.name)
        if property_.rename_from is None:
            continue
        if property_.rename_from in former:
            message = (
                f"{_label(declaration)}: properties {former[property_.rename_from]} and "
                f"{property_.name} were both {property_.rename_from}"
            )
            yield Finding(SchemaCode.RENAME, (*place, "rename_from"), message)
        former.setdefault(property_.rename_from, property_.name)


def _annotation_findings(
    at: Path, label: str, annotations: Iterable[Annotation]
) -> Iterator[Finding]:
    for position, annotation in enumerate(annotations):
        place: Path = (*at, position)
        if annotation.name in KNOWN_ANNOTATIONS - _ONCE_METADATA:
            message = f"{label}: @{annotation.name} has a meaning, so it cannot be metadata"
            yield Finding(SchemaCode.MISUSED_ANNOTATION, place, message)
            continue
        argument_names = [name for name, _ in annotation.arguments]
        for name in (annotation.name, *argument_names):
            if fault := _name_fault(name, _IDENT):
                yield Finding(SchemaCode.INVALID_NAME, place, f"{label}: annotation name {fault}")
        for index in repeated_positions(argument_names):
            message = f"{label}: @{annotation.name} has the argument {argument_names[index]} twice"
            yield Finding(SchemaCode.MISUSED_ANNOTATION, place, message)
        if annotation.arguments and annotation.value is None:
            message = f"{label}: @{annotation.name} has named arguments but no value before them"
            yield Finding(SchemaCode.MISUSED_ANNOTATION, place, message)
        for value in (annotation.value, *(value for _, value in annotation.arguments)):
            yield from _text_findings(place, label, value)
        message = f"{label}: @{annotation.name} has no meaning here and is kept as metadata"
        hint = did_you_mean(annotation.name, sorted(KNOWN_ANNOTATIONS))
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
        other = next(
            (declaration for declaration in declarations if declaration.name == name), None
        )
        message = f"edge {edge.name}: node type {name[:200]} does not exist"
        hint = did_you_mean(name, nodes)
        if other is not None:
            message = f"edge {edge.name}: {_label(other)} is not a node type"
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


def _text_findings(at: Path, label: str, value: object) -> Iterator[Finding]:
    if isinstance(value, str) and not is_unicode(value):
        message = f"{label}: the text has half of a surrogate pair"
        yield Finding(SchemaCode.INVALID_TEXT, at, message)
    if isinstance(value, float) and not math.isfinite(value):
        yield Finding(SchemaCode.INVALID_TEXT, at, f"{label}: the number is not finite")
    if isinstance(value, int) and not -(2**63) <= value < 2**64:
        yield Finding(SchemaCode.INVALID_TEXT, at, f"{label}: the number exceeds 64 bits")


def _name_fault(name: str, spelling: re.Pattern[str]) -> str | None:
    if len(name) > TYPE_NAME_LENGTH_MAX:
        return f"is longer than {TYPE_NAME_LENGTH_MAX} characters"
    if not spelling.fullmatch(name):
        return f"{name!r} is not spelt as one"
    return None


def _label(declaration: Declaration) -> str:
    match declaration:
        case Interface():
            kind = "interface"
        case NodeType():
            kind = "node"
        case EdgeType():
            kind = "edge"
        case _:
            assert_never(declaration)
    return f"{kind} {declaration.name[:200]}"
