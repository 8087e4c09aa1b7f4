"""Values as columns: what a mutation is given, in the Arrow types of a delta."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import pyarrow as pa

from omnigraph.integrity.deltas import POSITION
from omnigraph.query import ir

_CHUNK_BYTES_MAX: Final = 64 << 20
"""One value repeated fills a chunk of about this size; Arrow's texts end at two gigabytes."""

_CHUNK_ROWS_MAX: Final = 1 << 16


def one_row(schema: pa.Schema, values: Mapping[str, ir.Value]) -> pa.Table:
    """A row with a value for every column of the schema."""
    columns = [pa.array([values[each.name]], each.type) for each in schema]
    return pa.Table.from_arrays(columns, schema=schema)


def assigned(rows: pa.Table, values: Mapping[str, ir.Value]) -> pa.Table:
    """The rows, each with these values in the place of those it had."""
    for name, value in values.items():
        place = rows.schema.get_field_index(name)
        field = rows.schema.field(place)
        rows = rows.set_column(place, field, _repeated(value, field.type, len(rows)))
    return rows


def to_delta(found: pa.Table, schema: pa.Schema, position: int) -> pa.Table:
    """Committed rows as a delta has them."""
    columns = [
        _repeated(position, each.type, len(found))
        if each.name == POSITION
        else found[each.name].cast(each.type)
        for each in schema
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def _repeated(value: ir.Value, kind: pa.DataType, times: int) -> pa.ChunkedArray:
    one = pa.array([value], kind)
    rows = min(_CHUNK_ROWS_MAX, max(1, _CHUNK_BYTES_MAX // max(1, one.nbytes)), max(1, times))
    chunk = one.take(pa.array([0] * rows, pa.int32()))
    chunks = [chunk] * (times // rows)
    if rest := times % rows:
        chunks.append(chunk.slice(0, rest))
    return pa.chunked_array(chunks, kind)
