"""The local provider: word vectors that are installed as a package, without a network.

The package is `wordllama`. Its own loader looks for the tokenizer in a folder that the package does
not have and then downloads it; so its two files are read here, and none of its code is run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from omnigraph.embedding.providers.protocol import Vectors
from omnigraph.errors import ErrorCode, InvalidInputError

if TYPE_CHECKING:
    from tokenizers import Tokenizer

_WEIGHTS: Final = Path("weights", "l2_supercat_256.safetensors")
_TOKENIZER: Final = Path("tokenizers", "l2_supercat_tokenizer_config.json")
_TENSOR: Final = "embedding.weight"

_TOKENS_MAX: Final = 4096
"""Tokens of a text that count; the mean of more would say little about any of them."""

_POOLED_TEXTS: Final = 512
"""Texts whose word vectors are held at once."""


@dataclass(frozen=True, slots=True)
class LocalProvider:
    """The mean of the word vectors of a text, at length one."""

    batch_size: int = 8192

    def embed(self, texts: Sequence[str], dimension: int) -> Vectors:
        """Vectors of these texts; those of fewer dimensions have the first ones of the weights."""
        weights, tokenizer = _model()
        encodings = tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)
        tokens = [np.asarray(encoding.ids, np.int64) for encoding in encodings]
        parts = [
            _pool(weights, tokens[start : start + _POOLED_TEXTS])
            for start in range(0, len(tokens), _POOLED_TEXTS)
        ]
        pooled = np.concatenate([np.empty((0, weights.shape[1]), np.float32), *parts])
        pooled = np.ascontiguousarray(pooled[:, :dimension])
        lengths = np.linalg.norm(pooled, axis=1, keepdims=True)
        # A text without tokens stays at zeros, which are refused.
        return (pooled / np.where(lengths > 0, lengths, 1)).astype(np.float32)


def _pool(weights: Vectors, tokens: Sequence[np.ndarray]) -> Vectors:
    """The mean of the word vectors of each text; zeros for a text without tokens."""
    counts = np.fromiter(map(len, tokens), np.int64, len(tokens))
    pooled = np.zeros((len(tokens), weights.shape[1]), np.float32)
    filled = np.flatnonzero(counts)
    if len(filled):
        words = weights[np.clip(np.concatenate(tokens), 0, len(weights) - 1)]
        starts = np.concatenate([[0], np.cumsum(counts[filled])[:-1]])
        sums = np.add.reduceat(words, starts, axis=0, dtype=np.float32)
        pooled[filled] = sums / counts[filled, None].astype(np.float32)
    return pooled


@cache
def _model() -> tuple[Vectors, Tokenizer]:
    """The weights and the tokenizer, read once by each process."""
    folder = _package()
    # Imported here: they take time, and most commands embed nothing.
    from safetensors.numpy import load_file
    from tokenizers import Tokenizer

    weights = load_file(folder / _WEIGHTS)[_TENSOR].astype(np.float32)
    tokenizer = Tokenizer.from_file(str(folder / _TOKENIZER))
    tokenizer.enable_truncation(_TOKENS_MAX)
    return weights, tokenizer


def _package() -> Path:
    spec = find_spec("wordllama")
    folders = spec.submodule_search_locations if spec is not None else None
    folder = Path(next(iter(folders))) if folders else None
    if (
        _lacks_readers()
        or folder is None
        or not ((folder / _WEIGHTS).exists() and (folder / _TOKENIZER).exists())
    ):
        message = "the model local, the default, needs packages that are not installed"
        hint = "pip install 'omnigraph[embeddings]', or name another model"
        raise InvalidInputError(message, hint=hint, code=ErrorCode.NOT_INSTALLED)
    return folder


def _lacks_readers() -> bool:
    return any(find_spec(name) is None for name in ("safetensors", "tokenizers"))
