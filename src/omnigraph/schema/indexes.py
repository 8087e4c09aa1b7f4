"""Indexes that a type asks for: which columns, which kind of index each, and what declares it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, assert_never

from omnigraph.choices import IndexKind, IndexSource
from omnigraph.model.types import (
    BlobType,
    EnumType,
    ListType,
    PropertyType,
    Scalar,
    VectorType,
)
from omnigraph.schema.catalog import (
    ENDPOINTS,
    EdgeType,
    IndexOptions,
    SchemaType,
    TextOptions,
    VectorOptions,
)

DEFAULT_OPTIONS: Final[tuple[IndexOptions, ...]] = (TextOptions(), VectorOptions())
"""What `@index` without options means, and a property that has none."""


@dataclass(frozen=True, slots=True)
class WantedIndex:
    """An index over one column of a type.

    Attributes:
        sources: What asks for it, in the order of `IndexSource`.
        options: How texts or vectors are searched by it; None for an index of another kind.
    """

    column: str
    kind: IndexKind
    sources: tuple[IndexSource, ...]
    options: IndexOptions | None = None


def wanted_indexes(type_: SchemaType) -> tuple[WantedIndex, ...]:
    """Every index that a type asks for, those of `id`, ends and key first.

    A column has at most one index for lookups. Ids, ends, keys and uniques are looked up by
    writers, in ordered indexes; where these exist already, `@index` adds nothing to them. Several
    members of one `@index` are indexed one by one: Lance intersects the results of their indexes.

    >>> from omnigraph.schema.catalog import Index, NodeType, Property
    >>> status, born = Property("status", EnumType(("on", "off"))), Property("born", Scalar.DATE)
    >>> indexes = (Index("born"), Index("status"))
    >>> person = NodeType("Person", (status, born), key=("born",), indexes=indexes)
    >>> for index in wanted_indexes(person):
    ...     print(index.column, index.kind, *index.sources)
    id BTREE id
    born BTREE key @index
    status BTREE @index
    """
    sources: dict[tuple[str, IndexKind], set[IndexSource]] = {}
    for column, kind, source in _requests(type_):
        sources.setdefault((column, kind), set()).add(source)
    return tuple(
        WantedIndex(
            column,
            kind,
            tuple(source for source in IndexSource if source in own),
            _options(type_, column, kind),
        )
        for (column, kind), own in sources.items()
    )


def _requests(type_: SchemaType) -> Iterator[tuple[str, IndexKind, IndexSource]]:
    ends = ENDPOINTS if isinstance(type_, EdgeType) else ()
    uniques = [name for members in type_.uniques for name in members]
    yield "id", IndexKind.BTREE, IndexSource.ID
    yield from ((name, IndexKind.BTREE, IndexSource.END) for name in ends)
    yield from ((name, IndexKind.BTREE, IndexSource.KEY) for name in type_.key)
    yield from ((name, IndexKind.BTREE, IndexSource.UNIQUE) for name in uniques)
    for index in type_.indexes:
        kind = index_kind(type_.property_named(index.property).type)
        assert kind is not None, "a valid schema asks for no other index"
        yield index.property, kind, IndexSource.INDEX


def _options(type_: SchemaType, column: str, kind: IndexKind) -> IndexOptions | None:
    if kind is IndexKind.INVERTED:
        return text_options(type_, column)
    return vector_options(type_, column) if kind is IndexKind.VECTOR else None


def text_options(type_: SchemaType, name: str) -> TextOptions:
    """How the texts of a property are searched, whether it has an index or not."""
    options = _declared_options(type_, name) or TextOptions()
    assert isinstance(options, TextOptions), "a String has no other options"
    return options


def vector_options(type_: SchemaType, name: str) -> VectorOptions:
    """How the vectors of a property are searched, whether it has an index or not.

    >>> from omnigraph.schema.catalog import NodeType, Property
    >>> vector_options(NodeType("Doc", (Property("v", VectorType(2)),)), "v").metric
    <Metric.COSINE: 'cosine'>
    """
    options = _declared_options(type_, name) or VectorOptions()
    assert isinstance(options, VectorOptions), "a Vector has no other options"
    return options


def _declared_options(type_: SchemaType, name: str) -> IndexOptions | None:
    return next((index.options for index in type_.indexes if index.property == name), None)


def takes_options(type_: PropertyType, options: IndexOptions) -> bool:
    """Whether an index on a property of this type can have these options."""
    match options:
        case TextOptions():
            return index_kind(type_) is IndexKind.INVERTED
        case VectorOptions():
            return index_kind(type_) is IndexKind.VECTOR
        case _:
            assert_never(options)


def index_kind(type_: PropertyType) -> IndexKind | None:
    """The kind of index that `@index` asks for on a property of this type; None if it cannot.

    >>> index_kind(Scalar.DATE), index_kind(Scalar.STRING), index_kind(ListType(Scalar.DATE))
    (<IndexKind.BTREE: 'BTREE'>, <IndexKind.INVERTED: 'INVERTED'>, None)
    """
    match type_:
        case Scalar.STRING:
            return IndexKind.INVERTED
        case Scalar() | EnumType():
            return IndexKind.BTREE
        case VectorType():
            return IndexKind.VECTOR
        case ListType() | BlobType():
            return None
        case _:
            assert_never(type_)
