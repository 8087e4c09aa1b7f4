"""Converts reference graphs to Arrow tables, and Arrow tables to rows of the reference."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from omnigraph.model.tables import TableKey
from omnigraph.query.ir import Value
from omnigraph.schema.arrow import table_schema
from omnigraph.schema.catalog import Catalog, SchemaType
from tests.oracle.reference import ReferenceGraph, Row


def to_tables(graph: ReferenceGraph, catalog: Catalog) -> dict[TableKey, pa.Table]:
    """One table for each type of the catalog, empty where the graph has no rows of it."""
    return {type_.table_key: to_table(type_, graph.rows_of(type_.name)) for type_ in catalog.types}


def to_table(type_: SchemaType, rows: Iterable[Row]) -> pa.Table:
    """Rows of one type with exactly its columns and their types, null where `?` allows it.

    >>> from omnigraph.schema.parser import parse_schema
    >>> person = parse_schema("node Person { name: String @key age: U32? }").node_type("Person")
    >>> to_table(person, [{"id": "Ada", "name": "Ada", "age": None}]).to_pylist()
    [{'id': 'Ada', 'name': 'Ada', 'age': None}]
    """
    schema = table_schema(type_)
    given = [dict(row) for row in rows]
    for row in given:
        assert row.keys() == set(schema.names), f"{type_.name} has other columns than {row}"
        for field in schema:
            assert field.nullable or row[field.name] is not None, f"{field.name} is null in {row}"
    arrays = [pa.array([row[column.name] for row in given], column.type) for column in schema]
    table = pa.Table.from_arrays(arrays, schema=schema)
    table.validate(full=True)
    return table


def to_rows(table: pa.Table) -> list[dict[str, Value]]:
    """The rows of a table in its order, with the Python values that `query.ir` defines.

    >>> to_rows(pa.table({"tags": [["a"], None]}))
    [{'tags': ('a',)}, {'tags': None}]
    """
    return [{name: _value(value) for name, value in row.items()} for row in table.to_pylist()]


def _value(value: object) -> Value:
    # Arrow returns the Python types of `query.ir`, except for lists, also those of objects.
    if isinstance(value, dict):
        return {name: _value(each) for name, each in value.items()}  # type: ignore[return-value]
    return tuple(value) if isinstance(value, list) else value  # type: ignore[return-value]
