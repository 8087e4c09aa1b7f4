"""The embedder: vectors of texts, each text asked for once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from omnigraph.clock import Clock
from omnigraph.embedding.providers.protocol import Provider, require_vectors
from omnigraph.embedding.providers.registry import provider_for
from omnigraph.embedding.texts import digest_of
from omnigraph.model.settings import EmbeddingSettings

Follow = Callable[[int], None]
"""Hears how many texts have been embedded."""


@dataclass(slots=True)
class Embedder:
    """Makes vectors for one write or one run, and keeps them by the digests of their texts.

    Attributes:
        bytes_max: How much of them it keeps for longer than one call; None for all. Beyond, it
            forgets those that it made first.
    """

    settings: EmbeddingSettings
    clock: Clock
    bytes_max: int | None = None
    _providers: dict[str, Provider] = field(default_factory=dict)
    _vectors: dict[tuple[str, int, str], np.ndarray] = field(default_factory=dict)

    def embed(
        self, model: str, dimension: int, texts: Iterable[str], follow: Follow | None = None
    ) -> Mapping[str, np.ndarray]:
        """By its digest, the vector of each text."""
        wanted = {digest_of(text): text for text in texts}
        missing = [key for key in wanted if (model, dimension, key) not in self._vectors]
        if missing:
            provider = self._provider(model)
            for start in range(0, len(missing), provider.batch_size):
                batch = missing[start : start + provider.batch_size]
                parts = [wanted[key] for key in batch]
                vectors = require_vectors(model, parts, provider.embed(parts, dimension), dimension)
                self._vectors |= {
                    (model, dimension, key): vector
                    for key, vector in zip(batch, vectors, strict=True)
                }
                if follow is not None:
                    follow(len(batch))
        found = {key: self._vectors[model, dimension, key] for key in wanted}
        if self.bytes_max is not None:
            self.forget(bytes_kept=self.bytes_max)
        return found

    def forget(self, *, bytes_kept: int = 0) -> None:
        """Release the vectors, which have been used, but for so many bytes that were made last."""
        byte_count = sum(vector.nbytes for vector in self._vectors.values())
        while byte_count > bytes_kept:
            byte_count -= self._vectors.pop(next(iter(self._vectors))).nbytes

    def _provider(self, model: str) -> Provider:
        if model not in self._providers:
            self._providers[model] = provider_for(model, self.settings, self.clock)
        return self._providers[model]
