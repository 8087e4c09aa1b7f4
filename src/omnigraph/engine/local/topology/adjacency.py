"""Adjacency: for each node of one table, its neighbours in another one, as compressed arrays.

What a few commits changed is a patch beside the arrays: pairs with their new numbers of edges. Who
asks for a few nodes gets them patched; who asks for the whole arrays gets them joined with the
patch, which copies them once.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np

from omnigraph.engine.local.topology.sketch import PairSketch

PATCHED_PAIRS_MIN: Final = 1 << 12
PATCHED_SHARE_MAX: Final = 1 / 32
"""Pairs that may differ from arrays, as a number and as a share of them, before they are joined."""


_HALF: Final = np.uint64(32)
_LOW: Final = np.uint64(0xFFFF_FFFF)
_BLOCK: Final = 1 << 18

_PAIRS_PER_TEST: Final = 8
"""Pairs of an adjacency for each test of one, from which on a sketch of them is made."""


@dataclass(frozen=True, slots=True, eq=False)
class PairArrays:
    """Pairs of nodes and neighbours, compressed.

    - `offsets` has an entry for each node and one more, is ascending, starts with 0 and ends with
      the number of pairs: u32, or u64 for more pairs than that holds.
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
    def arrays(self) -> tuple[np.ndarray, ...]:
        """All of the arrays."""
        return self.offsets, self.neighbours, self.repeated, self.edge_counts

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
        """The memory that they take."""
        return sum(array.nbytes for array in self.arrays)

    def bounds(self, nodes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Where the neighbours of each node start and end; a node beyond `size` has none."""
        if int(nodes.max(initial=0)) < self.size:
            starts, ends = self.offsets[:-1][nodes], self.offsets[1:][nodes]
            return starts.astype(np.int64), ends.astype(np.int64)
        at = np.minimum(nodes.astype(np.int64), self.size)
        ends = np.minimum(at + 1, self.size)
        return self.offsets[at].astype(np.int64), self.offsets[ends].astype(np.int64)

    def search(self, nodes: np.ndarray, neighbours: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The position of each pair, or where it would be inserted; and whether it is there."""
        low, ends = self.bounds(nodes)
        high = ends.copy()
        # A binary search for all pairs at once: each round halves every range.
        while (is_open := low < high).any():
            middle = (low + high) // 2
            is_below = np.zeros(len(low), np.bool_)
            is_below[is_open] = self.neighbours[middle[is_open]] < neighbours[is_open]
            low = np.where(is_below, middle + 1, low)
            high = np.where(is_open & ~is_below, middle, high)
        is_there = low < ends
        is_there[is_there] = self.neighbours[low[is_there]] == neighbours[is_there]
        return low, is_there

    def count_edges(self, positions: np.ndarray) -> np.ndarray:
        """How many edges the pairs at these positions have."""
        counts = np.ones(len(positions), np.int64)
        if len(self.repeated):
            at = np.minimum(np.searchsorted(self.repeated, positions), len(self.repeated) - 1)
            is_repeated = self.repeated[at] == positions
            counts[is_repeated] = self.edge_counts[at[is_repeated]]
        return counts

    def to_keys(self) -> np.ndarray:
        """The pairs as `join_halves` makes numbers of them, in their order."""
        keys = np.repeat(np.arange(self.size, dtype=np.uint64), np.diff(self.offsets))
        keys <<= _HALF
        keys |= self.neighbours
        return keys

    def to_edge_keys(self) -> np.ndarray:
        """The same, with a pair as often as it has edges."""
        keys = self.to_keys()
        return np.repeat(keys, self.to_counts()) if len(self.repeated) else keys

    def to_counts(self) -> np.ndarray:
        """How many edges each pair has."""
        counts = np.ones(self.pair_count, np.uint32)
        counts[self.repeated] = self.edge_counts
        return counts


@dataclass(frozen=True, slots=True, eq=False)
class Patch:
    """Pairs that have another number of edges now, which is 0 for those that are gone.

    Attributes:
        keys: The pairs, as `join_halves` makes numbers of them, ascending.
    """

    keys: np.ndarray
    counts: np.ndarray

    def __len__(self) -> int:
        return len(self.keys)

    @property
    def nodes(self) -> np.ndarray:
        """The node of each pair."""
        return upper_half(self.keys)

    @property
    def neighbours(self) -> np.ndarray:
        """The neighbour of each pair."""
        return lower_half(self.keys)

    def find(self, keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The position of each pair, if it is there; and whether it is."""
        if not len(self):
            return np.zeros(len(keys), np.int64), np.zeros(len(keys), np.bool_)
        at = np.minimum(np.searchsorted(self.keys, keys), len(self) - 1)
        return at, self.keys[at] == keys

    def over(self, before: Patch) -> Patch:
        """Both patches as one; where they have the same pair, this one counts."""
        _, is_replaced = self.find(before.keys)
        keys = np.concatenate([before.keys[~is_replaced], self.keys])
        counts = np.concatenate([before.counts[~is_replaced], self.counts])
        order = np.argsort(keys, kind="stable")
        return Patch(keys[order], counts[order])

    def touches(self, nodes: np.ndarray) -> bool:
        """Whether it changes the neighbours of one of these nodes."""
        if not len(self):
            return False
        starts, ends = self._bounds(nodes)
        return bool((starts < ends).any())

    def gather(
        self, nodes: np.ndarray, counts: np.ndarray, found: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """How many neighbours nodes have, and which, by how it was without the patch."""
        owners = np.repeat(np.arange(len(nodes)), counts)
        _, is_patched = self.find(join_halves(nodes[owners], found))
        starts, ends = self._bounds(nodes)
        at = spread(starts, ends - starts)
        patch_owners = np.repeat(np.arange(len(nodes)), ends - starts)
        is_pair = self.counts[at] > 0
        owners = np.concatenate([owners[~is_patched], patch_owners[is_pair]])
        added = self.neighbours[at[is_pair]]
        keys = np.sort(join_halves(owners, np.concatenate([found[~is_patched], added])))
        return np.bincount(upper_half(keys), minlength=len(nodes)), lower_half(keys)

    def _bounds(self, nodes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        wanted = nodes.astype(np.uint64)
        starts = np.searchsorted(self.keys, wanted << _HALF)
        ends = np.searchsorted(self.keys, (wanted << _HALF) | _LOW, "right")
        return starts, ends


NO_PATCH: Final = Patch(np.empty(0, np.uint64), np.empty(0, np.int64))


@dataclass(eq=False)
class Adjacency:
    """The pairs of nodes that edges connect in one direction: from each node to its neighbours.

    `offsets` and `neighbours` are those of `PairArrays`, for `size` nodes. `gather`, `degrees_of`,
    `count_edges` and `are_pairs` cost what their arguments and results are; the first use of
    anything else after a change copies the arrays, and drops those without the patch.

    Threads may share it, if they read the patch before the arrays. A patch has whole numbers of
    edges, not differences, so the new arrays with the old patch are the same pairs.
    """

    base: PairArrays
    size: int
    patch: Patch = NO_PATCH
    sketch: PairSketch | None = None
    tested_count: int = 0

    @property
    def offsets(self) -> np.ndarray:
        """Where the neighbours of each node start."""
        return self.whole.offsets

    @property
    def neighbours(self) -> np.ndarray:
        """The neighbours of all nodes, one after the other."""
        return self.whole.neighbours

    @property
    def multiplicity(self) -> np.ndarray | None:
        """How many edges each pair has; None if every pair has one."""
        return self.whole.to_counts() if len(self.whole.repeated) else None

    @property
    def pair_count(self) -> int:
        """How many pairs there are."""
        return self.whole.pair_count

    @property
    def edge_count(self) -> int:
        """How many edges there are: more than pairs, if there are parallel ones."""
        return self.whole.edge_count

    @cached_property
    def degrees(self) -> np.ndarray:
        """For each node, how many neighbours it has."""
        return np.diff(self.offsets)

    @property
    def whole(self) -> PairArrays:
        """The arrays with the patch in them."""
        patch = self.patch
        if len(patch):
            self.base = _insert(self.base, patch, self.size)
            self.patch = NO_PATCH
        elif self.base.size != self.size:
            self.base = _widen(self.base, self.size)
        return self.base

    @property
    def nbytes(self) -> int:
        """The memory that it takes, if nothing shares its arrays; a patch may copy them."""
        copies = 2 if len(self.patch) else 1
        return copies * self.base.nbytes + self.nbytes_added

    @property
    def sketch_bytes(self) -> int:
        """About what it takes to make a sketch of its pairs; 0 if it was made before."""
        if self.sketch is not None:
            return 0
        return PairSketch.count_bytes(self.base.pair_count + len(self.patch))

    @property
    def nbytes_added(self) -> int:
        """The memory that it takes beside its arrays."""
        sketched = 0 if self.sketch is None else self.sketch.bits.nbytes
        return self.patch.keys.nbytes + self.patch.counts.nbytes + sketched

    def degrees_of(self, nodes: np.ndarray) -> np.ndarray:
        """How many neighbours each of these nodes has."""
        patch, base = self.patch, self.base
        if patch.touches(nodes):
            return self.gather(nodes)[0]
        starts, ends = base.bounds(nodes)
        degrees: np.ndarray = ends - starts
        return degrees

    def gather(self, nodes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """How many neighbours each of these nodes has, and their neighbours one after the other."""
        patch, base = self.patch, self.base
        starts, ends = base.bounds(nodes)
        counts = ends - starts
        # Each node may have one neighbour, as along an edge that every node has once.
        is_each = len(counts) > 0 and counts.min() == counts.max() == 1
        found = base.neighbours[starts if is_each else spread(starts, counts)]
        return patch.gather(nodes, counts, found) if patch.touches(nodes) else (counts, found)

    def count_edges(self, nodes: np.ndarray, neighbours: np.ndarray) -> np.ndarray:
        """How many edges lead from each of these nodes to a neighbour; 0 where they are no pair."""
        patch, base = self.patch, self.base
        positions, is_there = base.search(nodes, neighbours)
        counts = np.zeros(len(nodes), np.int64)
        counts[is_there] = base.count_edges(positions[is_there])
        at, is_patched = patch.find(join_halves(nodes, neighbours))
        counts[is_patched] = patch.counts[at[is_patched]]
        return counts

    def are_pairs(
        self, nodes: np.ndarray, neighbours: np.ndarray, *, may_sketch: bool = True
    ) -> np.ndarray:
        """Whether an edge leads from each of these nodes to a neighbour.

        Once there were many such questions, a sketch answers most of them that are not pairs.

        Args:
            may_sketch: Whether there is memory to make one.
        """
        self.tested_count += len(nodes)
        is_asked_much = self.tested_count * _PAIRS_PER_TEST > self.base.pair_count
        if self.sketch is None and is_asked_much and may_sketch:
            self.sketch = self._make_sketch()
        if self.sketch is None:
            return self.count_edges(nodes, neighbours) > 0
        are_pairs = self.sketch.may_have(nodes, neighbours)
        at = np.flatnonzero(are_pairs)
        are_pairs[at] = self.count_edges(nodes[at], neighbours[at]) > 0
        return are_pairs

    def _make_sketch(self) -> PairSketch:
        patch, base = self.patch, self.base
        nodes = np.repeat(np.arange(base.size, dtype=np.uint32), np.diff(base.offsets))
        return PairSketch.of(
            np.concatenate([nodes, patch.nodes]),
            np.concatenate([base.neighbours, patch.neighbours]),
        )

    def change(self, keys: np.ndarray, differences: np.ndarray, size: int) -> Adjacency | None:
        """The adjacency with more or fewer edges; None if a pair would have fewer than none.

        Args:
            keys: Distinct pairs as `join_halves` makes numbers of them, ascending.
            differences: How many edges each pair has more than before.
            size: How many nodes there are then.
        """
        counts = self.count_edges(upper_half(keys), lower_half(keys)) + differences
        if (counts < 0).any():
            return None
        patch, base = self.patch, self.base
        sketch = self.sketch
        if sketch is not None:
            fits = base.pair_count + len(patch) + len(keys) <= sketch.capacity
            sketch = sketch.adding(upper_half(keys), lower_half(keys)) if fits else None
        changed = Adjacency(base, size, Patch(keys, counts).over(patch), sketch)
        pair_count_max = max(PATCHED_PAIRS_MIN, PATCHED_SHARE_MAX * changed.base.pair_count)
        return changed.fold() if len(changed.patch) > pair_count_max else changed

    def fold(self) -> Adjacency:
        """The same adjacency without a patch."""
        return Adjacency(self.whole, self.size, sketch=self.sketch)


def adjacency_of(nodes: np.ndarray, neighbours: np.ndarray, *, size: int) -> Adjacency:
    """The adjacency of edges that are given by their ends, in any order; nodes are below `size`.

    >>> adjacency = adjacency_of(np.array([2, 0, 2, 2]), np.array([1, 3, 0, 1]), size=4)
    >>> adjacency.offsets.tolist(), adjacency.neighbours.tolist()
    ([0, 1, 1, 3, 3], [3, 0, 1])
    >>> adjacency.multiplicity.tolist()
    [1, 1, 2]
    """
    keys = join_halves(nodes, neighbours)
    keys.sort()
    return Adjacency(from_keys(keys, size=size), size)


def from_keys(keys: np.ndarray, *, size: int) -> PairArrays:
    """The arrays of edges as `join_halves` makes numbers of them, ascending, one for each edge."""
    is_again = np.zeros(len(keys), np.bool_)
    np.equal(keys[1:], keys[:-1], out=is_again[1:])
    kind = position_kind(len(keys))
    # What is the same pair again is usually little, and this holds nothing for the others.
    again = np.flatnonzero(is_again)
    pairs, counts = np.unique(again - np.arange(1, len(again) + 1), return_counts=True)
    repeated, edge_counts = pairs.astype(kind), (counts + 1).astype(np.uint32)
    if len(again):
        keys = keys[~is_again]
    # Where the keys of each node start: this holds nothing for each pair, as counting them would.
    firsts = np.arange(size + 1, dtype=np.uint64) << _HALF
    offsets = np.searchsorted(keys, firsts).astype(kind)
    return PairArrays(offsets, lower_half(keys), repeated, edge_counts)


def join_halves(nodes: np.ndarray, neighbours: np.ndarray) -> np.ndarray:
    """Pairs as numbers that sort like the pairs.

    >>> join_halves(np.array([1, 0]), np.array([2, 3])).tolist()
    [4294967298, 3]
    """
    keys: np.ndarray = nodes.astype(np.uint64)
    keys <<= _HALF
    keys |= neighbours.astype(np.uint64)
    return keys


def upper_half(keys: np.ndarray) -> np.ndarray:
    """The nodes of pairs."""
    return (keys >> _HALF).astype(np.uint32)


def lower_half(keys: np.ndarray) -> np.ndarray:
    """The neighbours of pairs."""
    # A conversion to fewer bits keeps the lower ones.
    return keys.astype(np.uint32)


def swap_halves(keys: np.ndarray) -> np.ndarray:
    """The same pairs, seen from the other side."""
    swapped: np.ndarray = keys << _HALF
    swapped |= keys >> _HALF
    return swapped


def swap_in_place(keys: np.ndarray) -> None:
    """Make pairs those that are seen from the other side, a block at a time."""
    for start in range(0, len(keys), _BLOCK):
        keys[start : start + _BLOCK] = swap_halves(keys[start : start + _BLOCK])


def spread(starts: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """The positions of runs, one by one.

    >>> spread(np.array([5, 0]), np.array([2, 3])).tolist()
    [5, 6, 0, 1, 2]
    """
    firsts = np.cumsum(counts) - counts
    positions: np.ndarray = np.repeat(starts - firsts, counts)
    positions += np.arange(len(positions))
    return positions


def _widen(arrays: PairArrays, size: int) -> PairArrays:
    """The same pairs for another number of nodes; those that are left out have no neighbours."""
    if arrays.size == size:
        return arrays
    offsets = np.full(size + 1, arrays.pair_count, arrays.offsets.dtype)
    count = min(size, arrays.size) + 1
    offsets[:count] = arrays.offsets[:count]
    return PairArrays(offsets, arrays.neighbours, arrays.repeated, arrays.edge_counts)


def _insert(base: PairArrays, patch: Patch, size: int) -> PairArrays:
    """The arrays with the pairs of a patch added, removed, or given other numbers of edges."""
    positions, was_there = base.search(patch.nodes, patch.neighbours)
    is_there = patch.counts > 0
    added, removed = is_there & ~was_there, ~is_there & was_there
    degrees = np.zeros(max(size, base.size), np.int64)
    degrees[: base.size] = np.diff(base.offsets)
    np.add.at(degrees, patch.nodes[added], 1)
    np.subtract.at(degrees, patch.nodes[removed], 1)
    offsets = np.zeros(size + 1, position_kind(int(degrees.sum())))
    # An earlier version may have fewer nodes; the others have no neighbours any more.
    np.cumsum(degrees[:size], out=offsets[1:])
    # Positions to insert at count what is there before anything is removed.
    neighbours = np.insert(base.neighbours, positions[added], patch.neighbours[added])
    if removed.any():
        shift = np.searchsorted(positions[added], positions[removed], "right")
        neighbours = np.delete(neighbours, positions[removed] + shift)
    pairs = PairArrays(offsets, neighbours, base.repeated[:0], base.edge_counts[:0])
    if not len(base.repeated) and not (patch.counts > 1).any():
        return pairs
    return _count_again(pairs, base, patch)


def _count_again(pairs: PairArrays, base: PairArrays, patch: Patch) -> PairArrays:
    """The pairs with the numbers of edges that they have: of the patch, and else as before."""
    owners = np.searchsorted(base.offsets, base.repeated, "right") - 1
    keys = join_halves(owners, base.neighbours[base.repeated])
    every = patch.over(Patch(keys, base.edge_counts.astype(np.int64)))
    is_repeated = every.counts > 1
    repeated = Patch(every.keys[is_repeated], every.counts[is_repeated])
    positions, _ = pairs.search(repeated.nodes, repeated.neighbours)
    return PairArrays(
        pairs.offsets,
        pairs.neighbours,
        positions.astype(pairs.offsets.dtype),
        repeated.counts.astype(np.uint32),
    )


def position_kind(pair_count: int) -> type[np.unsignedinteger]:
    """The kind of positions among so many pairs."""
    return np.uint32 if pair_count <= int(_LOW) else np.uint64
