"""Embedding models: how schemas name them, and the dimensions of those that are known."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

LOCAL_MODEL: Final = "local"
"""What embeds texts where a schema names no model: word vectors that are installed with us."""

PROVIDERS: Final = ("local", "openai", "gemini", "sentence-transformers", "mock")
"""The words before the colon of a model's name."""

_LOCAL_DIMENSIONS: Final = (64, 128, 256)

_DIMENSIONS: Final[Mapping[str, tuple[int, ...] | range]] = {
    "local": _LOCAL_DIMENSIONS,
    "openai:text-embedding-3-small": range(1, 1536 + 1),
    "openai:text-embedding-3-large": range(1, 3072 + 1),
    "openai:text-embedding-ada-002": (1536,),
    "gemini:gemini-embedding-001": range(1, 3072 + 1),
    "gemini:text-embedding-004": range(1, 768 + 1),
}


def provider_of(model: str) -> str:
    """The provider of a model.

    >>> provider_of("openai:text-embedding-3-small")
    'openai'
    """
    return model.partition(":")[0]


def dimension_fault(model: str, dimension: int) -> str | None:
    """Why the model cannot make vectors of this dimension; None if it can, or is not known.

    >>> dimension_fault("local", 300)
    'local makes vectors of 64, 128 or 256 dimensions'
    """
    known = _DIMENSIONS.get(model)
    if known is None or dimension in known:
        return None
    if isinstance(known, range):
        return f"{model} makes vectors of at most {known.stop - 1:,} dimensions"
    *others, last = map(str, known)
    which = f"{', '.join(others)} or {last}" if others else last
    return f"{model} makes vectors of {which} dimensions"
