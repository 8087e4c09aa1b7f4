"""Paths on arrays: the best walks from a node, round by round, and the nodes along them.

Each round extends the walks of the last one by an edge (`query.ir.Path` defines what is best). The
nodes that a round found a better walk to are sorted by their walks, so that of equal ones the
first has the least nodes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.engine.local.topology.adjacency import Adjacency, spread
from omnigraph.engine.local.topology.numbers import NOTHING, NodeNumbers
from omnigraph.engine.local.topology.topologies import EdgeTables, Topologies
from omnigraph.engine.local.topology.topology import EdgeRows, Topology
from omnigraph.engine.protocol import Data
from omnigraph.limits import KEPT_TABLE_BYTES_MAX
from omnigraph.relational.patterns import LinkWay
from omnigraph.relational.plans import PathSearch
from omnigraph.storage.columns import read_all_fragments

PATH_SOURCES_MAX: Final = 10_000
"""Nodes from which paths are walked on arrays, one after the other."""

TAKEN_IDS_MAX: Final = 5_000
"""Ids that are sorted by themselves, or read by the positions of their rows; for more, the whole
column is."""


_BYTES_PER_NODE = 32
_BYTES_PER_PAIR = 48
"""About what a search takes at once, if it reaches everything."""

_COST_MAX = 1 << 62


def find_paths(
    search: PathSearch,
    sources: pa.ChunkedArray | None,
    targets: pa.ChunkedArray | None,
    data: Data,
    topologies: Topologies,
) -> pa.Table | None:
    """The relation of a search; None if it is for SQL.

    Args:
        sources: The ids that walks start from; None for all nodes. Likewise targets.
    """
    tables = EdgeTables(search.edges, search.nodes, search.nodes)
    if topologies.cost(data, tables) is None:
        return None
    topology = topologies.of(data, tables)
    if topology is None:
        return None
    numbers = topology.sources
    starts = numbers.of_rows if sources is None else _numbers_of(sources, numbers)
    if len(starts) > PATH_SOURCES_MAX:
        return None
    byte_count = _BYTES_PER_NODE * numbers.size + _BYTES_PER_PAIR * topology.out.base.pair_count
    if not data.budget.has_room(byte_count):
        return None
    arcs = _arcs(search, topology)
    if arcs is None:
        return None
    ends = None if targets is None else _numbers_of(targets, numbers)
    walker = _Walker(search, arcs, numbers, data, ends)
    found = [walker.walk(start) for start in np.unique(starts).tolist()]
    return _relation(search, [each for each in found if len(each.ends)], walker)


def _numbers_of(ids: pa.ChunkedArray, numbers: NodeNumbers) -> np.ndarray:
    found = numbers.find(ids.drop_null())
    known: np.ndarray = found[found != NOTHING]
    return known


@dataclass(frozen=True, slots=True)
class _Arcs:
    """The edges from nodes in one direction, with the least weight of each pair, if there is one.

    Attributes:
        weights: By position in the arrays of the adjacency; not finite where no edge has a weight.
    """

    adjacency: Adjacency
    backward: Adjacency
    weights: np.ndarray | None = None

    def gather(self, nodes: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        """How many neighbours each node has, which, and the weight of each step."""
        if self.weights is None:
            return *self.adjacency.gather(nodes), None
        arrays = self.adjacency.whole
        starts, ends = arrays.bounds(nodes)
        counts = ends - starts
        at = spread(starts, counts)
        return counts, arrays.neighbours[at], self.weights[at]

    def loop(self, node: int) -> float | None:
        """The weight of the least loop of a node, 0 without weights; None if it has none."""
        at = np.array([node], np.uint32)
        if self.weights is None:
            return 0 if self.adjacency.count_edges(at, at)[0] else None
        positions, is_there = self.adjacency.whole.search(at, at)
        if not is_there[0]:
            return None
        weight = self.weights[positions[0]].item()
        return None if weight == _missing(self.weights.dtype) else weight


def _missing(kind: np.dtype) -> float | int:
    """The weight of a pair that cannot be walked."""
    return float("inf") if kind.kind == "f" else _COST_MAX


def _arcs(search: PathSearch, topology: Topology) -> list[_Arcs] | None:
    """The ways along edges; None if costs may be too large for 64 bits."""
    out, into = (topology.out, topology.into), (topology.into, topology.out)
    if search.weight is None:
        match search.way:
            case LinkWay.OUT:
                return [_Arcs(*out)]
            case LinkWay.IN:
                return [_Arcs(*into)]
            case LinkWay.BOTH:
                return [_Arcs(topology.symmetric, topology.symmetric)]
    weights = _read_weights(topology, search)
    if weights is None:
        return None
    arcs: list[_Arcs] = []
    if search.way is not LinkWay.IN:
        arcs.append(_Arcs(*out, _least_weights(topology.out_rows, weights)))
    if search.way is not LinkWay.OUT:
        arcs.append(_Arcs(*into, _least_weights(topology.into_rows, weights)))
    return arcs


def _read_weights(topology: Topology, search: PathSearch) -> np.ndarray | None:
    """The weight of each edge, in the order of a scan; None if costs may be too large."""
    assert search.weight is not None, "edges have weights"
    column = read_all_fragments(topology.edges, [search.weight])[search.weight]
    is_float = pa.types.is_floating(column.type)
    is_there = pc.is_valid(column).to_numpy(zero_copy_only=False)
    values: np.ndarray = pc.fill_null(column, pa.scalar(0, column.type)).to_numpy()
    if is_float:
        weights: np.ndarray = values.astype(np.float64)
        is_there &= np.isfinite(weights)
    else:
        if len(values) and int(values.max()) * search.hops[1] >= _COST_MAX:
            return None
        weights = values.astype(np.int64)
    is_there &= weights >= 0
    # An infinite cost is a cost, which SQL finds; here it says that there is no way.
    if is_float and 2 * float(weights[is_there].max(initial=0)) * search.hops[1] == math.inf:
        return None
    weights[~is_there] = _missing(weights.dtype)
    return weights


def _least_weights(rows: EdgeRows, weights: np.ndarray) -> np.ndarray:
    by_edge: np.ndarray = weights[rows.rows]
    if rows.offsets is None or not len(by_edge):
        return by_edge
    least: np.ndarray = np.minimum.reduceat(by_edge, rows.offsets[:-1].astype(np.int64))
    return least


@dataclass(frozen=True, slots=True)
class _Walks:
    """The best walks from one node.

    Attributes:
        ends: The nodes that they lead to.
        nodes: The nodes of all walks, one walk after the other, if they are wanted.
    """

    start: int
    ends: np.ndarray
    lengths: np.ndarray
    costs: np.ndarray | None
    nodes: np.ndarray | None


@dataclass(slots=True)
class _Round:
    """The nodes that a round found better walks to, sorted by those.

    Attributes:
        before: The position of the node before each, among those of the round before.
    """

    nodes: np.ndarray
    before: np.ndarray


@dataclass(slots=True)
class _Walker:
    """Walks from one node after the other.

    Attributes:
        targets: The nodes that walks may lead to; None for all.
    """

    search: PathSearch
    arcs: Sequence[_Arcs]
    numbers: NodeNumbers
    data: Data
    targets: np.ndarray | None
    _order: np.ndarray | None = field(default=None)

    @property
    def has_nodes(self) -> bool:
        """Whether the nodes along walks are wanted."""
        return "nodes" in self.search.columns

    def walk(self, start: int) -> _Walks:
        """The best walks from a node that are within the bounds."""
        if self.search.weight is not None:
            walks = self._walk_by_cost(start)
        else:
            walks = self._walk_by_hops(start)
        return self._with_loop(walks)

    def _with_loop(self, walks: _Walks) -> _Walks:
        is_target = self.targets is None or walks.start in self.targets
        loops = [loop for arcs in self.arcs if (loop := arcs.loop(walks.start)) is not None]
        if self.search.hops[0] > 1 or not is_target or not loops:
            return walks
        start = np.array([walks.start], walks.ends.dtype)
        costs, nodes = walks.costs, walks.nodes
        if costs is not None:
            costs = np.append(costs, np.array([min(loops)], costs.dtype))
        if nodes is not None:
            nodes = np.concatenate([nodes, start, start])
        ends, lengths = np.append(walks.ends, start), np.append(walks.lengths, 1)
        return _Walks(walks.start, ends, lengths, costs, nodes)

    def _walk_by_hops(self, start: int) -> _Walks:
        """Breadth first; where nodes are wanted, again along what leads to targets."""
        low, high = self.search.hops
        distances = np.full(self.numbers.size, 255, np.uint8)
        distances[start] = 0
        frontier = np.array([start], np.uint32)
        (arcs,) = self.arcs
        levels = [frontier]
        for hops in range(1, high + 1):
            self.data.budget.check()
            _, ends = arcs.adjacency.gather(frontier)
            fresh = ends[distances[ends] == 255]
            distances[fresh] = hops
            frontier = _distinct(fresh, distances, hops)
            levels.append(frontier)
            if not len(frontier) or self._are_reached(distances):
                break
        ends = self._ends(distances, low, high)
        ends = ends[ends != start]
        lengths = distances[ends].astype(np.int64)
        nodes = None
        if self.has_nodes:
            rounds = self._sort_levels(levels, distances, ends)
            nodes = _trace(rounds, ends, lengths)
        return _Walks(start, ends, lengths, None, nodes)

    def _are_reached(self, distances: np.ndarray) -> bool:
        return self.targets is not None and not (distances[self.targets] == 255).any()

    def _ends(self, distances: np.ndarray, low: int, high: int) -> np.ndarray:
        if self.targets is None:
            return np.flatnonzero((distances >= low) & (distances <= high)).astype(np.uint32)
        reached = distances[self.targets]
        return np.unique(self.targets[(reached >= low) & (reached <= high)])

    def _sort_levels(
        self, levels: Sequence[np.ndarray], distances: np.ndarray, ends: np.ndarray
    ) -> list[_Round]:
        """The levels, without nodes that lead to no end, each sorted by walks."""
        (arcs,) = self.arcs
        kept = list(levels)
        if self.targets is not None:
            last = int(distances[ends].max(initial=0))
            kept = kept[: last + 1]
            wanted = np.zeros(len(distances), np.bool_)
            wanted[ends] = True
            for hops in range(last, 0, -1):
                self.data.budget.check()
                kept[hops] = kept[hops][wanted[kept[hops]]]
                _, before = arcs.backward.gather(kept[hops])
                wanted[before[distances[before] == hops - 1]] = True
        rounds = [_Round(kept[0], np.zeros(1, np.int64))]
        for nodes in kept[1:]:
            self.data.budget.check()
            rounds.append(self._next_level(rounds[-1].nodes, np.sort(nodes), arcs))
        return rounds

    def _next_level(self, last: np.ndarray, nodes: np.ndarray, arcs: _Arcs) -> _Round:
        if not len(nodes):
            return _Round(nodes, np.empty(0, np.int64))
        counts, ends = arcs.adjacency.gather(last)
        owners = np.repeat(np.arange(len(last)), counts)
        at = np.minimum(np.searchsorted(nodes, ends), len(nodes) - 1)
        is_there = nodes[at] == ends
        # Those before are sorted, so the first that leads to a node has the least walk.
        _, firsts = np.unique(at[is_there], return_index=True)
        before = owners[is_there][firsts]
        return self._sorted(nodes, before)

    def _sorted(self, nodes: np.ndarray, before: np.ndarray) -> _Round:
        if not self.has_nodes:
            return _Round(nodes, before)
        order = np.lexsort((self._text_order(nodes), before))
        return _Round(nodes[order], before[order])

    def _text_order(self, nodes: np.ndarray) -> np.ndarray:
        """Numbers that sort nodes as their ids do."""
        if self._order is None and len(nodes) > TAKEN_IDS_MAX:
            every = read_all_fragments(self.numbers.table, ["id"])["id"]
            self._order = np.zeros(self.numbers.size, np.uint32)
            self._order[self.numbers.of_rows] = _ranks(every)
        if self._order is None:
            return _ranks(self.ids(nodes))
        ranks: np.ndarray = self._order[nodes]
        return ranks

    def ids(self, nodes: np.ndarray) -> pa.ChunkedArray:
        """The ids of nodes."""
        table, places = self.numbers.table, self.numbers.rows[nodes]
        # The columns of small tables stay in memory; of a large one, few rows are read by position.
        if len(places) <= TAKEN_IDS_MAX and table.count_bytes() > KEPT_TABLE_BYTES_MAX:
            return table.take(places.tolist(), ["id"])["id"]
        return read_all_fragments(table, ["id"])["id"].take(pa.array(places))

    def _walk_by_cost(self, start: int) -> _Walks:
        """By rounds: each extends the walks that the last one found to be better."""
        weights = self.arcs[0].weights
        assert weights is not None, "it is by cost"
        costs = np.full(self.numbers.size, _missing(weights.dtype), weights.dtype)
        costs[start] = 0
        rounds = [_Round(np.array([start], np.uint32), np.zeros(1, np.int64))]
        rounds_of = np.zeros(self.numbers.size, np.uint8)
        for number in range(1, self.search.hops[1] + 1):
            self.data.budget.check()
            nodes, before, better = self._relax(rounds[-1].nodes, costs)
            if not len(nodes):
                break
            costs[nodes] = better
            rounds_of[nodes] = number
            rounds.append(self._sorted(nodes, before))
        ends = np.flatnonzero(rounds_of).astype(np.uint32)
        if self.targets is not None:
            ends = np.unique(self.targets[rounds_of[self.targets] > 0])
        lengths = rounds_of[ends].astype(np.int64)
        traced = _trace(rounds, ends, lengths) if self.has_nodes else None
        return _Walks(start, ends, lengths, costs[ends], traced)

    def _relax(
        self, last: np.ndarray, costs: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The nodes that an edge leads to at a lower cost, what is before each, and the cost."""
        found: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
        for arcs in self.arcs:
            counts, ends, weights = arcs.gather(last)
            assert weights is not None, "it is by cost"
            owners = np.repeat(np.arange(len(last)), counts)
            is_walked = weights != _missing(weights.dtype)
            owners, ends, weights = owners[is_walked], ends[is_walked], weights[is_walked]
            totals = costs[last][owners] + weights
            is_better = totals < costs[ends]
            found.append((ends[is_better], totals[is_better], owners[is_better]))
        ends, totals, owners = (np.concatenate(parts) for parts in zip(*found, strict=True))
        order = np.lexsort((owners, totals, ends))
        ends = ends[order]
        firsts = np.flatnonzero(np.append(True, ends[1:] != ends[:-1])) if len(ends) else order
        chosen = order[firsts]
        return ends[firsts], owners[chosen], totals[chosen]


