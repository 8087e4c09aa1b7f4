"""Derived rows: what `insert … from match { … }` writes, for all rows of the match at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import pyarrow as pa

from omnigraph.integrity.deltas import POSITION
from omnigraph.integrity.key_texts import format_keys, key_types
from omnigraph.mutation.matched import RowFinder
from omnigraph.mutation.values import repeat
from omnigraph.query import ir
from omnigraph.schema.catalog import SchemaType


@dataclass(frozen=True, slots=True)
class DerivedRows:
    """Finds the rows of a match, and makes rows of a type of them.

    Attributes:
        mint: Makes an id for a row that has none.
    """

    matched: RowFinder
    mint: Callable[[], str]

    def rows(self, statement: ir.InsertMatched, schema: pa.Schema, position: int) -> pa.Table:
        """The rows that a statement writes, in the schema of a delta; ids may repeat."""
        type_ = self.matched.catalog.type_named(statement.type_name)
        found = self.matched.find(statement.match, type_)
        known = self.matched.given.known
        given = {each.property: known(each.value).value for each in statement.values}
        columns: dict[str, pa.ChunkedArray] = {}
        for field in schema:
            if field.name == POSITION:
                columns[field.name] = repeat(position, field.type, len(found))
            elif field.name in found.column_names:
                columns[field.name] = found[field.name].cast(field.type)
            elif field.name in given:
                columns[field.name] = repeat(given[field.name], field.type, len(found))
        if "id" not in columns:
            columns["id"] = self._ids(type_, columns, len(found))
        return pa.Table.from_arrays([columns[name] for name in schema.names], schema=schema)

    def _ids(
        self, type_: SchemaType, columns: Mapping[str, pa.ChunkedArray], count: int
    ) -> pa.ChunkedArray:
        if not type_.key:
            return pa.chunked_array([pa.array([self.mint() for _ in range(count)], pa.utf8())])
        members = [columns[name].combine_chunks() for name in type_.key]
        return pa.chunked_array([format_keys(key_types(type_), members)], pa.utf8())
