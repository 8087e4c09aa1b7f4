"""The topology of an edge table at one version, and the edges behind its pairs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from omnigraph.engine.local.topology.adjacency import (
    Adjacency,
    from_keys,
    join_halves,
    lower_half,
    upper_half,
)
from omnigraph.engine.local.topology.build import number_ends
from omnigraph.engine.local.topology.numbers import NodeNumbers
from omnigraph.schema.catalog import ENDPOINTS
from omnigraph.storage.columns import read_all_fragments
from omnigraph.storage.tables import Table


@dataclass(frozen=True, slots=True, eq=False)
class EdgeRows:
    """The edges of each pair of an adjacency.

    - `rows` are positions of edges in what `storage.columns.read_all_fragments` returns of the edge
      table, in the order of the pairs.
    - `rows[offsets[p]:offsets[p + 1]]` are those of pair `p`; `offsets` is None where each pair has
      one edge, and then `rows[p]` is the one of pair `p`.
    """

    rows: np.ndarray
    offsets: np.ndarray | None


@dataclass(frozen=True, eq=False)
class Topology:
    """Which nodes the edges of a table connect, at one version of it and of its nodes' tables.

    Every edge is in it, and both of its ends exist. `out` leads from sources to targets, `into`
    back; they have the same pairs.
    """

    edges: Table
    sources: NodeNumbers
    targets: NodeNumbers
    out: Adjacency
    into: Adjacency

    known_symmetric: Adjacency | None = None

    @cached_property
    def symmetric(self) -> Adjacency:
        """The neighbours of each node in either direction, for edges within one node type.

        A pair is in it both ways, with the edges of both directions. A loop counts once.
        """
        assert self.sources.table is self.targets.table, "edges between types have one direction"
        if self.known_symmetric is not None:
            return self.known_symmetric
        forward, backward = self.out.whole.to_keys(), self.into.whole.to_keys()
        is_other = upper_half(backward) != lower_half(backward)
        keys = np.concatenate([forward, backward[is_other]])
        counts = np.concatenate([self.out.whole.to_counts(), self.into.whole.to_counts()[is_other]])
        # Both parts are sorted, which makes a stable sort a merge.
        order = np.argsort(keys, kind="stable")
        arrays = from_keys(keys[order], size=self.sources.size, counts=counts[order])
        return Adjacency(arrays, self.sources.size)

    @property
    def made_symmetric(self) -> Adjacency | None:
        """`symmetric`, if it was made before."""
        made: Adjacency | None = self.__dict__.get("symmetric", self.known_symmetric)
        return made

    @property
    def adjacencies(self) -> tuple[Adjacency, ...]:
        """All that were made."""
        made = self.made_symmetric
        return (self.out, self.into) if made is None else (self.out, self.into, made)

    @cached_property
    def out_rows(self) -> EdgeRows:
        """The edges of each pair of `out`. Reads the ends of all edges."""
        return _edge_rows(*self._ends)

    @cached_property
    def into_rows(self) -> EdgeRows:
        """The edges of each pair of `into`. Reads the ends of all edges."""
        sources, targets = self._ends
        return _edge_rows(targets, sources)

    @property
    def _ends(self) -> tuple[np.ndarray, np.ndarray]:
        """The numbers of the ends of each edge, in the order of a scan."""
        rows = read_all_fragments(self.edges, ENDPOINTS)
        ends = number_ends(rows, self.sources, self.targets)
        assert ends is not None, "both ends of every edge exist"
        return ends


def _edge_rows(nodes: np.ndarray, neighbours: np.ndarray) -> EdgeRows:
    keys = join_halves(nodes, neighbours)
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    firsts = np.flatnonzero(np.append(True, keys[1:] != keys[:-1])) if len(keys) else order
    rows = order.astype(np.uint32)
    if len(firsts) == len(keys):
        return EdgeRows(rows, None)
    return EdgeRows(rows, np.append(firsts, len(keys)))
