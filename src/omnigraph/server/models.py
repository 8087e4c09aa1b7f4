"""Embedding models that are directories of the server: no client names one that is not in use."""

from __future__ import annotations

from typing import Final

from omnigraph.accessors.schema import accept_schema
from omnigraph.errors import ErrorCode, NotAllowedError
from omnigraph.graph import Graph
from omnigraph.lang.source import Source
from omnigraph.schema.catalog import Catalog
from omnigraph.schema.embedding_models import provider_of
from omnigraph.schema.embeds import embedded_vectors

_OF_DIRECTORIES: Final = "sentence-transformers"


def require_own_models(graph: Graph, schema: str | Source, branch: str | None) -> None:
    """Refuse a schema that names a directory of the server as a model, unless the branch has it."""
    named = _directories(accept_schema(schema).catalog)
    if not named or named <= _directories(graph.schema.show(branch=branch).catalog):
        return
    message = f"models of {_OF_DIRECTORIES} are directories of the server, and no client names one"
    hint = "change the schema where the graph is stored"
    raise NotAllowedError(message, hint=hint, code=ErrorCode.FORBIDDEN)


def _directories(catalog: Catalog) -> frozenset[str]:
    models = (vector.model for type_ in catalog.types for vector in embedded_vectors(type_))
    return frozenset(model for model in models if provider_of(model) == _OF_DIRECTORIES)
