"""What changed: per type, rows that came, changed and went, with their images."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.model.counts import Counts
from omnigraph.model.tables import TableKey
from omnigraph.schema.catalog import SchemaType


class Op(StrEnum):
    """What happened to a row."""

    INSERT = "insert"
    UPDATE = "update"
    DELETE = "delete"


@dataclass(frozen=True, slots=True)
class TableChanges:
    """How one table's rows differ between two versions, each part ordered by id.

    Attributes:
        inserted: The rows that came, as they are afterwards.
        deleted: The rows that went, as they were before.
        before: The rows that changed, as they were; `after` has them as they are, in this order.
    """

    type: SchemaType
    inserted: pa.Table
    deleted: pa.Table
    before: pa.Table
    after: pa.Table

    @property
    def key(self) -> TableKey:
        """The table."""
        return self.type.table_key

    @property
    def counts(self) -> Counts:
        """How many rows of each kind there are."""
        return Counts(self.inserted.num_rows, self.after.num_rows, self.deleted.num_rows)

    def ids(self) -> pa.Array:
        """Every id that changed in any way."""
        return pa.concat_arrays([ids_of(self.inserted), ids_of(self.after), ids_of(self.deleted)])

    def without(self, ids: pa.Array) -> TableChanges:
        """The changes of the other rows."""
        return TableChanges(
            self.type,
            excluding(self.inserted, ids),
            excluding(self.deleted, ids),
            excluding(self.before, ids),
            excluding(self.after, ids),
        )


@dataclass(frozen=True, slots=True)
class RowChange:
    """What happened to one row.

    Attributes:
        before: The row as it was, by column; None if it came.
        after: The row as it is, by column; None if it went.
    """

    type_name: str
    op: Op
    id: str
    before: Mapping[str, object] | None
    after: Mapping[str, object] | None


def row_changes(changes: TableChanges) -> Iterator[RowChange]:
    """The changes of one table one by one: what came, what changed, what went."""
    name = changes.type.name
    for row in changes.inserted.to_pylist():
        yield RowChange(name, Op.INSERT, row["id"], None, row)
    for old, new in zip(changes.before.to_pylist(), changes.after.to_pylist(), strict=True):
        yield RowChange(name, Op.UPDATE, new["id"], old, new)
    for row in changes.deleted.to_pylist():
        yield RowChange(name, Op.DELETE, row["id"], row, None)


def ids_of(rows: pa.Table) -> pa.Array:
    """The ids of some rows."""
    return rows["id"].combine_chunks()


def excluding(rows: pa.Table, ids: pa.Array) -> pa.Table:
    """The rows whose id is none of these."""
    return rows.filter(pc.invert(pc.is_in(rows["id"], value_set=ids)))


def having(rows: pa.Table, ids: pa.Array) -> pa.Table:
    """The rows of these ids, in the order of the ids; each must be there, once."""
    places = pc.index_in(ids, value_set=ids_of(rows))
    assert not places.null_count, "every id was found among these rows"
    return taken(rows, places)


def taken(rows: pa.Table, places: pa.Array) -> pa.Table:
    """The rows at these places; those that are wanted as they are, are not copied."""
    if len(places) == rows.num_rows and np.array_equal(places, np.arange(rows.num_rows)):
        return rows
    return rows.take(places)
