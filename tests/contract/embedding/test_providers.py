"""Providers over real HTTP, on loopback, with faults."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest

from omnigraph.clock import SystemClock
from omnigraph.embedding.embedder import Embedder
from omnigraph.embedding.providers.mock import MockProvider
from omnigraph.embedding.texts import digest_of
from omnigraph.errors import EmbeddingError, ErrorCode, InvalidInputError, OmnigraphError
from omnigraph.model.settings import EmbeddingSettings, Settings
from tests.support.embedding_server import EmbeddingServer, embedding_server

KEY = "sk-test-5ecret-0123456789"
MODELS = ["openai:text-embedding-3-small", "gemini:gemini-embedding-001"]


class Clock(SystemClock):
    """A clock that notes waits instead of making them; time passes all the same."""

    def __init__(self) -> None:
        super().__init__()
        self.waits: list[float] = []

    def now(self):
        return super().now() + timedelta(seconds=sum(self.waits))

    def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)


@pytest.fixture
def server(monkeypatch) -> Iterator[EmbeddingServer]:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("GEMINI_API_KEY", KEY)
    with embedding_server() as state:
        yield state


def settings(server: EmbeddingServer, **other) -> EmbeddingSettings:
    defaults = Settings.of({}).embedding
    given = {"openai_url": server.url, "gemini_url": server.url, "batch_size": 4, **other}
    return replace(defaults, **given)


def embed(server: EmbeddingServer, model: str, *texts: str, clock=None, **other):
    embedder = Embedder(settings(server, **other), clock or Clock())
    made = embedder.embed(model, 8, texts)
    return [made[digest_of(text)] for text in texts]


@pytest.mark.parametrize("model", MODELS)
def test_vectors_are_those_of_their_texts(server, model):
    texts = [f"text {number}" for number in range(10)]
    server.faults = ["shuffled"] * 3
    expected = MockProvider("server").embed(texts, 8)
    np.testing.assert_allclose(embed(server, model, *texts), expected, atol=1e-6)
    assert len(server.requests) == 3
    assert server.keys <= {KEY, f"Bearer {KEY}"}


@pytest.mark.parametrize("model", MODELS)
def test_a_text_is_asked_for_once(server, model):
    embedder = Embedder(settings(server), Clock())
    embedder.embed(model, 8, ["a", "b", "a"])
    embedder.embed(model, 8, ["b", "c"])
    assert server.texts == {"a": 1, "b": 1, "c": 1}


@pytest.mark.parametrize("fault", [429, 500, 503, "cut"])
@pytest.mark.parametrize("model", MODELS)
def test_what_may_pass_is_tried_again(server, model, fault):
    clock = Clock()
    server.faults = [fault, fault]
    [vector] = embed(server, model, "a", clock=clock)
    assert vector.shape == (8,)
    assert len(server.requests) == 3
    assert len(clock.waits) == 2


def test_a_slow_answer_is_given_up_and_tried_again(server):
    server.faults = ["slow"]
    embed(server, MODELS[0], "a", timeout_seconds=0.2)
    assert len(server.requests) == 2


def test_the_provider_says_how_long_to_wait(server):
    clock = Clock()
    server.faults, server.retry_after = [429], "7"
    embed(server, MODELS[0], "a", clock=clock)
    assert clock.waits == [7.0]


def test_the_deadline_counts_waits_and_names_its_setting(server):
    server.faults, server.retry_after = [429] * 8, "50"
    with pytest.raises(EmbeddingError, match=r"embedding\.deadline") as refused:
        embed(server, MODELS[0], "a", deadline_seconds=120)
    assert refused.value.retryable
    assert len(server.requests) == 3


def test_requests_keep_the_rate(server):
    clock = Clock()
    texts = [f"text {number}" for number in range(12)]
    embed(server, MODELS[0], *texts, clock=clock, requests_per_minute=60)
    assert sum(clock.waits) == pytest.approx(2, abs=0.2)


@pytest.mark.parametrize("status", [400, 401, 404, 413])
def test_a_refusal_is_not_tried_again(server, status):
    server.faults = [status] * 8
    with pytest.raises(EmbeddingError, match=f"status {status}.*refused"):
        embed(server, MODELS[0], "a")
    assert len(server.requests) == 1


def test_failures_end_after_several_attempts(server):
    server.faults = [500] * 20
    with pytest.raises(EmbeddingError, match="status 500"):
        embed(server, MODELS[0], "a")
    assert len(server.requests) == 8


@pytest.mark.parametrize("fault", ["short", "nan", "zero", "few", "text"])
@pytest.mark.parametrize("model", MODELS)
def test_unusable_vectors_are_refused(server, model, fault):
    server.faults = [fault]
    with pytest.raises(EmbeddingError) as refused:
        embed(server, model, "a", "b")
    assert refused.value.code in (ErrorCode.EMBEDDING_VECTOR, ErrorCode.EMBEDDING_PROVIDER)


def test_a_server_that_is_not_there(server):
    with pytest.raises(EmbeddingError, match=r"ConnectionRefusedError at 127\.0\.0\.1:1,"):
        embed(server, MODELS[0], "a", openai_url="http://127.0.0.1:1/v1")


def test_a_missing_key_is_named_before_anything_is_sent(server, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY")
    with pytest.raises(InvalidInputError, match="OPENAI_API_KEY") as refused:
        embed(server, MODELS[0], "a")
    assert refused.value.code is ErrorCode.EMBEDDING_KEY
    assert server.requests == []


def test_a_provider_without_a_key(server):
    embed(server, MODELS[0], "a", openai_key="none")
    assert server.keys == set()


@pytest.mark.parametrize("model", ["", "nobody:x", "openai:", "openai", "local:x"])
def test_an_unknown_model_is_refused_by_name(server, model):
    with pytest.raises(InvalidInputError, match="is not a valid embedding model"):
        embed(server, model, "a")


@pytest.mark.parametrize("fault", [401, 500, "nan", "short", "text", "cut"])
def test_no_error_has_a_piece_of_the_key(server, fault):
    server.refusal = f"Incorrect API key provided: {KEY[:7]}****{KEY[-4:]}"
    server.faults = [fault] * 8
    with pytest.raises(OmnigraphError) as refused:
        embed(server, MODELS[0], "a")
    seen = f"{refused.value!r} {refused.value} {refused.value.details} {refused.value.__cause__!r}"
    assert KEY[:7] not in seen
    assert KEY[-4:] not in seen
