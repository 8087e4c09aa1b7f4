"""The topologies of a graph's edge tables: built when first asked for, and kept in memory."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np

from omnigraph.engine.local.topology.adjacency import (
    Adjacency,
    from_keys,
    join_halves,
)
from omnigraph.engine.local.topology.build import both_ways, number_ends, read_keys
from omnigraph.engine.local.topology.numbers import NodeNumbers, number_nodes
from omnigraph.engine.protocol import Data
from omnigraph.limits import KEPT_TOPOLOGIES_BYTES_MAX
from omnigraph.model.tables import TableKey
from omnigraph.schema.catalog import ENDPOINTS
from omnigraph.storage.columns import read_all_fragments
from omnigraph.storage.tables import Table, TableAddress, is_minted


@dataclass(frozen=True, slots=True)
class EdgeTables:
    """The table of an edge type, and those of the node types that its edges connect."""

    edges: TableKey
    source: TableKey
    target: TableKey


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

    @cached_property
    def symmetric(self) -> Adjacency:
        """The neighbours of each node in either direction, for edges within one node type.

        A pair is in it both ways, with the edges of both directions. A loop counts once.
        """
        assert self.sources is self.targets, "an edge between types has one direction only"
        forward, backward = self.out.to_keys(), self.into.to_keys()
        counts = _counts(self.out), _counts(self.into)
        is_loop = (backward >> np.uint64(32)) == (backward & np.uint64(0xFFFF_FFFF))
        keys = np.concatenate([forward, backward[~is_loop]])
        order = np.argsort(keys, kind="stable")
        every = np.concatenate([counts[0], counts[1][~is_loop]])[order]
        return from_keys(keys[order], size=self.sources.size, counts=every)

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


def _counts(adjacency: Adjacency) -> np.ndarray:
    counts = adjacency.multiplicity
    return np.ones(adjacency.pair_count, np.uint32) if counts is None else counts


def _edge_rows(nodes: np.ndarray, neighbours: np.ndarray) -> EdgeRows:
    keys = join_halves(nodes, neighbours)
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    firsts = np.flatnonzero(np.append(True, keys[1:] != keys[:-1])) if len(keys) else order
    rows = order.astype(np.uint32)
    if len(firsts) == len(keys):
        return EdgeRows(rows, None)
    return EdgeRows(rows, np.append(firsts, len(keys)))


_Versions: TypeAlias = tuple[TableAddress, TableAddress, TableAddress]


class Topologies:
    """The topologies that a graph handle keeps, least recently used out; threads may share it."""

    def __init__(self, bytes_max: int = KEPT_TOPOLOGIES_BYTES_MAX) -> None:
        self._bytes_max = bytes_max
        self._kept: OrderedDict[_Versions, Topology] = OrderedDict()
        self._numbers: OrderedDict[TableAddress, NodeNumbers | None] = OrderedDict()
        self._lock = threading.Lock()
        self._building = threading.Lock()

    def numbers(self, table: Table) -> NodeNumbers | None:
        """The numbers of the nodes of a table; None where they are too sparse.

        Raises:
            StorageError: the table could not be read.
        """
        with self._lock:
            if table.address in self._numbers:
                self._numbers.move_to_end(table.address)
                return self._numbers[table.address]
            others = (numbers for numbers in reversed(self._numbers.values()) if numbers)
            place = table.address.root, table.address.location
            before = next(
                (
                    numbers
                    for numbers in others
                    if (numbers.table.address.root, numbers.table.address.location) == place
                ),
                None,
            )
        numbers = number_nodes(table, before)
        with self._lock:
            # Topologies compare by identity what they number nodes by.
            numbers = self._numbers.setdefault(table.address, numbers)
            while len(self._numbers) > _NUMBERS_MAX:
                self._numbers.popitem(last=False)
        return numbers

    def peek(self, data: Data, tables: EdgeTables) -> Topology | None:
        """The topology of an edge table, if it is there without any edge being read."""
        with self._lock:
            return self._kept.get(_versions(data, tables))

    def cost(self, data: Data, tables: EdgeTables) -> int | None:
        """How many edges `of` would read, to tell whether it pays; None if it returns None."""
        if self.peek(data, tables) is not None:
            return 0
        row_count = data.table(tables.edges).count_rows()
        return row_count if self._fits(row_count) else None

    def of(self, data: Data, tables: EdgeTables) -> Topology | None:
        """The topology of an edge table, built if it is not there yet.

        None if it does not fit into memory, if node numbers are too sparse, or if an end of an edge
        does not exist, which only happens in a damaged graph.

        Raises:
            StorageError: a table could not be read.
        """
        if (kept := self._find(data, tables)) is not None:
            return kept
        with self._building:
            # Another thread may have built it meanwhile.
            return self._find(data, tables) or self._build(data, tables)

    def _find(self, data: Data, tables: EdgeTables) -> Topology | None:
        with self._lock:
            versions = _versions(data, tables)
            if versions in self._kept:
                self._kept.move_to_end(versions)
            return self._kept.get(versions)

    def _fits(self, edge_count: int) -> bool:
        return 8 * edge_count <= self._bytes_max

    def _build(self, data: Data, tables: EdgeTables) -> Topology | None:
        edges = data.table(tables.edges)
        if not _is_named_once(edges) or not self._fits(edges.count_rows()):
            return None
        sources = self.numbers(data.table(tables.source))
        targets = self.numbers(data.table(tables.target))
        if sources is None or targets is None:
            return None
        keys = read_keys(edges, sources, targets)
        if keys is None:
            return None
        out, into = both_ways(keys, source_count=sources.size, target_count=targets.size)
        topology = Topology(edges, sources, targets, out, into)
        self._keep(_versions(data, tables), topology)
        return topology

    def _keep(self, versions: _Versions, topology: Topology) -> None:
        with self._lock:
            self._kept[versions] = topology
            total = sum(kept.out.nbytes + kept.into.nbytes for kept in self._kept.values())
            while total > self._bytes_max and len(self._kept) > 1:
                _, dropped = self._kept.popitem(last=False)
                total -= dropped.out.nbytes + dropped.into.nbytes


_NUMBERS_MAX = 64


def _versions(data: Data, tables: EdgeTables) -> _Versions:
    edges, source, target = map(data.table, (tables.edges, tables.source, tables.target))
    return edges.address, source.address, target.address


def _is_named_once(table: Table) -> bool:
    """Whether no other ref ever had this one's name: refs of older releases may be made again."""
    ref = table.address.ref
    return ref is None or is_minted(ref)
