"""Deltas: what a write brings to each table, before anybody has agreed to it."""

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
"""The column with the number of a row where it came from. No property can have this name."""

_IDS: Final = pa.schema([pa.field("id", pa.utf8())])


def delta_schema(type_: SchemaType) -> pa.Schema:
    """The columns that upserted rows of a type have: the table's own, and `POSITION`.

    All may be null: a null where none may be is for the rules to find, and an engine that was
    promised that there are none would not look.
    """
    columns = [_admitting_nulls(each) for each in table_schema(type_)]
    return pa.schema([*columns, pa.field(POSITION, pa.int64())])


def _admitting_nulls(column: pa.Field) -> pa.Field:
    kind = column.type
    if pa.types.is_list(kind):
        kind = pa.list_(kind.value_field.with_nullable(True))  # noqa: FBT003  pyarrow's own
    return pa.field(column.name, kind, nullable=True, metadata=column.metadata)


@dataclass(frozen=True, slots=True)
class TableDelta:
    """What a write brings to one table. Deletions come first, so an id in both is upserted.

    Attributes:
        upserts: Whole rows, with the columns of `delta_schema`; a Vector may be a list of any
            length, which the rules then check. Rows that are not in this process need to have a
            length, and `select`, which gives what the engine takes for them.
        deletions: The ids of rows to remove; one that does not exist changes nothing. They too may
            be elsewhere.
        overwrites: Whether every committed row goes, leaving the upserts alone.
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
    """What one write brings to the graph; tables it does not name stay as they are."""

    tables: Mapping[TableKey, TableDelta] = field(default_factory=dict)

    def shape(self) -> Shape:
        """What the delta has, without its rows."""

        def having(rows: Iterable[tuple[TableKey, object]]) -> frozenset[TableKey]:
            return frozenset(key for key, found in rows if found)

        each = self.tables.items()
        return Shape(
            upserted=having((key, has_rows(table.upserts)) for key, table in each),
            deleted=having((key, has_rows(table.deletions)) for key, table in each),
            overwritten=having((key, table.overwrites) for key, table in each),
            only_new=having((key, table.only_new) for key, table in each),
        )


def has_rows(rows: pa.Table | pa.Array | None) -> bool:
    """Whether there is anything in it."""
    return rows is not None and len(rows) > 0


@dataclass(frozen=True, slots=True)
class Shape:
    """Which tables a delta upserts into, deletes from and overwrites: all that plans depend on."""

    upserted: frozenset[TableKey] = frozenset()
    deleted: frozenset[TableKey] = frozenset()
    overwritten: frozenset[TableKey] = frozenset()
    only_new: frozenset[TableKey] = frozenset()


class Part(Enum):
    """The two kinds of rows that a delta has of a table."""

    UPSERTS = "upserts"
    DELETIONS = "deletions"


@dataclass(frozen=True, slots=True)
class DeltaRows:
    """A few columns of one part of a delta: what a relation of a plan stands for."""

    table: TableKey
    part: Part
    columns: tuple[str, ...]

    def of(self, delta: Delta) -> pa.Table:
        """The rows."""
        found = delta.tables[self.table]
        if self.part is Part.DELETIONS:
            return found.deleted_ids()
        assert found.upserts is not None, "the shape says that there are some"
        return found.upserts.select(list(self.columns))
