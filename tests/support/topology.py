"""Topologies as a plain dictionary says them, from rows alone, to compare arrays with."""

from collections import Counter
from itertools import pairwise
from typing import Any

import numpy as np

from omnigraph.choices import TableKind
from omnigraph.engine.local.topology.adjacency import Adjacency
from omnigraph.engine.local.topology.numbers import NOTHING, NodeNumbers
from omnigraph.engine.local.topology.topologies import EdgeTables, Topologies
from omnigraph.engine.local.topology.topology import EdgeRows, Topology
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


def require_right(
    topologies: Topologies, data: Data, tables: EdgeTables, *, whole: bool = True
) -> Topology:
    """The topology of an edge table, which is what its rows say."""
    topology = topologies.of(data, tables)
    assert topology is not None
    require_numbers(topology.sources)
    require_numbers(topology.targets)
    require_neighbours(topology)
    if whole:
        require_arrays(topology)
    return topology


def require_neighbours(topology: Topology) -> None:
    """Compare what is said of single nodes with the rows; patches stay beside the arrays."""
    edges = topology.edges.read(["src", "dst"]).to_pylist()
    out = Counter((edge["src"], edge["dst"]) for edge in edges)
    into = Counter((edge["dst"], edge["src"]) for edge in edges)
    require_gathered(topology.out, topology.sources, topology.targets, out)
    require_gathered(topology.into, topology.targets, topology.sources, into)
    if (symmetric := topology.made_symmetric) is not None:
        require_gathered(symmetric, topology.sources, topology.targets, _both(out, into))


def require_arrays(topology: Topology) -> None:
    """Compare the arrays with the rows."""
    edges = topology.edges.read(["src", "dst"]).to_pylist()
    assert read_all_fragments(topology.edges, ["src", "dst"]).to_pylist() == edges
    out = Counter((edge["src"], edge["dst"]) for edge in edges)
    into = Counter((edge["dst"], edge["src"]) for edge in edges)
    require_adjacency(topology.out, topology.sources, topology.targets, out)
    require_adjacency(topology.into, topology.targets, topology.sources, into)
    require_edge_rows(topology.out, topology.out_rows, [(e["src"], e["dst"]) for e in edges], out)
    require_edge_rows(
        topology.into, topology.into_rows, [(e["dst"], e["src"]) for e in edges], into
    )
    if topology.sources is topology.targets:
        both = _both(out, into)
        require_adjacency(topology.symmetric, topology.sources, topology.targets, both)


def require_edge_rows(
    adjacency: Adjacency, rows: EdgeRows, ends: list[tuple[str, str]], pairs: Pairs
) -> None:
    """The edges of each pair are those that have its ends, each once."""
    assert sorted(rows.rows.tolist()) == [*range(len(ends))]
    offsets = [*range(len(ends) + 1)] if rows.offsets is None else rows.offsets.tolist()
    assert len(offsets) == adjacency.pair_count + 1
    counts = _multiplicity(adjacency)
    seen = set()
    for pair, (start, end) in enumerate(pairwise(offsets)):
        [own] = {ends[row] for row in rows.rows[start:end].tolist()}
        assert end - start == counts[pair] == pairs[own]
        seen.add(own)
    assert seen == set(pairs)


def require_gathered(
    adjacency: Adjacency, nodes: NodeNumbers, neighbours: NodeNumbers, pairs: Pairs
) -> None:
    left, right = _by_number(nodes), _by_number(neighbours)
    every = np.arange(nodes.size, dtype=np.uint32)[::-1]
    degrees, found = adjacency.gather(every)
    assert degrees.tolist() == adjacency.degrees_of(every).tolist()
    owners = np.repeat(every, degrees)
    ends = [*zip(owners.tolist(), found.tolist(), strict=True)]
    assert ends == sorted(ends, key=lambda pair: (-pair[0], pair[1]))
    counts = adjacency.count_edges(owners, found).tolist()
    named = [(left[node], right[end]) for node, end in ends]
    assert len(named) == len(pairs)
    assert dict(zip(named, counts, strict=True)) == dict(pairs)
    others = {(a, b) for a in left for b in right} - set(ends)
    sides = (np.array([pair[side] for pair in others], np.uint32) for side in (0, 1))
    assert not adjacency.count_edges(*sides).any()


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


def named_pairs(
    adjacency: Adjacency, nodes: NodeNumbers, neighbours: NodeNumbers
) -> list[tuple[str, str]]:
    left, right = _by_number(nodes), _by_number(neighbours)
    degrees: np.ndarray = np.diff(adjacency.offsets.astype(np.int64))
    owners = np.repeat(np.arange(adjacency.size), degrees).tolist()
    ends = adjacency.neighbours.tolist()
    return [(left[node], right[end]) for node, end in zip(owners, ends, strict=True)]


def _both(out: Pairs, into: Pairs) -> Pairs:
    """The pairs in either direction; a loop counts once."""
    both = out + into
    both.subtract({pair: count for pair, count in into.items() if pair[0] == pair[1]})
    return +both


def _multiplicity(adjacency: Adjacency) -> list[int]:
    counts = adjacency.multiplicity
    return [1] * adjacency.pair_count if counts is None else counts.tolist()


def _by_number(numbers: NodeNumbers) -> dict[int, str]:
    ids: list[Any] = _ids(numbers.table)
    return dict(zip(numbers.of_rows.tolist(), ids, strict=True))


def _ids(table: Table) -> list[str]:
    ids: list[str] = table.read(["id"])["id"].to_pylist()
    return ids
