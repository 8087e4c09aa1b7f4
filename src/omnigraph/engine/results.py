"""Results: computed tables, converted to exactly the columns that a plan declares."""

from __future__ import annotations

from functools import lru_cache

import pyarrow as pa

from omnigraph.errors import ErrorCode, InvalidInputError
from omnigraph.limits import COMPILED_QUERIES_MAX
from omnigraph.relational.plans import OutputColumn
from omnigraph.schema.arrow import value_field


@lru_cache(maxsize=COMPILED_QUERIES_MAX)
def output_schema(columns: tuple[OutputColumn, ...]) -> pa.Schema:
    """The Arrow schema of a result."""
    return pa.schema(
        [value_field(column.name, column.type, nullable=column.nullable) for column in columns]
    )


def conform(computed: pa.Table, columns: tuple[OutputColumn, ...]) -> pa.Table:
    """Give a computed table the declared names and types; values convert exactly."""
    schema = output_schema(columns)
    arrays = [_convert(computed.column(place), field) for place, field in enumerate(schema)]
    return pa.Table.from_arrays(arrays, schema=schema)


def cast_batch(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The same rows with exactly these types; names and places are those of the schema.

    For rows of a table that an engine returned, whose values all fit.
    """
    arrays = [
        array if array.type == field.type else _cast(array, field.type)
        for array, field in zip(batch.columns, schema, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _convert(array: pa.ChunkedArray, field: pa.Field) -> pa.ChunkedArray:
    if array.type == field.type:
        return array
    try:
        chunks = [_cast(chunk, field.type) for chunk in array.chunks]
        return pa.chunked_array(chunks, field.type)
    except pa.ArrowInvalid as cause:
        message = f"a value of column {field.name} does not fit {field.type}: {cause}"
        raise out_of_range_error(message) from cause


def out_of_range_error(message: str) -> InvalidInputError:
    """The error about a computed value that does not fit its type."""
    hint = "compute with floats: write 1.0 * …; or sum fewer rows"
    return InvalidInputError(message, hint=hint, code=ErrorCode.VALUE_OUT_OF_RANGE)


def _cast(array: pa.Array, kind: pa.DataType) -> pa.Array:
    # Casting lists that are all null, and so have no items, to fixed-size lists kills pyarrow
    # (tests/contract/spark/facts/test_arrow.py).
    if array.null_count == len(array) and not pa.types.is_struct(kind):
        return pa.nulls(len(array), kind)
    if pa.types.is_struct(kind):
        # By place: an engine knows no names of its values.
        values = [_cast(array.field(place), field.type) for place, field in enumerate(kind)]
        return pa.StructArray.from_arrays(values, fields=list(kind), mask=array.is_null())
    return array.cast(kind, safe=True)
