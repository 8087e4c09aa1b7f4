"""Publish: the one manifest write that makes a commit real (docs/decisions/0002)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final, assert_never

from omnigraph.clock import Clock, back_off
from omnigraph.errors import (
    ConflictError,
    ErrorCode,
    OmnigraphError,
    OutcomeUnknownError,
    StorageError,
    TableConflictError,
)
from omnigraph.failpoints import Failpoint, hit
from omnigraph.limits import LEASE_SECONDS, PUBLISH_ATTEMPTS_MAX
from omnigraph.manifest import rows
from omnigraph.manifest.branches import Branch
from omnigraph.manifest.drafts import (
    AddHistory,
    AddParent,
    Change,
    CommitDraft,
    DropTable,
    ForgetStream,
    PinTable,
    RecordBatch,
    SetSchema,
)
from omnigraph.manifest.format import CURRENT
from omnigraph.manifest.layout import MANIFEST, manifest_schema
from omnigraph.manifest.lineage import generations
from omnigraph.manifest.reader import Manifest, OpenManifest
from omnigraph.manifest.requirements import branch_deleted_error, require
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.model.commits import SAME_ROWS_KINDS, Commit, OperationKind
from omnigraph.model.ids import CommitId, OperationId
from omnigraph.model.names import MAIN, BranchName
from omnigraph.model.streams import StreamRecord
from omnigraph.storage import heads, staging
from omnigraph.storage.tables import Fragment, ref_folder
from omnigraph.storage.turns import turn

PUBLISH_BACKOFF_SECONDS_MAX: Final = 0.5

PUBLISH_TURN_SECONDS_MAX: Final = 2.0
"""How long a publish queues behind others on its machine before it races them."""

RECENT_COMMITS_MAX: Final = 16
"""Commit rows kept in the manifest's first fragment before a publish folds them into a page.

Each commit writes those of the commits before it again: with more of them it gets larger, and with
fewer, more commits write a page, too.
"""

LINEAGE_PAGE_ROWS_MAX: Final = 4096
"""Commit rows in one page of lineage; a full page is never rewritten again."""

LINEAGE_JOIN_FACTOR: Final = 4
"""How many times as large as what is folded a page may be to be rewritten with it.