def _distinct(fresh: np.ndarray, distances: np.ndarray, hops: int) -> np.ndarray:
    """The nodes that a level has, each once."""
    if len(fresh) * 16 < len(distances):
        return np.unique(fresh)
    return np.flatnonzero(distances == hops).astype(np.uint32)


def _ranks(texts: pa.ChunkedArray) -> np.ndarray:
    order = pc.sort_indices(texts).to_numpy()
    ranks = np.empty(len(order), np.uint32)
    ranks[order] = np.arange(len(order), dtype=np.uint32)
    return ranks


def _trace(rounds: Sequence[_Round], ends: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """The nodes of the walks to these ends, one walk after the other."""
    stops = np.cumsum(lengths + 1)
    nodes = np.empty(int(stops[-1]) if len(stops) else 0, np.uint32)
    for number in range(1, len(rounds)):
        mine = np.flatnonzero(lengths == number)
        if not len(mine):
            continue
        places = np.argsort(rounds[number].nodes)
        at = places[np.searchsorted(rounds[number].nodes, ends[mine], sorter=places)]
        for back in range(number, -1, -1):
            nodes[stops[mine] - 1 - (number - back)] = rounds[back].nodes[at]
            at = rounds[back].before[at]
    return nodes


def _relation(search: PathSearch, found: Sequence[_Walks], walker: _Walker) -> pa.Table:
    """The walks from all nodes, as the relation of the search."""

    def joined(parts: list[np.ndarray], kind: type) -> np.ndarray:
        return np.concatenate(parts) if parts else np.empty(0, kind)

    lengths = joined([walks.lengths for walks in found], np.int64)
    starts = joined([np.full(len(walks.ends), walks.start) for walks in found], np.uint32)
    ends = joined([walks.ends for walks in found], np.uint32)
    nodes = joined([walks.nodes for walks in found if walks.nodes is not None], np.uint32)
    every, places = np.unique(
        np.concatenate([starts, ends, nodes]).astype(np.uint32), return_inverse=True
    )
    ids = walker.ids(every).take(pa.array(places)).combine_chunks()
    count = len(starts)
    columns: dict[str, pa.Array] = {"a": ids[:count], "b": ids[count : 2 * count]}
    for place, name in enumerate(search.columns):
        match name:
            case "length":
                columns[f"c{place}"] = pa.array(lengths)
            case "nodes":
                offsets = pa.array(np.append(0, np.cumsum(lengths + 1)).astype(np.int32))
                columns[f"c{place}"] = pa.ListArray.from_arrays(offsets, ids[2 * count :])
            case _:
                costs = [walks.costs for walks in found if walks.costs is not None]
                kind = walker.arcs[0].weights
                assert kind is not None, "a cost is a sum of weights"
                columns[f"c{place}"] = pa.array(joined(costs, kind.dtype.type))
    return pa.table(columns)
