"""Texts of facts: what one side of a merge states, in the language of schemas."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

from omnigraph.lang.spelling import quote
from omnigraph.schema.catalog import (
    ENDPOINTS,
    Annotation,
    Cardinality,
    Check,
    Embed,
    Index,
    Length,
    Range,
    Value,
)
from omnigraph.schema.printer import (
    print_annotation,
    print_cardinality,
    print_check,
    print_default,
    print_embed,
    print_index,
    print_length,
    print_range,
)
from omnigraph.schema.schema_facts import Facet, FactKey, SchemaFacts, Unit


def print_unit(facts: SchemaFacts, unit: Unit) -> str | None:
    """A declaration or a property in short; None if the schema has none."""
    name = facts.name_of(unit)
    if name is None:
        return None
    if unit.property_origin is None:
        return f"{unit.kind} {name}"
    nullable = facts.units[unit][FactKey(unit, Facet.NULLABLE)]
    return f"{name}: {_type(facts, unit)}{'?' if nullable else ''}"


def print_fact(facts: SchemaFacts, key: FactKey) -> str | None:
    """What a schema states about something; None if it states nothing."""
    unit = key.unit
    value: Any = facts.units.get(unit, {}).get(key)
    if value is None:
        return None
    name = str(facts.name_of(unit))
    match key.facet:
        case Facet.NULLABLE:
            return f"{_type(facts, unit)}{'?' if value else ''}"
        case Facet.DESCRIPTION:
            return f"@description({quote(value)})"
        case Facet.HINT:
            return f"@rename_from({quote(value)})"
        case Facet.ANNOTATION:
            return " ".join(map(print_annotation, cast("tuple[Annotation, ...]", value)))
        case Facet.DEFAULT:
            return print_default(_type(facts, unit), cast("Value", value))
        case Facet.EMBED:
            return _embed(facts, unit, cast("Embed", value))
        case Facet.INDEX:
            return print_index(replace(cast("Index", value), property=name))
        case Facet.RANGE:
            return print_range(_type(facts, unit), Range(name, *value))
        case Facet.CHECK:
            return print_check(Check(name, str(key.element)))
        case Facet.LENGTH:
            return print_length(Length(name, *value))
        case Facet.KEY:
            return _members(facts, unit, "key", value) if value else None
        case Facet.UNIQUE:
            members = tuple(sorted(cast("frozenset[str]", key.element)))
            return _members(facts, unit, "unique", members)
        case Facet.CARDINALITY:
            return print_cardinality(cast("Cardinality", value))
        case Facet.ENDS:
            return " -> ".join(str(facts.name_of(Unit("node", origin))) for origin in value)
        case Facet.IMPLEMENTS:
            return f"implements {key.element}"
        case Facet.NAME | Facet.TYPE | Facet.PRESENCE | Facet.VALIDITY:
            return str(value)


def _embed(facts: SchemaFacts, unit: Unit, embed: Embed) -> str:
    sources = tuple(_member(facts, unit, source) for source in embed.sources)
    return print_embed(Embed(sources, embed.model))


def _type(facts: SchemaFacts, unit: Unit) -> Any:
    return facts.units[unit][FactKey(unit, Facet.TYPE)]


def _member(facts: SchemaFacts, unit: Unit, origin: str) -> str:
    if origin in ENDPOINTS:
        return origin
    return str(facts.name_of(unit.owner.property_unit(origin)))


def _members(facts: SchemaFacts, unit: Unit, word: str, origins: tuple[str, ...]) -> str:
    return f"@{word}({', '.join(_member(facts, unit, origin) for origin in origins)})"
