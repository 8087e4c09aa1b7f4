"""Filters by the state of an embedded vector: its note alone decides (decision 0020)."""

from __future__ import annotations

from omnigraph.schema.embeds import EmbeddedVector
from omnigraph.storage import filters


def is_current(vector: EmbeddedVector) -> str:
    """The rows that have the vector of their text, by the model of the schema."""
    return f"{filters.column(vector.name)} IS NOT NULL AND {_is_of_model(vector)}"


def is_stale(vector: EmbeddedVector) -> str:
    """The rows whose vector is of another text or model, or of nobody knows what."""
    note = filters.column(vector.companion)
    has_vector = f"{filters.column(vector.name)} IS NOT NULL"
    return f"{has_vector} AND ({note} IS NULL OR NOT {_is_of_model(vector)})"


def may_be_pending(vector: EmbeddedVector) -> str:
    """The rows without a vector that have something in a source, if only white space."""
    sources = (f"{filters.column(name)} <> ''" for name in vector.sources)
    return f"{filters.column(vector.name)} IS NULL AND ({' OR '.join(sources)})"


def may_have_text(vector: EmbeddedVector) -> str:
    """The rows that have something in a source, or a vector."""
    sources = (f"{filters.column(name)} <> ''" for name in vector.sources)
    return f"{filters.column(vector.name)} IS NOT NULL OR {' OR '.join(sources)}"


def _is_of_model(vector: EmbeddedVector) -> str:
    prefix = filters.text_literal(vector.note_prefix)
    return f"starts_with({filters.column(vector.companion)}, {prefix})"
