"""Building arrays from the edges of a table: the ids of their ends become numbers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import closing
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.engine.budget import UNLIMITED, Budget
from omnigraph.engine.local.databases import new_cursor
from omnigraph.engine.local.topology.adjacency import (
    Adjacency,
    from_keys,
    join_halves,
    swap_in_place,
)
from omnigraph.engine.local.topology.numbers import NOTHING, NodeNumbers
from omnigraph.limits import KEPT_TABLE_BYTES_MAX
from omnigraph.schema.catalog import ENDPOINTS
from omnigraph.storage.columns import read_all_fragments
from omnigraph.storage.tables import ROW_ID, Table

NUMBERED_AT_ONCE_ROWS_MAX: Final = 1 << 16
"""Edges whose ends are held as texts while they become numbers; more are streamed."""


def read_keys(
    edges: Table, sources: NodeNumbers, targets: NodeNumbers, budget: Budget = UNLIMITED
) -> np.ndarray | None:
    """The edges as keys (`adjacency.join_halves`), in any order; None if an end does not exist."""
    if edges.count_rows() <= NUMBERED_AT_ONCE_ROWS_MAX:
        ends = number_ends(read_all_fragments(edges, ENDPOINTS), sources, targets)
        return None if ends is None else join_halves(*ends)
    return _join_ids(edges, sources, targets, budget)


def number_ends(
    rows: pa.Table, sources: NodeNumbers, targets: NodeNumbers
) -> tuple[np.ndarray, np.ndarray] | None:
    """The numbers of the sources and of the targets of edges; None if an end does not exist."""
    numbers = sources.find(rows["src"]), targets.find(rows["dst"])
    return None if any((ends == NOTHING).any() for ends in numbers) else numbers


def both_ways(
    keys: np.ndarray, *, source_count: int, target_count: int
) -> tuple[Adjacency, Adjacency]:
    """The adjacency from sources to targets, and back. The keys are changed: no copy is made."""
    keys.sort()
    out = Adjacency(from_keys(keys, size=source_count), source_count)
    swap_in_place(keys)
    keys.sort()
    return out, Adjacency(from_keys(keys, size=target_count), target_count)


def _join_ids(
    edges: Table, sources: NodeNumbers, targets: NodeNumbers, budget: Budget
) -> np.ndarray | None:
    """The same by joins of ids, of so many edges at a time that nodes are fewer.

    DuckDB hashes the smaller side, and takes a stream of unknown length for the smaller one: it
    would hold all edges.
    """
    keys = np.empty(edges.count_rows(), np.uint64)
    row_count = max(NUMBERED_AT_ONCE_ROWS_MAX, 4 * max(sources.row_count, targets.row_count))
    count = 0
    with closing(new_cursor()) as cursor:
        cursor.register("sources", _numbered_ids(sources))
        cursor.register("targets", _numbered_ids(targets))
        for rows in _gather(edges.scan(ENDPOINTS), row_count):
            budget.check()
            cursor.register("edges", rows)
            part = cursor.sql(_JOIN).to_arrow_table()["key"]
            cursor.unregister("edges")
            if len(part) != len(rows):
                # An end does not exist, or two nodes have one id: the graph is damaged.
                return None
            keys[count : count + len(part)] = part.to_numpy()
            count += len(part)
    return keys


_JOIN: Final = """
    SELECT (s.number::UBIGINT << 32) | t.number AS key FROM edges AS e
    JOIN sources AS s ON s.id = e.src JOIN targets AS t ON t.id = e.dst
"""


def _gather(batches: Iterable[pa.RecordBatch], row_count: int) -> Iterator[pa.Table]:
    """The rows of batches, at least so many at a time but for the last ones."""
    gathered: list[pa.RecordBatch] = []
    count = 0
    for batch in batches:
        gathered.append(batch)
        count += batch.num_rows
        if count >= row_count:
            yield pa.Table.from_batches(gathered)
            gathered, count = [], 0
    if gathered:
        yield pa.Table.from_batches(gathered)


def _numbered_ids(numbers: NodeNumbers) -> pa.Table:
    """The ids of nodes and their numbers. Large tables are not kept in memory."""
    if numbers.table.count_bytes() <= KEPT_TABLE_BYTES_MAX:
        ids = read_all_fragments(numbers.table, ["id"])["id"]
        return pa.table({"id": ids, "number": numbers.of_rows})
    rows = numbers.table.read(["id", ROW_ID])
    return pa.table({"id": rows["id"], "number": pc.cast(rows[ROW_ID], pa.uint32())})
