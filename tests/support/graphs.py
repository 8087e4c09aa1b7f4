"""Creates graphs with rows, written by storage and one publish, without a loader."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import date, datetime
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa

from omnigraph import graph
from omnigraph.choices import TableKind
from omnigraph.clock import SystemClock
from omnigraph.manifest.drafts import CommitDraft, PinTable
from omnigraph.manifest.publisher import publish
from omnigraph.manifest.reader import Manifest
from omnigraph.manifest.requirements import TableAt
from omnigraph.model.commits import OperationKind
from omnigraph.model.identity import identity_of
from omnigraph.model.ids import CommitId, OperationId
from omnigraph.model.names import MAIN
from omnigraph.model.tables import TablePin
from omnigraph.model.types import Scalar
from omnigraph.schema.arrow import table_schema
from omnigraph.schema.catalog import Catalog, SchemaType
from omnigraph.storage import heads, staging
from omnigraph.storage.indexes import IndexSpec, stage_indexes
from omnigraph.storage.store import Store

Rows: TypeAlias = "Iterable[Mapping[str, Any]] | pa.Table"

_clock = SystemClock()


def graph_with(
    uri: str | Path, schema: str | Path | Catalog, rows: Mapping[str, Rows]
) -> graph.Graph:
    """A new graph whose types have these rows, all in one commit."""
    created = graph.init(uri, schema)
    add_rows(created, rows)
    return created


def add_rows(target: graph.Graph, rows: Mapping[str, Rows]) -> str:
    """Append rows to types, publish them as one commit on main, and return its id.

    A row is a mapping by column, absent ones null, or a whole Arrow table of the type's own schema.
    A row without an `id` gets the one of its key, or a new one. Nothing is checked: a test may
    write what no loader would.
    """
    store = Store.open(target.uri)
    manifest = Manifest(store)
    now = manifest.current(MAIN)
    catalog = target.schema.show().catalog
    commit_id = CommitId(_clock.ulid())
    author = heads.Authorship(OperationId(commit_id), OperationKind.LOAD)
    before: list[TablePin] = []
    after: list[TablePin] = []
    for name, given in rows.items():
        type_ = catalog.type_named(name)
        pin = now.pin(type_.table_key)
        table = store.tables.open(pin.location, ref=pin.ref, version=pin.version)
        staged = staging.stage_append(table, _table(type_, given))
        new_pins = heads.apply(staged, author)
        before.append(pin)
        after.append(replace(pin, version=new_pins.version, row_count=staged.row_count))
    publication = CommitDraft(
        MAIN,
        commit_id,
        OperationKind.LOAD,
        changes=tuple(map(PinTable, after)),
        requires=tuple(TableAt(pin.key, pin.version, pin.ref) for pin in before),
    )
    return publish(manifest, _clock, publication).commit_id


def add_indexes(target: graph.Graph) -> None:
    """Index the ids and ends of every type, as the index writer does, and publish that."""
    manifest = Manifest(target._store)
    now = manifest.current(MAIN)
    author = heads.Authorship(OperationId(_clock.ulid()), OperationKind.INDEX)
    new_pins = []
    for key, pin in now.pins.items():
        table = target._store.tables.open(pin.location, ref=pin.ref, version=pin.version)
        columns = ["id"] if key.kind is TableKind.NODE else ["id", "src", "dst"]
        staged = stage_indexes(table, [IndexSpec(each) for each in columns])
        if staged is not None:
            new_pins.append(replace(pin, version=heads.apply(staged, author).version))
    commit_id = CommitId(_clock.ulid())
    publish(
        manifest,
        _clock,
        CommitDraft(MAIN, commit_id, OperationKind.INDEX, changes=tuple(map(PinTable, new_pins))),
    )


def _table(type_: SchemaType, given: Rows) -> pa.Table:
    if isinstance(given, pa.Table):
        return given
    schema = table_schema(type_)
    rows = [{"id": _id(type_, row), **row} for row in given]
    unknown = {name for row in rows for name in row} - set(schema.names)
    assert not unknown, f"{type_.name} has no {', '.join(sorted(unknown))}"
    return pa.Table.from_pylist([_convert_row(row, schema) for row in rows], schema=schema)


def _id(type_: SchemaType, row: Mapping[str, Any]) -> str:
    if not type_.key or "id" in row:
        return _clock.ulid()
    types: list[Any] = []
    for name in type_.key:
        is_end = name in ("src", "dst")
        types.append(Scalar.STRING if is_end else type_.property_named(name).type)
    return identity_of(types, [row[each] for each in type_.key])


def _convert_row(row: Mapping[str, Any], schema: pa.Schema) -> dict[str, Any]:
    return {name: _value(row.get(name), schema.field(name).type) for name in schema.names}


def _value(value: Any, kind: pa.DataType) -> Any:
    """Parse dates and instants from ISO-8601 text, which is more readable in tests."""
    if isinstance(value, str) and pa.types.is_date(kind):
        return date.fromisoformat(value)
    if isinstance(value, str) and pa.types.is_timestamp(kind):
        return datetime.fromisoformat(value)
    return value
