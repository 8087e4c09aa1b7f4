"""The Gemini provider."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import quote

import numpy as np

from omnigraph.embedding.providers.http import ProviderEndpoint
from omnigraph.embedding.providers.protocol import Vectors
from omnigraph.errors import EmbeddingError, ErrorCode


@dataclass(frozen=True, slots=True)
class GeminiProvider:
    """`POST /models/…:batchEmbedContents`, as Google specifies it."""

    model: str
    endpoint: ProviderEndpoint
    batch_size: int = 100

    def embed(self, texts: Sequence[str], dimension: int) -> Vectors:
        """Vectors of these texts."""
        requests = [
            {
                "model": f"models/{self.model}",
                "content": {"parts": [{"text": text}]},
                "outputDimensionality": dimension,
            }
            for text in texts
        ]
        path = f"/models/{quote(self.model, safe='')}:batchEmbedContents"
        answer = self.endpoint.post(path, {"requests": requests})
        try:
            return np.array([item["values"] for item in answer["embeddings"]], np.float32)
        except (KeyError, TypeError, ValueError) as cause:
            message = f"{self.endpoint.model} returned something that is not a list of vectors"
            hint = "all vectors have one length, and numbers only"
            raise EmbeddingError(message, hint=hint, code=ErrorCode.EMBEDDING_VECTOR) from cause
