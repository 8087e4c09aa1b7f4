"""The source of a merge, whose rows become rows of the merged types."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from omnigraph.changes.graphs import Side
from omnigraph.changes.lifts import ConstantColumn
from omnigraph.changes.tables import rows_of
from omnigraph.changes.wide import read_columns
from omnigraph.merge.decisions import Merged
from omnigraph.merge.schemas import MergedSchema
from omnigraph.schema.arrow import table_schema
from omnigraph.storage import lookups


@dataclass(frozen=True, slots=True)
class MergeSource:
    """The source of a merge: its rows become rows of the merged types."""

    side: Side
    schema: MergedSchema

    def find(self, merged: Merged, ids: pa.Array) -> pa.Table:
        """Rows of the source, to be brought together with those of a merge."""
        type_, commit_id = merged.type, self.side.snapshot.head.commit_id
        key, schema = self.schema.key_at(commit_id, type_.table_key), table_schema(type_)
        if key is None:
            return merged.added.slice(0, 0)
        table, lift = self.side.data.table(key), self.schema.lift(commit_id, type_)
        names = read_columns(schema) if merged.is_referring else schema.names
        found = lookups.find(table, "id", ids, columns=lift.sources(names))
        if not merged.is_referring:
            return rows_of(type_, found.to_batches(), lift=lift).select(schema.names)
        return merged.wide.refer(schema, table, lift.apply(found, names))

    def complete(self, merged: Merged, row: pa.Table, own: pa.Table) -> pa.Table:
        """A row of the source, with the target's values of properties that the source never had.

        Args:
            own: The row of the target.
        """
        lift = self.schema.lift(self.side.snapshot.head.commit_id, merged.type)
        for column in lift.columns:
            if isinstance(column, ConstantColumn) and own.num_rows:
                place = row.schema.get_field_index(column.name)
                row = row.set_column(place, row.schema.field(place), own[column.name])
        return row