So pages grow by tiers: a row is rewritten a logarithmic number of times, and the number of pages
that are not full is logarithmic, too.
"""


def publish(
    manifest: Manifest,
    clock: Clock,
    draft: CommitDraft,
    *,
    opened: OpenManifest | None = None,
    read_at: datetime | None = None,
) -> Commit:
    """Make the commit visible on its branch, or leave the branch unchanged.

    Concurrent writers on one branch whose requirements still hold retry on fresh state, so writers
    to disjoint tables all land and form one chain.

    Args:
        opened: The branch as the caller just read it, which saves the first attempt a read. If it
            is no longer the newest, that attempt is a lost race.
        read_at: When the caller began to read it.
    """
    created_at = clock.now()
    with turn(manifest.store.root, _turn(draft), seconds_max=PUBLISH_TURN_SECONDS_MAX):
        for attempt in range(PUBLISH_ATTEMPTS_MAX):
            first = attempt == 0
            base = opened if first else None
            begun = read_at if base is not None and read_at is not None else clock.now()
            landed = _attempt(manifest, draft, created_at, base, first=first)
            if landed and clock.now() - begun > timedelta(seconds=LEASE_SECONDS):
                # The version that would have refused it may have expired meanwhile, and then
                # this commit is below the newest one, where nobody sees it.
                landed = _look_again(manifest, draft)
            if landed:
                return landed
            back_off(clock, attempt, seconds_max=PUBLISH_BACKOFF_SECONDS_MAX)
    if landed := _look_again(manifest, draft):
        return landed
    raise _contention_error(draft.branch)


def _turn(draft: CommitDraft) -> str:
    """The name of the turn that all publishes on the branch take."""
    return ref_folder(MANIFEST, draft.ref)


def _contention_error(branch: BranchName) -> ConflictError:
    message = f"branch {branch} moved {PUBLISH_ATTEMPTS_MAX} times during one publish"
    hint = "many writers are busy on this branch; try again"
    return ConflictError(message, hint=hint, code=ErrorCode.PUBLISH_CONTENTION)


def end(manifest: Manifest, clock: Clock, branch: Branch, *, head: CommitId | None = None) -> bool:
    """Publish that a branch has ended, so that no other publish on its ref succeeds.

    May be called again for a branch that has ended.

    Args:
        head: The commit that it must be at; None if it ends in any case.

    Returns:
        Whether the branch was ended; False if it is at another commit, and stays.
    """
    for attempt in range(PUBLISH_ATTEMPTS_MAX):
        opened = manifest.open_ref(branch.ref)
        if opened.is_ended:
            return True
        if head is not None and opened.contents.head != head:
            return False
        contents = replace(opened.contents, ended_ref=branch.ref)
        staged = _stage_contents(opened, contents, branch.name, opened.table.fragments()[1:])
        author = heads.Authorship(OperationId(clock.ulid()), OperationKind.END)
        try:
            heads.apply(staged, author)
        except TableConflictError:
            back_off(clock, attempt, seconds_max=PUBLISH_BACKOFF_SECONDS_MAX)
        else:
            return True
    raise _contention_error(branch.name)


def record_batch(manifest: Manifest, clock: Clock, draft: CommitDraft) -> None:
    """Record a batch that changes nothing as the newest one of its stream, without a commit.

    The branch stays at its commit: histories, feeds and whoever expects that commit see nothing.

    Args:
        draft: The commit that is not made: its branch, batch and requirements count.
    """
    branch, recorded = draft.branch, draft.the(RecordBatch)
    assert recorded is not None, "it is a batch of a stream"
    batch = recorded.batch
    is_applied = False
    with turn(manifest.store.root, _turn(draft), seconds_max=PUBLISH_TURN_SECONDS_MAX):
        for attempt in range(PUBLISH_ATTEMPTS_MAX):
            begun = clock.now()
            opened = manifest.open(branch)
            now = manifest.snapshot(opened, branch)
            record = now.streams.get(batch.stream)
            if is_applied and record is not None and record.batch == batch:
                return
            if opened.is_ended:
                raise branch_deleted_error(branch)
            require(draft.requires, now)
            assert record is not None, "the first batch of a stream makes a commit"
            others = _other_streams(opened.contents.streams, now.ref, batch.stream)
            streams = (*others, replace(record, batch=batch, is_gapless=True))
            contents = replace(opened.contents, ended_ref=None, streams=streams)
            staged = _stage_contents(opened, contents, branch, opened.table.fragments()[1:])
            author = heads.Authorship(OperationId(clock.ulid()), draft.kind)
            try:
                published = heads.apply(staged, author)
            except TableConflictError:
                back_off(clock, attempt, seconds_max=PUBLISH_BACKOFF_SECONDS_MAX)
                continue
            if clock.now() - begun <= timedelta(seconds=LEASE_SECONDS):
                manifest.remember(branch, published, contents)
                return
            # As in `publish`: it may be below the newest version, where nobody sees it.
            is_applied = True
    raise _contention_error(branch)


def publish_imported(
    manifest: Manifest, opened: OpenManifest, draft: CommitDraft, commit: Commit
) -> OpenManifest:
    """Make a commit of another graph the next one of a branch that is being imported.

    Args:
        opened: The newest version of the branch.
        commit: The commit; its version is the next one of the branch.
    """
    staged, contents = _stage(manifest, opened, draft, commit, importing=True)
    author = heads.Authorship(OperationId(commit.commit_id), commit.operation)
    return replace(opened, table=heads.apply(staged, author), contents=contents)


def end_import(opened: OpenManifest, operation: OperationId) -> None:
    """Make an imported graph visible, by a version of main without the mark of an import."""
    pages = opened.table.fragments()[1:]
    staged = _stage_contents(opened, opened.contents, MAIN, pages)
    heads.apply(staged, heads.Authorship(operation, OperationKind.IMPORT))


def _attempt(
    manifest: Manifest,
    draft: CommitDraft,
    created_at: datetime,
    opened: OpenManifest | None,
    *,
    first: bool,
) -> Commit | None:
    """One read, check and compare-and-swap; None if the race was lost."""
    try:
        if opened is None:
            opened = manifest.open(draft.branch)
        # Our own commit may be there: after a lost response, or when a whole publish is retried.
        landed = _recent(opened, draft) if first else _find_landed(manifest, opened, draft)
    except OmnigraphError as failure:
        if first:
            raise
        raise _outcome_unknown_error(draft, failure) from failure
    hit(Failpoint.PUBLISH_AFTER_READ)
    if landed:
        return landed
    if opened.is_ended:
        raise branch_deleted_error(draft.branch)
    now = manifest.snapshot(opened, draft.branch)
    require(draft.requires, now)
    commit = _commit(draft, now, created_at, _generation(manifest, opened, draft, now))
    staged, contents = _stage(manifest, opened, draft, commit)
    hit(Failpoint.PUBLISH_AFTER_STAGE)
    author = heads.Authorship(OperationId(commit.commit_id), commit.operation)
    try:
        published = heads.apply(staged, author)
        hit(Failpoint.PUBLISH_AFTER_COMMIT)
    except TableConflictError:
        return None
    except StorageError:
        if landed := _look_again(manifest, draft):
            return landed
        raise
    manifest.remember(draft.branch, published, contents)
    return commit


def _recent(opened: OpenManifest, draft: CommitDraft) -> Commit | None:
    """The commit, if it is among the recent ones, which are already in memory."""
    recent = opened.contents.recent
    return next((commit for commit in recent if commit.commit_id == draft.commit_id), None)


def _find_landed(manifest: Manifest, opened: OpenManifest, draft: CommitDraft) -> Commit | None:
    return manifest.lookup(opened, draft.commit_id)


def _look_again(manifest: Manifest, draft: CommitDraft) -> Commit | None:
    try:
        return _find_landed(manifest, manifest.open(draft.branch), draft)
    except OmnigraphError as failure:
        raise _outcome_unknown_error(draft, failure) from failure


def _outcome_unknown_error(draft: CommitDraft, failure: OmnigraphError) -> OutcomeUnknownError:
    message = (
        f"the answer to publishing {draft.commit_id} was lost, and the branch "
        f"{draft.branch} cannot be read: {failure.message}"
    )
    hint = "look for the commit with 'omnigraph commit show' before writing again"
    return OutcomeUnknownError(message, hint=hint, commit_id=draft.commit_id)


def _generation(manifest: Manifest, opened: OpenManifest, draft: CommitDraft, now: Snapshot) -> int:
    """One more than the highest of the commit's parents."""
    merged, joining = draft.the(AddParent), draft.history
    known = {commit.commit_id: commit.generation for commit in (now.head, *joining)}
    parents = (now.head.commit_id, merged and merged.commit_id)
    recorded = (known.get(parent) for parent in parents if parent)
    numbers = [number for number in recorded if number is not None]
    if now.head.generation is None:
        # An earlier release made it. This reads the whole history once: the commit records it.
        every = (*manifest.history_of(opened).every(), *joining)
        numbers.append(generations(every)[now.head.commit_id])
    return 1 + max(numbers)


