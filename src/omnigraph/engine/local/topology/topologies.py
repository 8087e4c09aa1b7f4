"""The topologies of a graph's edge tables, kept in memory and brought up to date by differences."""

from __future__ import annotations

import threading
from collections import OrderedDict, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, TypeAlias

from omnigraph.engine.budget import Budget
from omnigraph.engine.local.topology.build import both_ways, read_keys
from omnigraph.engine.local.topology.follow import Step, are_in_line, follow
from omnigraph.engine.local.topology.numbers import NodeNumbers, number_nodes
from omnigraph.engine.local.topology.stored import find_files, find_stored
from omnigraph.engine.local.topology.topology import Topology
from omnigraph.engine.protocol import Data
from omnigraph.errors import StorageError
from omnigraph.limits import LAYOUTS_MAX, STORED_EDGES_MIN
from omnigraph.model.tables import TableKey
from omnigraph.storage.tables import Table, TableAddress

KEPT_TOPOLOGIES_BYTES_MAX: Final = 1 << 30
"""Arrays of node numbers that a graph handle keeps: those of about a hundred million edges."""

PEEKED_EDGES_MAX: Final = 10_000
"""Edges that are read to bring arrays up to date for a query which an index could answer."""

ARRAY_FILE_SHARE: Final = 1 / 16
"""What reading an edge of a stored topology costs, as a share of what reading the edge does."""


_BYTES_PER_EDGE: Final = 8
"""What an edge takes in both directions; a node takes half of that for each type of its edges."""

_BUILT_BYTES_PER_EDGE: Final = 32
"""About what an edge takes while arrays are built."""

_KEPT_PER_REF: Final = 2
"""Versions of one edge table on one ref: the newest, and the one that readers still use."""


@dataclass(frozen=True, slots=True)
class EdgeTables:
    """The table of an edge type, and those of the node types that its edges connect."""

    edges: TableKey
    source: TableKey
    target: TableKey


@dataclass(frozen=True, slots=True)
class ArrayCost:
    """About what it takes to have the arrays of an edge table.

    Attributes:
        edge_count: The edges that are read.
        bytes_held: The memory that the arrays take, and `bytes_made` what they take while they are
            made.
    """

    edge_count: int
    bytes_held: int
    bytes_made: int


@dataclass(frozen=True, slots=True)
class _TableVersions:
    """The same tables at the versions of one snapshot."""

    edges: Table
    source: Table
    target: Table

    @classmethod
    def of(cls, data: Data, tables: EdgeTables) -> _TableVersions:
        return cls(data.table(tables.edges), data.table(tables.source), data.table(tables.target))

    @property
    def versions(self) -> _Versions:
        return self.edges.address, self.source.address, self.target.address

    @property
    def array_bytes(self) -> int:
        """What its arrays take."""
        node_count = self.source.count_rows() + self.target.count_rows()
        return _BYTES_PER_EDGE * self.edges.count_rows() + _BYTES_PER_EDGE // 2 * node_count

    @property
    def built_bytes(self) -> int:
        """About what they take while they are built."""
        return self.array_bytes + _BUILT_BYTES_PER_EDGE * self.edges.count_rows()


_Versions: TypeAlias = tuple[TableAddress, TableAddress, TableAddress]


