"""Rules that a load plainly keeps, told by Arrow alone: an engine need not be asked for them.

What is not plain may still be kept. Where it is said to be, no engine finds an offender.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.integrity.deltas import Delta
from omnigraph.integrity.ends import Endpoint
from omnigraph.integrity.keys import DistinctIds, NewIds
from omnigraph.integrity.rows import RowRules
from omnigraph.integrity.rules import SetRule
from omnigraph.integrity.violations import Rule
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.model.tables import TableKey


def plainly_kept(delta: Delta, snapshot: Snapshot) -> Callable[[RowRules | SetRule], bool]:
    """Whether a delta to a snapshot plainly keeps a rule."""

    def rows(key: TableKey) -> pa.Table | None:
        found = delta.tables.get(key)
        return None if found is None else found.upserts

    def is_kept(rule: RowRules | SetRule) -> bool:
        match rule:
            case RowRules(type_, rules):
                found = rows(type_.table_key)
                assert found is not None, "rules about rows apply where some are written"
                # One pass of the engine finds them all, so either none of them needs it or all do.
                return all(
                    each.breach.rule is Rule.REQUIRED and _has_no_nulls(found[each.column])
                    for each in rules
                )
            case DistinctIds(type_):
                found = rows(type_.table_key)
                return found is not None and _are_distinct(found["id"])
            case NewIds(type_):
                return snapshot.pin(type_.table_key).row_count == 0
            case Endpoint(edge, end, node):
                edges, nodes = rows(edge.table_key), rows(node.table_key)
                return edges is not None and nodes is not None and _lie_in(edges[end], nodes["id"])
            case _:
                return False

    return is_kept


def _has_no_nulls(values: pa.ChunkedArray) -> bool:
    if pa.types.is_list(values.type):
        return bool(values.null_count == 0 and pc.list_flatten(values).null_count == 0)
    return bool(values.null_count == 0)


def _are_distinct(ids: pa.ChunkedArray) -> bool:
    return bool(pc.count_distinct(ids, mode="only_valid").as_py() == len(ids) - ids.null_count)


def _lie_in(ends: pa.ChunkedArray, ids: pa.ChunkedArray) -> bool:
    found = pc.is_in(ends.drop_null(), value_set=ids.combine_chunks())
    return bool(pc.all(found, min_count=0).as_py())
