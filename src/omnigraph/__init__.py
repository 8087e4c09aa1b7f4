"""Omnigraph: a branchable lakehouse graph database.

Names are loaded when first used: `omnigraph --help` must not wait for Lance.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from omnigraph import errors
    from omnigraph.graph import Graph, init, open  # noqa: A004  # omnigraph.open is the API
    from omnigraph.schema.parser import parse_schema

__all__ = ["Graph", "errors", "init", "open", "parse_schema"]

_HOMES: Final = {
    "Graph": "omnigraph.graph",
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
