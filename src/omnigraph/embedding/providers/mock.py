"""The mock provider: vectors that depend on the text alone, for tests. They mean nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256

import numpy as np

from omnigraph.embedding.providers.protocol import Vectors


@dataclass(frozen=True, slots=True)
class MockProvider:
    """Pseudo-random vectors of length one, the same for a text on every machine."""

    model: str
    batch_size: int = 64

    def embed(self, texts: Sequence[str], dimension: int) -> Vectors:
        """Vectors of these texts."""
        rows = [self._vector(text, dimension) for text in texts]
        return np.array(rows, np.float32).reshape(len(rows), dimension)

    def _vector(self, text: str, dimension: int) -> np.ndarray:
        seed = sha256(f"{self.model} {text}".encode()).digest()
        vector = np.random.default_rng(list(seed)).standard_normal(dimension)
        return vector / np.linalg.norm(vector)
