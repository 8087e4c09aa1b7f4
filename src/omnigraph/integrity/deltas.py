"""Deltas: what a write changes in each table, before it is checked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

import pyarrow as pa

from omnigraph.model.tables import TableKey
from omnigraph.schema.arrow import table_schema
from omnigraph.schema.catalog import SchemaType

POSITION: Final = "@position"
"""The column with the number of a row in its input. No property can have this name."""

_IDS: Final = pa.schema([pa.field("id", pa.utf8())])


def delta_schema(type_: SchemaType) -> pa.Schema:
    """The columns that upserted rows of a type have: the table's own, and `POSITION`.

    All are nullable: the rules find a null where none may be, and an engine would not look for
    nulls in a column that is declared without.
    """
    columns = [_make_nullable(column) for column in table_schema(type_)]
    return pa.schema([*columns, pa.field(POSITION, pa.int64())])


def _make_nullable(column: pa.Field) -> pa.Field:
    kind = column.type
    if pa.types.is_list(kind):
        kind = pa.list_(kind.value_field.with_nullable(True))  # noqa: FBT003  pyarrow's own
    return pa.field(column.name, kind, nullable=True, metadata=column.metadata)


@dataclass(frozen=True, slots=True)
class TableDelta:
    """What a write changes in one table. Deletions are applied first: an id in both is upserted.

    Attributes:
        upserts: Whole rows, with the columns of `delta_schema`; a Vector may be a list of any
            length, which the rules then check. Rows outside this process need a length, and
            `select`, which returns what the engine accepts in their place.
        deletions: The ids of rows to remove; one that does not exist changes nothing. They too may
            be outside this process.
        overwrites: Whether every committed row is deleted, so that only the upserts remain.
        only_new: Whether an upserted id that exists is a violation (`append`).
    """

    upserts: pa.Table | None = None
    deletions: pa.Array | None = None
    overwrites: bool = False
    only_new: bool = False

    def deleted_ids(self) -> pa.Table:
        """The deletions as a table with the one column `id`."""
        ids = pa.array([], pa.utf8()) if self.deletions is None else self.deletions
        if not isinstance(ids, pa.Array):
            return ids.select(_IDS.names)
        return pa.Table.from_arrays([ids], schema=_IDS)


@dataclass(frozen=True, slots=True)
class Delta:
    """What one write changes in the graph; tables that it does not name are unchanged."""

    tables: Mapping[TableKey, TableDelta] = field(default_factory=dict)

    def shape(self) -> Shape:
        """Which tables the delta changes, and how, without its rows."""

        def keys_where(flags: Iterable[tuple[TableKey, bool]]) -> frozenset[TableKey]:
            return frozenset(key for key, flag in flags if flag)

        tables = self.tables.items()
        return Shape(
            upserted=keys_where((key, has_rows(table.upserts)) for key, table in tables),
            deleted=keys_where((key, has_rows(table.deletions)) for key, table in tables),
            overwritten=keys_where((key, table.overwrites) for key, table in tables),
            only_new=keys_where((key, table.only_new) for key, table in tables),
        )


def has_rows(rows: pa.Table | pa.Array | None) -> bool:
    """Whether there are any."""
    return rows is not None and len(rows) > 0


@dataclass(frozen=True, slots=True)
class Shape:
    """Which tables a delta upserts into, deletes from and overwrites: all that plans depend on."""

    upserted: frozenset[TableKey] = frozenset()
    deleted: frozenset[TableKey] = frozenset()
    overwritten: frozenset[TableKey] = frozenset()
    only_new: frozenset[TableKey] = frozenset()


class DeltaPart(Enum):
    """The two kinds of rows that a delta has of a table."""

    UPSERTS = "upserts"
    DELETIONS = "deletions"


@dataclass(frozen=True, slots=True)
class DeltaRows:
    """A few columns of one part of a delta: what a relation of a plan stands for."""

    table: TableKey
    part: DeltaPart
    columns: tuple[str, ...]

    def of(self, delta: Delta) -> pa.Table:
        """The rows."""
        table_delta = delta.tables[self.table]
        if self.part is DeltaPart.DELETIONS:
            return table_delta.deleted_ids()
        assert table_delta.upserts is not None, "the shape says that there are some"
        return table_delta.upserts.select(list(self.columns))
