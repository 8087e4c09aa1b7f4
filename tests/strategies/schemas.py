"""Hypothesis strategies: random schemas, valid by construction."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC
from typing import Any, Final

from hypothesis import strategies as st

from omnigraph.choices import Analyzer, Metric, VectorKind
from omnigraph.model.types import (
    INTEGER_BOUNDS,
    BlobType,
    EnumType,
    ListType,
    PropertyType,
    Scalar,
    VectorType,
)
from omnigraph.schema.catalog import (
    ENDPOINTS,
    RESERVED_NAMES,
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
from omnigraph.schema.embedding_models import LOCAL_MODEL, dimension_fault
from omnigraph.schema.embeds import manage
from omnigraph.schema.resolve import catalog_of

_KEYWORDS: Final = ("node", "edge", "interface", "enum", "implements", "true", "false")
_WORDS: Final = ("when", "type", "kind", "order", "limit", "from", "to", "date", "src_")
_PATTERNS: Final = ("^[a-z]+$", r"\d{2,4}", r"a|b\.c", "(?i)x?", 'say "hi"', r"[^\\]\t")

type_names = st.from_regex(r"[A-Z][A-Za-z0-9_]{0,8}", fullmatch=True)
property_names = st.one_of(
    st.sampled_from(_KEYWORDS + _WORDS), st.from_regex(r"[a-z_][A-Za-z0-9_]{0,6}", fullmatch=True)
).filter(lambda name: name.casefold() not in RESERVED_NAMES)
texts = st.text(st.characters(codec="utf-8"), max_size=12)

_scalars = st.sampled_from(list(Scalar))
_enums = st.lists(
    st.from_regex(r"[A-Za-z0-9_-]{1,6}", fullmatch=True), min_size=1, max_size=4, unique=True
).map(lambda values: EnumType(tuple(values)))
property_types: st.SearchStrategy[PropertyType] = st.one_of(
    _scalars,
    _scalars.map(ListType),
    st.just(ListType(BlobType())),
    _enums,
    st.integers(1, 65_536).map(VectorType),
    st.just(BlobType()),
)

_plain_values = st.one_of(
    texts,
    st.booleans(),
    st.integers(-(2**63), 2**64 - 1),
    st.floats(allow_nan=False).filter(lambda value: abs(value) != float("inf")),
)
_annotation_names = st.from_regex(r"x_[a-z]{1,5}", fullmatch=True)
metadata_annotations: st.SearchStrategy[Annotation] = st.builds(
    Annotation,
    _annotation_names,
    _plain_values,
    st.dictionaries(_annotation_names, _plain_values, max_size=2).map(
        lambda arguments: tuple(arguments.items())
    ),
) | st.builds(Annotation, _annotation_names)


def values_of(type_: PropertyType) -> st.SearchStrategy[Value] | None:
    """Values that a default or a bound of this type may have; None for types without literals."""
    match type_:
        case EnumType(values):
            return st.sampled_from(values)
        case Scalar.STRING:
            return texts
        case Scalar.BOOL:
            return st.booleans()
        case Scalar.I32 | Scalar.I64 | Scalar.U32 | Scalar.U64:
            return st.integers(*INTEGER_BOUNDS[type_])
        case Scalar.F32 | Scalar.F64:
            width: Any = 32 if type_ is Scalar.F32 else 64
            return st.floats(allow_nan=False, allow_infinity=False, width=width)
        case Scalar.DATE:
            return st.dates()
        case Scalar.DATETIME:
            return st.datetimes(timezones=st.just(UTC))
        case _:
            return None


@st.composite
def properties(draw: st.DrawFn) -> Property:
    """One property that any type could have."""
    type_ = draw(property_types)
    values = values_of(type_)
    return Property(
        draw(property_names),
        type_,
        nullable=draw(st.booleans()),
        default=draw(st.none() | values) if values is not None else None,
        description=draw(st.none() | texts),
        annotations=tuple(draw(st.lists(metadata_annotations, max_size=1))),
    )


_bodies = st.lists(properties(), max_size=6, unique_by=lambda property_: property_.name.casefold())


@st.composite
def _constraints(
    draw: st.DrawFn, body: list[Property], *, endpoints: tuple[str, ...], single: bool
) -> dict[str, Any]:
    """A key, uniques and indexes over the properties that may have them."""
    comparable = [property_ for property_ in body if isinstance(property_.type, Scalar | EnumType)]
    keyable = [*endpoints, *(property_.name for property_ in comparable if not property_.nullable)]
    uniqueable = [*endpoints, *(property_.name for property_ in comparable)]
    indexable = {
        property_.name: property_.type
        for property_ in body
        if not isinstance(property_.type, ListType | BlobType)
    }
    width = 1 if single else 3
    return {
        "key": tuple(draw(_some(keyable, width))),
        "uniques": tuple(
            tuple(members)
            for members in draw(st.lists(_some(uniqueable, width), max_size=2, unique_by=frozenset))
            if members
        ),
        "indexes": tuple(
            Index(name, draw(index_options(indexable[name])))
            for name in draw(_some(list(indexable), 3))
        ),
    }


def index_options(type_: PropertyType) -> st.SearchStrategy[IndexOptions | None]:
    """Options that an index on a property of this type may have."""
    if type_ is Scalar.STRING:
        analyzers = st.sampled_from(Analyzer)
        return st.none() | st.builds(TextOptions, analyzers, positions=st.booleans())
    if isinstance(type_, VectorType):
        kinds = st.none() | st.sampled_from(VectorKind)
        return st.none() | st.builds(VectorOptions, kinds, st.sampled_from(Metric))
    return st.none()


def _some(names: list[str], most: int) -> st.SearchStrategy[list[str]]:
    if not names:
        return st.just([])
    return st.lists(st.sampled_from(names), max_size=most, unique=True)


@st.composite
def _ranges(draw: st.DrawFn, body: list[Property]) -> tuple[Range, ...]:
    ranges = []
    for property_ in body:
        has_order = isinstance(property_.type, Scalar) and (
            property_.type.is_numeric or property_.type.is_temporal
        )
        bounds = values_of(property_.type)
        if has_order and bounds is not None and draw(st.booleans()):
            ends: list[Any] = draw(st.lists(bounds, min_size=1, max_size=2))
            low, high = min(ends), max(ends)
            ranges.append(Range(property_.name, *draw(st.sampled_from(_open_ends(low, high)))))
    return tuple(ranges)


@st.composite
def _lengths(draw: st.DrawFn, body: list[Property]) -> tuple[Length, ...]:
    lengths = []
    for property_ in body:
        has_length = property_.type is Scalar.STRING or isinstance(property_.type, ListType)
        if has_length and draw(st.booleans()):
            low = draw(st.integers(0, 3))
            high = draw(st.integers(low, 5))
            lengths.append(Length(property_.name, *draw(st.sampled_from(_open_ends(low, high)))))
    return tuple(lengths)


def _open_ends(low: Any, high: Any) -> list[tuple[Any, Any]]:
    return [(low, high), (low, None), (None, high)]


@st.composite
def _body(
    draw: st.DrawFn, *, endpoints: tuple[str, ...] = (), single: bool = False
) -> dict[str, Any]:
    body = draw(_bodies)
    sources = [property_.name for property_ in body if property_.type is Scalar.STRING]
    if sources:
        body = [
            Property(
                property_.name,
                property_.type,
                property_.nullable,
                embed=draw(st.none() | _embeds(sources, property_.type.dimension)),
            )
            if isinstance(property_.type, VectorType)
            else property_
            for property_ in body
        ]
    fields = draw(_constraints(body, endpoints=endpoints, single=single))
    fields["properties"] = tuple(body)
    fields["description"] = draw(st.none() | texts)
    fields["annotations"] = tuple(draw(st.lists(metadata_annotations, max_size=1)))
    if not single:
        fields["ranges"] = draw(_ranges(body))
        searched = draw(_some(sources, 2))
        fields["checks"] = tuple(Check(name, draw(st.sampled_from(_PATTERNS))) for name in searched)
        fields["lengths"] = draw(
            _lengths([property_ for property_ in body if property_.name not in searched])
        )
    return fields


def _embeds(sources: list[str], dimension: int) -> st.SearchStrategy[Embed]:
    some = st.lists(st.sampled_from(sources), min_size=1, max_size=3, unique=True).map(tuple)
    models = (st.none() | texts).filter(
        lambda model: dimension_fault(model or LOCAL_MODEL, dimension) is None
    )
    return st.builds(Embed, some, models)


@st.composite
def declarations(draw: st.DrawFn) -> list[Declaration]:
    """Declarations that together form a valid schema, in random order."""
    names = draw(st.lists(type_names, max_size=6, unique_by=str.casefold))
    cut = draw(st.integers(0, len(names)))
    shared, rest = names[: cut // 2], names[cut // 2 :]
    interfaces = [manage(Interface(name, **draw(_body(single=True)))) for name in shared]
    nodes = [manage(NodeType(name, **draw(_body()))) for name in rest[: max(1, len(rest) // 2)]]
    result: list[Declaration] = [
        *interfaces,
        *(draw(_add_interface(node, interfaces)) for node in nodes),
    ]
    if nodes:
        ends = st.sampled_from([node.name for node in nodes])
        for name in rest[len(nodes) :]:
            low = draw(st.integers(0, 3))
            high = draw(st.none() | st.integers(low, 5))
            edge = EdgeType(
                name,
                draw(ends),
                draw(ends),
                Cardinality(low, high),
                **draw(_body(endpoints=ENDPOINTS)),
            )
            result.append(manage(edge))
    return draw(st.permutations(result))


@st.composite
def _add_interface(draw: st.DrawFn, node: NodeType, interfaces: list[Interface]) -> NodeType:
    """The node type, implementing an interface if one can be added without other changes."""
    taken = {property_.name.casefold() for property_ in node.properties}
    possible = [
        interface
        for interface in interfaces
        if not taken & {property_.name.casefold() for property_ in interface.properties}
        and not (node.key and interface.key)
    ]
    if not possible or draw(st.booleans()):
        return node
    chosen = draw(st.sampled_from(possible))
    return replace(node, implements=(chosen.name,))


catalogs: st.SearchStrategy[Catalog] = declarations().map(lambda types: catalog_of(*types))
"""Catalogs of every shape the language has."""
