"""Records of changes: per type, the inserted, updated and deleted rows with their images."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import repeat
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.changes.wide import WideValues
from omnigraph.choices import Op
from omnigraph.limits import ROWS_PER_BATCH_MAX
from omnigraph.model.counts import Counts
from omnigraph.model.tables import TableKey
from omnigraph.schema.arrow import table_schema
from omnigraph.schema.catalog import SchemaType


@dataclass(frozen=True, slots=True)
class Chunk:
    """Some rows with the same kind of change, ordered by id.

    Attributes:
        before: The rows before the change; None if they were inserted.
        after: The rows after it, in the same order; None if they were deleted.
    """

    op: Op
    before: pa.Table | None
    after: pa.Table | None


class Changes(Protocol):
    """How one table's rows differ between two versions, in memory or on Spark."""

    @property
    def type(self) -> SchemaType:
        """The type of the table."""
        ...

    @property
    def counts(self) -> Counts:
        """How many rows were inserted, updated and deleted."""
        ...

    def chunks(self, ops: Collection[Op]) -> Iterator[Chunk]:
        """The rows with one of these kinds of change: inserted, then updated, then deleted."""
        ...


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


@dataclass(frozen=True, slots=True)
class _ChangeGroup:
    """Some rows with the same kind of change, as Python values, column by column."""

    type_name: str
    op: Op
    ids: list[str]
    before: Mapping[str, list[object]] | None
    after: Mapping[str, list[object]] | None


class RowChange:
    """How one row changed."""

    # For a hundred thousand rows, dictionaries and frozen fields would cost more than the diff: so
    # an object has only its position among rows of its kind, and images are built when read.
    __slots__ = ("_group", "_place")

    def __init__(self, group: _ChangeGroup, place: int) -> None:
        self._group = group
        self._place = place

    @property
    def type_name(self) -> str:
        """The type of the row."""
        return self._group.type_name

    @property
    def op(self) -> Op:
        """Whether it was inserted, updated or deleted."""
        return self._group.op

    @property
    def id(self) -> str:
        """The id of the row."""
        return self._group.ids[self._place]

    @property
    def before(self) -> Mapping[str, object] | None:
        """The row before the change, by column; None if it was inserted."""
        return _image(self._group.before, self._place)

    @property
    def after(self) -> Mapping[str, object] | None:
        """The row after the change, by column; None if it was deleted."""
        return _image(self._group.after, self._place)

    def __eq__(self, other: object) -> bool:
        return self._values() == other._values() if isinstance(other, RowChange) else NotImplemented

    # Images are dictionaries, which have no hash.
    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        values = ", ".join(f"{name}={value!r}" for name, value in self._values().items())
        return f"RowChange({values})"

    def _values(self) -> Mapping[str, object]:
        names = ("type_name", "op", "id", "before", "after")
        return {name: getattr(self, name) for name in names}


def _image(columns: Mapping[str, list[object]] | None, place: int) -> dict[str, object] | None:
    if columns is None:
        return None
    return {name: values[place] for name, values in columns.items()}


def row_changes(changes: Changes, ops: Collection[Op]) -> Iterator[RowChange]:
    """The changes of one table, row by row: inserted, then updated, then deleted."""
    name = changes.type.name
    for chunk in changes.chunks(ops):
        rows = chunk.before if chunk.after is None else chunk.after
        assert rows is not None, "a change has rows before it or after it"
        for start in range(0, rows.num_rows, ROWS_PER_BATCH_MAX):
            ids = rows["id"].slice(start, ROWS_PER_BATCH_MAX).to_pylist()
            before, after = (
                None if image is None else image.slice(start, ROWS_PER_BATCH_MAX).to_pydict()
                for image in (chunk.before, chunk.after)
            )
            group = _ChangeGroup(name, chunk.op, ids, before, after)
            yield from map(RowChange, repeat(group), range(len(ids)))


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
