"""Checks of tables: pinned versions open and are complete, and heads are at their pins."""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

import pyarrow as pa

from omnigraph.errors import BranchNotFoundError, NotFoundError, OmnigraphError
from omnigraph.maintenance.checking.report import BACKUP, Finding, Invariant, Notebook
from omnigraph.maintenance.drift import HeadState, head_of
from omnigraph.manifest.reader import Manifest
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.model.tables import TablePin
from omnigraph.recovery.sweep import Recovery
from omnigraph.schema.arrow import is_blob, table_schema
from omnigraph.schema.catalog import Catalog, SchemaType
from omnigraph.storage.objects import Objects
from omnigraph.storage.tables import Table, TableAddress


def check_types(snapshot: Snapshot, catalog: Catalog, notebook: Notebook) -> None:
    """Check that the branch pins a table for each type of its schema, and no other."""
    place = f"branch {snapshot.branch}"
    types = {type_.table_key for type_ in catalog.types}
    for key in sorted(types - snapshot.pins.keys()):
        problem = "the schema declares it, but it has no table"
        notebook.find(Finding(Invariant.SCHEMA, str(key), place, problem, BACKUP))
    for key in sorted(snapshot.pins.keys() - types):
        problem = "it has a table, but the schema does not declare it"
        notebook.find(Finding(Invariant.SCHEMA, str(key), place, problem, BACKUP))


class Files:
    """The data files that exist. A folder is listed once, and again before a file is missing."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._listed: dict[str, frozenset[str]] = {}

    def missing(self, table: Table) -> list[str]:
        """The files of a table that do not exist."""
        paths = list(table.data_paths())
        stale = {_folder(path) for path in paths if path not in self._list(_folder(path))}
        for folder in stale:
            # Others may have written the file since.
            del self._listed[folder]
        return [path for path in paths if path not in self._list(_folder(path))]

    def _list(self, folder: str) -> frozenset[str]:
        if folder not in self._listed:
            self._listed[folder] = frozenset(self._objects.list(folder))
        return self._listed[folder]


def _folder(path: str) -> str:
    return path.rpartition("/")[0]


def check_table(
    manifest: Manifest, files: Files, pin: TablePin, type_: SchemaType, notebook: Notebook
) -> Table | None:
    """Check the files, columns and row count of a pinned version; return it if it is readable."""
    notebook.count(Invariant.TABLE)
    tables = manifest.store.tables
    address = tables.address(pin.location, ref=pin.ref, version=pin.version)
    subject, place = str(pin.key), format_place(address)
    try:
        table = tables.open_pin(pin)
        rows = table.count_rows()
        missing = files.missing(table)
    except OmnigraphError as failure:
        what = "its pinned version cannot be opened"
        step = BACKUP if isinstance(failure, NotFoundError) else ""
        notebook.fail(Invariant.TABLE, subject, place, failure, what=what, step=step)
        return None
    if missing:
        number = "a file" if len(missing) == 1 else f"{len(missing):,} files"
        problem = f"{number} with its rows is not there: {missing[0]}"
        notebook.find(Finding(Invariant.TABLE, subject, place, problem, BACKUP))
    if rows != pin.row_count:
        problem = f"it has {rows:,} rows, and the manifest says {pin.row_count:,}"
        notebook.find(Finding(Invariant.TABLE, subject, place, problem, BACKUP))
    wrong = list(_wrong_columns(table.schema, type_))
    for problem in wrong:
        notebook.find(Finding(Invariant.SCHEMA, subject, place, problem, BACKUP))
    return None if wrong else table


def format_place(address: TableAddress) -> str:
    """The place of a table's version below the graph's root, as text."""
    ref = f", ref {address.ref}" if address.ref else ""
    return f"{address.location}{ref}, version {address.version}"


def _wrong_columns(schema: pa.Schema, type_: SchemaType) -> Iterator[str]:
    wanted = table_schema(type_)
    for field in wanted:
        if field.name not in schema.names:
            yield f"it has no column {field.name}, which the schema declares"
        elif schema.field(field.name).nullable != field.nullable:
            may = "may not" if field.nullable else "may"
            yield f"its column {field.name} {may} be null, and the schema says otherwise"
        elif not is_blob(field) and schema.field(field.name).type != field.type:
            # Blobs read back as a type of Lance's own.
            kind = schema.field(field.name).type
            yield f"its column {field.name} is {kind}, and the schema wants {field.type}"
    for name in schema.names:
        if name not in wanted.names:
            yield f"it has a column {name}, which the schema does not declare"


def check_head(
    manifest: Manifest, recovery: Recovery, snapshot: Snapshot, pin: TablePin, notebook: Notebook
) -> None:
    """Check that the newest version of a table that the branch owns is the one it pins."""
    if not snapshot.owns(pin):
        # Another branch moves the head; this one only needs the version that it pins.
        return
    notebook.count(Invariant.HEAD)
    subject = str(pin.key)
    place = f"branch {snapshot.branch}, {pin.location}"
    try:
        head = head_of(manifest, recovery, snapshot, pin)
    except BranchNotFoundError:
        # It was deleted during the check.
        return
    except OmnigraphError as failure:
        notebook.fail(Invariant.HEAD, subject, place, failure)
        return
    pinned = f"it is pinned at version {pin.version}"
    match head.state:
        case HeadState.AT_PIN:
            return
        case HeadState.CLAIMED:
            problem = f"{pinned}, and the write {head.claimed_by} moved it on"
            step = "nothing: the write, or whoever recovers it, brings both together"
            notebook.note(Finding(Invariant.HEAD, subject, place, problem, step))
        case HeadState.STRAY:
            problem = f"{pinned}, and a stalled recovery restored it as version {head.version}"
            step = "nothing: the next write to it sets that right"
            notebook.note(Finding(Invariant.HEAD, subject, place, problem, step))
        case HeadState.DRIFTED | HeadState.BEHIND:
            problem = f"{pinned}, and its head is {head.version}"
            step = BACKUP if head.state is HeadState.BEHIND else "see 'omnigraph repair'"
            notebook.find(Finding(Invariant.HEAD, subject, place, problem, step))
        case _:
            assert_never(head.state)
