"""Status: how many rows of each type have the vectors of their texts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from omnigraph.embedding.counts import EmbeddingStatus
from omnigraph.engine.embedding_states import count_states
from omnigraph.schema.catalog import Catalog
from omnigraph.schema.embeds import EmbeddedVector, embedded_vectors
from omnigraph.transaction.view import View


def vectors_of(catalog: Catalog, types: Iterable[str] | None) -> Iterator[EmbeddedVector]:
    """The embedded vectors of these types, or of all."""
    for type_ in catalog.types_named(types):
        yield from embedded_vectors(type_)


def find_status(view: View, types: Iterable[str] | None = None) -> tuple[EmbeddingStatus, ...]:
    """Count the rows by state. Reads notes, and texts only of rows without a vector."""
    return tuple(
        count_states(vector, view.data.table(view.catalog.type_named(vector.type_name).table_key))
        for vector in vectors_of(view.catalog, types)
    )
