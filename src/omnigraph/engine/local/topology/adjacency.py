"""Adjacency: for each node of one table, its neighbours in another one, as compressed arrays."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np

_HALF: Final = np.uint64(32)
_LOW: Final = np.uint64(0xFFFF_FFFF)


@dataclass(frozen=True, eq=False)
class Adjacency:
    """The pairs of nodes that edges connect in one direction: from each node to its neighbours.

    - `offsets` has `size + 1` entries, is ascending, starts with 0 and ends with the number of
      pairs: u32, or u64 for more pairs than that holds.
    - `neighbours[offsets[n]:offsets[n + 1]]` are the neighbours of node `n`: u32, strictly
      ascending, so a pair that several edges connect is there once.
    - `repeated` are the positions in `neighbours` of the pairs with several edges, ascending, and
      `edge_counts` says how many each has, always more than 1.
    """

    offsets: np.ndarray
    neighbours: np.ndarray
    repeated: np.ndarray
    edge_counts: np.ndarray

    @property
    def size(self) -> int:
        """Nodes are numbered from 0 to below this."""
        return len(self.offsets) - 1

    @property
    def pair_count(self) -> int:
        """How many pairs there are."""
        return len(self.neighbours)

    @property
    def edge_count(self) -> int:
        """How many edges there are: more than pairs, if there are parallel ones."""
        return self.pair_count + int(self.edge_counts.sum()) - len(self.edge_counts)

    @property
    def nbytes(self) -> int:
        """The memory that it takes."""
        arrays = (self.offsets, self.neighbours, self.repeated, self.edge_counts)
        return sum(array.nbytes for array in arrays)

    @cached_property
    def degrees(self) -> np.ndarray:
        """For each node, how many neighbours it has."""
        return np.diff(self.offsets)

    @property
    def multiplicity(self) -> np.ndarray | None:
        """How many edges each pair has; None if every pair has one."""
        if not len(self.repeated):
            return None
        counts = np.ones(self.pair_count, np.uint32)
        counts[self.repeated] = self.edge_counts
        return counts

    def degrees_of(self, nodes: np.ndarray) -> np.ndarray:
        """How many neighbours each of these nodes has."""
        starts, ends = self._bounds(nodes)
        degrees: np.ndarray = ends - starts
        return degrees

    def gather(self, nodes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """How many neighbours each of these nodes has, and their neighbours one after the other.

        The cost follows the result, not the size of the graph.
        """
        starts, ends = self._bounds(nodes)
        counts = ends - starts
        return counts, self.neighbours[spread(starts, counts)]

    def _bounds(self, nodes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        at = nodes.astype(np.int64)
        return self.offsets[at].astype(np.int64), self.offsets[at + 1].astype(np.int64)

    def to_keys(self) -> np.ndarray:
        """The pairs as numbers: the node in the upper half and the neighbour in the lower one."""
        nodes = np.repeat(np.arange(self.size, dtype=np.uint64), self.degrees)
        return join_halves(nodes, self.neighbours)


def adjacency_of(
    nodes: np.ndarray, neighbours: np.ndarray, *, size: int, counts: np.ndarray | None = None
) -> Adjacency:
    """The adjacency of edges that are given by their ends, in any order.

    Args:
        size: Every node is below it.
        counts: How many edges each pair stands for; one each when None.

    >>> adjacency = adjacency_of(np.array([2, 0, 2, 2]), np.array([1, 3, 0, 1]), size=4)
    >>> adjacency.offsets.tolist(), adjacency.neighbours.tolist()
    ([0, 1, 1, 3, 3], [3, 0, 1])
    >>> adjacency.multiplicity.tolist()
    [1, 1, 2]
    """
    keys = join_halves(nodes, neighbours)
    if counts is None:
        keys.sort()
        return from_keys(keys, size=size)
    order = np.argsort(keys)
    return from_keys(keys[order], size=size, counts=counts[order])


def from_keys(keys: np.ndarray, *, size: int, counts: np.ndarray | None = None) -> Adjacency:
    """The adjacency of edges as `join_halves` makes keys of them, which are sorted."""
    is_first = np.ones(len(keys), np.bool_)
    np.not_equal(keys[1:], keys[:-1], out=is_first[1:])
    kind = np.uint32 if len(keys) <= int(_LOW) else np.uint64
    repeated, edge_counts = np.empty(0, kind), np.empty(0, np.uint32)
    if counts is not None or not is_first.all():
        at = np.flatnonzero(is_first)
        ends = np.append(at[1:], len(keys))
        each = (ends - at) if counts is None else np.add.reduceat(counts, at) if len(at) else at
        repeated = np.flatnonzero(each > 1).astype(kind)
        edge_counts = each[repeated].astype(np.uint32)
        keys = keys[at]
    offsets = np.zeros(size + 1, kind)
    degrees = np.bincount((keys >> _HALF).astype(np.int64), minlength=size)
    np.cumsum(degrees, out=offsets[1:])
    return Adjacency(offsets, (keys & _LOW).astype(np.uint32), repeated, edge_counts)


def join_halves(nodes: np.ndarray, neighbours: np.ndarray) -> np.ndarray:
    """Pairs as numbers that sort like the pairs.

    >>> join_halves(np.array([1, 0]), np.array([2, 3])).tolist()
    [4294967298, 3]
    """
    keys: np.ndarray = nodes.astype(np.uint64)
    keys <<= _HALF
    keys |= neighbours.astype(np.uint64)
    return keys


def swap_halves(keys: np.ndarray) -> np.ndarray:
    """The same pairs, seen from the other side."""
    swapped: np.ndarray = keys << _HALF
    swapped |= keys >> _HALF
    return swapped


def spread(starts: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """The positions of runs, one by one.

    >>> spread(np.array([5, 0]), np.array([2, 3])).tolist()
    [5, 6, 0, 1, 2]
    """
    firsts = np.cumsum(counts) - counts
    positions: np.ndarray = np.repeat(starts - firsts, counts)
    positions += np.arange(len(positions))
    return positions
