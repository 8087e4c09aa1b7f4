"""Proof by lookup: rules that a small delta keeps, proven by looking up a few committed rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, assert_never

import pyarrow as pa

from omnigraph.engine.protocol import Data
from omnigraph.integrity.cardinalities import CardinalityMax, CardinalityMin
from omnigraph.integrity.deltas import Delta, Shape
from omnigraph.integrity.ends import DanglingEdge, Endpoint
from omnigraph.integrity.keys import DistinctIds, NewIds
from omnigraph.integrity.proofs.proof import Proof
from omnigraph.integrity.rows import RowRules
from omnigraph.integrity.rules import SetRule
from omnigraph.integrity.uniques import Unique
from omnigraph.model.tables import TableKey
from omnigraph.model.types import Scalar
from omnigraph.schema.catalog import ENDPOINTS, SchemaType
from omnigraph.storage import lookups

LOOKUP_ROWS_MAX: Final = 1000
"""Rows that become Python values in a proof, of a delta or looked up; the engine checks more."""


def by_lookup(rules: Iterable[SetRule], delta: Delta, data: Data) -> Proof:
    """Prove set rules; a table is read only when a rule needs it.

    Args:
        rules: The rules that the proof will be used for.
    """
    shape = delta.shape()
    ends: dict[TableKey, set[str] | None] = {}
    lookup = _Lookup(delta, shape, data, ends)
    for rule in rules:
        if isinstance(rule, Endpoint):
            # All ends in one type of node are looked up together.
            values = lookup.upserted_values(rule.edge.table_key, rule.end)
            ids = ends.get(rule.node.table_key, set())
            ends[rule.node.table_key] = None if values is None or ids is None else ids | values
    return lookup.is_proven


@dataclass(slots=True)
class _Lookup:
    delta: Delta
    shape: Shape
    data: Data
    ends: dict[TableKey, set[str] | None]
    """The ids that edges of the delta lead from and to, by the type of node."""
    missing: dict[TableKey, bool] = field(default_factory=dict)

    def is_proven(self, rule: RowRules | SetRule) -> bool:
        match rule:
            case RowRules() | DistinctIds() | CardinalityMin():
                return False
            case _ if self.shape.overwritten:
                return False
            case NewIds(type_):
                key = type_.table_key
                return self._find(key, ["id"], "id", self.upserted_values(key, "id")) == []
            case Unique(type_, members):
                return self._is_unique(type_, members)
            case Endpoint(node=node):
                return self._has_ends(node.table_key)
            case DanglingEdge(edge, end, node):
                return self._has_no_dangling_edges(edge.table_key, end, node.table_key)
            case CardinalityMax(edge, maximum):
                return self._is_within(edge.table_key, maximum)
            case _:
                assert_never(rule)

    def upserted_values(self, key: TableKey, name: str) -> set[str] | None:
        """The values of a column of the upserts, nulls left out; None if they are too many."""
        rows = self._upserts(key)
        return set(rows[name].to_pylist()) - {None} if len(rows) <= LOOKUP_ROWS_MAX else None

    def _upserts(self, key: TableKey) -> pa.Table:
        rows = self.delta.tables[key].upserts
        assert rows is not None, "set rules apply where rows are written"
        return rows

    def _upserted_ids(self, key: TableKey) -> set[str] | None:
        return self.upserted_values(key, "id") if key in self.shape.upserted else set()

    def _deleted_ids(self, key: TableKey) -> set[str] | None:
        ids = self.delta.tables[key].deletions if key in self.shape.deleted else ()
        assert ids is not None, "the shape says that there are some"
        if len(ids) > LOOKUP_ROWS_MAX:
            return None
        return set(ids.to_pylist()) if isinstance(ids, pa.Array | pa.ChunkedArray) else set()

    def _find(
        self, key: TableKey, columns: Sequence[str], by: str, values: set[str] | None
    ) -> list[dict[str, Any]] | None:
        """The committed rows whose column is one of some values; None if either are too many."""
        if values is None or len(values) > LOOKUP_ROWS_MAX:
            return None
        if not values:
            return []
        rows = lookups.find(self.data.table(key), by, values, columns=columns)
        return rows.to_pylist() if len(rows) <= LOOKUP_ROWS_MAX else None

    def _has_ends(self, nodes: TableKey) -> bool:
        """Whether every end in one type of node is in the delta, or remains."""
        if nodes not in self.missing:
            self.missing[nodes] = self._lacks_ends(nodes)
        return not self.missing[nodes]

    def _lacks_ends(self, nodes: TableKey) -> bool:
        wanted, written = self.ends[nodes], self._upserted_ids(nodes)
        deleted = self._deleted_ids(nodes)
        if wanted is None or written is None or deleted is None:
            return True
        wanted = wanted - written
        rows = None if wanted & deleted else self._find(nodes, ["id"], "id", wanted)
        return rows is None or len({row["id"] for row in rows}) < len(wanted)

    def _has_no_dangling_edges(self, edges: TableKey, end: str, nodes: TableKey) -> bool:
        written, deleted = self._upserted_ids(edges), self._deleted_ids(edges)
        rows = self._find(edges, ["id"], end, self._deleted_ids(nodes))
        if rows is None or written is None or deleted is None:
            return False
        return {row["id"] for row in rows} <= written | deleted

    def _is_within(self, edges: TableKey, maximum: int) -> bool:
        upserts = self._upserts(edges)
        written, deleted = self._upserted_ids(edges), self._deleted_ids(edges)
        rows = self._find(edges, ["id", "src"], "src", self.upserted_values(edges, "src"))
        if rows is None or written is None or deleted is None:
            return False
        counts = Counter(row["src"] for row in rows if row["id"] not in written | deleted)
        counts.update(upserts["src"].drop_null().to_pylist())
        return max(counts.values(), default=0) <= maximum

    def _is_unique(self, type_: SchemaType, members: tuple[str, ...]) -> bool:
        key = type_.table_key
        upserts = self._upserts(key)
        written, deleted = self._upserted_ids(key), self._deleted_ids(key)
        if written is None or deleted is None or any(_is_float(type_, name) for name in members):
            return False
        columns = [upserts[name].to_pylist() for name in members]
        claims = [values for values in zip(*columns, strict=True) if None not in values]
        if not claims:
            return True
        by = next((name for name in members if _is_text(type_, name)), None)
        if by is None or len(set(claims)) < len(claims):
            return False
        wanted = {claim[members.index(by)] for claim in claims}
        rows = self._find(key, list(dict.fromkeys(["id", *members])), by, wanted)
        if rows is None:
            return False
        remaining = [row for row in rows if row["id"] not in written | deleted]
        return {tuple(row[name] for name in members) for row in remaining}.isdisjoint(claims)


def _is_text(type_: SchemaType, name: str) -> bool:
    return name in ENDPOINTS or type_.property_named(name).type is Scalar.STRING


def _is_float(type_: SchemaType, name: str) -> bool:
    if name in ENDPOINTS:
        return False
    # In an engine a NaN equals itself, in Python it does not.
    kind = type_.property_named(name).type
    return isinstance(kind, Scalar) and kind.is_float
