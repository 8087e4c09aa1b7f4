"""Sides of a schema merge, made from texts."""

from __future__ import annotations

from omnigraph.model.identities import TypeIdentity, free_origin
from omnigraph.schema.catalog import Catalog
from omnigraph.schema.matching import property_names
from omnigraph.schema.parser import parse_schema
from omnigraph.schema.rename_hints import match_by_hints
from omnigraph.schema.schema_facts import SchemaSide


def first_side(catalog: Catalog | str) -> SchemaSide:
    """A schema of which nothing was ever renamed."""
    catalog = parse_schema(catalog) if isinstance(catalog, str) else catalog
    return SchemaSide(
        catalog, {type_.table_key: TypeIdentity(type_.name) for type_ in catalog.types}
    )


def next_side(before: SchemaSide, catalog: Catalog | str) -> SchemaSide:
    """The side after a change, whose hints say what is renamed."""
    catalog = parse_schema(catalog) if isinstance(catalog, str) else catalog
    matching, _ = match_by_hints(before.catalog, catalog)
    identities = {}
    for type_ in catalog.types:
        key = type_.table_key
        if key in matching.types:
            old = before.catalog.type_of(matching.types[key])
            identity = before.identities[old.table_key]
            identities[key] = identity.evolve(property_names(old), matching.names_before(type_))
        else:
            taken = [
                identity.origin
                for other, identity in before.identities.items()
                if other.kind is key.kind
            ]
            identities[key] = TypeIdentity(free_origin(type_.name, taken))
    return SchemaSide(catalog, identities)
