"""Wide values: vectors and blobs stay in their tables, and rows that are compared refer to them.

A reference has the digest of its value, by which an engine compares it, its size, and its address.
The value is read when its row is shown or written, a few rows at a time, so that the memory of a
merge does not depend on how many it changes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.changes.digests import digests_of, is_wide
from omnigraph.limits import ROWS_PER_BATCH_MAX, WIDE_BATCH_BYTES
from omnigraph.storage.places import read_at
from omnigraph.storage.tables import ROW_ADDRESS, Table

_FIRST_ROWS: Final = 64
"""Rows of the first read, when the size of the values is unknown."""

_GROWTH_MAX: Final = 4


def referring(schema: pa.Schema) -> pa.Schema:
    """The columns with references instead of wide values."""
    return pa.schema(
        [
            pa.field(each.name, _reference(each.type), nullable=each.nullable)
            if is_wide(each.type)
            else each
            for each in schema
        ]
    )


def is_reference(kind: pa.DataType) -> bool:
    """Whether a column holds references; no property has such a type itself."""
    return bool(pa.types.is_struct(kind))


def read_columns(schema: pa.Schema) -> list[str]:
    """The columns to read from a table before `WideValues.refer` adds the references."""
    narrow = [each.name for each in schema if not is_wide(each.type)]
    return narrow if len(narrow) == len(schema) else [*narrow, ROW_ADDRESS]


def given_value(kind: pa.DataType, value: object) -> pa.Array:
    """One value that no table has, as a reference that contains it."""
    values = pa.array([value], kind)
    held = _reference(kind).field("given").type
    parts = [
        pa.array(digests_of(values), pa.utf8()),
        pa.nulls(1, pa.int32()),
        pa.nulls(1, pa.uint64()),
        pa.array(_sizes(values)),
        values.cast(held),
    ]
    return _referred(kind, parts, values)


class WideValues:
    """The tables that references point to; threads may use it concurrently.

    Rows that contain their wide values are returned unchanged.
    """

    def __init__(self, *tables: Table) -> None:
        self._tables = tables

    def refer(self, schema: pa.Schema, table: Table, rows: pa.Table) -> pa.Table:
        """Rows of `read_columns` with the columns of `referring`; each wide value is read once."""
        wide = [each for each in schema if is_wide(each.type)]
        found = {}
        if wide:
            addresses = rows[ROW_ADDRESS].combine_chunks().to_numpy()
            found = self._references(wide, table, addresses)
        columns = [
            found[each.name] if each.name in found else rows[each.name].cast(each.type)
            for each in schema
        ]
        return pa.Table.from_arrays(columns, schema=referring(schema))

    def in_order(self, rows: pa.Table) -> pa.Table:
        """The rows sorted by the addresses of their wide values, so that few reads are needed."""
        named = _referring(rows)
        if not named:
            return rows
        places = {part: _part(rows[named[0]], part) for part in ("table", "address")}
        keys = [(part, "ascending") for part in places]
        return rows.take(pc.sort_indices(pa.table(places), sort_keys=keys))

    def whole(self, schema: pa.Schema, rows: pa.Table) -> pa.RecordBatchReader:
        """The rows with their values, in batches of bounded size."""
        batches = (
            batch
            for (some,) in self.chunks(schema, rows)
            if some is not None
            for batch in some.to_batches()
        )
        return pa.RecordBatchReader.from_batches(schema, batches)

    def chunks(
        self, schema: pa.Schema, *sides: pa.Table | None
    ) -> Iterator[tuple[pa.Table | None, ...]]:
        """Rows of several sides in the same order, with their values, a few at a time."""
        for start, stop in _windows([each for each in sides if each is not None]):
            yield tuple(
                None if each is None else self._whole(schema, each.slice(start, stop - start))
                for each in sides
            )

    def values(self, schema: pa.Schema, rows: pa.Table, name: str) -> list[object]:
        """One column of a few rows, as Python values."""
        column: list[object] = self._values(rows[name], schema.field(name)).to_pylist()
        return column

    def _whole(self, schema: pa.Schema, rows: pa.Table) -> pa.Table:
        if not _referring(rows):
            return rows
        columns = [self._values(rows[each.name], each) for each in schema]
        return pa.Table.from_arrays(columns, schema=schema)

    def _number(self, table: Table) -> int:
        addresses = [each.address for each in self._tables]
        return addresses.index(table.address)

    def _references(
        self, wide: list[pa.Field], table: Table, addresses: np.ndarray
    ) -> dict[str, pa.ChunkedArray]:
        number = self._number(table)
        found: dict[str, list[pa.Array]] = {each.name: [] for each in wide}
        start, count = 0, _FIRST_ROWS
        while start < len(addresses):
            places = addresses[start : start + count]
            start += len(places)
            rows = read_at(table, places, [each.name for each in wide])
            for each in wide:
                values = rows[each.name].cast(each.type).combine_chunks()
                found[each.name].append(_references_to(values, each.type, number, places))
            fitting = len(places) * WIDE_BATCH_BYTES // max(1, rows.nbytes)
            count = max(1, min(fitting, _GROWTH_MAX * count, ROWS_PER_BATCH_MAX))
        return {
            each.name: pa.chunked_array(found[each.name], _reference(each.type)) for each in wide
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
                held = _part(column, "given")
                add(places, held.take(pa.array(places)))
            else:
                found = read_at(self._tables[number], addresses[places], [field.name])
                add(places, found[field.name])
        values = pa.chunked_array(parts, field.type)
        is_in_order = np.array_equal(order, np.arange(len(order)))
        return values if is_in_order else values.take(pa.array(order))


def _reference(kind: pa.DataType) -> pa.StructType:
    held = pa.large_binary() if pa.types.is_large_binary(kind) else pa.list_(kind.value_type)
    return pa.struct(
        [
            pa.field("digest", pa.utf8()),
            pa.field("table", pa.int32()),
            pa.field("address", pa.uint64()),
            pa.field("size", pa.int64()),
            # A value that no table has: a resolution of a conflict gave it.
            pa.field("given", held),
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
    return _referred(kind, parts, values)


def _referred(kind: pa.DataType, parts: list[pa.Array], values: pa.Array) -> pa.Array:
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


def _referring(rows: pa.Table) -> list[str]:
    return [each.name for each in rows.schema if is_reference(each.type)]


def _windows(sides: list[pa.Table]) -> Iterator[tuple[int, int]]:
    """Where to cut rows of several sides, so that no part has too many bytes of wide values."""
    count = sides[0].num_rows
    if not any(map(_referring, sides)):
        yield 0, count
        return
    sizes = np.zeros(count, np.int64)
    for rows in sides:
        for name in _referring(rows):
            sizes += pc.fill_null(_part(rows[name], "size"), 0).to_numpy()
    total = np.cumsum(sizes)
    start = 0
    while start < len(sizes):
        held = total[start - 1] if start else 0
        fitting = int(np.searchsorted(total, held + WIDE_BATCH_BYTES, side="right"))
        stop = min(max(fitting, start + 1), start + ROWS_PER_BATCH_MAX)
        yield start, stop
        start = stop
