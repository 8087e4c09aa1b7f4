"""What changed: per type, rows that came, changed and went, with their images."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import repeat
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.changes.wide import WideValues
from omnigraph.model.counts import Counts
from omnigraph.model.tables import TableKey
from omnigraph.schema.arrow import table_schema
from omnigraph.schema.catalog import SchemaType


class Op(StrEnum):
    """What happened to a row."""

    INSERT = "insert"
    UPDATE = "update"
    DELETE = "delete"


@dataclass(frozen=True, slots=True)
class Chunk:
    """Some rows to which the same happened, ordered by id.

    Attributes:
        before: The rows as they were; None if they came.
        after: The rows as they are, in the same order; None if they went.
    """

    op: Op
    before: pa.Table | None
    after: pa.Table | None


class Changes(Protocol):
    """How one table's rows differ between two versions, wherever the rows are."""

    @property
    def type(self) -> SchemaType:
        """The type that the table is of."""
        ...

    @property
    def counts(self) -> Counts:
        """How many rows came, changed and went."""
        ...

    def chunks(self, ops: Collection[Op]) -> Iterator[Chunk]:
        """The rows to which one of these happened: what came, what changed, what went."""
        ...


@dataclass(frozen=True, slots=True)
class TableChanges:
    """How one table's rows differ between two versions, each part ordered by id.

    Attributes:
        inserted: The rows that came, as they are afterwards.
        deleted: The rows that went, as they were before.
        before: The rows that changed, as they were; `after` has them as they are, in this order.
        wide: What finds the vectors and blobs of rows that only refer to them.
    """

    type: SchemaType
    inserted: pa.Table
    deleted: pa.Table
    before: pa.Table
    after: pa.Table
    wide: WideValues = field(default_factory=WideValues, compare=False)

    @property
    def key(self) -> TableKey:
        """The table."""
        return self.type.table_key

    @property
    def counts(self) -> Counts:
        """How many rows of each kind there are."""
        return Counts(self.inserted.num_rows, self.after.num_rows, self.deleted.num_rows)

    def chunks(self, ops: Collection[Op]) -> Iterator[Chunk]:
        """The rows to which one of these happened: what came, what changed, what went."""
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
            self.wide,
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


def row_changes(changes: Changes, ops: Collection[Op]) -> Iterator[RowChange]:
    """The changes of one table one by one: what came, what changed, what went."""
    name = changes.type.name
    for each in changes.chunks(ops):
        olds = repeat(None) if each.before is None else each.before.to_pylist()
        news = repeat(None) if each.after is None else each.after.to_pylist()
        for old, new in zip(olds, news, strict=False):
            row = old if new is None else new
            assert row is not None, "a row was there before, or is there after"
            yield RowChange(name, each.op, row["id"], old, new)


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
