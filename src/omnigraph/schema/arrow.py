"""The Arrow schema of a type's table: one column per property, after the system columns.

A Blob column is `large_binary` with the field metadata `BLOB_MARK`. That is plain Arrow, so this
module needs no Lance; Lance accepts it too: a dataset created with it at storage version 2.2 or
later reads back as Lance's blob v2 extension type, bytes and nulls kept (docs/substrate.md). When
a type has blobs, rows are therefore compared with the dataset's own schema, not with this one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, assert_never

import pyarrow as pa

from omnigraph.model.types import (
    BlobType,
    EnumType,
    ListType,
    ResultType,
    Scalar,
    StructType,
    VectorType,
    WideType,
)
from omnigraph.schema.catalog import ENDPOINTS, EdgeType, NodeType, Property, SchemaType

BLOB_MARK: Final[Mapping[bytes, bytes]] = {b"lance-encoding:blob": b"true"}

_SCALARS: Final[Mapping[Scalar, pa.DataType]] = {
    Scalar.STRING: pa.utf8(),
    Scalar.BOOL: pa.bool_(),
    Scalar.I32: pa.int32(),
    Scalar.I64: pa.int64(),
    Scalar.U32: pa.uint32(),
    Scalar.U64: pa.uint64(),
    Scalar.F32: pa.float32(),
    Scalar.F64: pa.float64(),
    Scalar.DATE: pa.date32(),
    Scalar.DATETIME: pa.timestamp("us", tz="UTC"),
}


def table_schema(type_: SchemaType) -> pa.Schema:
    """The columns of a type's table, in order.

    >>> from omnigraph.schema.catalog import EdgeType
    >>> table_schema(EdgeType("Knows", "Person", "Person"))
    id: string not null
    src: string not null
    dst: string not null
    """
    match type_:
        case NodeType():
            names = ["id"]
        case EdgeType():
            names = ["id", *ENDPOINTS]
        case _:
            assert_never(type_)
    columns = [pa.field(name, pa.utf8(), nullable=False) for name in names]
    return pa.schema([*columns, *map(property_field, type_.properties)])


def to_table(rows: pa.Table, type_: SchemaType) -> pa.Table:
    """Rows of a valid delta, with the columns and types of the type's table."""
    schema = table_schema(type_)
    columns = [rows[field.name].cast(field.type) for field in schema]
    return pa.Table.from_arrays(columns, schema=schema)


def property_field(property_: Property) -> pa.Field:
    """The column that holds one property."""
    return value_field(property_.name, property_.type, nullable=property_.nullable)


def is_blob(field: pa.Field) -> bool:
    """Whether a field of ours holds blobs, itself or as the items of a list."""
    if pa.types.is_list(field.type):
        return is_blob(field.type.value_field)
    return BLOB_MARK.items() <= (field.metadata or {}).items()


def value_field(name: str, type_: ResultType, *, nullable: bool) -> pa.Field:
    """A column of values of one type."""
    match type_:
        case StructType(fields):
            values = [value_field(each.name, each.type, nullable=each.nullable) for each in fields]
            return pa.field(name, pa.struct(values), nullable=nullable)
        case WideType():
            return pa.field(name, pa.decimal128(38, 0), nullable=nullable)
        case Scalar():
            return pa.field(name, _SCALARS[type_], nullable=nullable)
        case EnumType():
            return pa.field(name, pa.utf8(), nullable=nullable)
        case VectorType(dimension):
            # Lance drops the "not null" of a fixed-size list's items, so our field omits it: the
            # schema a table is created with must equal the one it reads back.
            return pa.field(name, pa.list_(pa.float32(), dimension), nullable=nullable)
        case ListType(item):
            return pa.field(
                name, pa.list_(value_field("item", item, nullable=False)), nullable=nullable
            )
        case BlobType():
            return pa.field(name, pa.large_binary(), nullable=nullable, metadata=dict(BLOB_MARK))
        case _:
            assert_never(type_)
