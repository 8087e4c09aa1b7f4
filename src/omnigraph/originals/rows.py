"""Rows of the Rust releases as rows of ours, and what a commit changed in a table."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.changes.records import TableChanges
from omnigraph.changes.tables import compare_rows
from omnigraph.engine.protocol import Data, Engine
from omnigraph.evolution.keys import check_kept_ids
from omnigraph.model.tables import TableKey
from omnigraph.originals.history import unproven_error
from omnigraph.schema.arrow import is_blob, table_schema
from omnigraph.schema.catalog import SchemaType
from omnigraph.schema.embeds import embedded_vectors
from omnigraph.storage import staging
from omnigraph.storage.differences import Difference, FragmentPart, difference, read_parts
from omnigraph.storage.originals import unequal_fragments
from omnigraph.storage.staging import StagedWrite
from omnigraph.storage.tables import KEY, Table

_MILLISECONDS: Final = pa.timestamp("ms", tz="UTC")
_DATETIME: Final = pa.timestamp("us", tz="UTC")


@dataclass(frozen=True, slots=True)
class RowChanges:
    """What a commit changed in one table.

    Attributes:
        before: The table as the commit before it shows it; None for an empty one.
    """

    type: SchemaType
    before: Table | None
    after: Table
    engine: Engine
    _parts: Difference = field(init=False)

    def __post_init__(self) -> None:
        if self.before is None:
            parts = difference(None, self.after)
        else:
            pairs = tuple(unequal_fragments(self.before, self.after))
            parts = difference(self.before, self.after, pairs)
        object.__setattr__(self, "_parts", parts)

    def stage(self, open_target: Callable[[], Table]) -> StagedWrite | None:
        """Stage the same change of our table; None if no row differs.

        Args:
            open_target: Opens the table to write, only if there is something to write.
        """
        if not self._parts.before:
            if not self._parts.after:
                return None
            self._require_distinct_ids()
            schema = table_schema(self.type)
            batches = (
                batch
                for table in self._read(self.after, self._parts.after)
                for batch in table.to_batches()
            )
            reader = pa.RecordBatchReader.from_batches(schema, batches)
            return staging.stage_append(open_target(), reader)
        assert self.before is not None, "its parts were read from it"
        self._require_distinct_ids()
        old = self._read_all(self.before, self._parts.before)
        new = self._read_all(self.after, self._parts.after)
        changes = compare_rows(self.type, old, new, self.engine, Data(_no_table))
        return None if _is_empty(changes) else self._stage(open_target(), changes)

    def _stage(self, target: Table, changes: TableChanges) -> StagedWrite:
        return staging.stage_rows(
            target,
            inserted=changes.inserted,
            updated=changes.after,
            deleted=changes.deleted[KEY].combine_chunks(),
        )

    def _read_all(self, table: Table, parts: Sequence[FragmentPart]) -> pa.Table:
        empty = table_schema(self.type).empty_table()
        return pa.concat_tables([empty, *self._read(table, parts)]).combine_chunks()

    def _read(self, table: Table, parts: Sequence[FragmentPart]) -> Iterator[pa.Table]:
        """The rows as rows of ours, with the same ids."""
        for batch in read_parts(table, parts, stored_names(self.type)):
            rows = to_rows(batch, self.type)
            if self.type.key:
                for part in rows.to_batches():
                    report = check_kept_ids(self.type, part)
                    if not report.is_clean:
                        message = f"{table.address}: {report.violations[0].message}"
                        raise unproven_error(message)
            yield rows

    def _require_distinct_ids(self) -> None:
        parts = list(read_parts(self.after, self._parts.after, [KEY]))
        if not parts:
            return
        ids = pa.Table.from_batches(parts)[KEY]
        if pc.count_distinct(ids).as_py() != len(ids):
            message = f"{self.after.address} has several rows of one id"
            raise unproven_error(message)


def require_columns(table: Table, key: TableKey, type_: SchemaType, commit: str) -> None:
    """Refuse a table that is not one of the type as the schema declares it."""
    declared = table_schema(type_)
    found = {field.name: field.type for field in table.schema}
    place = f"{key} at commit {commit}"
    if blob := next((field.name for field in declared if is_blob(field)), None):
        message = f"{place} has the blob {blob}, which cannot be imported"
        raise unproven_error(message)
    names = stored_names(type_)
    if set(found) != set(names):
        columns = ", ".join(sorted(set(found) ^ set(names)))
        message = (
            f"{place} has another schema than the graph has now (differing: {columns}), and the "
            "graph does not record earlier schemas"
        )
        raise unproven_error(message)
    for column in (declared.field(name) for name in names):
        if _plain(_replaced(found[column.name], pa.date64(), _DATETIME)) != _plain(column.type):
            message = f"{place}: {column.name} is {found[column.name]}, expected {column.type}"
            raise unproven_error(message)


def stored_names(type_: SchemaType) -> list[str]:
    """The columns that a Rust release has: it keeps no notes of what a vector was made from."""
    notes = {vector.companion for vector in embedded_vectors(type_)}
    return [name for name in table_schema(type_).names if name not in notes]


def to_rows(batch: pa.RecordBatch, type_: SchemaType) -> pa.Table:
    """Rows with the columns of the type's table, in their order."""
    schema = table_schema(type_)
    stored = set(stored_names(type_))
    columns = [
        _convert(batch.column(column.name), column.type)
        if column.name in stored
        else pa.nulls(batch.num_rows, column.type)
        for column in schema
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def _convert(values: pa.Array, to: pa.DataType) -> pa.Array:
    """Values of a column; a DateTime is in milliseconds there, in a type for whole days."""
    kind = values.type
    if _replaced(kind, pa.date64(), _MILLISECONDS) != kind:
        values = values.cast(_replaced(kind, pa.date64(), pa.int64()))
        values = values.cast(_replaced(kind, pa.date64(), _MILLISECONDS))
    return values if values.type == to else values.cast(to)


def _replaced(kind: pa.DataType, old: pa.DataType, new: pa.DataType) -> pa.DataType:
    if kind == old:
        return new
    if pa.types.is_list(kind):
        item = kind.value_field
        return pa.list_(item.with_type(_replaced(item.type, old, new)))
    return kind


def _plain(kind: pa.DataType) -> pa.DataType:
    """The type without the nullability of items."""
    if pa.types.is_list(kind):
        return pa.list_(pa.field("item", _plain(kind.value_type)))
    if pa.types.is_fixed_size_list(kind):
        return pa.list_(pa.field("item", kind.value_type), kind.list_size)
    return kind


def _is_empty(changes: TableChanges) -> bool:
    parts = (changes.inserted, changes.deleted, changes.after)
    return not any(part.num_rows for part in parts)


def _no_table(key: TableKey) -> Table:
    message = f"a comparison of given rows does not read {key}"
    raise AssertionError(message)
