"""Preloading: what the first requests would import, each in a thread of its own."""

from __future__ import annotations

from importlib import import_module
from typing import Final

_MODULES: Final = (
    "duckdb",
    "omnigraph.changes.tables",
    "omnigraph.engine.interrupts",
    "omnigraph.engine.local.execute",
    "omnigraph.engine.local.matching.matcher",
    "omnigraph.engine.queries",
    "omnigraph.integrity.proofs.by_columns",
    "omnigraph.integrity.proofs.by_lookup",
    "omnigraph.integrity.proofs.by_statements",
    "omnigraph.load.loads",
    "omnigraph.load.local",
    "omnigraph.mutation.plan",
    "omnigraph.mutation.statements",
    "omnigraph.query.compile",
    "omnigraph.query.parser",
)
"""What queries, mutations and loads import where they need it, so that commands start fast."""


def preload() -> None:
    """Import what requests need, before any is taken.

    A server that starts again is met by all its clients at once. Modules that many threads import
    at the same time, some of them from each other, take seconds in which nothing is answered, and
    Python may give a thread one that is not complete where it would wait forever.
    """
    for name in _MODULES:
        import_module(name)
