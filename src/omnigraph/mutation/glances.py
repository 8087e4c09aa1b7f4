"""Glances: rules that a delta plainly keeps, seen in its columns and in a few rows looked up.

An engine needs milliseconds to plan and start a query, more than a small write may cost altogether.
Most deltas break nothing, and most rules show that at a glance. A glance may be in doubt, but it is
never wrong: what it doubts, the engine is asked.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final, TypeAlias, assert_never

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.engine.protocol import Data
from omnigraph.integrity.cardinalities import Least, Most
from omnigraph.integrity.deltas import Delta, Shape
from omnigraph.integrity.ends import Endpoint, Stranded
from omnigraph.integrity.keys import DistinctIds, NewIds
from omnigraph.integrity.rows import RowRules
from omnigraph.integrity.rules import SetRule
from omnigraph.integrity.uniques import Unique
from omnigraph.limits import COMPILED_QUERIES_MAX
from omnigraph.model.tables import TableKey
from omnigraph.model.types import Scalar
from omnigraph.mutation.looks import Look, looks_of
from omnigraph.schema.catalog import ENDPOINTS, SchemaType
from omnigraph.storage import lookups

GLANCED_ROWS_MAX: Final = 1000
"""Rows that become Python values at a glance, of a delta or looked up; more are the engine's."""

Glance: TypeAlias = "Callable[[RowRules | SetRule], bool]"
"""Whether a delta plainly keeps a rule; False where it is in doubt."""


def glance_at(rules: Iterable[SetRule], delta: Delta, data: Data) -> Glance:
    """How one delta to one snapshot looks; tables are read only when a rule needs it.

    Args:
        rules: Those about rows together that will be asked for.
    """
    shape = delta.shape()
    ends: dict[TableKey, set[str] | None] = {}
    look = _Look(delta, shape, data, ends)
    for rule in rules:
        if isinstance(rule, Endpoint):
            # All ends in one type of node are looked up together.
            found = look.texts(rule.edge.table_key, rule.end)
            known = ends.get(rule.node.table_key, set())
            ends[rule.node.table_key] = None if found is None or known is None else known | found
    return look.is_kept


