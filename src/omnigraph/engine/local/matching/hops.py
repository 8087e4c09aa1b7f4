"""Hops: the steps that a link allows from nodes at one of its ends to nodes at the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np

from omnigraph.engine.local.topology.adjacency import Adjacency, spread
from omnigraph.engine.local.topology.topology import EdgeRows
from omnigraph.limits import MATCHED_BLOCK_STEPS

WALKED_BLOCK_BYTES: Final = 4 << 20
"""Memory for which nodes a block of walks has reached: a byte for each start and node."""


@dataclass(frozen=True, slots=True)
class Steps:
    """Steps from nodes, one node after the other.

    Attributes:
        counts: How many steps each node has.
        ends: The nodes that they lead to.
        factor: How many edges each step stands for; None for one.
        edges: The edge of each step, if the pattern reads edges.
    """

    counts: np.ndarray
    ends: np.ndarray
    factor: np.ndarray | None = None
    edges: np.ndarray | None = None


class Hop(Protocol):
    """One direction of a link."""

    def cost(self, nodes: np.ndarray | None) -> int:
        """About how many steps these nodes have, or all nodes together."""
        ...

    def blocks(self, nodes: np.ndarray) -> Iterator[slice]:
        """Parts of the nodes with a bounded number of steps each, unless one node has more."""
        ...

    def expand(self, nodes: np.ndarray) -> Steps:
        """The steps from these nodes."""
        ...


@dataclass(frozen=True, slots=True)
class PairHop:
    """Steps to each neighbour once.

    Attributes:
        counts_edges: Whether parallel edges count.
    """

    adjacency: Adjacency
    counts_edges: bool = False

    @property
    def has_factor(self) -> bool:
        """Whether some steps may stand for several edges."""
        if not self.counts_edges:
            return False
        base, patch = self.adjacency.base, self.adjacency.patch
        return bool(len(base.repeated)) or bool((patch.counts > 1).any())

    def cost(self, nodes: np.ndarray | None) -> int:
        """How many neighbours they have, about."""
        return _count_neighbours(self.adjacency, nodes)

    def blocks(self, nodes: np.ndarray) -> Iterator[slice]:
        """Parts with a bounded number of neighbours."""
        return _cut(self.adjacency, nodes)

    def expand(self, nodes: np.ndarray) -> Steps:
        """The neighbours of these nodes."""
        counts, ends = self.adjacency.gather(nodes)
        factor = None
        if self.has_factor:
            factor = self.adjacency.count_edges(np.repeat(nodes, counts), ends)
        return Steps(counts, ends, factor)


@dataclass(frozen=True, slots=True)
class EdgeHop:
    """A step along each edge.

    Attributes:
        chosen: Which edges may be walked, by position; None for all.
    """

    adjacency: Adjacency
    rows: EdgeRows
    chosen: np.ndarray | None

    def cost(self, nodes: np.ndarray | None) -> int:
        """How many neighbours they have, about."""
        return _count_neighbours(self.adjacency, nodes)

    def blocks(self, nodes: np.ndarray) -> Iterator[slice]:
        """Parts with a bounded number of neighbours."""
        return _cut(self.adjacency, nodes)

    def expand(self, nodes: np.ndarray) -> Steps:
        """The edges of these nodes, and the nodes that they lead to."""
        counts, positions = _positions(self.adjacency, nodes)
        starts = np.repeat(np.arange(len(nodes)), counts)
        ends = self.adjacency.neighbours[positions]
        if self.rows.offsets is None:
            edges = self.rows.rows[positions]
        else:
            firsts = self.rows.offsets[positions].astype(np.int64)
            each = self.rows.offsets[positions + 1].astype(np.int64) - firsts
            edges = self.rows.rows[spread(firsts, each)]
            starts, ends = np.repeat(starts, each), np.repeat(ends, each)
        if self.chosen is not None:
            kept = self.chosen[edges]
            starts, ends, edges = starts[kept], ends[kept], edges[kept]
        return Steps(np.bincount(starts, minlength=len(nodes)), ends, None, edges)


@dataclass(frozen=True, slots=True)
class EitherHop:
    """Steps along edges in both directions, a loop once."""

    forward: EdgeHop
    backward: EdgeHop

    def cost(self, nodes: np.ndarray | None) -> int:
        """How many neighbours they have in both directions."""
        return self.forward.cost(nodes) + self.backward.cost(nodes)

    def blocks(self, nodes: np.ndarray) -> Iterator[slice]:
        """Parts with a bounded number of neighbours in one direction."""
        return self.forward.blocks(nodes)

    def expand(self, nodes: np.ndarray) -> Steps:
        """The edges of these nodes, either way."""
        there, back = self.forward.expand(nodes), self.backward.expand(nodes)
        places = np.arange(len(nodes))
        starts = np.repeat(places, there.counts), np.repeat(places, back.counts)
        is_new = nodes[starts[1]] != back.ends
        every = np.concatenate([starts[0], starts[1][is_new]])
        order = np.argsort(every, kind="stable")
        assert there.edges is not None, "it walks edges"
        assert back.edges is not None, "it walks edges"
        return Steps(
            np.bincount(every, minlength=len(nodes)),
            np.concatenate([there.ends, back.ends[is_new]])[order],
            None,
            np.concatenate([there.edges, back.edges[is_new]])[order],
        )


@dataclass(frozen=True, slots=True)
class WalkHop:
    """Steps to each node whose least number of hops is within bounds, breadth first.

    Attributes:
        check: Raises where the match is to end early; called for each part of a hop.
    """

    adjacency: Adjacency
    hops_min: int
    hops_max: int
    check: Callable[[], None]

    def cost(self, nodes: np.ndarray | None) -> int:
        """A guess: so many hops, each along all neighbours of what was reached."""
        size = self.adjacency.size
        count = size if nodes is None else len(nodes)
        pair_count = self.adjacency.base.pair_count
        degree = pair_count / max(1, size)
        return int(min(count * degree**self.hops_max, count * pair_count))

    def blocks(self, nodes: np.ndarray) -> Iterator[slice]:
        """Parts for which one byte for each node that each can reach is not too much."""
        step = max(1, WALKED_BLOCK_BYTES // max(1, self.adjacency.size))
        return (slice(first, first + step) for first in range(0, len(nodes), step))

    def expand(self, nodes: np.ndarray) -> Steps:
        """The nodes that walks from each of these reach."""
        distinct, place = np.unique(nodes, return_inverse=True)
        if len(distinct) < len(nodes):
            steps = self.expand(distinct)
            firsts = np.cumsum(steps.counts) - steps.counts
            counts = steps.counts[place]
            return Steps(counts, steps.ends[spread(firsts[place], counts)])
        parts = [self._walk(nodes[part]) for part in self.blocks(nodes)]
        if not parts:
            return Steps(np.empty(0, np.int64), np.empty(0, np.uint32))
        return Steps(
            np.concatenate([part.counts for part in parts]),
            np.concatenate([part.ends for part in parts]),
        )

    def _walk(self, nodes: np.ndarray) -> Steps:
        size = self.adjacency.size
        # A pair of a start and a node that it has reached is one number.
        pairs = np.arange(len(nodes), dtype=np.int64) * size + nodes
        is_reached = np.zeros(len(nodes) * size, np.bool_)
        is_found = np.zeros(len(nodes) * size, np.bool_)
        is_reached[pairs] = True
        for hops in range(1, self.hops_max + 1):
            if hops == 1 and self.hops_min == 1:
                # A node reaches itself by a loop, and by nothing else.
                is_found[pairs[self.adjacency.count_edges(nodes, nodes) > 0]] = True
            reached = [self._reach(part, is_reached) for part in self._parts(pairs)]
            pairs = np.concatenate(reached) if reached else pairs[:0]
            if not len(pairs):
                break
            if hops >= self.hops_min:
                is_found[pairs] = True
        table = is_found.reshape(len(nodes), size)
        return Steps(np.count_nonzero(table, axis=1), np.nonzero(table)[1].astype(np.uint32))

    def _parts(self, pairs: np.ndarray) -> Iterator[np.ndarray]:
        """Pairs in parts of which each leads to a bounded number of others."""
        for part in _cut(self.adjacency, pairs % self.adjacency.size):
            self.check()
            yield pairs[part]

    def _reach(self, pairs: np.ndarray, is_reached: np.ndarray) -> np.ndarray:
        """The pairs that one more hop leads to for the first time, which is noted."""
        size = self.adjacency.size
        starts, nodes = np.divmod(pairs, size)
        counts, ends = self.adjacency.gather(nodes)
        onward = np.repeat(starts * size, counts) + ends
        fresh = np.unique(onward[~is_reached[onward]])
        is_reached[fresh] = True
        return fresh


def _positions(adjacency: Adjacency, nodes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    starts, ends = adjacency.whole.bounds(nodes)
    counts = ends - starts
    return counts, spread(starts, counts)


def _count_neighbours(adjacency: Adjacency, nodes: np.ndarray | None) -> int:
    if nodes is None:
        return adjacency.base.pair_count
    return int(adjacency.degrees_of(nodes).sum())


def _cut(adjacency: Adjacency, nodes: np.ndarray) -> Iterator[slice]:
    if not len(nodes):
        return
    ends = np.cumsum(adjacency.degrees_of(nodes))
    if ends[-1] <= MATCHED_BLOCK_STEPS:
        yield slice(0, len(nodes))
        return
    marks = np.arange(MATCHED_BLOCK_STEPS, ends[-1] + MATCHED_BLOCK_STEPS, MATCHED_BLOCK_STEPS)
    cuts = np.unique(np.append(np.searchsorted(ends, marks, side="right"), len(nodes)))
    first = 0
    for last in cuts.tolist():
        # A node with more steps than that is a part of its own.
        if last > first:
            yield slice(first, last)
            first = last
