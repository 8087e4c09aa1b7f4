"""Frames of numbers: the nodes and edges of a selection, as executors read them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

from omnigraph.algorithms.selection import EdgeSelection
from omnigraph.engine.spark.connect import is_connect
from omnigraph.engine.spark.relations import table_frame
from omnigraph.schema.catalog import ENDPOINTS
from omnigraph.storage.tables import ROW_ID

NODE: Final = "node"
SOURCE: Final = "source_node"
TARGET: Final = "target_node"
COUNT: Final = "edge_count"
NAME: Final = "name"

_ROW_BITS: Final = 40
"""The number of a node has its type above so many bits of its row id."""


@dataclass(frozen=True, slots=True)
class GraphFrames:
    """The nodes and edges of a selection.

    Attributes:
        nodes: `NODE`, `type` and `id` of each node.
        edges: `SOURCE` and `TARGET` of each pair that edges connect, and their number, `COUNT`.
    """

    nodes: DataFrame
    edges: DataFrame


def read_graph(session: SparkSession, selection: EdgeSelection) -> GraphFrames:
    """The nodes and edges; executors read them when they are used.

    Nodes are numbered by their types, and within a type by their row ids: the same order as that of
    the local engine, and the same numbers if a task runs again.
    """
    data = selection.view.data
    nodes: dict[str, DataFrame] = {}
    for place, node in enumerate(selection.nodes):
        rows = table_frame(session, data.table(node.table_key), ["id", ROW_ID])
        number = sql.col(ROW_ID).cast("long") + sql.lit(place << _ROW_BITS)
        nodes[node.name] = rows.select(
            number.alias(NODE), sql.lit(node.name).alias("type"), sql.col("id")
        )
    parts = []
    for edge in selection.edges:
        rows = table_frame(session, data.table(edge.table_key), list(ENDPOINTS))
        sources = nodes[edge.source].select(sql.col(NODE).alias(SOURCE), sql.col("id").alias("src"))
        targets = nodes[edge.target].select(sql.col(NODE).alias(TARGET), sql.col("id").alias("dst"))
        parts.append(rows.join(sources, "src").join(targets, "dst").select(SOURCE, TARGET))
    every = reduce(DataFrame.union, parts)
    edges = every.groupBy(SOURCE, TARGET).agg(sql.count(sql.lit(1)).alias(COUNT))
    return GraphFrames(reduce(DataFrame.union, nodes.values()), edges)


def reverse(edges: DataFrame) -> DataFrame:
    """The edges, each from its target to its source."""
    return edges.select(sql.col(TARGET).alias(SOURCE), sql.col(SOURCE).alias(TARGET), COUNT)


def both_ways(edges: DataFrame) -> DataFrame:
    """Every edge in both directions; a loop is there once."""
    return edges.union(reverse(without_loops(edges)))


def without_loops(edges: DataFrame) -> DataFrame:
    """The edges between different nodes."""
    return edges.where(sql.col(SOURCE) != sql.col(TARGET))


def cut(frame: DataFrame) -> DataFrame:
    """Compute a frame now, and forget how: a plan must not grow from round to round.

    Executors keep the rows, or the directory for checkpoints does, if the session has one: then a
    lost executor costs no more than its tasks.
    """
    session = frame.sparkSession
    # A session of Connect does not say whether it has such a directory.
    if not is_connect(session) and session.sparkContext.getCheckpointDir() is not None:
        return frame.checkpoint()
    return frame.localCheckpoint()
