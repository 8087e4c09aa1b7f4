"""The catalog: the meaning of a schema, independent of its text and layout.

A catalog built by hand from declarations is validated like a parsed one:

    >>> from omnigraph.model.types import Scalar
    >>> from omnigraph.schema.resolve import catalog_of
    >>> catalog = catalog_of(
    ...     NodeType("Person", (Property("name", Scalar.STRING),), key=("name",)),
    ...     EdgeType("Knows", "Person", "Person", properties=(Property("since", Scalar.DATE),)),
    ... )
    >>> [str(each.table_key) for each in catalog.types]
    ['node:Person', 'edge:Knows']
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date, datetime
from typing import Final, TypeVar

from omnigraph.choices import Analyzer, Metric, TableKind, VectorKind
from omnigraph.errors import NotFoundError, TypeNotFoundError
from omnigraph.lang.diagnostics import did_you_mean
from omnigraph.model.brief import brief
from omnigraph.model.names import TypeName
from omnigraph.model.tables import TableKey
from omnigraph.model.types import PropertyType
from omnigraph.schema.embedding_models import LOCAL_MODEL

Value = str | int | float | bool | date | datetime
"""A default or a bound, in the Python type of its property. A bare date is never an instant."""

ENDPOINTS: Final = ("src", "dst")
"""The columns of an edge that constraints may name beside its properties."""

RESERVED_NAMES: Final = frozenset(
    {
        "id",
        *ENDPOINTS,
        "_rowid",
        "_rowaddr",
        "_rowoffset",
        "_row_created_at_version",
        "_row_last_updated_at_version",
    }
)
"""System columns of ours and of Lance; no property may have their names."""


@dataclass(frozen=True, slots=True)
class Annotation:
    """Metadata that the schema stores but does not interpret."""

    name: str
    value: str | int | float | bool | None = None
    arguments: tuple[tuple[str, str | int | float | bool], ...] = ()


@dataclass(frozen=True, slots=True)
class Embed:
    """The sources of a vector: the properties that hold its text, in order, and the model to use.

    Attributes:
        model: None for the one that is installed with us.
    """

    sources: tuple[str, ...]
    model: str | None = None

    @property
    def model_name(self) -> str:
        """The model by its name."""
        return LOCAL_MODEL if self.model is None else self.model


@dataclass(frozen=True, slots=True)
class Range:
    """Inclusive bounds; None leaves an end open. A null value is exempt, NaN is refused."""

    property: str
    low: Value | None = None
    high: Value | None = None


@dataclass(frozen=True, slots=True)
class Check:
    """A pattern that must be found somewhere in the text (`schema.patterns` has its dialect)."""

    property: str
    pattern: str


@dataclass(frozen=True, slots=True)
class Length:
    """How many characters a text has, or items a list; None leaves an end open, null is exempt."""

    property: str
    low: int | None = None
    high: int | None = None


@dataclass(frozen=True, slots=True)
class TextOptions:
    """How texts are searched.

    Attributes:
        positions: Whether the index has the places of words, which phrases are found by.
    """

    analyzer: Analyzer = Analyzer.ENGLISH
    positions: bool = False


@dataclass(frozen=True, slots=True)
class VectorOptions:
    """How vectors are searched.

    Attributes:
        kind: The structure of the index; None if the number of rows decides.
    """

    kind: VectorKind | None = None
    metric: Metric = Metric.COSINE


IndexOptions = TextOptions | VectorOptions


@dataclass(frozen=True, slots=True)
class Index:
    """A request for an index on one property.

    Attributes:
        options: None where they are those that such an index has by default.
    """

    property: str
    options: IndexOptions | None = None


@dataclass(frozen=True, slots=True)
class Cardinality:
    """How many edges of one type a source node may have; None is no upper limit."""

    minimum: int = 0
    maximum: int | None = None


UNLIMITED: Final = Cardinality()


@dataclass(frozen=True, slots=True)
class Property:
    """One property of a type; by default not null and without a default value."""

    name: str
    type: PropertyType
    nullable: bool = False
    default: Value | None = None
    embed: Embed | None = None
    description: str | None = None
    rename_from: str | None = None
    annotations: tuple[Annotation, ...] = ()


@dataclass(frozen=True, slots=True)
class Interface:
    """Properties that several node types share; it has no rows of its own."""

    name: str
    properties: tuple[Property, ...] = ()
    key: tuple[str, ...] = ()
    uniques: tuple[tuple[str, ...], ...] = ()
    indexes: tuple[Index, ...] = ()
    description: str | None = None
    annotations: tuple[Annotation, ...] = ()


@dataclass(frozen=True, slots=True)
class NodeType:
    """A node type. In a catalog it includes what its interfaces declare.

    Attributes:
        key: The properties that determine a node's id, in order; empty when ids are minted.
        uniques: Sets of properties whose values no two nodes share.
        indexes: Properties to index, each by itself (`schema.indexes` says how).
    """

    name: str
    properties: tuple[Property, ...] = ()
    key: tuple[str, ...] = ()
    uniques: tuple[tuple[str, ...], ...] = ()
    indexes: tuple[Index, ...] = ()
    ranges: tuple[Range, ...] = ()
    checks: tuple[Check, ...] = ()
    lengths: tuple[Length, ...] = ()
    implements: tuple[str, ...] = ()
    description: str | None = None
    rename_from: str | None = None
    annotations: tuple[Annotation, ...] = ()

    @property
    def table_key(self) -> TableKey:
        """How the manifest knows this type's table."""
        return TableKey(TableKind.NODE, TypeName(self.name))

    def property_named(self, name: str) -> Property:
        """The property of that name.

        Raises:
            NotFoundError: it does not exist; the hint has the nearest name.
        """
        return _find_property(self, name)


