"""Kernels on frames: each round is a few joins of numbers, computed before the next begins."""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as sql

from omnigraph.algorithms.requests import PageRank
from omnigraph.algorithms.results import Rounds
from omnigraph.algorithms.spark.frames import (
    COUNT,
    NODE,
    SOURCE,
    TARGET,
    GraphFrames,
    both_ways,
    cut,
    without_loops,
)
from omnigraph.engine.budget import checkpoint

_GROUP: Final = "group_node"
_PARTS_MAX: Final = 8
"""Rounds whose results stay apart before they are computed as one frame."""


def count_degrees(edges: DataFrame) -> DataFrame:
    """How many edges lead to each node, and from each, where there are any."""
    none = sql.lit(0).cast("long")
    ends = edges.select(
        sql.col(TARGET).alias(NODE), sql.col(COUNT).alias("into"), none.alias("out")
    )
    starts = edges.select(
        sql.col(SOURCE).alias(NODE), none.alias("into"), sql.col(COUNT).alias("out")
    )
    into, out = sql.sum("into"), sql.sum("out")
    return (
        ends.union(starts)
        .groupBy(NODE)
        .agg(into.alias("in_degree"), out.alias("out_degree"), (into + out).alias("degree"))
    )


def rank_frame(
    nodes: DataFrame, edges: DataFrame, node_count: int, request: PageRank
) -> tuple[DataFrame, Rounds]:
    """Ranks that add up to 1. Nodes without edges from them give to all nodes alike."""
    totals = edges.groupBy(SOURCE).agg(sql.sum(COUNT).alias("total"))
    share = (sql.col(COUNT) / sql.col("total")).alias("share")
    shares = edges.join(totals, SOURCE).select(SOURCE, TARGET, share).persist()
    is_dangling = sql.col("total").isNull().alias("is_dangling")
    first = sql.lit(1.0 / max(1, node_count)).alias("rank")
    ranks = cut(
        nodes.select(NODE)
        .join(totals.withColumnRenamed(SOURCE, NODE), NODE, "left")
        .select(NODE, is_dangling, first)
    )
    try:
        for count in range(1, request.rounds_max + 1):
            checkpoint()
            dangling = ranks.where("is_dangling").agg(sql.sum("rank")).head()
            assert dangling is not None, "an aggregate has a row"
            spread = (dangling[0] or 0.0) / max(1, node_count)
            ranks = cut(_rank_again(ranks, shares, request.damping, node_count, spread))
            change = ranks.agg(sql.sum(sql.abs(sql.col("rank") - sql.col("before")))).head()
            assert change is not None, "an aggregate has a row"
            if (change[0] or 0.0) < request.tolerance:
                return ranks.select(NODE, "rank"), Rounds(count, converged=True)
        return ranks.select(NODE, "rank"), Rounds(request.rounds_max, converged=False)
    finally:
        shares.unpersist()


def _rank_again(
    ranks: DataFrame, shares: DataFrame, damping: float, node_count: int, spread: float
) -> DataFrame:
    given = sql.sum(sql.col("rank") * sql.col("share")).alias("received")
    received = (
        ranks.join(shares, ranks[NODE] == shares[SOURCE])
        .groupBy(shares[TARGET].alias(NODE))
        .agg(given)
    )
    base = (1 - damping) / max(1, node_count) + damping * spread
    rank = sql.lit(base) + sql.lit(damping) * sql.coalesce(sql.col("received"), sql.lit(0.0))
    return ranks.join(received, NODE, "left").select(
        NODE, "is_dangling", sql.col("rank").alias("before"), rank.alias("rank")
    )


def find_components(edges: DataFrame) -> DataFrame:
    """For each node with a neighbour, the smallest node that it is connected with.

    By stars: in a round, every node hands its larger neighbours, and then its smaller ones, to the
    smallest of them. Rounds grow with the logarithm of the longest path, not with its length.
    """
    links = cut(without_loops(edges).select(SOURCE, TARGET).distinct())
    before = None
    while True:
        checkpoint()
        links = cut(_hand_down(_hand_up(links)))
        hashed = sql.xxhash64(SOURCE, TARGET).cast("decimal(38,0)")
        row = links.agg(sql.count(sql.lit(1)), sql.sum(hashed)).head()
        now = None if row is None else tuple(row)
        if now == before:
            break
        before = now
    roots = links.select(sql.col(TARGET).alias(NODE), sql.col(TARGET).alias(_GROUP)).distinct()
    return roots.union(links.select(sql.col(SOURCE).alias(NODE), sql.col(TARGET).alias(_GROUP)))


def _hand_up(links: DataFrame) -> DataFrame:
    """Link the larger neighbours of each node to the smallest of the node and its neighbours."""
    ways = links.union(links.select(sql.col(TARGET), sql.col(SOURCE)))
    least = sql.least(sql.col(SOURCE), sql.min(TARGET)).alias("least")
    smallest = ways.groupBy(SOURCE).agg(least)
    larger = ways.join(smallest, SOURCE).where(sql.col(TARGET) > sql.col(SOURCE))
    return larger.select(sql.col(TARGET).alias(SOURCE), sql.col("least").alias(TARGET)).distinct()


