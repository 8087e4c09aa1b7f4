"""Matching: which type and property of a new schema continues which one of an old schema."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from omnigraph.model.identities import TypeIdentity
from omnigraph.model.tables import TableKey
from omnigraph.schema.catalog import Catalog, Property, SchemaType

Identities = Mapping[TableKey, TypeIdentity]
"""The identity of each type of a catalog."""


@dataclass(frozen=True, slots=True)
class Matching:
    """What continues what. No two types, and no two properties of a type, continue the same one.

    Attributes:
        types: By its key in the new schema, the key that each continued type has in the old one.
        properties: By the new key of each continued type, and by its new name, the name that each
            continued property has in the old schema.
    """

    types: Mapping[TableKey, TableKey] = field(hash=False)
    properties: Mapping[TableKey, Mapping[str, str]] = field(hash=False)

    def new_types(self, new: Catalog) -> tuple[SchemaType, ...]:
        """The types of the new schema that continue none."""
        return tuple(type_ for type_ in new.types if type_.table_key not in self.types)

    def dropped_types(self, old: Catalog) -> tuple[SchemaType, ...]:
        """The types of the old schema that none continues."""
        continued = set(self.types.values())
        return tuple(type_ for type_ in old.types if type_.table_key not in continued)

    def names_before(self, type_: SchemaType) -> dict[str, str | None]:
        """By its name, the name that each property of a new type had; None for a new property.

        That is what `TypeIdentity.evolve` takes.
        """
        names = self.properties.get(type_.table_key, {})
        return {property_.name: names.get(property_.name) for property_ in type_.properties}

    def dropped_properties(self, old: SchemaType, new: SchemaType) -> tuple[Property, ...]:
        """The properties of an old type that none of the type continuing it continues."""
        continued = set(self.properties[new.table_key].values())
        return tuple(property_ for property_ in old.properties if property_.name not in continued)


def match_by_identity(
    old: Catalog, old_identities: Identities, new: Catalog, new_identities: Identities
) -> Matching:
    """Match types and properties by their origins, whatever they are called on either side."""
    origins = {
        (type_.table_key.kind, old_identities[type_.table_key].origin): type_ for type_ in old.types
    }
    types: dict[TableKey, TableKey] = {}
    properties: dict[TableKey, Mapping[str, str]] = {}
    for type_ in new.types:
        key = type_.table_key
        before = origins.get((key.kind, new_identities[key].origin))
        if before is None:
            continue
        names = old_identities[before.table_key].origins(property_names(before))
        types[key] = before.table_key
        properties[key] = {
            name: names[origin]
            for origin, name in new_identities[key].origins(property_names(type_)).items()
            if origin in names
        }
    return Matching(types, properties)


def property_names(type_: SchemaType) -> tuple[str, ...]:
    """The names of a type's properties, in order."""
    return tuple(property_.name for property_ in type_.properties)