@dataclass(slots=True)
class _Look:
    delta: Delta
    shape: Shape
    data: Data
    ends: dict[TableKey, set[str] | None]
    """The ids that edges of the delta lead from and to, by the type of node."""
    missing: dict[TableKey, bool] = field(default_factory=dict)

    def is_kept(self, rule: RowRules | SetRule) -> bool:
        match rule:
            case RowRules():
                rows = self._upserts(rule.type.table_key)
                return all(look(rows[name]) for name, look in _looks(rule))
            case DistinctIds(type_):
                ids = self._upserts(type_.table_key)["id"]
                return bool(pc.count_distinct(ids).as_py() == len(ids) - ids.null_count)
            case _ if self.shape.overwritten:
                return False
            case NewIds(type_):
                key = type_.table_key
                return _is_empty(self._committed(key, ["id"], "id", self.texts(key, "id")))
            case Unique(type_, members):
                return self._is_unique(type_, members)
            case Endpoint(node=node):
                return self._has_ends(node.table_key)
            case Stranded(edge, end, node):
                return self._strands_nothing(edge.table_key, end, node.table_key)
            case Most(edge, maximum):
                return self._is_within(edge.table_key, maximum)
            case Least():
                return False
            case _:
                assert_never(rule)

    def texts(self, key: TableKey, name: str) -> set[str] | None:
        """The values of a column of the upserts, nulls left out; None if they are too many."""
        rows = self._upserts(key)
        return set(rows[name].to_pylist()) - {None} if len(rows) <= GLANCED_ROWS_MAX else None

    def _upserts(self, key: TableKey) -> pa.Table:
        rows = self.delta.tables[key].upserts
        assert rows is not None, "rules about rows apply where some are written"
        return rows

    def _upserted_ids(self, key: TableKey) -> set[str] | None:
        return self.texts(key, "id") if key in self.shape.upserted else set()

    def _deleted_ids(self, key: TableKey) -> set[str] | None:
        found = self.delta.tables[key].deletions if key in self.shape.deleted else ()
        assert found is not None, "the shape says that there are some"
        if len(found) > GLANCED_ROWS_MAX:
            return None
        return set(found.to_pylist()) if isinstance(found, pa.Array | pa.ChunkedArray) else set()

    def _committed(
        self, key: TableKey, columns: Sequence[str], by: str, values: Iterable[str] | None
    ) -> list[dict[str, Any]] | None:
        """The committed rows whose column is one of some values; None if either are too many."""
        if values is None:
            return None
        wanted = set(values)
        if not wanted:
            return []
        if len(wanted) > GLANCED_ROWS_MAX:
            return None
        read = lookups.find(self.data.table(key), by, wanted, columns=columns)
        found: list[dict[str, Any]] = read.to_pylist() if len(read) <= GLANCED_ROWS_MAX else []
        return found if len(found) == len(read) else None

    def _has_ends(self, nodes: TableKey) -> bool:
        """Whether every end in one type of node is in the delta, or committed and left."""
        if nodes not in self.missing:
            self.missing[nodes] = self._lacks_ends(nodes)
        return not self.missing[nodes]

    def _lacks_ends(self, nodes: TableKey) -> bool:
        wanted, written = self.ends[nodes], self._upserted_ids(nodes)
        gone = self._deleted_ids(nodes)
        if wanted is None or written is None or gone is None:
            return True
        wanted -= written
        found = None if wanted & gone else self._committed(nodes, ["id"], "id", wanted)
        return found is None or len({each["id"] for each in found}) < len(wanted)

    def _strands_nothing(self, edges: TableKey, end: str, nodes: TableKey) -> bool:
        going = self._deleted_ids(nodes)
        replaced, gone = self._upserted_ids(edges), self._deleted_ids(edges)
        found = self._committed(edges, ["id"], end, going)
        if found is None or replaced is None or gone is None:
            return False
        return {each["id"] for each in found} <= replaced | gone

    def _is_within(self, edges: TableKey, maximum: int) -> bool:
        rows = self._upserts(edges)
        written, gone = self._upserted_ids(edges), self._deleted_ids(edges)
        found = self._committed(edges, ["id", "src"], "src", self.texts(edges, "src"))
        if found is None or written is None or gone is None:
            return False
        counts = Counter(each["src"] for each in found if each["id"] not in written | gone)
        counts.update(rows["src"].drop_null().to_pylist())
        return max(counts.values(), default=0) <= maximum

    def _is_unique(self, type_: SchemaType, members: tuple[str, ...]) -> bool:
        key = type_.table_key
        rows = self._upserts(key)
        written, gone = self._upserted_ids(key), self._deleted_ids(key)
        if written is None or gone is None or any(_is_float(type_, each) for each in members):
            return False
        columns = [rows[each].to_pylist() for each in members]
        claims = [each for each in zip(*columns, strict=True) if None not in each]
        if not claims:
            return True
        by = next((each for each in members if _is_text(type_, each)), None)
        if by is None or len(set(claims)) < len(claims):
            return False
        place = members.index(by)
        wanted = {claim[place] for claim in claims}
        found = self._committed(key, list(dict.fromkeys(["id", *members])), by, wanted)
        if found is None:
            return False
        left = [each for each in found if each["id"] not in written | gone]
        held = {tuple(each[name] for name in members) for each in left}
        return held.isdisjoint(claims)


@lru_cache(maxsize=COMPILED_QUERIES_MAX)
def _looks(rules: RowRules) -> tuple[tuple[str, Look], ...]:
    """Every look that the row rules of a type ask for, with the column to look at."""
    return tuple((rule.column, look) for rule in rules.rules for look in looks_of(rules.type, rule))


def _is_empty(rows: list[dict[str, Any]] | None) -> bool:
    return rows is not None and not rows


def _is_text(type_: SchemaType, name: str) -> bool:
    return name in ENDPOINTS or type_.property_named(name).type is Scalar.STRING


def _is_float(type_: SchemaType, name: str) -> bool:
    if name in ENDPOINTS:
        return False
    # To an engine a NaN equals itself, and to Python it does not.
    found = type_.property_named(name).type
    return isinstance(found, Scalar) and found.is_float