def _hand_down(links: DataFrame) -> DataFrame:
    """Link each node and its smaller neighbours to the smallest of these."""
    smallest = links.groupBy(SOURCE).agg(sql.min(TARGET).alias("least"))
    others = links.join(smallest, SOURCE).where(sql.col(TARGET) != sql.col("least"))
    handed = others.select(sql.col(TARGET).alias(SOURCE), sql.col("least").alias(TARGET))
    own = smallest.select(sql.col(SOURCE), sql.col("least").alias(TARGET))
    return handed.union(own).distinct()


def label_frame(graph: GraphFrames, rounds_max: int) -> tuple[DataFrame, Rounds]:
    """For each node the label that most edges lead to, the smallest of several."""
    ways = both_ways(without_loops(graph.edges)).persist()
    labels = cut(graph.nodes.select(NODE, sql.col(NODE).alias(_GROUP)))
    try:
        for count in range(1, rounds_max + 1):
            checkpoint()
            votes = (
                ways.join(labels, ways[TARGET] == labels[NODE])
                .groupBy(SOURCE, _GROUP)
                .agg(sql.sum(COUNT).alias("votes"))
            )
            best = sql.min(sql.struct(-sql.col("votes"), sql.col(_GROUP).alias("winner")))
            winners = votes.groupBy(sql.col(SOURCE).alias(NODE)).agg(best.alias("best"))
            now = sql.coalesce(sql.col("best.winner"), sql.col(_GROUP)).alias(_GROUP)
            moved = sql.coalesce(sql.col("best.winner"), sql.col(_GROUP)) != sql.col(_GROUP)
            labels = cut(labels.join(winners, NODE, "left").select(NODE, now, moved.alias("moved")))
            if labels.where("moved").isEmpty():
                return labels.select(NODE, _GROUP), Rounds(count, converged=True)
            labels = labels.select(NODE, _GROUP)
        return labels, Rounds(rounds_max, converged=False)
    finally:
        ways.unpersist()


def find_distances(
    edges: DataFrame, starts: DataFrame, hops_max: int | None
) -> tuple[DataFrame, int]:
    """The nodes that are reached, with their distances from the nearest start, the smallest."""
    zero = sql.lit(0).cast("long").alias("distance")
    front = cut(starts.select(NODE, zero, sql.col(NODE).alias(_GROUP)))
    reached, hops = front, 0
    while hops_max is None or hops < hops_max:
        checkpoint()
        hops += 1
        distance = sql.lit(hops).cast("long").alias("distance")
        front = cut(
            front.join(edges, front[NODE] == edges[SOURCE])
            .groupBy(edges[TARGET].alias(NODE))
            .agg(sql.min(_GROUP).alias(_GROUP))
            .join(reached.select(NODE), NODE, "left_anti")
            .select(NODE, distance, _GROUP)
        )
        if front.isEmpty():
            break
        reached = reached.union(front)
        if hops % _PARTS_MAX == 0:
            reached = cut(reached)
    return reached, hops


def count_triangles(edges: DataFrame) -> DataFrame:
    """How many triangles each node is in, where there are any."""
    low, high = sql.least(SOURCE, TARGET), sql.greatest(SOURCE, TARGET)
    pairs = cut(without_loops(edges).select(low.alias("a"), high.alias("b")).distinct())
    ends = pairs.select(sql.col("a").alias(NODE)).union(pairs.select("b"))
    counts = ends.groupBy(NODE).agg(sql.count(sql.lit(1)).alias("degree"))
    ours = counts.select(sql.col(NODE).alias("a"), sql.col("degree").alias("a_degree"))
    theirs = counts.select(sql.col(NODE).alias("b"), sql.col("degree").alias("b_degree"))
    both = pairs.join(ours, "a").join(theirs, "b")
    is_upwards = sql.struct("a_degree", "a") < sql.struct("b_degree", "b")
    # Each pair leads to the node with more neighbours: then no node leads to many.
    oriented = cut(
        both.select(
            sql.when(is_upwards, sql.col("a")).otherwise(sql.col("b")).alias("x"),
            sql.when(is_upwards, sql.col("b")).otherwise(sql.col("a")).alias("y"),
        )
    )
    second = oriented.select(sql.col("x").alias("y"), sql.col("y").alias("z"))
    third = oriented.select("x", sql.col("y").alias("z"))
    closed = oriented.join(second, "y").join(third, ["x", "z"])
    corners = closed.select(sql.explode(sql.array("x", "y", "z")).alias(NODE))
    return corners.groupBy(NODE).agg(sql.count(sql.lit(1)).alias("triangles"))


def name_groups(
    nodes: DataFrame, values: DataFrame, column: str, *, leaves_own: bool = True
) -> DataFrame:
    """Values with the names of their groups, `Person/ada`, in place of numbers.

    Args:
        leaves_own: Whether a node without a value is a group of its own.
    """
    name = sql.concat(sql.col("type"), sql.lit("/"), sql.col("id")).alias(column)
    names = nodes.select(sql.col(NODE).alias(_GROUP), name)
    if leaves_own:
        own = sql.coalesce(sql.col(_GROUP), sql.col(NODE)).alias(_GROUP)
        values = nodes.select(NODE).join(values, NODE, "left").select(NODE, own)
    return values.join(names, _GROUP).drop(_GROUP)
