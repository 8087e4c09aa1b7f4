"""Types at the edge of Spark: its types for ours, and the Arrow types it accepts and returns."""

from __future__ import annotations

from inspect import signature
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import types as spark
from pyspark.sql.pandas.types import to_arrow_schema

from omnigraph.errors import InternalError, InvalidInputError
from omnigraph.model.types import ResultType
from omnigraph.schema.arrow import value_field

_UINT64: Final = pa.decimal128(20, 0)
_INSTANT: Final = pa.timestamp("us", tz="UTC")

_PLAIN: Final[dict[pa.DataType, spark.DataType]] = {
    pa.utf8(): spark.StringType(),
    pa.bool_(): spark.BooleanType(),
    pa.int32(): spark.IntegerType(),
    pa.int64(): spark.LongType(),
    _UINT64: spark.DecimalType(20, 0),
    pa.float32(): spark.FloatType(),
    pa.float64(): spark.DoubleType(),
    pa.date32(): spark.DateType(),
    _INSTANT: spark.TimestampType(),
    pa.binary(): spark.BinaryType(),
}
"""The Arrow types that cross the edge, and Spark's type for each; lists of them cross too."""

_CROSSES_AS: Final[dict[pa.DataType, pa.DataType]] = {
    # Spark has no unsigned integers.
    pa.uint32(): pa.int64(),
    pa.uint64(): _UINT64,
    pa.large_binary(): pa.binary(),
    pa.large_utf8(): pa.utf8(),
    pa.string_view(): pa.utf8(),
}

# Spark 4.0 has no such argument, and means UTC.
_IN_UTC: Final[dict[str, Any]] = (
    {"timezone": "UTC"} if "timezone" in signature(to_arrow_schema).parameters else {}
)


def spark_type(type_: ResultType) -> spark.DataType:
    """The Spark type of a column of a result.

    >>> from omnigraph.model.types import ListType, Scalar
    >>> spark_type(Scalar.U64).simpleString(), spark_type(ListType(Scalar.U32)).simpleString()
    ('decimal(20,0)', 'array<bigint>')
    """
    return _to_spark(crossing_type(value_field("value", type_, nullable=True).type))


def spark_schema(schema: pa.Schema) -> spark.StructType:
    """The Spark schema of an Arrow schema of ours."""
    return spark.StructType(
        [
            spark.StructField(field.name, _to_spark(crossing_type(field.type)), field.nullable)
            for field in schema
        ]
    )


def arrow_schema(schema: spark.StructType) -> pa.Schema:
    """The Arrow schema in which Spark takes and gives rows of a schema of its own."""
    return to_arrow_schema(schema, **_IN_UTC)


def crossing_type(type_: pa.DataType) -> pa.DataType:
    """The Arrow type in which values of an Arrow type of ours are passed to and from Spark."""
    if pa.types.is_list(type_) or pa.types.is_large_list(type_):
        item = type_.value_field
        return pa.list_(pa.field("element", crossing_type(item.type), nullable=item.nullable))
    if pa.types.is_fixed_size_list(type_):
        return pa.list_(pa.field("element", crossing_type(type_.value_type)))
    if pa.types.is_struct(type_):
        return pa.struct(
            [
                pa.field(field.name, crossing_type(field.type), nullable=field.nullable)
                for field in type_
            ]
        )
    if pa.types.is_dictionary(type_):
        return crossing_type(type_.value_type)
    if pa.types.is_timestamp(type_):
        return _INSTANT
    crossing = _CROSSES_AS.get(type_, type_)
    if crossing not in _PLAIN:
        message = f"no property has values of Arrow's type {type_}"
        raise InvalidInputError(message, hint="convert the column to the type of its property")
    return crossing


def crossing_schema(schema: pa.Schema) -> pa.Schema:
    """`crossing_type` of every column, without metadata."""
    return pa.schema(
        [
            pa.field(field.name, crossing_type(field.type), nullable=field.nullable)
            for field in schema
        ]
    )


def to_crossing(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The same values in the types that cross the edge."""
    return batch.cast(crossing_schema(batch.schema), safe=True)


def _to_spark(crossing: pa.DataType) -> spark.DataType:
    if pa.types.is_list(crossing):
        return spark.ArrayType(_to_spark(crossing.value_type), crossing.value_field.nullable)
    if pa.types.is_struct(crossing):
        return spark.StructType(
            [
                spark.StructField(field.name, _to_spark(field.type), field.nullable)
                for field in crossing
            ]
        )
    if crossing not in _PLAIN:
        message = f"Spark has no name for {crossing}"
        raise InternalError(message)
    return _PLAIN[crossing]
