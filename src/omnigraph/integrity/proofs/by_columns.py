"""Proof by columns: rules that Arrow can check in the columns of a delta alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import assert_never

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.integrity.cardinalities import CardinalityMax, CardinalityMin
from omnigraph.integrity.deltas import Delta
from omnigraph.integrity.ends import DanglingEdge, Endpoint
from omnigraph.integrity.keys import DistinctIds, NewIds
from omnigraph.integrity.proofs.proof import Proof
from omnigraph.integrity.rows import RowRules, all_true
from omnigraph.integrity.rules import SetRule
from omnigraph.integrity.uniques import Unique
from omnigraph.model.tables import TableKey


def by_columns(delta: Delta, row_count: Callable[[TableKey], int]) -> Proof:
    """Prove the rules that the rows of a delta keep among themselves. No table is read.

    Args:
        row_count: How many rows a table has before the delta.
    """

    def upserts(key: TableKey) -> pa.Table | None:
        table = delta.tables.get(key)
        return None if table is None else table.upserts

    def is_proven(rule: RowRules | SetRule) -> bool:
        match rule:
            case RowRules(type_):
                rows = upserts(type_.table_key)
                # One pass of an engine counts them all, and is saved only if all are proven.
                return rows is not None and rule.hold(rows)
            case DistinctIds(type_):
                rows = upserts(type_.table_key)
                return rows is not None and _are_distinct(rows["id"])
            case NewIds(type_):
                return row_count(type_.table_key) == 0
            case Endpoint(edge, end, node):
                edges, nodes = upserts(edge.table_key), upserts(node.table_key)
                return (
                    edges is not None and nodes is not None and _are_among(edges[end], nodes["id"])
                )
            case Unique() | DanglingEdge() | CardinalityMax() | CardinalityMin():
                return False
            case _:
                assert_never(rule)

    return is_proven


def _are_distinct(ids: pa.ChunkedArray) -> bool:
    return bool(pc.count_distinct(ids, mode="only_valid").as_py() == len(ids) - ids.null_count)


def _are_among(ends: pa.ChunkedArray, ids: pa.ChunkedArray) -> bool:
    return all_true(pc.is_in(ends.drop_null(), value_set=ids.combine_chunks()))