def _commit(draft: CommitDraft, now: Snapshot, created_at: datetime, generation: int) -> Commit:
    merged, schema = draft.the(AddParent), draft.the(SetSchema)
    recorded = draft.the(RecordBatch)
    return Commit(
        commit_id=draft.commit_id,
        branch=draft.branch,
        # Publishing is a compare-and-swap on the version just read, so ours is the next one.
        manifest_version=now.manifest_version + 1,
        parent=now.head.commit_id,
        merged_parent=None if merged is None else merged.commit_id,
        actor=draft.actor,
        created_at=created_at,
        operation=draft.kind,
        message=draft.message,
        schema_digest=now.schema_digest if schema is None else schema.digest,
        ref=now.ref,
        generation=generation,
        same_rows_as=now.head.rows_from if draft.kind in SAME_ROWS_KINDS else None,
        stream=None if recorded is None else recorded.batch,
    )


def _stage(
    manifest: Manifest,
    opened: OpenManifest,
    draft: CommitDraft,
    commit: Commit,
    *,
    importing: bool = False,
) -> tuple[staging.StagedWrite, rows.Contents]:
    before = opened.contents
    pages = opened.table.fragments()[1:]
    recent = (*before.recent, *draft.history)
    if len(recent) >= RECENT_COMMITS_MAX:
        pages, recent = _fold(manifest, opened, pages, recent), ()
    contents = replace(
        _apply(before, draft.changes, commit),
        head=commit.commit_id,
        recent=(*recent, commit),
        ended_ref=None,
    )
    staged = _stage_contents(opened, contents, draft.branch, pages, importing=importing)
    return staged, contents


