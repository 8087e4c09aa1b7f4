"""Algorithms on Spark: the driver holds plans and a few sums, executors all nodes and edges."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Final, assert_never

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sql

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
from omnigraph.algorithms.spark import kernels
from omnigraph.algorithms.spark.frames import (
    NODE,
    GraphFrames,
    both_ways,
    cut,
    read_graph,
    reverse,
)
from omnigraph.choices import EdgeDirection
from omnigraph.clock import SystemClock
from omnigraph.engine.spark.jobs import Jobs


@dataclass(frozen=True, slots=True)
class SparkAlgorithms:
    """Runs algorithms on one selection, with the numbers that the local engine gives to nodes."""

    session: SparkSession
    selection: EdgeSelection
    run_id: str

    @classmethod
    def begin(cls, session: SparkSession, selection: EdgeSelection) -> SparkAlgorithms:
        """A run that has read nothing."""
        return cls(session, selection, SystemClock().ulid())

    def run(self, algorithm: Algorithm) -> tuple[DataFrame, Rounds | None]:
        """The rows of the result, which executors hold."""
        jobs = Jobs(self.session, f"omnigraph-{self.run_id}", "the algorithm")
        return jobs.run(partial(self._run, algorithm))

    def _run(self, algorithm: Algorithm) -> tuple[DataFrame, Rounds | None]:
        graph = read_graph(self.session, self.selection)
        nodes, edges = graph.nodes.persist(), graph.edges.persist()
        try:
            values, ended = self._compute(algorithm, GraphFrames(nodes, edges))
            rows = nodes.join(values, NODE, "left")
            # Computed here: what it is computed from is released.
            return cut(rows.select(*map(_value, columns_of(algorithm).names))), ended
        finally:
            nodes.unpersist()
            edges.unpersist()

    def _compute(self, algorithm: Algorithm, graph: GraphFrames) -> tuple[DataFrame, Rounds | None]:
        """The values of nodes; those that are left out have none."""
        match algorithm:
            case Degrees():
                return kernels.count_degrees(graph.edges), None
            case PageRank():
                ways = both_ways(graph.edges) if algorithm.undirected else graph.edges
                return kernels.rank_frame(graph.nodes, ways, self.selection.node_count, algorithm)
            case Components():
                values = kernels.find_components(graph.edges)
                return kernels.name_groups(graph.nodes, values, "component"), None
            case LabelPropagation(rounds_max):
                values, ended = kernels.label_frame(graph, rounds_max)
                return kernels.name_groups(graph.nodes, values, "community"), ended
            case ShortestPaths():
                return self._paths(algorithm, graph)
            case Triangles():
                return kernels.count_triangles(graph.edges), None
            case _:
                assert_never(algorithm)

    def _paths(self, paths: ShortestPaths, graph: GraphFrames) -> tuple[DataFrame, Rounds]:
        match paths.direction:
            case EdgeDirection.OUT:
                ways = graph.edges
            case EdgeDirection.IN:
                ways = reverse(graph.edges)
            case EdgeDirection.BOTH:
                ways = both_ways(graph.edges)
            case _:
                assert_never(paths.direction)
        starts = self._starts(paths, graph.nodes)
        values, hops = kernels.find_distances(ways, starts, paths.hops_max)
        named = kernels.name_groups(graph.nodes, values, "source", leaves_own=False)
        return named, Rounds(hops, converged=True)

    def _starts(self, paths: ShortestPaths, nodes: DataFrame) -> DataFrame:
        """The nodes to start from, each of which must exist."""
        pairs = [(name, id_) for name, ids in paths.sources.items() for id_ in dict.fromkeys(ids)]
        wanted = self.session.createDataFrame(pairs, "type string, id string")
        found = cut(nodes.join(sql.broadcast(wanted), ["type", "id"]))
        # As many as the caller named.
        if missing := wanted.join(found, ["type", "id"], "left_anti").head(1):
            raise missing_source_error(missing[0]["type"], missing[0]["id"])
        return found.select(NODE)


_COUNTS: Final = frozenset(["in_degree", "out_degree", "degree", "triangles"])


def _value(name: str) -> Column:
    """A column of a result; a count is 0 where no edge has to do with a node."""
    column = sql.col(name)
    return sql.coalesce(column, sql.lit(0)).alias(name) if name in _COUNTS else column
