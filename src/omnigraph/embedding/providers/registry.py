"""The registry: the provider of a model, by its name and the settings of the graph."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from omnigraph.clock import Clock
from omnigraph.embedding.providers.gemini import GeminiProvider
from omnigraph.embedding.providers.http import Patience, ProviderEndpoint
from omnigraph.embedding.providers.keys import KeyName
from omnigraph.embedding.providers.local import LocalProvider
from omnigraph.embedding.providers.mock import MockProvider
from omnigraph.embedding.providers.openai import OpenAIProvider
from omnigraph.embedding.providers.protocol import Provider
from omnigraph.embedding.providers.sentence_transformers import SentenceTransformersProvider
from omnigraph.errors import InvalidInputError
from omnigraph.model.settings import NO_KEY, EmbeddingSettings
from omnigraph.schema.embedding_models import LOCAL_MODEL, PROVIDERS

_GEMINI_BATCH_MAX: Final = 100
"""What Google takes at once."""


def provider_for(model: str, settings: EmbeddingSettings, clock: Clock) -> Provider:
    """What embeds texts with this model. Nothing is loaded or sent yet."""
    word, _, name = model.partition(":")
    makers: Mapping[str, Callable[[], Provider]] = {
        LOCAL_MODEL: LocalProvider,
        "mock": partial(MockProvider, model),
        "sentence-transformers": partial(SentenceTransformersProvider, name, settings.batch_size),
        "openai": partial(_openai, model, name, settings, clock),
        "gemini": partial(_gemini, model, name, settings, clock),
    }
    is_whole = model in (LOCAL_MODEL, "mock") or (bool(name) and word != LOCAL_MODEL)
    if word not in makers or not is_whole:
        message = f"{model[:200]!r} is not a valid embedding model"
        hint = f"a model is local, or {', '.join(PROVIDERS[1:-1])} with a colon and a name"
        raise InvalidInputError(message, hint=hint)
    return makers[word]()


def _openai(model: str, name: str, settings: EmbeddingSettings, clock: Clock) -> Provider:
    endpoint = ProviderEndpoint(
        model,
        settings.openai_url,
        _key_name(settings.openai_key),
        ("Authorization", "Bearer "),
        clock,
        _patience(settings),
    )
    return OpenAIProvider(name, endpoint, settings.batch_size)


def _gemini(model: str, name: str, settings: EmbeddingSettings, clock: Clock) -> Provider:
    endpoint = ProviderEndpoint(
        model,
        settings.gemini_url,
        _key_name(settings.gemini_key),
        ("x-goog-api-key", ""),
        clock,
        _patience(settings),
    )
    return GeminiProvider(name, endpoint, min(settings.batch_size, _GEMINI_BATCH_MAX))


def _key_name(setting: str) -> KeyName | None:
    return None if setting == NO_KEY else KeyName.parse(setting)


def _patience(settings: EmbeddingSettings) -> Patience:
    return Patience(
        settings.timeout_seconds, settings.deadline_seconds, settings.requests_per_minute
    )
