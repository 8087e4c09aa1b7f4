"""The topology of an edge table at one version, and the edges behind its pairs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np

from omnigraph.engine.local.topology.adjacency import (
    Adjacency,
    from_keys,
    join_halves,
    lower_half,
    position_kind,
    upper_half,
)
from omnigraph.engine.local.topology.build import number_ends
from omnigraph.engine.local.topology.numbers import NodeNumbers
from omnigraph.schema.catalog import ENDPOINTS
from omnigraph.storage.columns import read_all_fragments
from omnigraph.storage.tables import Table

_SYMMETRIC_BYTES_PER_EDGE: Final = 48
_ROWS_BYTES_PER_EDGE: Final = 64


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

    @property
    def nbytes(self) -> int:
        """The memory that they take."""
        return self.rows.nbytes + (0 if self.offsets is None else self.offsets.nbytes)


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
        backward = self.into.whole.to_edge_keys()
        # A loop is in it once.
        backward = backward[upper_half(backward) != lower_half(backward)]
        keys = np.concatenate([self.out.whole.to_edge_keys(), backward])
        del backward
        keys.sort()
        return Adjacency(from_keys(keys, size=self.sources.size), self.sources.size)

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

    @property
    def nbytes(self) -> int:
        """The memory that it takes, without the numbers of nodes."""
        made = (self.__dict__.get(name) for name in ("out_rows", "into_rows"))
        rows: list[EdgeRows] = [each for each in made if each is not None]
        arrays = sum(each.nbytes for each in self.adjacencies)
        return arrays + sum(each.nbytes for each in rows)

    @property
    def symmetric_bytes(self) -> int:
        """About what it takes to make `symmetric`; 0 if it was made before."""
        is_made = self.made_symmetric is not None
        return 0 if is_made else _SYMMETRIC_BYTES_PER_EDGE * self.edges.count_rows()

    @property
    def rows_bytes(self) -> int:
        """About what it takes to make `out_rows` and `into_rows`; 0 if both were made before."""
        is_made = {"out_rows", "into_rows"} <= self.__dict__.keys()
        return 0 if is_made else _ROWS_BYTES_PER_EDGE * self.edges.count_rows()

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
    return EdgeRows(rows, np.append(firsts, len(keys)).astype(position_kind(len(keys))))
