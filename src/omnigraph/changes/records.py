"""Records of changes: per type, the inserted, updated and deleted rows with their images."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.changes.rows import Chunk
from omnigraph.changes.wide import WideValues
from omnigraph.choices import Op
from omnigraph.model.counts import Counts
from omnigraph.model.tables import TableKey
from omnigraph.schema.arrow import table_schema
from omnigraph.schema.catalog import SchemaType


@dataclass(frozen=True, slots=True)
class TableChanges:
    """How one table's rows differ between two versions, each part ordered by id.

    Attributes:
        inserted: The inserted rows.
        deleted: The deleted rows, as they were before.
        before: The updated rows, as they were before; `after` has the new ones, in this order.
        wide: Finds the vectors and blobs of rows that only refer to them.
    """

    type: SchemaType
    inserted: pa.Table
    deleted: pa.Table
    before: pa.Table
    after: pa.Table
    wide: WideValues = field(default_factory=WideValues, compare=False)

    @property
    def key(self) -> TableKey:
        """The key of the table."""
        return self.type.table_key

    @property
    def counts(self) -> Counts:
        """How many rows were inserted, updated and deleted."""
        return Counts(self.inserted.num_rows, self.after.num_rows, self.deleted.num_rows)

    def chunks(self, ops: Collection[Op]) -> Iterator[Chunk]:
        """The rows with one of these kinds of change: inserted, then updated, then deleted."""
        every: tuple[tuple[Op, pa.Table | None, pa.Table | None], ...] = (
            (Op.INSERT, None, self.inserted),
            (Op.UPDATE, self.before, self.after),
            (Op.DELETE, self.deleted, None),
        )
        schema = table_schema(self.type)
        for op, before, after in every:
            if op in ops:
                parts = self.wide.chunks(schema, before, after)
                yield from (Chunk(op, old, new) for old, new in parts)

    def ids(self) -> pa.Array:
        """The ids of all inserted, updated and deleted rows."""
        return pa.concat_arrays([ids_of(self.inserted), ids_of(self.after), ids_of(self.deleted)])

    def without(self, ids: pa.Array) -> TableChanges:
        """The changes of the other rows."""
        return TableChanges(
            self.type,
            exclude_ids(self.inserted, ids),
            exclude_ids(self.deleted, ids),
            exclude_ids(self.before, ids),
            exclude_ids(self.after, ids),
            self.wide,
        )


def ids_of(rows: pa.Table) -> pa.Array:
    """The ids of some rows."""
    return rows["id"].combine_chunks()


def exclude_ids(rows: pa.Table, ids: pa.Array) -> pa.Table:
    """The rows whose id is not among these."""
    return rows.filter(pc.invert(pc.is_in(rows["id"], value_set=ids)))


def select_ids(rows: pa.Table, ids: pa.Array) -> pa.Table:
    """The rows with these ids, in the order of the ids; each id must occur exactly once."""
    places = pc.index_in(ids, value_set=ids_of(rows))
    assert not places.null_count, "every id is among these rows"
    return take_rows(rows, places)


def take_rows(rows: pa.Table, places: pa.Array) -> pa.Table:
    """The rows at these positions; not copied if these are all rows in their order."""
    if len(places) == rows.num_rows and np.array_equal(places, np.arange(rows.num_rows)):
        return rows
    return rows.take(places)
