"""The algorithms by their definitions, on lists and dictionaries: slow, and shared with nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

Node = tuple[str, str]
"""A type and an id."""


@dataclass(frozen=True)
class PlainGraph:
    """Nodes, by type and then by age, and the ends of edges."""

    nodes: Sequence[Node]
    edges: Sequence[tuple[Node, Node]]

    def both_ways(self) -> PlainGraph:
        """Each edge in both directions; a loop is there once."""
        back = [(target, source) for source, target in self.edges if source != target]
        return PlainGraph(self.nodes, [*self.edges, *back])


def name(node: Node | None) -> str | None:
    """A node as results name it."""
    return None if node is None else f"{node[0]}/{node[1]}"


def degrees(graph: PlainGraph) -> dict[Node, tuple[int, ...]]:
    """In, out, and both."""
    return {
        node: (
            sum(target == node for _, target in graph.edges),
            sum(source == node for source, _ in graph.edges),
            sum((source == node) + (target == node) for source, target in graph.edges),
        )
        for node in graph.nodes
    }


def page_rank(graph: PlainGraph, damping: float) -> dict[Node, float]:
    """The stationary distribution, by solving for it."""
    place = {node: number for number, node in enumerate(graph.nodes)}
    size = len(place)
    moves = np.zeros((size, size))
    for source, target in graph.edges:
        moves[place[target], place[source]] += 1
    for column in range(size):
        total = moves[:, column].sum()
        moves[:, column] = moves[:, column] / total if total else 1 / size
    ranks = np.linalg.solve(np.eye(size) - damping * moves, np.full(size, (1 - damping) / size))
    return dict(zip(graph.nodes, ranks.tolist(), strict=True))


def ranks_after(graph: PlainGraph, damping: float, rounds: int) -> dict[Node, float]:
    """Ranks after so many rounds from equal ones, edge by edge."""
    size = len(graph.nodes)
    ranks = dict.fromkeys(graph.nodes, 1 / size)
    for _ in range(rounds):
        after = dict.fromkeys(graph.nodes, (1 - damping) / size)
        for node in graph.nodes:
            ends = [target for source, target in graph.edges if source == node]
            for end in ends or graph.nodes:
                after[end] += damping * ranks[node] / len(ends or graph.nodes)
        ranks = after
    return ranks


def components(graph: PlainGraph) -> dict[Node, Node]:
    """The oldest node that each is connected with."""
    group = {node: {node} for node in graph.nodes}
    for source, target in graph.edges:
        joined = group[source] | group[target]
        for node in joined:
            group[node] = joined
    return {node: min(group[node], key=graph.nodes.index) for node in graph.nodes}


def label_propagation(graph: PlainGraph, rounds: int) -> dict[Node, Node]:
    """Labels after so many rounds."""
    labels = {node: node for node in graph.nodes}
    for _ in range(rounds):
        votes: dict[Node, Counter[Node]] = {node: Counter() for node in graph.nodes}
        for source, target in graph.edges:
            if source != target:
                votes[source][labels[target]] += 1
                votes[target][labels[source]] += 1
        after = {}
        for node in graph.nodes:
            most = max(votes[node].values(), default=0)
            best = [label for label, count in votes[node].items() if count == most]
            after[node] = min(best, key=graph.nodes.index) if best else labels[node]
        labels = after
    return labels


def shortest_paths(
    graph: PlainGraph, sources: Sequence[Node], hops_max: int | None = None
) -> dict[Node, tuple[int | None, Node | None]]:
    """The distance from the nearest source, and the oldest source at that distance."""
    distance = {source: {source: 0} for source in sources}
    for source in sources:
        for _ in graph.nodes:
            for start, end in graph.edges:
                if start in distance[source]:
                    known = distance[source].get(end, len(graph.nodes))
                    distance[source][end] = min(known, distance[source][start] + 1)
    found: dict[Node, tuple[int | None, Node | None]] = {}
    for node in graph.nodes:
        ways = [
            (distance[source][node], graph.nodes.index(source), source)
            for source in sources
            if node in distance[source]
        ]
        length, _, nearest = min(ways, default=(None, None, None))
        is_near = length is not None and (hops_max is None or length <= hops_max)
        found[node] = (length, nearest) if is_near else (None, None)
    return found


def triangles(graph: PlainGraph) -> dict[Node, int]:
    """How many pairs of its neighbours are neighbours."""
    pairs = {frozenset(edge) for edge in graph.edges if edge[0] != edge[1]}
    found = dict.fromkeys(graph.nodes, 0)
    for corners in combinations(graph.nodes, 3):
        if all(frozenset(pair) in pairs for pair in combinations(corners, 2)):
            for corner in corners:
                found[corner] += 1
    return found