@dataclass(frozen=True, slots=True)
class EdgeType:
    """An edge type, from nodes of type `source` to nodes of type `target`.

    Attributes:
        key: The columns that determine an edge's id, `src` and `dst` included; empty when ids are
            minted.
        uniques: As for nodes; may also name `src` and `dst`.
    """

    name: str
    source: str
    target: str
    cardinality: Cardinality = UNLIMITED
    properties: tuple[Property, ...] = ()
    key: tuple[str, ...] = ()
    uniques: tuple[tuple[str, ...], ...] = ()
    indexes: tuple[Index, ...] = ()
    ranges: tuple[Range, ...] = ()
    checks: tuple[Check, ...] = ()
    lengths: tuple[Length, ...] = ()
    description: str | None = None
    rename_from: str | None = None
    annotations: tuple[Annotation, ...] = ()

    @property
    def table_key(self) -> TableKey:
        """How the manifest knows this type's table."""
        return TableKey(TableKind.EDGE, TypeName(self.name))

    @property
    def word(self) -> str:
        """The edge's name as queries write it.

        >>> EdgeType("WorksAt", "Person", "Company").word
        'worksAt'
        """
        return self.name[:1].lower() + self.name[1:]

    def property_named(self, name: str) -> Property:
        """The property of that name.

        Raises:
            NotFoundError: it does not exist; the hint has the nearest name.
        """
        return _find_property(self, name)


SchemaType = NodeType | EdgeType
"""A type that has a table."""

Declaration = Interface | NodeType | EdgeType
"""Everything that a schema can declare."""

_DeclarationT = TypeVar("_DeclarationT", Interface, NodeType, EdgeType)


@brief
@dataclass(frozen=True, slots=True)
class Catalog:
    """A valid schema: every name resolves, every interface is expanded, every value fits.

    Only `schema.resolve` builds one; everything that receives a catalog may rely on it. Types and
    constraints are in one canonical order, so equal schemas are equal catalogs.
    """

    node_types: tuple[NodeType, ...] = ()
    edge_types: tuple[EdgeType, ...] = ()
    interfaces: tuple[Interface, ...] = ()

    @property
    def types(self) -> Iterator[SchemaType]:
        """Node types, then edge types, each in the order of their names."""
        yield from self.node_types
        yield from self.edge_types

    def node_type(self, name: str) -> NodeType:
        """The node type of that name.

        Raises:
            TypeNotFoundError: it does not exist; the hint has the nearest name.
        """
        return _find(self.node_types, name, "node type")

    def edge_type(self, name: str) -> EdgeType:
        """The edge type of that name.

        Raises:
            TypeNotFoundError: it does not exist; the hint has the nearest name.
        """
        return _find(self.edge_types, name, "edge type")

    def interface(self, name: str) -> Interface:
        """The interface of that name.

        Raises:
            TypeNotFoundError: it does not exist; the hint has the nearest name.
        """
        return _find(self.interfaces, name, "interface")

    def incident_edges(self, node: NodeType) -> Iterator[tuple[EdgeType, str]]:
        """The edge types that can touch nodes of a type, with the column of each such end."""
        for edge in self.edge_types:
            for end, type_name in (("src", edge.source), ("dst", edge.target)):
                if type_name == node.name:
                    yield edge, end

    def type_named(self, name: str) -> SchemaType:
        """The node or edge type of that name; no two share one.

        Raises:
            TypeNotFoundError: it does not exist; the hint has the nearest name.
        """
        for type_ in self.types:
            if type_.name == name:
                return type_
        hint = did_you_mean(name, (type_.name for type_ in self.types))
        message = f"the schema has no type {name[:200]}"
        raise TypeNotFoundError(message, hint=hint, name=name)

    def types_named(self, names: Iterable[str] | None) -> tuple[SchemaType, ...]:
        """The types of these names, or all, in the catalog's order.

        Raises:
            TypeNotFoundError: there is none of a name.
        """
        if names is None:
            return tuple(self.types)
        wanted = {self.type_named(name).name for name in names}
        return tuple(type_ for type_ in self.types if type_.name in wanted)

    def type_of(self, key: TableKey) -> SchemaType:
        """The type whose rows a table holds.

        Raises:
            TypeNotFoundError: the schema has no such type; the hint has the nearest.
        """
        if key.kind is TableKind.NODE:
            return self.node_type(key.type_name)
        return self.edge_type(key.type_name)


def _find(declarations: tuple[_DeclarationT, ...], name: str, kind: str) -> _DeclarationT:
    for declaration in declarations:
        if declaration.name == name:
            return declaration
    hint = did_you_mean(name, (declaration.name for declaration in declarations))
    message = f"the schema has no {kind} {name[:200]}"
    raise TypeNotFoundError(message, hint=hint, name=name)


def _find_property(owner: SchemaType, name: str) -> Property:
    for property_ in owner.properties:
        if property_.name == name:
            return property_
    hint = did_you_mean(name, (property_.name for property_ in owner.properties))
    message = f"{owner.name} has no property {name[:200]}"
    raise NotFoundError(message, hint=hint, type=owner.name, name=name)
