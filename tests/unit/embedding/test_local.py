from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file
from tokenizers import Tokenizer

from omnigraph.embedding.providers.local import LocalProvider


def embed(*texts: str, dimension: int = 256) -> np.ndarray:
    return LocalProvider().embed(texts, dimension)


def by_hand(text: str) -> np.ndarray:
    """The mean of the word vectors, one text at a time, straight from the files."""
    spec = find_spec("wordllama")
    assert spec is not None
    assert spec.submodule_search_locations is not None
    folder = Path(spec.submodule_search_locations[0])
    weights = load_file(folder / "weights/l2_supercat_256.safetensors")["embedding.weight"]
    tokenizer = Tokenizer.from_file(str(folder / "tokenizers/l2_supercat_tokenizer_config.json"))
    ids = tokenizer.encode(text, add_special_tokens=False).ids
    mean = np.mean([weights[each].astype(np.float64) for each in ids], axis=0)
    return np.asarray(mean / np.linalg.norm(mean))


TEXTS = ["a dog barks", "Ünïcode 🐕 日本語", "x", "the quick brown fox " * 50]


def test_a_vector_is_the_mean_of_the_word_vectors_at_length_one():
    for text, vector in zip(TEXTS, embed(*TEXTS), strict=True):
        np.testing.assert_allclose(vector, by_hand(text), atol=1e-5)


def test_a_text_has_the_same_vector_whatever_is_embedded_with_it():
    together = embed(*TEXTS * 300)
    np.testing.assert_array_equal(together[: len(TEXTS)], together[-len(TEXTS) :])
    np.testing.assert_allclose(together[0], embed(TEXTS[0])[0], atol=1e-6)


def test_texts_that_mean_the_same_are_near():
    dog, puppy, tax = embed("a dog barks", "the puppy is barking", "quarterly tax report")
    assert dog @ puppy > 0.5 > dog @ tax


@pytest.mark.parametrize("dimension", [64, 128])
def test_fewer_dimensions_are_the_first_ones_at_length_one(dimension):
    whole, part = embed("a dog barks")[0], embed("a dog barks", dimension=dimension)[0]
    expected = whole[:dimension] / np.linalg.norm(whole[:dimension])
    np.testing.assert_allclose(part, expected, atol=1e-6)


def test_no_texts_have_no_vectors():
    assert embed().shape == (0, 256)
