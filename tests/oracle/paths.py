"""Paths of the reference: best walks by their definition in `query.ir.Path`, step by step."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence

from omnigraph.query import ir
from omnigraph.query.ir import Value

_Rows = Callable[[str], Sequence[Mapping[str, Value]]]
"""The rows of a type."""

_Walk = tuple[int | float, int, tuple[str, ...]]
"""The cost of a walk, the number of its edges, and its nodes: the lesser is the better."""


def best_path(
    traversal: ir.Traversal,
    source: Mapping[str, Value],
    destination: Mapping[str, Value],
    of: _Rows,
) -> dict[str, Value] | None:
    """The columns of the best walk between two nodes; None if none is within the bounds."""
    assert traversal.path is not None, "it has a path"
    start, end = _own_id(source), _own_id(destination)
    steps = [
        step
        for step in traversal.steps
        if step.source in (None, source.get(ir.TYPE))
        and step.destination in (None, destination.get(ir.TYPE))
    ]
    arcs = _arcs(traversal.path, steps, of)
    if start == end:
        best = min(
            (walk for node, walk in _extend((0, 0, (start,)), arcs) if node == end), default=None
        )
    else:
        best = _best_walks(start, arcs, traversal.hops_max).get(end)
    if best is None or not traversal.hops_min <= best[1] <= traversal.hops_max:
        return None
    cost, hops, nodes = best
    return {ir.LENGTH: hops, ir.NODES: nodes, ir.COST: cost}


def _own_id(row: Mapping[str, Value]) -> str:
    return str(row.get(ir.LOCAL_ID, row["id"]))


def _arcs(
    path: ir.Path, steps: Sequence[ir.EdgeStep], of: _Rows
) -> list[tuple[str, str, int | float]]:
    """The ways from one node to another, with their weights; 0 where there are none."""
    arcs: list[tuple[str, str, int | float]] = []
    for step in steps:
        for edge in of(step.edge_type):
            weight = 0 if path.weight is None else edge[path.weight]
            if not isinstance(weight, int | float) or weight < 0 or not math.isfinite(weight):
                continue
            ends = str(edge["src"]), str(edge["dst"])
            if step.direction is not ir.Direction.IN:
                arcs.append((*ends, weight))
            if step.direction is not ir.Direction.OUT:
                arcs.append((*ends[::-1], weight))
    return arcs


def _best_walks(
    start: str, arcs: Sequence[tuple[str, str, int | float]], hops_max: int
) -> dict[str, _Walk]:
    """The best walk of at most so many edges to each other node."""
    best: dict[str, _Walk] = {start: (0, 0, (start,))}
    for _ in range(hops_max):
        further = dict(best)
        for walk in best.values():
            for node, longer in _extend(walk, arcs):
                if node not in further or longer < further[node]:
                    further[node] = longer
        best = further
    return best


def _extend(
    walk: _Walk, arcs: Sequence[tuple[str, str, int | float]]
) -> Iterator[tuple[str, _Walk]]:
    cost, hops, nodes = walk
    for first, second, weight in arcs:
        if first == nodes[-1]:
            yield second, (cost + weight, hops + 1, (*nodes, second))