class Topologies:
    """The topologies that a graph handle keeps, least recently used out; threads may share it."""

    def __init__(self, bytes_max: int = KEPT_TOPOLOGIES_BYTES_MAX) -> None:
        self._bytes_max = bytes_max
        self._kept: OrderedDict[_Versions, Topology] = OrderedDict()
        self._numbers: OrderedDict[tuple[str, str | None], NodeNumbers] = OrderedDict()
        self._lock = threading.Lock()
        self._making: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)

    def of(
        self, data: Data, tables: EdgeTables, *, edges_max: int | None = None
    ) -> Topology | None:
        """The topology of an edge table: kept, or made from one that was kept, or built.

        None if it does not fit into memory, or not into that of the query's budget while it is
        made, if node numbers are too sparse, or if an end of an edge does not exist, which only
        happens in a damaged graph.

        Args:
            edges_max: Return None rather than read more edges than that; see `cost`.
        """
        pinned = _TableVersions.of(data, tables)
        if (kept := self._find(pinned.versions)) is not None:
            return kept
        with self._lock:
            making = self._making[pinned.edges.address.location]
        with making:
            # Another thread may have made it meanwhile.
            kept = self._find(pinned.versions)
            return kept if kept is not None else self._make(pinned, edges_max, data.budget)

    def peek(self, data: Data, tables: EdgeTables) -> Topology | None:
        """The topology of an edge table, if hardly any edge has to be read for it."""
        return self.of(data, tables, edges_max=PEEKED_EDGES_MAX)

    def holds(self, data: Data, tables: EdgeTables) -> bool:
        """Whether the topology of an edge table is in memory, or one that it follows from."""
        pinned = _TableVersions.of(data, tables)
        return self._find(pinned.versions) is not None or any(True for _ in self._steps(pinned))

    def cost(self, data: Data, tables: EdgeTables) -> ArrayCost | None:
        """What `of` would take; None if the arrays do not fit into the memory of the handle."""
        pinned = _TableVersions.of(data, tables)
        if (kept := self._find(pinned.versions)) is not None:
            return ArrayCost(0, kept.nbytes, kept.nbytes)
        edge_count, held = pinned.edges.count_rows(), pinned.array_bytes
        if not self._fits(pinned):
            return None
        for _, step in self._steps(pinned):
            return ArrayCost(step.row_count, held, held)
        if edge_count >= STORED_EDGES_MIN and find_files(pinned.edges):
            return ArrayCost(int(edge_count * ARRAY_FILE_SHARE), held, held)
        return ArrayCost(edge_count, held, pinned.built_bytes)

    def numbers(self, table: Table) -> NodeNumbers | None:
        """The numbers of the nodes of a table; None where they are too sparse."""
        place = table.address.location, table.address.ref
        with self._lock:
            known = self._numbers.get(place)
        if known is not None and known.table is table:
            return known
        numbers = number_nodes(table, known)
        if numbers is not None:
            with self._lock:
                self._numbers[place] = numbers
                self._numbers.move_to_end(place)
                while len(self._numbers) > LAYOUTS_MAX:
                    self._numbers.popitem(last=False)
        return numbers

    def _find(self, versions: _Versions) -> Topology | None:
        with self._lock:
            if versions in self._kept:
                self._kept.move_to_end(versions)
            return self._kept.get(versions)

    def _fits(self, pinned: _TableVersions) -> bool:
        return _BYTES_PER_EDGE * pinned.edges.count_rows() <= self._bytes_max

    def _make(
        self, pinned: _TableVersions, edges_max: int | None, budget: Budget
    ) -> Topology | None:
        if not self._fits(pinned):
            return None
        if not budget.has_room(pinned.array_bytes):
            return None
        sources, targets = self.numbers(pinned.source), self.numbers(pinned.target)
        if sources is None or targets is None:
            return None
        topology = _follow(self._steps(pinned), sources, targets, edges_max)
        edge_count = pinned.edges.count_rows()
        if topology is None and edges_max is None and edge_count >= STORED_EDGES_MIN:
            stored = find_stored(pinned.edges, pinned.source, pinned.target)
            topology = _follow(_steps_from(stored, pinned), sources, targets, edges_max)
        may_build = edges_max is None or edge_count <= edges_max
        if topology is None and may_build and budget.has_room(pinned.built_bytes):
            topology = _build(pinned.edges, sources, targets, budget)
        if topology is not None:
            self._keep(pinned.versions, topology)
        return topology

    def _steps(self, pinned: _TableVersions) -> Iterator[tuple[Topology, Step]]:
        """The topologies that it may follow from, and the way from each, the best first."""
        with self._lock:
            kept = [
                topology
                for versions, topology in reversed(self._kept.items())
                if _places(versions) == _places(pinned.versions)
            ]
        own = pinned.edges.address
        kept.sort(
            key=lambda each: (
                each.edges.address.ref != own.ref,
                abs(each.edges.address.version - own.version),
            )
        )
        return _steps_from(kept, pinned)

    def _keep(self, versions: _Versions, topology: Topology) -> None:
        with self._lock:
            self._kept[versions] = topology
            own = [
                other
                for other in self._kept
                if (_places(other), other[0].ref) == (_places(versions), versions[0].ref)
            ]
            for other in own[:-_KEPT_PER_REF]:
                del self._kept[other]
            while len(self._kept) > 1 and self._count_bytes() > self._bytes_max:
                self._kept.popitem(last=False)

    def _count_bytes(self) -> int:
        """The memory that topologies take; several versions may share arrays."""
        every = [each for topology in self._kept.values() for each in topology.adjacencies]
        bases = {id(each.base): each.base.nbytes for each in every}
        return sum(bases.values()) + sum(each.nbytes_added for each in every)


def _steps_from(
    topologies: Iterable[Topology], pinned: _TableVersions
) -> Iterator[tuple[Topology, Step]]:
    """The way from each topology whose numbers agree with those of these versions, if it pays."""
    for topology in topologies:
        if are_in_line(topology.sources, pinned.source) and are_in_line(
            topology.targets, pinned.target
        ):
            step = Step.between(topology.edges, pinned.edges)
            if step.pays:
                yield topology, step


def _follow(
    steps: Iterable[tuple[Topology, Step]],
    sources: NodeNumbers,
    targets: NodeNumbers,
    edges_max: int | None,
) -> Topology | None:
    for before, step in steps:
        if edges_max is not None and step.row_count > edges_max:
            continue
        try:
            topology = follow(before, step, sources, targets)
        except StorageError:
            # The earlier version may have been removed. If it is the later one that cannot be read,
            # whoever reads it instead will say so.
            continue
        if topology is not None:
            return topology
    return None


def _build(
    edges: Table, sources: NodeNumbers, targets: NodeNumbers, budget: Budget
) -> Topology | None:
    """The topology of an edge table, from all of its edges; None if an end does not exist."""
    keys = read_keys(edges, sources, targets, budget)
    if keys is None:
        return None
    out, into = both_ways(keys, source_count=sources.size, target_count=targets.size)
    return Topology(edges, sources, targets, out, into)


def _places(versions: _Versions) -> tuple[str, ...]:
    return tuple(f"{address.root.uri}/{address.location}" for address in versions)
