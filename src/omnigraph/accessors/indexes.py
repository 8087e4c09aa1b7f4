"""A graph's indexes: `graph.indexes`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from omnigraph.clock import Clock

# What a signature names need not be imported to read a graph.
if TYPE_CHECKING:
    from omnigraph.graph import Graph
    from omnigraph.maintenance.results import IndexStatus
    from omnigraph.manifest.snapshot import Snapshot
    from omnigraph.transaction.view import View


class IndexList:
    """A graph's indexes: `graph.indexes`. `graph.ensure_indices` builds them."""

    def __init__(self, graph: Graph, view_at: Callable[[Snapshot], View], clock: Clock) -> None:
        self._graph = graph
        self._view_at = view_at
        self._clock = clock

    def list(
        self, *, branch: str | None = None, commit: str | None = None, version: int | None = None
    ) -> tuple[IndexStatus, ...]:
        """Every index that the schema asks for or a table has, and how much of it is there.

        At one commit: the handle's own unless another is named. No row is read. Types that the
        actor may not read are left out.

        Raises:
            NotFoundError: the branch, the commit or the version does not exist.
            InvalidInputError: a commit was given together with a branch or a version.
            StorageError: a table cannot be opened.
        """
        from omnigraph.maintenance.index_list import list_indexes

        snapshot = self._graph.full_snapshot(branch=branch, commit=commit, version=version)
        sees = self._graph.authority.sight(snapshot.branch).sees
        return list_indexes(self._view_at(snapshot), self._clock.now(), sees)
