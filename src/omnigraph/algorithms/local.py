"""Algorithms in this process, on the arrays that the local engine keeps of edge tables."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, assert_never

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.algorithms import kernels
from omnigraph.algorithms.kernels import NOTHING, EdgeArrays
from omnigraph.algorithms.requests import (
    Algorithm,
    Components,
    Degrees,
    LabelPropagation,
    PageRank,
    ShortestPaths,
    Triangles,
    columns_of,
)
from omnigraph.algorithms.results import Rounds
from omnigraph.algorithms.run import missing_source_error
from omnigraph.algorithms.selection import EdgeSelection
from omnigraph.choices import EdgeDirection
from omnigraph.engine.local.topology.adjacency import lower_half, upper_half
from omnigraph.engine.local.topology.topologies import EdgeTables, Topologies
from omnigraph.errors import StorageError
from omnigraph.schema.catalog import ENDPOINTS, EdgeType
from omnigraph.storage.tables import ROW_ID


@dataclass(frozen=True)
class LocalAlgorithms:
    """Runs algorithms on one selection.

    Nodes are numbered by their types, and within a type by their row ids: the oldest is the first.
    """

    selection: EdgeSelection
    topologies: Topologies

    def run(self, algorithm: Algorithm) -> tuple[pa.Table, Rounds | None]:
        """The rows of the result, in the order of the nodes."""
        values, rounds = self._compute(algorithm)
        schema = columns_of(algorithm)
        columns = [*self._keys, *(self._column(value) for value in values)]
        return pa.Table.from_arrays(columns, schema=schema), rounds

    def _compute(self, algorithm: Algorithm) -> tuple[list[Any], Rounds | None]:
        edges = self._edges
        match algorithm:
            case Degrees():
                into, out = kernels.degrees(edges)
                return [into, out, into + out], None
            case PageRank(damping, tolerance, rounds_max, undirected):
                ways = edges.both_ways() if undirected else edges
                ranks, rounds = kernels.page_rank(
                    ways, damping=damping, tolerance=tolerance, rounds_max=rounds_max
                )
                return [ranks], rounds
            case Components():
                return [self._names(kernels.components(edges))], None
            case LabelPropagation(rounds_max):
                labels, rounds = kernels.propagate_labels(edges, rounds_max=rounds_max)
                return [self._names(labels)], rounds
            case ShortestPaths():
                return self._paths(algorithm)
            case Triangles():
                return [kernels.triangles(edges)], None
            case _:
                assert_never(algorithm)

    def _paths(self, paths: ShortestPaths) -> tuple[list[Any], Rounds]:
        edges = self._edges
        match paths.direction:
            case EdgeDirection.OUT:
                ways = edges
            case EdgeDirection.IN:
                ways = edges.reversed()
            case EdgeDirection.BOTH:
                ways = edges.both_ways()
            case _:
                assert_never(paths.direction)
        distances, origins, hops = kernels.shortest_paths(
            ways, self._starts(paths), hops_max=paths.hops_max
        )
        is_reached = distances != NOTHING
        reached = pa.array(distances, mask=~is_reached)
        names = self._names(np.where(is_reached, origins, 0)) if edges.size else pa.array([])
        sources = pc.if_else(pa.array(is_reached), names, pa.scalar(None, pa.string()))
        return [reached, sources], Rounds(hops, converged=True)

    def _starts(self, paths: ShortestPaths) -> np.ndarray:
        found: list[np.ndarray] = []
        for name, ids in paths.sources.items():
            place = self.selection.place_of(name)
            at = pc.index_in(pa.array(ids, pa.string()), value_set=self._ids[place])
            if at.null_count:
                raise missing_source_error(name, ids[at.is_null().to_pylist().index(True)])
            found.append(at.to_numpy() + self._offsets[place])
        return np.unique(np.concatenate(found)).astype(np.int64)

    @cached_property
    def _nodes(self) -> list[tuple[pa.Array, np.ndarray]]:
        """By type, the ids and the row ids of its nodes, in the order of these."""
        nodes = []
        for node in self.selection.nodes:
            rows = self.selection.view.data.table(node.table_key).read(["id", ROW_ID])
            rows = rows.sort_by(ROW_ID).combine_chunks()
            ids = rows["id"].combine_chunks() if len(rows) else pa.array([], pa.string())
            nodes.append((ids, rows[ROW_ID].to_numpy()))
        return nodes

    @property
    def _ids(self) -> list[pa.Array]:
        return [ids for ids, _ in self._nodes]

    @cached_property
    def _offsets(self) -> np.ndarray:
        """The number of the first node of each type, and how many there are of all."""
        return np.cumsum([0, *(len(ids) for ids in self._ids)])

    @cached_property
    def _keys(self) -> tuple[pa.ChunkedArray, pa.ChunkedArray]:
        """The type and the id of each node."""
        types = [
            pa.array([node.name], pa.string()).take(pa.array(np.zeros(len(ids), np.int64)))
            for node, ids in zip(self.selection.nodes, self._ids, strict=True)
        ]
        return pa.chunked_array(types, pa.string()), pa.chunked_array(self._ids, pa.string())

    def _names(self, numbers: np.ndarray) -> pa.ChunkedArray:
        """Nodes as `Person/ada`."""
        types, ids = self._keys
        names = pc.binary_join_element_wise(types, ids, "/")
        return names.take(pa.array(numbers))

    @staticmethod
    def _column(value: Any) -> pa.Array | pa.ChunkedArray:
        return value if isinstance(value, pa.Array | pa.ChunkedArray) else pa.array(value)

    @cached_property
    def _edges(self) -> EdgeArrays:
        parts = [self._pairs(edge) for edge in self.selection.edges]
        columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
        return EdgeArrays(int(self._offsets[-1]), *columns)

    def _pairs(self, edge: EdgeType) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The pairs that edges of a type connect, and how many connect each."""
        selection = self.selection
        places = [selection.place_of(name) for name in (edge.source, edge.target)]
        source, target = (selection.nodes[place].table_key for place in places)
        tables = EdgeTables(edge.table_key, source, target)
        topology = self.topologies.of(selection.view.data, tables)
        if topology is None:
            return self._read_pairs(edge, places)
        pairs = topology.out.whole
        halves = pairs.to_keys()
        ends = [
            self._number(place, numbers)
            for place, numbers in zip(places, (upper_half(halves), lower_half(halves)), strict=True)
        ]
        return ends[0], ends[1], pairs.to_counts()

    def _number(self, place: int, row_ids: np.ndarray) -> np.ndarray:
        """The numbers of nodes of a type, by their row ids."""
        _, known = self._nodes[place]
        first = int(self._offsets[place])
        if not len(known) or int(known[-1]) == len(known) - 1:
            return row_ids.astype(np.int64) + first
        return np.searchsorted(known, row_ids).astype(np.int64) + first

    def _read_pairs(
        self, edge: EdgeType, places: list[int]
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The same from the edges themselves, for tables that have no arrays."""
        rows = self.selection.view.data.table(edge.table_key).read(list(ENDPOINTS))
        ends = []
        for name, place in zip(ENDPOINTS, places, strict=True):
            at = pc.index_in(rows[name].combine_chunks(), value_set=self._ids[place])
            if at.null_count:
                message = f"an edge of type {edge.name} has an end that does not exist"
                raise StorageError(message, hint="run 'omnigraph check'")
            ends.append(at.to_numpy().astype(np.int64) + int(self._offsets[place]))
        size = int(self._offsets[-1])
        keys, counts = np.unique(ends[0] * size + ends[1], return_counts=True)
        return keys // max(1, size), keys % max(1, size), counts
