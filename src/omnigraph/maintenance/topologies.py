"""Topologies of large edge tables, written to files where indexes are written.

They are derived data, like indexes: no answer needs one. A process that has read nothing yet maps
the file into memory and reads the edges that differ, where it would else read all of them.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Final

from omnigraph.choices import TableKind
from omnigraph.engine.local.topology.follow import Step, follow
from omnigraph.engine.local.topology.stored import find_stored, store
from omnigraph.engine.local.topology.topologies import EdgeTables, Topologies
from omnigraph.errors import OmnigraphError, StorageError
from omnigraph.limits import STORED_EDGES_MIN
from omnigraph.model.followups import index_remedy
from omnigraph.model.names import BranchName, TypeName
from omnigraph.model.tables import TableKey
from omnigraph.transaction.view import View

STORED_SHARE_MAX: Final = 1 / 8
"""The share of edges that may differ from a stored topology before it is written again."""


_log: Final = logging.getLogger(__name__)


def store_topologies(view: View) -> tuple[str, ...]:
    """Write the topologies that are missing or old, of edge tables that are large; their types."""
    return tuple(_store_missing(view))


def warn_not_stored(branch: BranchName, failure: OmnigraphError) -> None:
    """Log that topologies were not written, and what to do."""
    _log.warning(
        "topologies of branch %s were not stored, and the first query of a process reads edges in "
        "their place: %s (the indexes are up to date; to store them, %s)",
        branch,
        failure.message,
        index_remedy(branch),
    )


def _store_missing(view: View) -> Iterator[str]:
    for type_ in view.catalog.edge_types:
        source, target = (
            TableKey(TableKind.NODE, TypeName(name)) for name in (type_.source, type_.target)
        )
        tables = EdgeTables(type_.table_key, source, target)
        if view.data.table(tables.edges).count_rows() < STORED_EDGES_MIN:
            continue
        topologies = Topologies()
        if _is_stored(view, tables, topologies):
            continue
        topology = topologies.of(view.data, tables)
        if topology is not None:
            store(topology)
            yield type_.name


def _is_stored(view: View, tables: EdgeTables, topologies: Topologies) -> bool:
    """Whether a file leads to the topology of these versions in a few edges."""
    edges, source, target = map(view.data.table, (tables.edges, tables.source, tables.target))
    sources, targets = topologies.numbers(source), topologies.numbers(target)
    if sources is None or targets is None:
        return False
    for before in find_stored(edges, source, target):
        step = Step.between(before.edges, edges)
        if step.row_count > STORED_SHARE_MAX * edges.count_rows():
            continue
        try:
            if follow(before, step, sources, targets) is not None:
                return True
        except StorageError:
            # It was made of a version that is not there any more.
            continue
    return False
