"""Values as columns: the values of a mutation, in the Arrow types of a delta."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import pyarrow as pa

from omnigraph.integrity.deltas import POSITION
from omnigraph.query import ir

_CHUNK_BYTES_MAX: Final = 64 << 20
"""The size of a chunk with one repeated value; Arrow's texts are limited to two gigabytes."""

_CHUNK_ROWS_MAX: Final = 1 << 16


def one_row(schema: pa.Schema, values: Mapping[str, ir.Value]) -> pa.Table:
    """A row with a value for every column of the schema."""
    columns = [pa.array([values[field.name]], field.type) for field in schema]
    return pa.Table.from_arrays(columns, schema=schema)


def assign(rows: pa.Table, values: Mapping[str, ir.Value]) -> pa.Table:
    """The rows with these values in every row."""
    for name, value in values.items():
        place = rows.schema.get_field_index(name)
        field = rows.schema.field(place)
        rows = rows.set_column(place, field, repeat(value, field.type, len(rows)))
    return rows


def to_delta(rows: pa.Table, schema: pa.Schema, position: int) -> pa.Table:
    """Committed rows in the schema of a delta."""
    columns = [
        repeat(position, field.type, len(rows))
        if field.name == POSITION
        else rows[field.name].cast(field.type)
        for field in schema
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def repeat(value: ir.Value, kind: pa.DataType, times: int) -> pa.ChunkedArray:
    """A column that has one value in every row."""
    one = pa.array([value], kind)
    rows = min(_CHUNK_ROWS_MAX, max(1, _CHUNK_BYTES_MAX // max(1, one.nbytes)), max(1, times))
    chunk = one.take(pa.array([0] * rows, pa.int32()))
    chunks = [chunk] * (times // rows)
    if rest := times % rows:
        chunks.append(chunk.slice(0, rest))
    return pa.chunked_array(chunks, kind)
