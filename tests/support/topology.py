"""Topologies as a plain dictionary says them, from rows alone, to compare arrays with."""

from collections import Counter
from itertools import pairwise
from typing import Any

import numpy as np

from omnigraph.choices import TableKind
from omnigraph.engine.local.topology.adjacency import Adjacency
from omnigraph.engine.local.topology.numbers import NOTHING, NodeNumbers
from omnigraph.engine.local.topology.topologies import EdgeTables, Topologies, Topology
from omnigraph.engine.protocol import Data
from omnigraph.engine.snapshots import data_at
from omnigraph.graph import Graph
from omnigraph.model.names import TypeName
from omnigraph.model.tables import TableKey
from omnigraph.storage.columns import read_all_fragments
from omnigraph.storage.tables import Table

Pairs = Counter[tuple[str, str]]


def data_of(graph: Graph) -> Data:
    return data_at(graph._store, graph.snapshot())


def tables_of(edge: str, source: str, target: str | None = None) -> EdgeTables:
    return EdgeTables(
        TableKey(TableKind.EDGE, TypeName(edge)),
        TableKey(TableKind.NODE, TypeName(source)),
        TableKey(TableKind.NODE, TypeName(target or source)),
    )


def require_right(topologies: Topologies, data: Data, tables: EdgeTables) -> Topology:
    """The topology of an edge table, which is what its rows say."""
    topology = topologies.of(data, tables)
    assert topology is not None
    require_topology(topology)
    return topology


def require_topology(topology: Topology) -> None:
    """Compare everything that a topology says with the rows of its tables."""
    require_numbers(topology.sources)
    require_numbers(topology.targets)
    edges = topology.edges.read(["src", "dst"]).to_pylist()
    out = Counter((edge["src"], edge["dst"]) for edge in edges)
    into = Counter((edge["dst"], edge["src"]) for edge in edges)
    require_adjacency(topology.out, topology.sources, topology.targets, out)
    require_adjacency(topology.into, topology.targets, topology.sources, into)
    for adjacency, rows, keys in (
        (topology.out, topology.out_rows, ("src", "dst")),
        (topology.into, topology.into_rows, ("dst", "src")),
    ):
        scanned = read_all_fragments(topology.edges, ["src", "dst"])
        assert scanned.to_pylist() == edges
        ends = [(edges[row][keys[0]], edges[row][keys[1]]) for row in rows.rows.tolist()]
        pairs = named_pairs(adjacency, *_sides(topology, keys[0]))
        counts = _multiplicity(adjacency)
        assert ends == [
            pair for pair, count in zip(pairs, counts, strict=True) for _ in range(count)
        ]
        if rows.offsets is None:
            assert set(counts) <= {1}
        else:
            assert np.diff(rows.offsets).tolist() == counts
    if topology.sources is topology.targets:
        loops = Counter({pair: count for pair, count in into.items() if pair[0] == pair[1]})
        both = out + into
        both.subtract(loops)
        require_adjacency(topology.symmetric, topology.sources, topology.targets, +both)


def require_numbers(numbers: NodeNumbers) -> None:
    ids = _ids(numbers.table)
    assert len(numbers.of_rows) == len(ids) == numbers.row_count
    assert len(set(numbers.of_rows.tolist())) == len(ids)
    assert all(number < numbers.size for number in numbers.of_rows.tolist())
    expected = np.full(numbers.size, NOTHING)
    for row, number in enumerate(numbers.of_rows.tolist()):
        expected[number] = row
    assert numbers.rows.tolist() == expected.tolist()
    wanted = [*reversed(ids), "nobody has this id"]
    assert numbers.find(wanted).tolist() == [*reversed(numbers.of_rows.tolist()), int(NOTHING)]


def require_adjacency(
    adjacency: Adjacency, nodes: NodeNumbers, neighbours: NodeNumbers, pairs: Pairs
) -> None:
    offsets = adjacency.offsets.astype(np.int64)
    assert (offsets[0], offsets[-1]) == (0, adjacency.pair_count)
    assert len(offsets) == nodes.size + 1 == adjacency.size + 1
    assert adjacency.neighbours.dtype == np.uint32
    for start, end in pairwise(offsets.tolist()):
        assert start <= end
        assert np.all(np.diff(adjacency.neighbours[start:end].astype(np.int64)) > 0)
    found = named_pairs(adjacency, nodes, neighbours)
    assert len(found) == len(set(found)) == len(pairs)
    counts = _multiplicity(adjacency)
    assert dict(zip(found, counts, strict=True)) == dict(pairs)
    assert adjacency.edge_count == pairs.total()
    assert (adjacency.multiplicity is None) == (pairs.total() == len(pairs))
    some = np.arange(nodes.size, dtype=np.uint32)[::-2]
    degrees, gathered = adjacency.gather(some)
    assert degrees.tolist() == adjacency.degrees_of(some).tolist()
    lists = [adjacency.neighbours[offsets[node] : offsets[node + 1]] for node in some]
    assert gathered.tolist() == [number for own in lists for number in own.tolist()]


def named_pairs(
    adjacency: Adjacency, nodes: NodeNumbers, neighbours: NodeNumbers
) -> list[tuple[str, str]]:
    left, right = _by_number(nodes), _by_number(neighbours)
    degrees: np.ndarray = np.diff(adjacency.offsets.astype(np.int64))
    owners = np.repeat(np.arange(adjacency.size), degrees).tolist()
    ends = adjacency.neighbours.tolist()
    return [(left[node], right[end]) for node, end in zip(owners, ends, strict=True)]


def _sides(topology: Topology, first: str) -> tuple[NodeNumbers, NodeNumbers]:
    sides = topology.sources, topology.targets
    return sides if first == "src" else (sides[1], sides[0])


def _multiplicity(adjacency: Adjacency) -> list[int]:
    counts = adjacency.multiplicity
    return [1] * adjacency.pair_count if counts is None else counts.tolist()


def _by_number(numbers: NodeNumbers) -> dict[int, str]:
    ids: list[Any] = _ids(numbers.table)
    return dict(zip(numbers.of_rows.tolist(), ids, strict=True))


def _ids(table: Table) -> list[str]:
    ids: list[str] = table.read(["id"])["id"].to_pylist()
    return ids
