"""Matches: the rows of a mutation's match, on committed rows and the pending changes before it."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.engine.protocol import Data, Engine
from omnigraph.mutation.pending import PendingChanges, PendingTable
from omnigraph.query import ir
from omnigraph.query.lowering.operands import Given
from omnigraph.query.lowering.plan import lower
from omnigraph.relational.plans import GivenRows, OutputColumn, Plan, TableRows
from omnigraph.schema.catalog import ENDPOINTS, Catalog, EdgeType, SchemaType
from omnigraph.storage import lookups


@dataclass(frozen=True, slots=True)
class RowFinder:
    """Finds the rows of matches; each sees the changes of all statements before it."""

    catalog: Catalog
    engine: Engine
    given: Given
    data: Data
    pending: PendingChanges

    def find(self, match: ir.ReadQuery, type_: SchemaType) -> pa.Table:
        """The rows of a match, by the names of columns of this type."""
        plan = self._plan(match, type_)
        changed = dict(self.pending.changed_tables())
        rows = {
            name: self._rows(relation, changed[relation.table])
            for name, relation in plan.relations.items()
            if isinstance(relation, TableRows) and relation.table in changed
        }
        if not rows:
            return self.engine.run(plan, self.data)
        # What else a plan has finds rows in tables as they are committed.
        relations = {**plan.relations, **dict.fromkeys(rows, GivenRows())}
        plan = Plan(plan.tree, relations, plan.columns, plan.values)
        return self.engine.run(plan, replace(self.data, given={**self.data.given, **rows}))

    def _plan(self, match: ir.ReadQuery, type_: SchemaType) -> Plan:
        plan = lower(match, self.catalog, self.given).plan(self.given)
        properties = {each.name: each.type for each in type_.properties}
        columns = tuple(
            replace(each, type=properties.get(each.name, each.type)) for each in plan.columns
        )
        # A number has to fit the property that it is assigned to, not the type it was computed in.
        return plan if columns == plan.columns else _with_columns(plan, columns)

    def _rows(self, relation: TableRows, pending: PendingTable) -> pa.Table:
        """The rows of a table as they are after the statements before, in memory."""
        names = list(relation.columns)
        committed = self.data.table(relation.table).read(list(dict.fromkeys(["id", *names])))
        ids = committed["id"].combine_chunks()
        kept = committed.filter(pc.is_in(ids, value_set=pending.uncovered_ids(ids)))
        schema = pa.schema([pending.schema.field(name) for name in names])
        written = self._connected(pending)
        return pa.concat_tables([kept.select(names).cast(schema), written.select(names)])

    def _connected(self, pending: PendingTable) -> pa.Table:
        """The pending rows; of edges, those whose ends are there, as plans take for granted."""
        type_, rows = pending.type, pending.rows()
        if not isinstance(type_, EdgeType):
            return rows
        for column, end in zip(ENDPOINTS, (type_.source, type_.target), strict=True):
            key = self.catalog.node_type(end).table_key
            wanted = pc.unique(rows[column])
            found = lookups.find(self.data.table(key), "id", wanted, columns=["id"])
            known = [found["id"], self.pending.table(key).rows()["id"]]
            ids = pa.chunked_array([chunk for each in known for chunk in each.chunks], pa.utf8())
            rows = rows.filter(pc.is_in(rows[column], value_set=ids))
        return rows


def _with_columns(plan: Plan, columns: tuple[OutputColumn, ...]) -> Plan:
    """The same plan with columns of other types."""
    parts, paths = plan.parts, plan.paths
    if parts is not None:
        parts = replace(parts, last=_with_columns(parts.last, columns))
    if paths is not None:
        paths = replace(paths, plan=_with_columns(paths.plan, columns))
    why = "it converts numbers"
    return replace(plan, columns=columns, matching=None, unmatched=why, parts=parts, paths=paths)
