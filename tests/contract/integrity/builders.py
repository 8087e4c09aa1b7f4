"""Committed graphs on disk, and deltas, from rows as dictionaries."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from omnigraph.engine.protocol import Data, Engine
from omnigraph.integrity.deltas import POSITION, Delta, TableDelta, delta_schema
from omnigraph.integrity.evaluate import evaluate
from omnigraph.integrity.rules import RuleSet
from omnigraph.integrity.violations import IntegrityReport
from omnigraph.model.tables import TableKey
from omnigraph.schema.arrow import table_schema
from omnigraph.schema.catalog import Catalog, SchemaType
from omnigraph.storage import staging
from omnigraph.storage.indexes import IndexSpec, stage_indexes
from omnigraph.storage.store import Store
from omnigraph.storage.tables import Table
from tests.support.tables import applied

Row = Mapping[str, Any]
"""A row by its columns; what is left out is null."""

Rows = Mapping[str, Sequence[Row]]
"""Rows by the name of their type."""

_NUMBERS: Final = itertools.count()


@dataclass(frozen=True, slots=True)
class Change:
    """A delta in words: rows to write, ids to delete, types to overwrite, types to append to."""

    put: Rows = field(default_factory=dict)
    delete: Mapping[str, Sequence[str]] = field(default_factory=dict)
    overwrite: tuple[str, ...] = ()
    append: tuple[str, ...] = ()

    def delta(self, catalog: Catalog) -> Delta:
        """The same as deltas are handed to the rules."""
        names = {*self.put, *self.delete, *self.overwrite, *self.append}
        return Delta(
            {
                catalog.type_named(name).table_key: TableDelta(
                    upserts=upserts(catalog.type_named(name), self.put.get(name, ())),
                    deletions=pa.array(self.delete.get(name, ()), pa.utf8()),
                    overwrites=name in self.overwrite,
                    only_new=name in self.append,
                )
                for name in sorted(names)
            }
        )


def put(**rows: Sequence[Row]) -> Change:
    """A delta that only writes."""
    return Change(rows)


def upserts(type_: SchemaType, rows: Sequence[Row]) -> pa.Table:
    """Rows of a delta; `@position` may be among their columns."""
    schema = delta_schema(type_)
    vectors = {"vector": pa.list_(pa.float32())}
    columns = [
        pa.array([row.get(each.name) for row in rows], vectors.get(each.name, each.type))
        for each in schema
    ]
    return pa.table(dict(zip(schema.names, columns, strict=True)))


def stored(type_: SchemaType, rows: Sequence[Row]) -> pa.Table:
    """Rows as the table has them."""
    schema = table_schema(type_)
    columns = [pa.array([row.get(each.name) for row in rows], each.type) for each in schema]
    return pa.Table.from_arrays(columns, schema=schema)


@dataclass(frozen=True, slots=True)
class World:
    """A place for committed graphs, and the engine that checks deltas to them."""

    store: Store
    engine: Engine

    def data(self, catalog: Catalog, committed: Rows, *, indexed: bool = False) -> Data:
        """One table for each type of the catalog, holding these rows."""
        number = next(_NUMBERS)
        tables: dict[TableKey, Table] = {}
        for type_ in catalog.types:
            rows = stored(type_, committed.get(type_.name, ()))
            where = f"{type_.table_key.kind.folder}/{number}-{type_.name}"
            table = applied(staging.stage_create(self.store.tables, where, rows))
            texts = [each.name for each in table.schema if pa.types.is_string(each.type)]
            if indexed and rows.num_rows:
                table = applied(stage_indexes(table, map(IndexSpec, texts)))
            tables[type_.table_key] = table
        return Data(tables.__getitem__)

    def check(
        self, catalog: Catalog, committed: Rows, change: Change, *, indexed: bool = False
    ) -> IntegrityReport:
        """What the change would break."""
        return self.check_on(self.data(catalog, committed, indexed=indexed), catalog, change)

    def check_on(self, data: Data, catalog: Catalog, change: Change) -> IntegrityReport:
        """What the change would break in a graph that is there already."""
        return evaluate(
            RuleSet.compile(catalog),
            change.delta(catalog),
            data,
            self.engine,
            to_origin=lambda line: f"f:{line}",
        )


def world(path: Path, engine: Engine) -> World:
    return World(Store.open(path), engine)


def found(report: IntegrityReport) -> list[tuple[str, str, str, str | None, Any]]:
    """The violations as plain tuples: rule, type, properties, id and value."""
    return [
        (str(each.rule), each.type_name, ",".join(each.properties), each.id, each.value)
        for each in report.violations
    ]


__all__ = ["POSITION", "Change", "Row", "Rows", "World", "found", "put", "stored", "world"]
