"""The sentence-transformers provider: a model in a local directory, if the package is installed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from omnigraph.embedding.providers.protocol import Vectors
from omnigraph.errors import ErrorCode, InvalidInputError


@dataclass(frozen=True, slots=True)
class SentenceTransformersProvider:
    """A model of sentence-transformers, from a path; nothing is downloaded."""

    path: str
    batch_size: int = 64

    def embed(self, texts: Sequence[str], dimension: int) -> Vectors:
        """Vectors of these texts, at length one."""
        vectors = _model(self.path).encode(
            list(texts),
            batch_size=self.batch_size,
            normalize_embeddings=True,
            show_progress_bar=False,
            convert_to_numpy=True,
            truncate_dim=dimension,
        )
        return np.asarray(vectors, np.float32)


@cache
def _model(path: str) -> Any:
    if not Path(path).is_dir():
        message = f"the model sentence-transformers:{path} names a directory that does not exist"
        hint = 'write model="sentence-transformers:/path/to/the/model"'
        raise InvalidInputError(message, hint=hint, code=ErrorCode.NOT_FOUND)
    if find_spec("sentence_transformers") is None:
        message = "the model needs the package sentence-transformers, which is not installed"
        hint = "pip install sentence-transformers"
        raise InvalidInputError(message, hint=hint, code=ErrorCode.NOT_INSTALLED)
    # By name: the package is none of our dependencies, and type checkers do not have it.
    return import_module("sentence_transformers").SentenceTransformer(path, local_files_only=True)
