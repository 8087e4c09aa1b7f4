"""Embedded vectors: the companion property that says what each was made from (decision 0020)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

from omnigraph.model.types import Scalar, VectorType
from omnigraph.schema.catalog import (
    Catalog,
    Declaration,
    EdgeType,
    NodeType,
    Property,
    SchemaType,
)
from omnigraph.schema.embedding_models import dimension_fault

_DeclarationT = TypeVar("_DeclarationT", bound=Declaration)


@dataclass(frozen=True, slots=True)
class EmbeddedVector:
    """A vector that is kept in step with texts of its row.

    Attributes:
        name: The vector's property, and `companion` the property with its note.
        sources: The properties with its text, in order.
        model: The name of the model that makes it.
        dimension: The dimension of the vector.
    """

    type_name: str
    name: str
    companion: str
    sources: tuple[str, ...]
    model: str
    dimension: int

    @property
    def note_prefix(self) -> str:
        """What the notes of vectors that the model made begin with, and no others."""
        return f"{self.model} "

    @property
    def label(self) -> str:
        """How messages call it."""
        return f"{self.type_name}.{self.name}"


def companion_name(vector: str) -> str:
    """The property that says what a vector was made from.

    >>> companion_name("vector")
    'vector_embedded'
    """
    return f"{vector}_embedded"


def is_managed(property_: Property) -> bool:
    """Whether a model makes the vectors of a property.

    Without a word about the model, the installed one does. Of other dimensions than it has, the
    vectors come with the data, until the schema names a model.
    """
    return property_.embed is not None and unmade_reason(property_) is None


def unmade_reason(property_: Property) -> str | None:
    """Why no model makes the vectors of a property with `@embed`; None if one does."""
    embed, kind = property_.embed, property_.type
    if embed is None or embed.model is not None or not isinstance(kind, VectorType):
        return None
    return dimension_fault(embed.model_name, kind.dimension)


def unmade_vectors(catalog: Catalog) -> Iterator[tuple[str, str]]:
    """The vectors with `@embed` that no model makes, each with the reason."""
    for type_ in catalog.types:
        for property_ in type_.properties:
            if (reason := unmade_reason(property_)) is not None:
                yield f"{type_.name}.{property_.name}", reason


def is_companion(declaration: Declaration, name: str) -> bool:
    """Whether a property of this name is, or would be, the companion of an embedded vector."""
    return any(
        is_managed(property_) and companion_name(property_.name) == name
        for property_ in declaration.properties
    )


def embedded_vectors(type_: SchemaType) -> tuple[EmbeddedVector, ...]:
    """The vectors of a type that are managed; those without a companion are not."""
    return tuple(_embedded_vectors(type_))


def _embedded_vectors(type_: SchemaType) -> Iterator[EmbeddedVector]:
    for property_ in type_.properties:
        embed, kind = property_.embed, property_.type
        if embed is None or not isinstance(kind, VectorType) or not is_managed(property_):
            continue
        if has_companion(type_, property_):
            yield EmbeddedVector(
                type_.name,
                property_.name,
                companion_name(property_.name),
                embed.sources,
                embed.model_name,
                kind.dimension,
            )


def has_companion(type_: SchemaType, vector: Property) -> bool:
    """Whether there are notes about what a vector was made from."""
    name = companion_name(vector.name)
    return any(property_.name == name for property_ in type_.properties)


def manage(declaration: _DeclarationT) -> _DeclarationT:
    """The declaration with a companion behind each embedded vector, which may be null."""
    if not any(map(is_managed, declaration.properties)):
        return declaration
    names = {property_.name for property_ in declaration.properties}
    properties: list[Property] = []
    for property_ in declaration.properties:
        if not is_managed(property_):
            properties.append(property_)
            continue
        properties.append(replace(property_, nullable=True))
        companion = companion_name(property_.name)
        if companion not in names:
            properties.append(Property(companion, Scalar.STRING, nullable=True))
    return replace(declaration, properties=tuple(properties))


def is_implied(declaration: Declaration, place: int) -> bool:
    """Whether `manage` adds the property at this place, so that a text can leave it out."""
    property_ = declaration.properties[place]
    if place == 0 or property_ != Property(property_.name, Scalar.STRING, nullable=True):
        return False
    vector = declaration.properties[place - 1]
    is_used = property_.name in {
        *declaration.key,
        *(index.property for index in declaration.indexes),
        *(name for members in declaration.uniques for name in members),
    }
    if isinstance(declaration, NodeType | EdgeType):
        ruled = {range_.property for range_ in declaration.ranges}
        ruled |= {check.property for check in declaration.checks}
        ruled |= {length.property for length in declaration.lengths}
        is_used = is_used or property_.name in ruled
    return not is_used and is_managed(vector) and companion_name(vector.name) == property_.name


def match_companions(new: SchemaType, old: SchemaType, names: Mapping[str, str]) -> dict[str, str]:
    """Which properties continue which: a companion does if its vector has the same sources.

    Vectors that were made from other properties are stale, whatever their notes say.

    Args:
        names: By its new name, the old name of each property that continues one, by names alone.
    """
    matched = dict(names)
    before = {property_.name: property_ for property_ in old.properties}
    for property_ in new.properties:
        companion = companion_name(property_.name)
        if not is_managed(property_) or not has_companion(new, property_):
            continue
        matched.pop(companion, None)
        former = before.get(names.get(property_.name, ""))
        if former is None or former.embed is None or companion_name(former.name) not in before:
            continue
        assert property_.embed is not None, "a managed vector has it"
        sources = tuple(names.get(source) for source in property_.embed.sources)
        if sources == former.embed.sources:
            matched[companion] = companion_name(former.name)
    return matched
