"""Kernels: the algorithms on arrays, in this process.

Nodes are numbers from 0 to below `size`. A pair of nodes that several edges connect is there once,
with the number of its edges.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from omnigraph.algorithms.results import Rounds
from omnigraph.engine.budget import checkpoint

NOTHING: Final = -1
"""Where there is no node, or no distance."""

_WEDGES_MAX: Final = 1 << 21
"""Paths of two edges that are tested at once."""


@dataclass(frozen=True, slots=True, eq=False)
class EdgeArrays:
    """The edges of a graph: `sources[i]` to `targets[i]`, `counts[i]` times."""

    size: int
    sources: np.ndarray
    targets: np.ndarray
    counts: np.ndarray

    def reversed(self) -> EdgeArrays:
        """The same edges, each from its target to its source."""
        return EdgeArrays(self.size, self.targets, self.sources, self.counts)

    def both_ways(self) -> EdgeArrays:
        """Every edge in both directions; a loop is there once."""
        is_other = self.sources != self.targets
        return EdgeArrays(
            self.size,
            np.concatenate([self.sources, self.targets[is_other]]),
            np.concatenate([self.targets, self.sources[is_other]]),
            np.concatenate([self.counts, self.counts[is_other]]),
        )

    def without_loops(self) -> EdgeArrays:
        """The edges between different nodes."""
        keep = self.sources != self.targets
        return EdgeArrays(self.size, self.sources[keep], self.targets[keep], self.counts[keep])


def degrees(edges: EdgeArrays) -> tuple[np.ndarray, np.ndarray]:
    """How many edges lead to each node, and from each."""
    into = np.bincount(edges.targets, edges.counts, edges.size)
    out = np.bincount(edges.sources, edges.counts, edges.size)
    return into.astype(np.int64), out.astype(np.int64)


def page_rank(
    edges: EdgeArrays, *, damping: float, tolerance: float, rounds_max: int
) -> tuple[np.ndarray, Rounds]:
    """Ranks that add up to 1. Nodes without edges from them give to all nodes alike."""
    size = edges.size
    if not size:
        return np.empty(0), Rounds(0, converged=True)
    out = np.bincount(edges.sources, edges.counts, size)
    is_dangling = out == 0
    shares = edges.counts / out[edges.sources]
    ranks = np.full(size, 1 / size)
    for count in range(1, rounds_max + 1):
        checkpoint()
        received = np.bincount(edges.targets, ranks[edges.sources] * shares, size)
        spread = ranks[is_dangling].sum() / size
        before, ranks = ranks, (1 - damping) / size + damping * (received + spread)
        if np.abs(ranks - before).sum() < tolerance:
            return ranks, Rounds(count, converged=True)
    return ranks, Rounds(rounds_max, converged=False)


def components(edges: EdgeArrays) -> np.ndarray:
    """For each node the smallest node that it is connected with."""
    labels = np.arange(edges.size)
    sources, targets = edges.sources, edges.targets
    while True:
        checkpoint()
        ours, theirs = labels[sources], labels[targets]
        is_open = ours != theirs
        if not is_open.any():
            return labels
        # Labels are roots here. Each root is hung below the smallest root that it meets.
        sources, targets = sources[is_open], targets[is_open]
        ours, theirs = ours[is_open], theirs[is_open]
        np.minimum.at(labels, np.maximum(ours, theirs), np.minimum(ours, theirs))
        while not np.array_equal(roots := labels[labels], labels):
            labels = roots


def propagate_labels(edges: EdgeArrays, *, rounds_max: int) -> tuple[np.ndarray, Rounds]:
    """For each node the label that most edges lead to, the smallest of several; its own at first.

    All nodes change at once. Loops do not count.
    """
    labels = np.arange(edges.size)
    ways = edges.without_loops().both_ways()
    for count in range(1, rounds_max + 1):
        checkpoint()
        after = _most_frequent(ways, labels)
        if np.array_equal(after, labels):
            return labels, Rounds(count, converged=True)
        labels = after
    return labels, Rounds(rounds_max, converged=False)


def _most_frequent(ways: EdgeArrays, labels: np.ndarray) -> np.ndarray:
    nodes, votes = ways.sources, labels[ways.targets]
    order = np.lexsort((votes, nodes))
    nodes, votes, counts = nodes[order], votes[order], ways.counts[order]
    starts = _run_starts(nodes, votes)
    totals = np.add.reduceat(counts.astype(np.int64), starts) if len(starts) else counts[:0]
    nodes, votes = nodes[starts], votes[starts]
    best = np.lexsort((votes, -totals.astype(np.int64), nodes))
    winners = best[_run_starts(nodes[best])]
    after = labels.copy()
    after[nodes[winners]] = votes[winners]
    return after


def _run_starts(*columns: np.ndarray) -> np.ndarray:
    """Where a row of sorted columns differs from the one before."""
    if not len(columns[0]):
        return np.empty(0, np.int64)
    differs = np.any([column[1:] != column[:-1] for column in columns], axis=0)
    return np.flatnonzero(np.append(True, differs))


def shortest_paths(
    edges: EdgeArrays, starts: np.ndarray, *, hops_max: int | None
) -> tuple[np.ndarray, np.ndarray, int]:
    """The distance of each node from the nearest start, the smallest such start, and the rounds."""
    distances = np.full(edges.size, NOTHING)
    origins = np.full(edges.size, NOTHING)
    distances[starts], origins[starts] = 0, starts
    order = np.argsort(edges.sources, kind="stable")
    neighbours = edges.targets[order]
    offsets = np.searchsorted(edges.sources[order], np.arange(edges.size + 1))
    front, hops = np.unique(starts), 0
    while len(front) and (hops_max is None or hops < hops_max):
        checkpoint()
        hops += 1
        lengths = offsets[front + 1] - offsets[front]
        reached = neighbours[_spread(offsets[front], lengths)]
        given = np.repeat(origins[front], lengths)
        is_new = distances[reached] == NOTHING
        reached, given = reached[is_new], given[is_new]
        by_node = np.lexsort((given, reached))
        firsts = by_node[_run_starts(reached[by_node])]
        front = reached[firsts]
        distances[front], origins[front] = hops, given[firsts]
    return distances, origins, hops


def _spread(starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """The positions of runs, one by one."""
    before = np.cumsum(lengths) - lengths
    return np.repeat(starts - before, lengths) + np.arange(int(lengths.sum()))


def triangles(edges: EdgeArrays) -> np.ndarray:
    """How many triangles each node is in, whatever the direction and the number of edges."""
    size, found = edges.size, np.zeros(edges.size, np.int64)
    ways = edges.without_loops().both_ways()
    keys = np.unique(ways.sources.astype(np.int64) * size + ways.targets)
    nodes, neighbours = keys // max(1, size), keys % max(1, size)
    # Each pair leads to the node with more neighbours: then no node leads to many.
    ages = np.lexsort((np.arange(size), np.bincount(nodes, minlength=size)))
    place = np.empty(size, np.int64)
    place[ages] = np.arange(size)
    upwards = place[nodes] < place[neighbours]
    keys = np.sort(place[nodes[upwards]] * size + place[neighbours[upwards]])
    low, high = keys // max(1, size), keys % max(1, size)
    offsets = np.searchsorted(low, np.arange(size + 1))
    for block in _blocks(offsets[high + 1] - offsets[high]):
        lengths = offsets[high[block] + 1] - offsets[high[block]]
        thirds = high[_spread(offsets[high[block]], lengths)]
        firsts, seconds = np.repeat(low[block], lengths), np.repeat(high[block], lengths)
        wanted = firsts * size + thirds
        at = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        is_closed = keys[at] == wanted
        for corner in (firsts, seconds, thirds):
            found += np.bincount(corner[is_closed], minlength=size)
    by_node = np.empty(size, np.int64)
    by_node[ages] = found
    return by_node


def _blocks(lengths: np.ndarray) -> Iterator[slice]:
    """Ranges of pairs that lead to a bounded number of others, one pair at least."""
    ends = np.cumsum(lengths)
    start = 0
    while start < len(lengths):
        before = int(ends[start - 1]) if start else 0
        end = max(start + 1, int(np.searchsorted(ends, before + _WEDGES_MAX, "right")))
        yield slice(start, end)
        start = end
