"""A schema as facts: each thing that a schema states, addressed by identities instead of names.

Two branches may call a property differently and still state facts about the same one. So facts of
different schemas compare, and merge one by one (`three_way.py`).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Final, cast

from omnigraph.model.identities import TypeIdentity
from omnigraph.schema.catalog import (
    ENDPOINTS,
    Annotation,
    Catalog,
    Check,
    Declaration,
    EdgeType,
    Embed,
    Index,
    Interface,
    Length,
    NodeType,
    Property,
    Range,
)
from omnigraph.schema.matching import Identities


class Facet(StrEnum):
    """What a fact is about. Programs match on these words."""

    PRESENCE = "presence"
    NAME = "name"
    HINT = "hint"
    DESCRIPTION = "description"
    ANNOTATION = "annotation"
    TYPE = "type"
    NULLABLE = "nullable"
    DEFAULT = "default"
    EMBED = "embed"
    INDEX = "index"
    RANGE = "range"
    CHECK = "check"
    LENGTH = "length"
    KEY = "key"
    UNIQUE = "unique"
    CARDINALITY = "cardinality"
    ENDS = "ends"
    IMPLEMENTS = "implements"
    VALIDITY = "validity"
    """Not a fact of a schema: the facts of a merge, each fine by itself, break a rule together."""


@dataclass(frozen=True, slots=True, order=True)
class Unit:
    """A declaration or a property of one: what is present or not.

    Attributes:
        kind: `interface`, `node` or `edge`.
        origin: The origin of the type; an interface has only its name.
        property_origin: The origin of the property; None for the declaration itself.
    """

    kind: str
    origin: str
    property_origin: str | None = None

    @property
    def owner(self) -> Unit:
        """The declaration."""
        return Unit(self.kind, self.origin)

    def property_unit(self, origin: str) -> Unit:
        """A property of the declaration."""
        return Unit(self.kind, self.origin, origin)


@dataclass(frozen=True, slots=True)
class FactKey:
    """What a fact is about.

    Attributes:
        element: Which one, for a facet that a unit can have several of: the members of a unique,
            the pattern of a check, the name of an annotation or an interface.
    """

    unit: Unit
    facet: Facet
    element: Hashable = None


Facts = Mapping[FactKey, object]
"""Values by key. Names of properties and node types within values are origins."""


@dataclass(frozen=True, slots=True)
class SchemaSide:
    """One schema of a merge: its catalog, and the identity of each of its types."""

    catalog: Catalog
    identities: Identities = field(hash=False)


@dataclass(frozen=True, slots=True)
class SchemaFacts:
    """The facts of a schema.

    Attributes:
        units: The facts of each unit, those of a property apart from those of its declaration.
        orders: The origins of the properties of each declaration, in their order.
    """

    units: Mapping[Unit, Facts] = field(hash=False)
    orders: Mapping[Unit, tuple[str, ...]] = field(hash=False)

    def name_of(self, unit: Unit) -> str | None:
        """The name of a declaration or property; None if the schema has none."""
        name = self.units.get(unit, {}).get(FactKey(unit, Facet.NAME))
        return None if name is None else str(name)


def facts_of(side: SchemaSide) -> SchemaFacts:
    """Take a schema apart."""
    units: dict[Unit, dict[FactKey, object]] = {}
    orders: dict[Unit, tuple[str, ...]] = {}
    nodes = {
        type_.name: side.identities[type_.table_key].origin for type_ in side.catalog.node_types
    }
    for declaration in (*side.catalog.interfaces, *side.catalog.types):
        identity = _identity(side, declaration)
        unit = Unit(_kind(declaration), identity.origin)
        units[unit] = {
            FactKey(unit, facet, element): value
            for facet, element, value in _declaration_facts(declaration, identity, nodes)
        }
        for property_ in declaration.properties:
            origin = identity.origin_of(property_.name)
            units[unit.property_unit(origin)] = {
                FactKey(unit.property_unit(origin), facet, element): value
                for facet, element, value in _property_facts(declaration, property_, identity)
            }
        orders[unit] = tuple(
            identity.origin_of(property_.name) for property_ in declaration.properties
        )
    return SchemaFacts(units, orders)


def _identity(side: SchemaSide, declaration: Declaration) -> TypeIdentity:
    if isinstance(declaration, Interface):
        return TypeIdentity(declaration.name)
    return side.identities[declaration.table_key]


def _kind(declaration: Declaration) -> str:
    return "interface" if isinstance(declaration, Interface) else str(declaration.table_key.kind)


_Fact = tuple[Facet, Hashable, object]


def _declaration_facts(
    declaration: Declaration, identity: TypeIdentity, nodes: Mapping[str, str]
) -> Iterator[_Fact]:
    yield Facet.NAME, None, declaration.name
    yield from _remark_facts(declaration.description, declaration.annotations)
    yield Facet.KEY, None, tuple(map(identity.origin_of, declaration.key))
    for members in declaration.uniques:
        yield Facet.UNIQUE, frozenset(map(identity.origin_of, members)), True
    if isinstance(declaration, Interface):
        return
    if declaration.rename_from is not None:
        yield Facet.HINT, None, declaration.rename_from
    if isinstance(declaration, NodeType):
        for name in declaration.implements:
            yield Facet.IMPLEMENTS, name, True
    else:
        yield Facet.ENDS, None, (nodes[declaration.source], nodes[declaration.target])
        yield Facet.CARDINALITY, None, declaration.cardinality


def _property_facts(
    owner: Declaration, property_: Property, identity: TypeIdentity
) -> Iterator[_Fact]:
    yield Facet.NAME, None, property_.name
    yield Facet.TYPE, None, property_.type
    yield Facet.NULLABLE, None, property_.nullable
    yield from _remark_facts(property_.description, property_.annotations)
    if property_.default is not None:
        yield Facet.DEFAULT, None, property_.default
    if property_.embed is not None:
        embed = property_.embed
        yield Facet.EMBED, None, Embed(tuple(map(identity.origin_of, embed.sources)), embed.model)
    if property_.rename_from is not None:
        yield Facet.HINT, None, property_.rename_from
    for index in owner.indexes:
        if index.property == property_.name:
            yield Facet.INDEX, None, replace(index, property=identity.origin_of(property_.name))
    if isinstance(owner, Interface):
        return
    for range_ in owner.ranges:
        if range_.property == property_.name:
            yield Facet.RANGE, None, (range_.low, range_.high)
    for check in owner.checks:
        if check.property == property_.name:
            yield Facet.CHECK, check.pattern, True
    for length in owner.lengths:
        if length.property == property_.name:
            yield Facet.LENGTH, None, (length.low, length.high)


def _remark_facts(description: str | None, annotations: tuple[Annotation, ...]) -> Iterator[_Fact]:
    if description is not None:
        yield Facet.DESCRIPTION, None, description
    # An annotation may be repeated, so all of one name are one fact.
    for name in sorted({annotation.name for annotation in annotations}):
        yield Facet.ANNOTATION, name, tuple(one for one in annotations if one.name == name)


_FIELDS: Final = {
    Facet.NAME: "name",
    Facet.HINT: "rename_from",
    Facet.DESCRIPTION: "description",
    Facet.TYPE: "type",
    Facet.NULLABLE: "nullable",
    Facet.DEFAULT: "default",
    Facet.CARDINALITY: "cardinality",
}
"""Facets whose value is that of a field of a declaration or a property."""


def declarations_of(facts: SchemaFacts) -> Iterator[Declaration]:
    """Put a schema together. Every origin that a fact names has to be present."""
    for unit in sorted(facts.orders):
        yield _Assembly(facts, unit).declaration()


@dataclass(slots=True)
class _Assembly:
    facts: SchemaFacts
    unit: Unit
    fields: dict[str, Any] = field(default_factory=dict)

    def declaration(self) -> Declaration:
        self.fields["properties"] = tuple(
            self._property(self.unit.property_unit(origin))
            for origin in self.facts.orders[self.unit]
        )
        own: dict[str, Any] = {}
        for key, value in self.facts.units[self.unit].items():
            self._add(own, key, value)
        fields: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value
            for name, value in (self.fields | own).items()
        }
        match self.unit.kind:
            case "interface":
                return Interface(**fields)
            case "node":
                return NodeType(**fields)
            case _:
                return EdgeType(**fields)

    def _property(self, unit: Unit) -> Property:
        own: dict[str, Any] = {}
        name = self._name(unit.property_origin or "")
        for key, value in self.facts.units[unit].items():
            match key.facet:
                case Facet.INDEX:
                    index = replace(cast("Index", value), property=name)
                    self.fields.setdefault("indexes", []).append(index)
                case Facet.RANGE:
                    bounds = cast("tuple[Any, Any]", value)
                    self.fields.setdefault("ranges", []).append(Range(name, *bounds))
                case Facet.CHECK:
                    check = Check(name, cast("str", key.element))
                    self.fields.setdefault("checks", []).append(check)
                case Facet.LENGTH:
                    bounds = cast("tuple[Any, Any]", value)
                    self.fields.setdefault("lengths", []).append(Length(name, *bounds))
                case _:
                    self._add(own, key, value)
        annotations = tuple(own.pop("annotations", ()))
        return Property(**own, annotations=annotations)

    def _add(self, own: dict[str, Any], key: FactKey, value: object) -> None:
        match key.facet, value:
            case Facet.EMBED, Embed(sources, model):
                own["embed"] = Embed(tuple(map(self._name, sources)), model)
            case Facet.ANNOTATION, tuple():
                own.setdefault("annotations", []).extend(value)
            case Facet.KEY, tuple():
                own["key"] = tuple(map(self._name, value))
            case Facet.UNIQUE, _:
                members = cast("frozenset[str]", key.element)
                own.setdefault("uniques", []).append(tuple(sorted(map(self._name, members))))
            case Facet.IMPLEMENTS, _:
                own["implements"] = sorted([*own.get("implements", ()), key.element])
            case Facet.ENDS, (str(source), str(target)):
                own["source"] = self.facts.name_of(Unit("node", source))
                own["target"] = self.facts.name_of(Unit("node", target))
            case facet, _:
                own[_FIELDS[facet]] = value

    def _name(self, origin: str) -> str:
        if origin in ENDPOINTS:
            return origin
        name = self.facts.name_of(self.unit.property_unit(origin))
        assert name is not None, f"{self.unit} has no property {origin}"
        return name
