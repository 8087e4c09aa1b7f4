"""Creation of a graph, and its preparation for writing."""

from __future__ import annotations

from omnigraph.clock import Clock
from omnigraph.errors import AlreadyExistsError, ErrorCode, StorageError, TableConflictError
from omnigraph.failpoints import Failpoint, hit
from omnigraph.limits import PUBLISH_ATTEMPTS_MAX
from omnigraph.manifest import rows, schemas
from omnigraph.manifest.layout import MANIFEST, SCHEMA_TEXT, SCHEMAS
from omnigraph.manifest.reader import Manifest, had_manifest, lost_manifest_error
from omnigraph.model.commits import Commit, OperationKind
from omnigraph.model.identities import TypeIdentity
from omnigraph.model.ids import CommitId, OperationId, TableId
from omnigraph.model.names import MAIN
from omnigraph.model.tables import TablePin, table_location
from omnigraph.schema.accepted import AcceptedSchema
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
    """Create a graph with one empty table per type and one commit without a parent.

    The manifest's first version is the publish: until it exists there is no graph, and everything
    written before it has fresh names. So a killed init can be run again, and of two concurrent
    inits exactly one wins.
    """
    _require_vacant(store)
    # Before anything else: it distinguishes the remains of a killed init from foreign files.
    digest = schemas.keep(store.objects, schema)
    hit(Failpoint.INIT_AFTER_CLAIM)

    author = heads.Authorship(OperationId(clock.ulid()), OperationKind.INIT)
    pins = []
    for type_ in schema.catalog.types:
        pins.append(create_table(store, clock, type_, author))
        hit(Failpoint.INIT_AFTER_EACH_TABLE)
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
    contents = rows.Contents(tuple(pins), (), commit.commit_id, (commit,))
    first = rows.encode_contents(contents, MAIN)
    try:
        staged = staging.stage_create(store.tables, MANIFEST, first)
        hit(Failpoint.INIT_AFTER_STAGE)
        heads.apply(staged, author)
        hit(Failpoint.INIT_AFTER_MANIFEST)
    except (StorageError, TableConflictError):
        # After a lost response, our own manifest may look like a rival's, as in a publish.
        if not _has_landed(store, commit):
            _require_vacant(store)
            raise
    store.objects.put_if_absent(SCHEMA_TEXT, schema.text.encode())
    hit(Failpoint.INIT_AFTER_SCHEMA_TEXT)
    return commit


def prepare(manifest: Manifest) -> None:
    """Make a graph writable: restore its schema text."""
    manifest.open(MAIN)
    objects = manifest.store.objects
    if objects.read(SCHEMA_TEXT) is None:
        # An init was killed right after it published; the text is in the stored schema.
        digest = manifest.current(MAIN).schema_digest
        text = schemas.load(objects, digest).text
        objects.put_if_absent(SCHEMA_TEXT, text.encode())


def write_schema_text(manifest: Manifest) -> None:
    """Write the copy of main's schema that is for people; nothing reads it for an answer.

    Writers of schema changes do so between their publish and the deletion of their sidecar, and
    recoveries after them, so that a crash does not leave the text of an earlier schema.
    """
    objects = manifest.store.objects
    digest = manifest.current(MAIN).schema_digest
    for _ in range(PUBLISH_ATTEMPTS_MAX):
        objects.put(SCHEMA_TEXT, schemas.load(objects, digest).text.encode())
        # Another change may have landed meanwhile, and have written its text before this one.
        newest = manifest.current(MAIN).schema_digest
        if newest == digest:
            return
        digest = newest


def _require_vacant(store: Store) -> None:
    root = store.root.uri
    had_graph = had_manifest(store)
    if store.tables.exists(MANIFEST):
        message = f"{root} already holds a graph"
        hint = "open it, or choose another place"
        raise AlreadyExistsError(message, hint=hint, code=ErrorCode.GRAPH_EXISTS)
    if had_graph:
        raise lost_manifest_error(store)
    if store.objects.holds_any() and not store.objects.holds_any(SCHEMAS):
        message = f"{root} is not empty and holds no graph"
        hint = "choose an empty or a new directory"
        raise AlreadyExistsError(message, hint=hint, code=ErrorCode.FOREIGN_DIRECTORY)


def create_table(
    store: Store, clock: Clock, type_: SchemaType, author: heads.Authorship
) -> TablePin:
    """Create an empty table for a type, at a new location; nothing refers to it yet."""
    table_id = TableId(clock.ulid())
    key = type_.table_key
    location = table_location(key.kind, table_id)
    empty = table_schema(type_).empty_table()
    table = heads.apply(staging.stage_create(store.tables, location, empty), author)
    return TablePin(
        table_id,
        key,
        location,
        table.version,
        ref=None,
        row_count=0,
        identity=TypeIdentity(key.type_name),
    )


def _has_landed(store: Store, commit: Commit) -> bool:
    """Whether the stored manifest is the one that this init wrote."""
    if not store.tables.exists(MANIFEST):
        return False
    manifest = Manifest(store)
    return manifest.lookup(manifest.open(MAIN), commit.commit_id) is not None
