"""Pending changes: what one write has gathered for each table, and nobody has agreed to yet."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.integrity.deltas import Delta, TableDelta, delta_schema
from omnigraph.model.tables import TableKey
from omnigraph.schema.catalog import Catalog, SchemaType


class Pending:
    """The changes of one write, by table, as they stand after all that was put and deleted."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._tables: dict[TableKey, PendingTable] = {}

    def table(self, key: TableKey) -> PendingTable:
        """What is pending of one table, which may be nothing."""
        found = self._tables.get(key)
        if found is None:
            found = self._tables[key] = PendingTable(self._catalog.type_of(key))
        return found

    def changed(self) -> Iterator[tuple[TableKey, PendingTable]]:
        """The tables of which anything is pending."""
        return ((key, each) for key, each in self._tables.items() if not each.is_empty)

    def delta(self) -> Delta:
        """What the write brings to the graph, for the rules to judge."""
        return Delta({key: each.delta() for key, each in self.changed()})


@dataclass(slots=True)
class PendingTable:
    """The rows to write into one table and the ids to delete from it.

    Rows that are put together stand as they are, even where two have one id: that is for the rules
    to find. A row of an id that was put before replaces the earlier one.

    Attributes:
        is_fresh: Whether every id was made for its row, so that none can be committed already.
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
        """The columns that rows to put have."""
        return self._schema

    @property
    def is_empty(self) -> bool:
        """Whether nothing is pending."""
        return not self._parts and not self._deleted

    def put(self, rows: pa.Table, *, fresh: bool = False) -> None:
        """Write these rows, in the place of what stands under their ids.

        Args:
            rows: With the columns of `schema`.
            fresh: Whether their ids were made for them just now.
        """
        if len(rows):
            self.is_fresh = self.is_fresh and fresh
            self._parts.append(rows)

    def delete(self, ids: pa.Array) -> None:
        """Remove the rows of these ids, committed or pending."""
        if not len(ids):
            return
        self._parts = [
            left
            for each in self._parts
            if len(left := each.filter(pc.invert(pc.is_in(each["id"], value_set=ids))))
        ]
        self._deleted = [pc.unique(pa.concat_arrays([*self._deleted, ids]))]

    def rows(self) -> pa.Table:
        """The rows to write: of those that were put one after the other, the last of each id."""
        if len(self._parts) > 1:
            self._parts = [_last_of_each_id(self._parts)]
        return self._parts[0] if self._parts else self._schema.empty_table()

    def deletions(self) -> pa.Array:
        """The ids to delete, each once; one that was put afterwards is among them all the same."""
        return self._deleted[0] if self._deleted else pa.array([], pa.utf8())

    def uncovered(self, ids: pa.Array) -> pa.Array:
        """Those of some committed ids whose rows still stand: neither replaced nor deleted."""
        for hidden in (self.rows()["id"].combine_chunks(), self.deletions()):
            if len(hidden):
                ids = ids.filter(pc.invert(pc.is_in(ids, value_set=hidden)))
        return ids

    def delta(self) -> TableDelta:
        """What the write brings to this table."""
        return TableDelta(upserts=self.rows(), deletions=self.deletions())


def _last_of_each_id(parts: list[pa.Table]) -> pa.Table:
    rows = pa.concat_tables(parts)
    ids = rows["id"].combine_chunks()
    if pc.count_distinct(ids, mode="all").as_py() == len(ids):
        return rows
    codes = pc.dictionary_encode(ids, null_encoding="encode").indices.to_numpy()
    part_of = np.repeat(np.arange(len(parts)), [len(each) for each in parts])
    last = np.zeros(codes.max() + 1, dtype=part_of.dtype)
    np.maximum.at(last, codes, part_of)
    return rows.filter(pa.array(part_of == last[codes]))
