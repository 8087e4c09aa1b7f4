"""How a graph begins, and what a read-write open makes sure of."""

from __future__ import annotations

from omnigraph.clock import Clock
from omnigraph.errors import AlreadyExistsError, ErrorCode, StorageError, TableConflictError
from omnigraph.failpoints import Failpoint, hit
from omnigraph.manifest import rows, schemas
from omnigraph.manifest.layout import MANIFEST, SCHEMA_TEXT, SCHEMAS
from omnigraph.manifest.migrations import migrate
from omnigraph.manifest.reader import Manifest, had_manifest, lost_manifest
from omnigraph.manifest.schemas import AcceptedSchema
from omnigraph.model.commits import Commit, OperationKind
from omnigraph.model.ids import CommitId, OperationId, TableId
from omnigraph.model.names import MAIN
from omnigraph.model.tables import TablePin, table_location
from omnigraph.schema.arrow import table_schema
from omnigraph.schema.catalog import SchemaType
from omnigraph.storage import heads, staging
from omnigraph.storage.store import Store


def create(
    store: Store,
    clock: Clock,
    schema: AcceptedSchema,
    *,
    actor: str | None = None,
    message: str | None = None,
) -> Commit:
    """Make a graph with one empty table per type and one commit without a parent.

    The manifest's first version is the publish: until it exists there is no graph, and everything
    before it lies under fresh names. So a killed init can simply be run again, and of two at once
    exactly one wins.

    Raises:
        AlreadyExistsError: the root holds a graph, or files that are not ours. It is untouched.
        StorageError: the root holds what is left of a graph. It is untouched.
    """
    _require_vacant(store)
    # First of all, because it is what tells the leavings of a killed init from foreign files.
    digest = schemas.keep(store.objects, schema)
    hit(Failpoint.INIT_AFTER_CLAIM)

    author = heads.Authorship(OperationId(clock.ulid()), OperationKind.INIT)
    pins = tuple(_create_table(store, clock, each, author) for each in schema.catalog.types)
    commit = Commit(
        commit_id=CommitId(clock.ulid()),
        branch=MAIN,
        manifest_version=1,
        parent=None,
        merged_parent=None,
        actor=actor,
        created_at=clock.now(),
        operation=OperationKind.INIT,
        message=message,
        schema_digest=digest,
        generation=1,
    )
    contents = rows.Contents(pins, (), commit.commit_id, (commit,))
    first = rows.encode_contents(contents, MAIN)
    try:
        staged = staging.stage_create(store.tables, MANIFEST, first)
        hit(Failpoint.INIT_AFTER_STAGE)
        heads.apply(staged, author)
        hit(Failpoint.INIT_AFTER_MANIFEST)
    except (StorageError, TableConflictError):
        # A lost answer may look like a race lost to ourselves, as it does to a publisher.
        if not _landed(store, commit):
            _require_vacant(store)
            raise
    store.objects.put_if_absent(SCHEMA_TEXT, schema.text.encode())
    hit(Failpoint.INIT_AFTER_SCHEMA_TEXT)
    return commit


def prepare(store: Store, clock: Clock) -> None:
    """Bring a graph to where this release can write it: its format, and its readable schema.

    Raises:
        GraphNotFoundError: there is no graph here.
        FormatError: the graph is of a format this release does not know. Nothing was written.
    """
    manifest = Manifest(store)
    migrate(manifest, clock, MAIN)
    if store.objects.read(SCHEMA_TEXT) is None:
        # An init that was killed right after it published; the text is in the kept schema.
        digest = manifest.current(MAIN).schema_digest
        text = schemas.load(store.objects, digest).text
        store.objects.put_if_absent(SCHEMA_TEXT, text.encode())


def _require_vacant(store: Store) -> None:
    root = store.root.uri
    had_graph = had_manifest(store)
    if store.tables.exists(MANIFEST):
        message = f"{root} already holds a graph"
        hint = "open it, or choose another place"
        raise AlreadyExistsError(message, hint=hint, code=ErrorCode.GRAPH_EXISTS)
    if had_graph:
        raise lost_manifest(store)
    if store.objects.holds_any() and not store.objects.holds_any(SCHEMAS):
        message = f"{root} is not empty and holds no graph"
        hint = "choose an empty or a new directory"
        raise AlreadyExistsError(message, hint=hint, code=ErrorCode.FOREIGN_DIRECTORY)


def _create_table(
    store: Store, clock: Clock, each: SchemaType, author: heads.Authorship
) -> TablePin:
    table_id = TableId(clock.ulid())
    key = each.table_key
    location = table_location(key.kind, table_id)
    empty = table_schema(each).empty_table()
    table = heads.apply(staging.stage_create(store.tables, location, empty), author)
    hit(Failpoint.INIT_AFTER_EACH_TABLE)
    return TablePin(table_id, key, location, table.version, ref=None, row_count=0)


def _landed(store: Store, commit: Commit) -> bool:
    """Whether the manifest that is there is the one this init wrote."""
    if not store.tables.exists(MANIFEST):
        return False
    manifest = Manifest(store)
    return manifest.lookup(manifest.open(MAIN), MAIN, commit.commit_id) is not None
