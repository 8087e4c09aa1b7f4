"""Random histories of texts with vectors: no vector is ever silently that of another text."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from omnigraph.embedding import embedder
from tests.property.embedding_walk import EmbeddingWalk, Registry

Walk = Callable[[int, int], None]


@pytest.fixture
def walk(tmp_path, monkeypatch) -> Walk:
    def run(seed: int, length: int) -> None:
        registry = Registry()
        monkeypatch.setattr(embedder, "provider_for", registry.provider_for)
        EmbeddingWalk(tmp_path / f"{seed}.omni", seed, registry).run(length)

    return run


def test_vectors_follow_their_texts(walk: Walk) -> None:
    walk(11, 25)


@pytest.mark.soak
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("seed", range(100, 130))
def test_vectors_follow_their_texts_for_long(walk: Walk, seed: int) -> None:
    walk(seed, 120)
