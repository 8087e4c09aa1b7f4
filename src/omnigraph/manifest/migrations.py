"""Format migrations: each step does its work first and stamps last, in one strict overwrite.

A step is a function from the manifest's rows to the rows of the next stamp. It may be run twice,
and by two processes at once: the stamp and the rows land in one compare-and-swap, so one of two
runs wins and the other has nothing left to do.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

import pyarrow as pa

from omnigraph.clock import Clock, back_off
from omnigraph.errors import (
    ConflictError,
    ErrorCode,
    NotFoundError,
    StorageError,
    TableConflictError,
)
from omnigraph.failpoints import Failpoint, hit
from omnigraph.limits import (
    LINEAGE_PAGE_ROWS_MAX,
    MIGRATION_ATTEMPTS_MAX,
    PUBLISH_BACKOFF_SECONDS_MAX,
    RECENT_COMMITS_MAX,
)
from omnigraph.manifest import legacy, rows, schemas
from omnigraph.manifest.format import CURRENT
from omnigraph.manifest.layout import LEGACY_RUN_PREFIX, MANIFEST, manifest_schema
from omnigraph.manifest.reader import Manifest, OpenManifest
from omnigraph.model.commits import OperationKind
from omnigraph.model.ids import OperationId
from omnigraph.model.names import BranchName
from omnigraph.model.tables import TablePin
from omnigraph.storage import heads, staging
from omnigraph.storage.store import Store


@dataclass(frozen=True, slots=True)
class MigrationResult:
    """The rows of the next format: the first fragment, then the pages of lineage."""

    state: pa.Table
    pages: tuple[pa.Table, ...] = ()


@dataclass(frozen=True, slots=True)
class MigrationSource:
    """The input of a step: one branch's manifest, and its store."""

    store: Store
    clock: Clock
    branch: BranchName
    opened: OpenManifest


Step: TypeAlias = Callable[[MigrationSource], MigrationResult]


def annotate_unique_ids(source: MigrationSource) -> MigrationResult:
    """1 to 2: `object_id` is annotated as unique, in the schema; the rows do not change."""
    return MigrationResult(_as_read(source))


def sweep_run_refs(source: MigrationSource) -> MigrationResult:
    """2 to 3: staging refs that killed runs left on the manifest are deleted."""
    refs = source.store.refs
    for name in refs.list(MANIFEST):
        if name.startswith(LEGACY_RUN_PREFIX):
            _delete_ref(source.store, name)
    return MigrationResult(_as_read(source))


def import_lineage(source: MigrationSource) -> MigrationResult:
    """3 to 4: one commit row per legacy commit and one head row; the old datasets are kept.

    Rows are counted again: old releases did not always record how many a table has.
    """
    history = legacy.commits(source.store, source.branch)
    schemas.keep(source.store.objects, schemas.read_text(source.store.objects))
    head = legacy.head(history, version=source.opened.table.version)
    # The head must be among the recent commits, which are read without opening a page.
    others = [commit for commit in history if commit.commit_id != head.commit_id]
    others_max = RECENT_COMMITS_MAX - 1
    recent = (*others[-others_max:], head)
    pins = tuple(_count_rows(source.store, pin) for pin in source.opened.contents.pins)
    contents = rows.Contents(pins, source.opened.contents.tombstones, head.commit_id, recent)
    older = others[:-others_max]
    pages = [
        rows.encode_commits(older[start : start + LINEAGE_PAGE_ROWS_MAX])
        for start in range(0, len(older), LINEAGE_PAGE_ROWS_MAX)
    ]
    return MigrationResult(rows.encode_contents(contents, source.branch), tuple(pages))


STEPS: Final[dict[int, Step]] = {
    1: annotate_unique_ids,
    2: sweep_run_refs,
    3: import_lineage,
}
"""The step from each stamp below the current one to the next."""


def migrate(manifest: Manifest, clock: Clock, branch: BranchName) -> None:
    """Bring one branch's manifest to the current stamp, one step at a time.

    Raises:
        FormatError: this release does not know the stamp. Nothing was written.
        StorageError: a step failed. Its stamp was not written.
        ConflictError: other processes kept moving the branch. Nothing is lost; run it again.
    """
    for attempt in range(MIGRATION_ATTEMPTS_MAX):
        opened = manifest.open(branch)
        if opened.stamp == CURRENT:
            return
        hit(Failpoint.MIGRATE_AFTER_READ)
        try:
            _run(MigrationSource(manifest.store, clock, branch, opened))
        except TableConflictError:
            back_off(clock, attempt, seconds_max=PUBLISH_BACKOFF_SECONDS_MAX)
    if manifest.open(branch).stamp == CURRENT:
        return
    message = f"branch {branch} moved {MIGRATION_ATTEMPTS_MAX} times while its format was migrated"
    raise ConflictError(message, hint="open the graph again", code=ErrorCode.PUBLISH_CONTENTION)


def _run(source: MigrationSource) -> None:
    stamp = source.opened.stamp
    result = STEPS[stamp](source)
    hit(Failpoint.MIGRATE_AFTER_WORK)
    table = source.opened.table
    pages = [file for page in result.pages for file in staging.write_files(table, page)]
    staged = staging.stage_overwrite(
        table, result.state, schema=manifest_schema(stamp + 1), carrying=pages
    )
    operation_id = OperationId(source.clock.ulid())
    heads.apply(staged, heads.Authorship(operation_id, OperationKind.MIGRATION))
    hit(Failpoint.MIGRATE_AFTER_STAMP)


def _as_read(source: MigrationSource) -> pa.Table:
    return rows.encode_contents(source.opened.contents, source.branch)


def _count_rows(store: Store, pin: TablePin) -> TablePin:
    table = store.tables.open_pin(pin)
    return replace(pin, row_count=table.count_rows())


def _delete_ref(store: Store, name: str) -> None:
    try:
        store.refs.delete(MANIFEST, name)
    except NotFoundError:
        return
    except StorageError:
        # Another process may have deleted it first.
        if store.refs.exists(MANIFEST, name):
            raise
