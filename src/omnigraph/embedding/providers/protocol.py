"""The protocol of providers, and what every one of them has to return."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, TypeAlias

import numpy as np

from omnigraph.errors import EmbeddingError, ErrorCode

Vectors: TypeAlias = "np.ndarray[Any, np.dtype[np.float32]]"
"""One vector for each text, in their order."""


class Provider(Protocol):
    """Makes vectors of texts with one model."""

    @property
    def batch_size(self) -> int:
        """How many texts it takes at once."""
        ...

    def embed(self, texts: Sequence[str], dimension: int) -> Vectors:
        """Vectors of these texts, at most `batch_size` of them, none empty."""
        ...


def require_vectors(model: str, texts: Sequence[str], vectors: Vectors, dimension: int) -> Vectors:
    """The vectors, if there is a usable one for each text."""
    if vectors.shape != (len(texts), dimension):
        shape = " of ".join(f"{size:,}" for size in vectors.shape)
        message = (
            f"{model} returned vectors in the shape {shape}; "
            f"{len(texts):,} of {dimension:,} were expected"
        )
        hint = "the dimension of the property has to be one that the model makes"
        raise EmbeddingError(message, hint=hint, code=ErrorCode.EMBEDDING_VECTOR)
    bad = np.flatnonzero(~np.isfinite(vectors).all(axis=1))
    if len(bad):
        message = f"{model} returned a number that is not finite for {_shorten(texts[bad[0]])}"
        raise EmbeddingError(message, code=ErrorCode.EMBEDDING_VECTOR)
    zero = np.flatnonzero(~vectors.any(axis=1))
    if len(zero):
        message = f"{model} returned a vector of zeros for {_shorten(texts[zero[0]])}"
        hint = "such a vector has no direction, and is near to nothing"
        raise EmbeddingError(message, hint=hint, code=ErrorCode.EMBEDDING_VECTOR)
    return vectors


def _shorten(text: str) -> str:
    return repr(text if len(text) <= 40 else f"{text[:40]}…")
