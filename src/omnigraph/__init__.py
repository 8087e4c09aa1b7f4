"""Omnigraph: a branchable lakehouse graph database.

Names are loaded when first used: `omnigraph --help` must not wait for Lance.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from omnigraph import errors
    from omnigraph.engine.queries import QueryResult
    from omnigraph.graph import Graph, init, open  # noqa: A004  # omnigraph.open is the API
    from omnigraph.integrity.violations import IntegrityError
    from omnigraph.lang.diagnostics import DiagnosticsError
    from omnigraph.maintenance.indexes import IndexResult
    from omnigraph.manifest.snapshot import Snapshot
    from omnigraph.model.commits import Commit
    from omnigraph.mutation.results import Changes, MutationResult
    from omnigraph.recovery.audit import RecoveryEntry
    from omnigraph.schema.findings import InvalidSchemaError
    from omnigraph.schema.parser import parse_schema

__all__ = [
    "Changes",
    "Commit",
    "DiagnosticsError",
    "Graph",
    "IndexResult",
    "IntegrityError",
    "InvalidSchemaError",
    "MutationResult",
    "QueryResult",
    "RecoveryEntry",
    "Snapshot",
    "errors",
    "init",
    "open",
    "parse_schema",
]

_HOMES: Final = {
    "Changes": "omnigraph.mutation.results",
    "Commit": "omnigraph.model.commits",
    "DiagnosticsError": "omnigraph.lang.diagnostics",
    "Graph": "omnigraph.graph",
    "IndexResult": "omnigraph.maintenance.indexes",
    "IntegrityError": "omnigraph.integrity.violations",
    "InvalidSchemaError": "omnigraph.schema.findings",
    "MutationResult": "omnigraph.mutation.results",
    "QueryResult": "omnigraph.engine.queries",
    "RecoveryEntry": "omnigraph.recovery.audit",
    "Snapshot": "omnigraph.manifest.snapshot",
    "init": "omnigraph.graph",
    "open": "omnigraph.graph",
    "parse_schema": "omnigraph.schema.parser",
}


def __getattr__(name: str) -> object:
    if name == "errors":
        return import_module("omnigraph.errors")
    if name not in _HOMES:
        message = f"module 'omnigraph' has no attribute {name!r}"
        raise AttributeError(message)
    return getattr(import_module(_HOMES[name]), name)
