"""Notes: what the companion of an embedded vector says, and the state that follows from it."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from omnigraph.schema.embeds import EmbeddedVector

STALE: Final = "stale"
"""The note of a vector whose text changed. No model has this name: a note of one has a space."""


class EmbeddingState(StrEnum):
    """Whether a row has the vector of its text."""

    CURRENT = "current"
    STALE = "stale"
    """There is a vector, of another text or by another model, or nobody knows of which."""
    PENDING = "pending"
    """There is a text, and no vector."""
    EMPTY = "empty"
    """There is no text, and no vector."""


def note_of(model: str, digest: str) -> str:
    """The note of a vector that a model made from the text with this digest.

    >>> note_of("local", "9f86d0")
    'local 9f86d0'
    """
    return f"{model} {digest}"


def digest_in(note: str | None) -> str | None:
    """The digest of the text that a vector was made from; None if the note has none.

    >>> digest_in("openai:text-embedding-3-small 9f86d0"), digest_in("stale"), digest_in(None)
    ('9f86d0', None, None)
    """
    if note is None or note == STALE:
        return None
    model, _, digest = note.rpartition(" ")
    return digest if model else None


def model_in(note: str | None) -> str | None:
    """The model that made a vector; None if the note has none.

    >>> model_in("openai:text-embedding-3-small 9f86d0")
    'openai:text-embedding-3-small'
    """
    if note is None or note == STALE:
        return None
    return note.rpartition(" ")[0] or None


def state_of(
    vector: EmbeddedVector, *, has_vector: bool, note: str | None, text: str
) -> EmbeddingState:
    """The state of a row."""
    if has_vector:
        is_current = note is not None and note.startswith(vector.note_prefix)
        return EmbeddingState.CURRENT if is_current else EmbeddingState.STALE
    return EmbeddingState.PENDING if text else EmbeddingState.EMPTY
