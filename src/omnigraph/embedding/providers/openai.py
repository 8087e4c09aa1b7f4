"""The OpenAI provider, and any other that takes the same requests at another address."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from omnigraph.embedding.providers.http import ProviderEndpoint
from omnigraph.embedding.providers.protocol import Vectors
from omnigraph.errors import EmbeddingError, ErrorCode


@dataclass(frozen=True, slots=True)
class OpenAIProvider:
    """`POST /embeddings`, as OpenAI specifies it."""

    model: str
    endpoint: ProviderEndpoint
    batch_size: int = 128

    def embed(self, texts: Sequence[str], dimension: int) -> Vectors:
        """Vectors of these texts."""
        body: dict[str, object] = {
            "model": self.model,
            "input": list(texts),
            "encoding_format": "float",
        }
        # Older models have one dimension, and refuse to be told which.
        if self.model.startswith("text-embedding-3"):
            body["dimensions"] = dimension
        answer = self.endpoint.post("/embeddings", body)
        try:
            # Nobody promises that the vectors are in the order of the texts.
            items = sorted(answer["data"], key=lambda item: item["index"])
            if [item["index"] for item in items] != list(range(len(texts))):
                message = f"{self.endpoint.model} did not return one vector for each text"
                raise EmbeddingError(message, code=ErrorCode.EMBEDDING_VECTOR)
            return np.array([item["embedding"] for item in items], np.float32)
        except (KeyError, TypeError, ValueError) as cause:
            message = f"{self.endpoint.model} returned something that is not a list of vectors"
            hint = "all vectors have one length, and numbers only"
            raise EmbeddingError(message, hint=hint, code=ErrorCode.EMBEDDING_VECTOR) from cause
