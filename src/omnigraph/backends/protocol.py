"""The backend: everything that an engine does, as declared by the packages that need it.

A new capability is a protocol in the package that needs it, a method of both backends, and a name
in the bases below (docs/decisions/0010).
"""

from __future__ import annotations

from typing import Protocol

from omnigraph.algorithms.run import AlgorithmRunner
from omnigraph.changes.graphs import Comparer
from omnigraph.engine.protocol import Engine
from omnigraph.evolution.backfill import ColumnFiller
from omnigraph.export.plans import Exporter
from omnigraph.load.plans import Loader
from omnigraph.maintenance.embedding.run import EmbeddingEngine
from omnigraph.maintenance.indexes import IndexBuilder
from omnigraph.maintenance.optimize import Compactor
from omnigraph.merge.rows import RowMerger


class Backend(
    Comparer,
    RowMerger,
    Loader,
    IndexBuilder,
    Compactor,
    ColumnFiller,
    EmbeddingEngine,
    AlgorithmRunner,
    Exporter,
    Engine,
    Protocol,
):
    """Runs plans and algorithms, compares, merges, loads, indexes, compacts, embeds, exports."""