def _stage_contents(
    opened: OpenManifest,
    contents: rows.Contents,
    branch: BranchName,
    pages: Sequence[Fragment],
    *,
    importing: bool = False,
) -> staging.StagedWrite:
    state = rows.encode_contents(contents, branch)
    schema = manifest_schema(CURRENT, importing=importing)
    return staging.stage_overwrite(opened.table, state, schema=schema, carrying=pages)


def _apply(before: rows.Contents, changes: Sequence[Change], commit: Commit) -> rows.Contents:
    """The state of the branch after the changes of a commit."""
    pins = {pin.table_id: pin for pin in before.pins}
    tombstones = list(before.tombstones)
    streams = {each.batch.stream: each for each in before.streams if each.ref == commit.ref}
    for change in changes:
        match change:
            case PinTable(pin):
                pins[pin.table_id] = pin
            case DropTable(tombstone):
                pins.pop(tombstone.table_id, None)
                tombstones.append(tombstone)
            case RecordBatch(batch):
                streams.pop(batch.stream, None)
                record = StreamRecord(batch, commit.commit_id, commit.ref, is_gapless=True)
                streams[batch.stream] = record
            case ForgetStream(stream):
                streams.pop(stream, None)
            case SetSchema() | AddParent() | AddHistory():
                # These are in the rows of commits.
                pass
            case _:
                assert_never(change)
    return replace(
        before,
        pins=tuple(pins.values()),
        tombstones=tuple(tombstones),
        streams=tuple(streams.values()),
    )


def _other_streams(
    before: Sequence[StreamRecord], ref: str | None, replaced: str | None
) -> Iterator[StreamRecord]:
    """The records of the branch of a ref, without that of a stream."""
    for record in before:
        if record.ref == ref and record.batch.stream != replaced:
            yield record


def _fold(
    manifest: Manifest, opened: OpenManifest, pages: Sequence[Fragment], recent: Sequence[Commit]
) -> tuple[Fragment, ...]:
    """Move the recent commits into a page, together with the newest pages if they are small.

    A page that is much larger stays, so the cost does not depend on the length of the history.
    """
    folded = rows.encode_commits(recent)
    while pages:
        row_count = pages[-1].physical_rows
        is_small = row_count <= LINEAGE_JOIN_FACTOR * folded.num_rows
        if not is_small or row_count + folded.num_rows > LINEAGE_PAGE_ROWS_MAX:
            break
        folded = rows.join_pages(manifest.page(opened.table, len(pages)), folded)
        pages = pages[:-1]
    written = staging.write_files(opened.table, folded)
    manifest.keep_page(written, folded)
    return (*pages, *written)
