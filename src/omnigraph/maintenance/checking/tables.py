"""Tables: pinned versions open and hold what they should, and heads are where they are pinned."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from omnigraph.errors import BranchNotFoundError, OmnigraphError
from omnigraph.maintenance.checking.report import BACKUP, Finding, Invariant, Notebook
from omnigraph.manifest.branches import Branch
from omnigraph.manifest.reader import Manifest
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.model.tables import TablePin
from omnigraph.recovery.sweep import Recovery
from omnigraph.schema.arrow import is_blob, table_schema
from omnigraph.schema.catalog import Catalog, SchemaType
from omnigraph.storage.tables import Table, TableAddress


def check_types(snapshot: Snapshot, catalog: Catalog, notebook: Notebook) -> None:
    """The branch pins a table for each type of its schema, and no other."""
    place = f"branch {snapshot.branch}"
    types = {each.table_key for each in catalog.types}
    for key in sorted(types - snapshot.pins.keys()):
        problem = "the schema declares it, and no table is pinned for it"
        notebook.find(Finding(Invariant.SCHEMA, str(key), place, problem, BACKUP))
    for key in sorted(snapshot.pins.keys() - types):
        problem = "a table is pinned for it, and the schema does not declare it"
        notebook.find(Finding(Invariant.SCHEMA, str(key), place, problem, BACKUP))


def check_table(
    manifest: Manifest, pin: TablePin, type_: SchemaType, notebook: Notebook
) -> Table | None:
    """The pinned version, if it can be read; what its columns and rows say of themselves."""
    notebook.count(Invariant.TABLE)
    tables = manifest.store.tables
    address = tables.address(pin.location, ref=pin.ref, version=pin.version)
    subject, place = str(pin.key), place_of(address)
    try:
        table = tables.open(pin.location, ref=pin.ref, version=pin.version)
        rows = table.count_rows()
    except OmnigraphError as failure:
        problem = f"its pinned version cannot be opened: {failure.message}"
        notebook.find(Finding(Invariant.TABLE, subject, place, problem, BACKUP))
        return None
    if rows != pin.row_count:
        problem = f"it has {rows:,} rows, and the manifest says {pin.row_count:,}"
        notebook.find(Finding(Invariant.TABLE, subject, place, problem, BACKUP))
    wrong = list(_wrong_columns(table.schema, type_))
    for problem in wrong:
        notebook.find(Finding(Invariant.SCHEMA, subject, place, problem, BACKUP))
    return None if wrong else table


def place_of(address: TableAddress) -> str:
    """Where a table's version lies below the graph's root."""
    ref = f", ref {address.ref}" if address.ref else ""
    return f"{address.location}{ref}, version {address.version}"


def _wrong_columns(found: pa.Schema, type_: SchemaType) -> Iterator[str]:
    wanted = table_schema(type_)
    for field in wanted:
        if field.name not in found.names:
            yield f"it has no column {field.name}, which the schema declares"
        elif found.field(field.name).nullable != field.nullable:
            may = "may not" if field.nullable else "may"
            yield f"its column {field.name} {may} be null, and the schema says otherwise"
        elif not is_blob(field) and found.field(field.name).type != field.type:
            # Blobs read back as a type of Lance's own.
            kind = found.field(field.name).type
            yield f"its column {field.name} is {kind}, and the schema wants {field.type}"
    for name in found.names:
        if name not in wanted.names:
            yield f"it has a column {name}, which the schema does not declare"


def check_head(
    manifest: Manifest, recovery: Recovery, snapshot: Snapshot, pin: TablePin, notebook: Notebook
) -> None:
    """The newest version of a table that the branch owns is the one it pins."""
    if not owns(snapshot, pin):
        # Another branch moves it on; this one only needs the version that it pins.
        return
    notebook.count(Invariant.HEAD)
    subject = str(pin.key)
    place = f"branch {snapshot.branch}, {pin.location}"
    try:
        head = manifest.store.tables.head_version(pin.location, ref=pin.ref)
        if head == pin.version or (head > pin.version and _moved_on(manifest, snapshot, pin, head)):
            return
        claimed = _claim(recovery, pin)
        if head > pin.version and claimed is not None:
            problem = f"it is pinned at version {pin.version}, and the write {claimed} moved it on"
            step = "nothing: the write, or whoever recovers it, brings both together"
            notebook.note(Finding(Invariant.HEAD, subject, place, problem, step))
            return
        if head > pin.version and _moved_on(manifest, snapshot, pin, head):
            return
        if head > pin.version and recovery.is_stray(pin, head):
            problem = f"a recovery that slept has restored it once more, as version {head}"
            step = "nothing: the next write to it sets that right"
            notebook.note(Finding(Invariant.HEAD, subject, place, problem, step))
            return
    except BranchNotFoundError:
        return
    except OmnigraphError as failure:
        notebook.fail(Invariant.HEAD, subject, place, failure)
        return
    problem = f"it is pinned at version {pin.version}, and its head is {head}"
    step = BACKUP if head < pin.version else "see 'omnigraph repair'"
    notebook.find(Finding(Invariant.HEAD, subject, place, problem, step))


def owns(snapshot: Snapshot, pin: TablePin) -> bool:
    """Whether only this branch moves the table's head."""
    if snapshot.ref is None:
        return pin.ref is None
    return Branch(snapshot.branch, snapshot.ref).owns(pin.ref)


def _claim(recovery: Recovery, pin: TablePin) -> str | None:
    """The write whose sidecar names the table's head."""
    for intent in recovery.sidecars.find().intents:
        if any((each.location, each.ref) == (pin.location, pin.ref) for each in intent.tables):
            return intent.operation_id
    return None


def _moved_on(manifest: Manifest, snapshot: Snapshot, pin: TablePin, head: int) -> bool:
    """Whether a write that landed since answers for the head.

    Asked once more after the sidecars: a writer publishes before it removes its own, so whatever
    has neither a sidecar nor a pin by then is nobody's.
    """
    now = manifest.current(snapshot.branch).pins.get(pin.key)
    return (
        now is not None
        and (now.location, now.ref) == (pin.location, pin.ref)
        and (now.version >= head)
    )
