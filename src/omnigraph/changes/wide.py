"""Wide values: vectors and blobs stay in their tables, and rows that are compared refer to them.

A reference has the digest of its value, by which an engine compares it, its size, and its address.
The value is read when its row is shown or written, a few rows at a time, so that the memory of a
merge does not depend on how many it changes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.changes.digests import digests_of, is_wide
from omnigraph.limits import ROWS_PER_BATCH_MAX, WIDE_BATCH_BYTES
from omnigraph.storage.places import read_at
from omnigraph.storage.tables import ROW_ADDRESS, Table, TableAddress

WideSources: TypeAlias = Mapping[str, str | None]
"""By wide column of a type, the column of a table that has its values, or None."""

_FIRST_ROWS: Final = 64
"""Rows of the first read, when the size of the values is unknown."""

_GROWTH_MAX: Final = 4


def reference_schema(schema: pa.Schema) -> pa.Schema:
    """The columns with references instead of wide values."""
    return pa.schema(
        [
            pa.field(field.name, _reference(field.type), nullable=field.nullable)
            if is_wide(field.type)
            else field
            for field in schema
        ]
    )


def is_reference(kind: pa.DataType) -> bool:
    """Whether a column holds references; no property has such a type itself."""
    return bool(pa.types.is_struct(kind))


def read_columns(schema: pa.Schema) -> list[str]:
    """The columns to read from a table before `WideValues.refer` adds the references."""
    narrow = [field.name for field in schema if not is_wide(field.type)]
    return narrow if len(narrow) == len(schema) else [*narrow, ROW_ADDRESS]


def given_value(kind: pa.DataType, value: object) -> pa.Array:
    """One value that no table has, as a reference that contains it."""
    values = pa.array([value], kind)
    given_type = _reference(kind).field("given").type
    parts = [
        pa.array(digests_of(values), pa.utf8()),
        pa.nulls(1, pa.int32()),
        pa.nulls(1, pa.uint64()),
        pa.array(_sizes(values)),
        values.cast(given_type),
    ]
    return _make_references(kind, parts, values)


class WideValues:
    """The tables that references point to; threads may use it concurrently.

    Rows that contain their wide values are returned unchanged.

    Args:
        sources: By table, what its columns are called there; by default as in the type. A column
            that a table lacks is null in its rows.
    """

    def __init__(
        self, *tables: Table, sources: Mapping[TableAddress, WideSources] | None = None
    ) -> None:
        self._tables = tables
        self._sources = sources or {}

    def refer(self, schema: pa.Schema, table: Table, rows: pa.Table) -> pa.Table:
        """Rows of `read_columns` with those of `reference_schema`; each wide value is read once."""
        wide = [field for field in schema if is_wide(field.type)]
        references = {field.name: pa.nulls(len(rows), _reference(field.type)) for field in wide}
        stored = [field for field in wide if self._source(table, field.name) is not None]
        if stored:
            addresses = rows[ROW_ADDRESS].combine_chunks().to_numpy()
            references |= self._references(stored, table, addresses)
        columns = [
            references[field.name]
            if field.name in references
            else rows[field.name].cast(field.type)
            for field in schema
        ]
        return pa.Table.from_arrays(columns, schema=reference_schema(schema))

    def in_order(self, rows: pa.Table) -> pa.Table:
        """The rows sorted by the addresses of their wide values, so that few reads are needed."""
        named = _reference_columns(rows)
        if not named:
            return rows
        places = {part: _part(rows[named[0]], part) for part in ("table", "address")}
        keys = [(part, "ascending") for part in places]
        return rows.take(pc.sort_indices(pa.table(places), sort_keys=keys))

    def complete(self, schema: pa.Schema, rows: pa.Table) -> pa.RecordBatchReader:
        """The rows with their values, in batches of bounded size."""
        batches = (
            batch
            for (chunk,) in self.chunks(schema, rows)
            if chunk is not None
            for batch in chunk.to_batches()
        )
        return pa.RecordBatchReader.from_batches(schema, batches)

    def chunks(
        self, schema: pa.Schema, *sides: pa.Table | None
    ) -> Iterator[tuple[pa.Table | None, ...]]:
        """Rows of several sides in the same order, with their values, a few at a time."""
        for start, stop in _windows([rows for rows in sides if rows is not None]):
            yield tuple(
                None if rows is None else self._complete(schema, rows.slice(start, stop - start))
                for rows in sides
            )

    def values(self, schema: pa.Schema, rows: pa.Table, name: str) -> list[object]:
        """One column of a few rows, as Python values."""
        column: list[object] = self._values(rows[name], schema.field(name)).to_pylist()
        return column

    def _complete(self, schema: pa.Schema, rows: pa.Table) -> pa.Table:
        if not _reference_columns(rows):
            return rows
        columns = [self._values(rows[field.name], field) for field in schema]
        return pa.Table.from_arrays(columns, schema=schema)

    def _source(self, table: Table, name: str) -> str | None:
        return self._sources.get(table.address, {}).get(name, name)

    def _number(self, table: Table) -> int:
        return [own.address for own in self._tables].index(table.address)

    def _references(
        self, wide: list[pa.Field], table: Table, addresses: np.ndarray
    ) -> dict[str, pa.ChunkedArray]:
        number = self._number(table)
        names = {field.name: str(self._source(table, field.name)) for field in wide}
        references: dict[str, list[pa.Array]] = {field.name: [] for field in wide}
        start, count = 0, _FIRST_ROWS
        while start < len(addresses):
            places = addresses[start : start + count]
            start += len(places)
            rows = read_at(table, places, list(names.values()))
            for field in wide:
                values = rows[names[field.name]].cast(field.type).combine_chunks()
                references[field.name].append(_references_to(values, field.type, number, places))
            fitting = len(places) * WIDE_BATCH_BYTES // max(1, rows.nbytes)
            count = max(1, min(fitting, _GROWTH_MAX * count, ROWS_PER_BATCH_MAX))
        return {
            field.name: pa.chunked_array(references[field.name], _reference(field.type))
            for field in wide
        }

    def _values(self, column: pa.ChunkedArray, field: pa.Field) -> pa.ChunkedArray:
        if not is_reference(column.type):
            return column
        numbers = pc.fill_null(_part(column, "table"), -1).to_numpy()
        addresses = pc.fill_null(_part(column, "address"), 0).to_numpy()
        parts: list[pa.Array] = []
        order = np.empty(len(column), np.int64)

        def add(places: np.ndarray, values: pa.ChunkedArray) -> None:
            order[places] = np.arange(len(places)) + sum(map(len, parts))
            parts.extend(values.cast(field.type).chunks)

        for number in np.unique(numbers).tolist():
            places = np.flatnonzero(numbers == number)
            if number < 0:
                given = _part(column, "given")
                add(places, given.take(pa.array(places)))
            else:
                table = self._tables[number]
                source = str(self._source(table, field.name))
                add(places, read_at(table, addresses[places], [source])[source])
        values = pa.chunked_array(parts, field.type)
        is_in_order = np.array_equal(order, np.arange(len(order)))
        return values if is_in_order else values.take(pa.array(order))


def _reference(kind: pa.DataType) -> pa.StructType:
    given_type = pa.large_binary() if pa.types.is_large_binary(kind) else pa.list_(kind.value_type)
    return pa.struct(
        [
            pa.field("digest", pa.utf8()),
            pa.field("table", pa.int32()),
            pa.field("address", pa.uint64()),
            pa.field("size", pa.int64()),
            # A value that no table has: a resolution of a conflict gave it.
            pa.field("given", given_type),
        ]
    )


def _references_to(
    values: pa.Array, kind: pa.DataType, number: int, addresses: np.ndarray
) -> pa.Array:
    count = len(values)
    parts = [
        pa.array(digests_of(values), pa.utf8()),
        pa.array(np.full(count, number, np.int32)),
        pa.array(addresses),
        pa.array(_sizes(values)),
        pa.nulls(count, _reference(kind).field("given").type),
    ]
    return _make_references(kind, parts, values)


def _make_references(kind: pa.DataType, parts: list[pa.Array], values: pa.Array) -> pa.Array:
    fields = list(_reference(kind))
    return pa.StructArray.from_arrays(parts, fields=fields, mask=values.is_null())


def _part(column: pa.ChunkedArray, name: str) -> pa.ChunkedArray:
    return pc.struct_field(column, name)


def _sizes(values: pa.Array) -> np.ndarray:
    if pa.types.is_fixed_size_list(values.type):
        width = values.type.list_size * values.type.value_type.bit_width // 8
        return np.full(len(values), width, np.int64)
    sizes: np.ndarray = pc.fill_null(pc.binary_length(values), 0).to_numpy()
    return sizes.astype(np.int64)


def _reference_columns(rows: pa.Table) -> list[str]:
    return [field.name for field in rows.schema if is_reference(field.type)]


def _windows(sides: list[pa.Table]) -> Iterator[tuple[int, int]]:
    """Where to cut rows of several sides, so that no part has too many bytes of wide values."""
    count = sides[0].num_rows
    if not any(map(_reference_columns, sides)):
        yield 0, count
        return
    sizes = np.zeros(count, np.int64)
    for rows in sides:
        for name in _reference_columns(rows):
            sizes += pc.fill_null(_part(rows[name], "size"), 0).to_numpy()
    total = np.cumsum(sizes)
    start = 0
    while start < len(sizes):
        start_bytes = total[start - 1] if start else 0
        fitting = int(np.searchsorted(total, start_bytes + WIDE_BATCH_BYTES, side="right"))
        stop = min(max(fitting, start + 1), start + ROWS_PER_BATCH_MAX)
        yield start, stop
        start = stop
