"""Pending changes: the changes of one write to each table, before they are checked."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.integrity.deltas import Delta, TableDelta, delta_schema
from omnigraph.model.tables import TableKey
from omnigraph.schema.catalog import Catalog, SchemaType


class PendingChanges:
    """The changes of one write, by table."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._tables: dict[TableKey, PendingTable] = {}

    def table(self, key: TableKey) -> PendingTable:
        """The pending changes of one table, which may be none."""
        table = self._tables.get(key)
        if table is None:
            table = self._tables[key] = PendingTable(self._catalog.type_of(key))
        return table

    def changed_tables(self) -> Iterator[tuple[TableKey, PendingTable]]:
        """The tables that have pending changes."""
        return ((key, table) for key, table in self._tables.items() if not table.is_empty)

    def delta(self) -> Delta:
        """The changes as a delta, for the rules to check."""
        return Delta({key: table.delta() for key, table in self.changed_tables()})


@dataclass(slots=True)
class PendingTable:
    """The rows to write into one table and the ids to delete from it.

    Rows of one `put` are kept as they are, even where two have the same id: the rules report that.
    A row with the id of an earlier `put` replaces the earlier row.

    Attributes:
        is_fresh: Whether every id was minted for its row, so that none can be committed already.
    """

    type: SchemaType
    is_fresh: bool = True
    _schema: pa.Schema = field(init=False)
    _parts: list[pa.Table] = field(default_factory=list)
    _deleted: list[pa.Array] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._schema = delta_schema(self.type)

    @property
    def schema(self) -> pa.Schema:
        """The columns of the rows that `put` accepts."""
        return self._schema

    @property
    def is_empty(self) -> bool:
        """Whether nothing is pending."""
        return not self._parts and not self._deleted

    def put(self, rows: pa.Table, *, fresh: bool = False) -> None:
        """Write these rows, in the place of those with the same ids.

        Args:
            rows: With the columns of `schema`.
            fresh: Whether their ids were minted just now.
        """
        if len(rows):
            self.is_fresh = self.is_fresh and fresh
            self._parts.append(rows)

    def delete(self, ids: pa.Array) -> None:
        """Remove the rows of these ids, committed or pending."""
        if not len(ids):
            return
        self._parts = [
            kept
            for part in self._parts
            if len(kept := part.filter(pc.invert(pc.is_in(part["id"], value_set=ids))))
        ]
        self._deleted = [pc.unique(pa.concat_arrays([*self._deleted, ids]))]

    def rows(self) -> pa.Table:
        """The rows to write: of several calls of `put`, the last with each id."""
        if len(self._parts) > 1:
            self._parts = [_last_of_each_id(self._parts)]
        return self._parts[0] if self._parts else self._schema.empty_table()

    def replace_rows(self, rows: pa.Table) -> None:
        """Write these rows instead: the same ones, in their order, with other values."""
        assert len(rows) == len(self.rows()), "no row is added or lost"
        self._parts = [rows] if len(rows) else []

    def deletions(self) -> pa.Array:
        """The ids to delete, each once; also those of rows that were put afterwards."""
        return self._deleted[0] if self._deleted else pa.array([], pa.utf8())

    def uncovered_ids(self, ids: pa.Array) -> pa.Array:
        """The given committed ids whose rows are neither replaced nor deleted."""
        for covered in (self.rows()["id"].combine_chunks(), self.deletions()):
            if len(covered):
                ids = ids.filter(pc.invert(pc.is_in(ids, value_set=covered)))
        return ids

    def delta(self) -> TableDelta:
        """The changes of this table, for the rules to check."""
        return TableDelta(upserts=self.rows(), deletions=self.deletions())


def _last_of_each_id(parts: list[pa.Table]) -> pa.Table:
    rows = pa.concat_tables(parts)
    ids = rows["id"].combine_chunks()
    if pc.count_distinct(ids, mode="all").as_py() == len(ids):
        return rows
    codes = pc.dictionary_encode(ids, null_encoding="encode").indices.to_numpy()
    part_of = np.repeat(np.arange(len(parts)), [len(part) for part in parts])
    last = np.zeros(codes.max() + 1, dtype=part_of.dtype)
    np.maximum.at(last, codes, part_of)
    return rows.filter(pa.array(part_of == last[codes]))
