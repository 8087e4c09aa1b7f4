"""Refs that nothing needs: of deleted branches, and of killed writers and creators.

A ref's name is used once and says when it was created and for which branch (docs/decisions/0007),
so the only question is whether anything needs it. Only these can: the names of branches, the
commits that are kept, the histories that merged a deleted branch (docs/decisions/0008), tags and
the sidecars of unfinished writes.

Older releases and other programs name the refs of tables otherwise. Such a ref does not say when it
was created, so the newest of its files does, and other refs may share files with it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TypeAlias

from omnigraph.clock import Clock, creation_time, is_ulid
from omnigraph.errors import (
    BranchNotFoundError,
    ConflictError,
    ErrorCode,
    NotFoundError,
    OmnigraphError,
    StorageError,
)
from omnigraph.failpoints import Failpoint, hit
from omnigraph.maintenance.cleanup.ages import Ages
from omnigraph.maintenance.cleanup.results import OrphanedRef, Trouble
from omnigraph.maintenance.cleanup.retirement import find_releasable
from omnigraph.manifest.branches import RetiredBranch
from omnigraph.manifest.deletions import finish_deletion
from omnigraph.manifest.layout import BRANCHES, MANIFEST, RETIRED
from omnigraph.manifest.reader import Manifest
from omnigraph.model.commits import Commit
from omnigraph.model.names import MAIN
from omnigraph.recovery.sidecars import Sidecars
from omnigraph.storage.inventory import stray_refs
from omnigraph.storage.store import Store
from omnigraph.storage.tables import REF_FOLDER, is_minted

IsLetGo: TypeAlias = "Callable[[Commit], bool]"


@dataclass(frozen=True, slots=True)
class RefCleanup:
    """What a cleanup of refs did, or would do.

    Attributes:
        reclaimed: The deleted refs; in a dry run, those that would be deleted.
        troubles: What could not be checked or deleted. Everything else was.
    """

    reclaimed: tuple[OrphanedRef, ...] = ()
    troubles: tuple[Trouble, ...] = ()


@dataclass(frozen=True, slots=True)
class RefPlan:
    """The refs that a cleanup would delete.

    Attributes:
        released: The deleted branches of which nothing is left afterwards.
    """

    orphans: tuple[OrphanedRef, ...]
    released: frozenset[RetiredBranch]
    troubles: tuple[Trouble, ...]


def clean_refs(
    manifest: Manifest,
    sidecars: Sidecars,
    clock: Clock,
    *,
    dry_run: bool = False,
    age_min: timedelta | None = None,
) -> RefCleanup:
    """Delete the refs that nothing needs and that are too old to belong to a write in progress.

    Interrupted deletions of branches are finished first. No query result changes, on any branch or
    at any commit that is kept. Each table is processed separately: a failure with one of them is
    reported, and does not affect the others.

    Args:
        age_min: Replaces the ages in `maintenance.cleanup.ages`, for callers that know that no
            other process is writing.
    """
    ages = Ages.at(clock.now(), age_min)
    if not dry_run:
        finish_deletions(manifest, ages.now)
    plan = plan_refs(manifest, sidecars, ages)
    if dry_run:
        return RefCleanup(plan.orphans, plan.troubles)
    return remove_refs(manifest, sidecars, ages, plan)


def plan_refs(
    manifest: Manifest,
    sidecars: Sidecars,
    ages: Ages,
    *,
    kept: Collection[OrphanedRef] | None = None,
    is_let_go: IsLetGo | None = None,
) -> RefPlan:
    """Find the refs that nothing needs. Nothing is deleted.

    Args:
        kept: The table refs that kept commits pin; when None, those of every commit stay.
        is_let_go: Whether a commit expired, or will be; when None, the record decides.
    """
    known = _collect_references(manifest, sidecars, ages, kept, is_let_go)
    orphans: list[OrphanedRef] = []
    troubles = [Trouble(BRANCHES, None, failure.message) for failure in known.failures]
    for location in (MANIFEST, *sorted(known.locations)):
        try:
            refs = _refs(manifest.store, location)
            candidates = [OrphanedRef(location, ref) for ref in refs]
            orphans += [ref for ref in candidates if known.is_releasable(ref, ages)]
            orphans += _releasable_strays(manifest.store, location, known, ages)
        except OmnigraphError as failure:
            troubles.append(Trouble(location, None, failure.message))
    return RefPlan(tuple(orphans), known.released, tuple(troubles))


def remove_refs(
    manifest: Manifest,
    sidecars: Sidecars,
    ages: Ages,
    plan: RefPlan,
    *,
    kept: Collection[OrphanedRef] | None = None,
    is_let_go: IsLetGo | None = None,
) -> RefCleanup:
    """Delete the refs of a plan that nothing needs by now, either."""
    if not (plan.orphans or plan.released):
        return RefCleanup((), plan.troubles)
    # Check again: a ref that was not needed a moment ago may be needed now.
    again = _collect_references(manifest, sidecars, ages, kept, is_let_go)
    troubles = list(plan.troubles)
    reclaimed: list[OrphanedRef] = []
    undeletable: set[str] = set()
    for orphan in plan.orphans:
        if orphan.branch_ref in undeletable:
            continue
        try:
            if not _is_still_releasable(manifest.store, orphan, again, ages):
                continue
            _reclaim(manifest.store, orphan)
        except OmnigraphError as failure:
            troubles.append(Trouble(orphan.location, orphan.ref, failure.message))
            if orphan.location == MANIFEST:
                # Lance refuses if a branch has just been created from it.
                undeletable.add(orphan.branch_ref)
        else:
            reclaimed.append(orphan)
        hit(Failpoint.CLEANUP_AFTER_EACH_REF)
    _forget(manifest, plan.released & again.released, troubles)
    return RefCleanup(tuple(reclaimed), tuple(troubles))


def finish_deletions(manifest: Manifest, now: datetime) -> None:
    """Finish interrupted deletions of branches, or withdraw them."""
    for name in manifest.branches():
        manifest.names.clear_tombstone(name, now)
    for branch in manifest.names.survey().branches:
        if branch.is_abandoned(now):
            # Another process may have finished it, or be about to.
            with suppress(BranchNotFoundError, ConflictError):
                finish_deletion(manifest, branch.name, now)


def _forget(
    manifest: Manifest, released: Collection[RetiredBranch], troubles: list[Trouble]
) -> None:
    """Delete the records of deleted branches of which nothing is left."""
    for retired in released:
        if any(retired.owns(trouble.ref) for trouble in troubles):
            continue
        try:
            manifest.names.forget(retired)
        except OmnigraphError as failure:
            troubles.append(Trouble(RETIRED, retired.ref, failure.message))


@dataclass(frozen=True, slots=True)
class _References:
    """Everything that may refer to a ref.

    Attributes:
        living: The refs of the branches that have a name.
        opaque: Those of them whose manifests cannot be read, so that their pins are unknown.
        retired: The refs of deleted branches whose commits are in another history.
        released: The deleted branches whose commits are in no other history.
        pinned: The refs of tables that a branch pins, or that an unfinished write is about to move.
        locations: The locations of the tables.
        failures: What cannot be read: then a ref that no branch has may belong to an unread one.
    """

    living: frozenset[str]
    opaque: frozenset[str]
    retired: frozenset[str]
    released: frozenset[RetiredBranch]
    pinned: frozenset[OrphanedRef]
    locations: frozenset[str]
    failures: tuple[StorageError, ...]

    def is_releasable(self, orphan: OrphanedRef, ages: Ages) -> bool:
        """Whether nothing needs a ref, and no operation in progress can need it."""
        if orphan in self.pinned:
            return False
        if any(branch.owns(orphan.ref) for branch in self.released):
            return True
        owner = orphan.branch_ref
        if owner in self.retired or owner in self.opaque:
            return False
        is_nameless = owner not in self.living
        if is_nameless and self.failures:
            return False
        if orphan.location == MANIFEST and not is_nameless:
            return False
        least = ages.nameless if is_nameless else ages.staged
        return ages.now - creation_time(orphan.ref.rpartition("/")[2]) >= least

    def is_releasable_stray(self, orphan: OrphanedRef, written_at: datetime, ages: Ages) -> bool:
        """The same of a ref without a minted name, whose newest file was written at that time."""
        if orphan in self.pinned or self.failures:
            return False
        return ages.is_staged_long_ago(written_at)


def _collect_references(
    manifest: Manifest,
    sidecars: Sidecars,
    ages: Ages,
    kept: Collection[OrphanedRef] | None,
    is_let_go: IsLetGo | None,
) -> _References:
    # Sidecars first: a write that settles meanwhile has published its refs.
    intents = sidecars.find().require_readable()
    survey = manifest.names.survey()
    histories = {MAIN: manifest.open(MAIN)}
    tags = manifest.tags.survey()
    failures = [*survey.unreadable.values(), *tags.unreadable.values()]
    opaque = set()
    for branch in survey.branches:
        try:
            histories[branch.name] = manifest.open(branch.name)
        except BranchNotFoundError:
            # It was deleted after the survey, and is not among the old retired branches.
            opaque.add(branch.ref)
        except StorageError as failure:
            opaque.add(branch.ref)
            failures.append(failure)
    pinned = {
        OrphanedRef(pin.location, pin.ref or MAIN)
        for opened in histories.values()
        for pin in opened.contents.pins
    }
    # Earlier commits of the branch pin the tables of types that it dropped.
    dropped = {
        OrphanedRef(tombstone.location, tombstone.ref or MAIN)
        for opened in histories.values()
        for tombstone in opened.contents.tombstones
    }
    locations = frozenset(ref.location for ref in (*pinned, *dropped))
    pinned |= dropped if kept is None else set(kept)
    pinned |= {
        OrphanedRef(table.location, table.ref or MAIN)
        for intent in intents
        for table in intent.tables
    }
    living = {branch.ref: branch.source_ref for branch in survey.branches}
    retired = [branch for branch in manifest.names.retired_branches() if branch.ref not in living]
    is_merging = any(intent.merged_parent is not None for intent in intents)
    since = ages.now - ages.nameless
    old = [branch for branch in retired if branch.retired_at and branch.retired_at <= since]
    released: frozenset[RetiredBranch] = frozenset()
    if not failures and not is_merging:
        sources = {*living.values(), *(tag.ref for tag in tags.tags)}
        if is_let_go is None:
            record = manifest.let_go.read()
            is_let_go = lambda commit: record.find(commit) is not None  # noqa: E731
        released = find_releasable(
            manifest, retired, among=old, histories=histories, sources=sources, is_let_go=is_let_go
        )
    needed = frozenset(branch.ref for branch in retired) - {branch.ref for branch in released}
    return _References(
        frozenset(living),
        frozenset(opaque),
        needed,
        released,
        frozenset(pinned),
        locations,
        tuple(failures),
    )


def _refs(store: Store, location: str) -> list[str]:
    """The refs that Omnigraph created, youngest first: a ref precedes the one it was made from."""
    names = set(store.refs.list(location))
    # A kill inside Lance, or a writer that outlived its branch, leaves files without a ref.
    depth = 1 if location == MANIFEST else 2
    folder = f"{location}/{REF_FOLDER}/"
    for path in store.objects.list(folder.removesuffix("/")):
        names.add("/".join(path.removeprefix(folder).split("/")[:depth]))
    ours = (ref for ref in names if _is_ours(ref, depth))
    return sorted(ours, key=lambda ref: ref.rpartition("/")[2], reverse=True)


def _releasable_strays(
    store: Store, location: str, known: _References, ages: Ages
) -> list[OrphanedRef]:
    """The refs of a table that no branch names and no minted name dates, youngest first."""
    written = {} if location == MANIFEST else stray_refs(store.objects, location)
    strays = {OrphanedRef(location, ref): written[ref] for ref in written}
    old = [each for each in strays if known.is_releasable_stray(each, strays[each], ages)]
    if old:
        # Of refs that share files with each other, the next cleanup deletes the rest.
        needed = _shared_refs(store, location, except_for={each.ref for each in old})
        old = [each for each in old if each.ref not in needed]
    return sorted(old, key=lambda each: (strays[each], each.ref), reverse=True)


def _is_still_releasable(store: Store, orphan: OrphanedRef, known: _References, ages: Ages) -> bool:
    if orphan.location != MANIFEST and not is_minted(orphan.ref):
        return orphan in _releasable_strays(store, orphan.location, known, ages)
    return known.is_releasable(orphan, ages)


def _shared_refs(store: Store, location: str, *, except_for: Collection[str]) -> set[str]:
    """The refs of a table that others share files with."""
    shared: set[str] = set()
    for ref in store.refs.list(location):
        if ref not in except_for and store.refs.exists(location, ref):
            shared.update(store.tables.open_latest(location, ref=ref).shared_refs())
    return shared


def _is_ours(ref: str, depth: int) -> bool:
    parts = ref.split("/")
    return len(parts) == depth and all(map(is_ulid, parts))


def _reclaim(store: Store, orphan: OrphanedRef) -> None:
    try:
        store.refs.delete(orphan.location, orphan.ref)
    except NotFoundError as absent:
        if absent.code is not ErrorCode.NOT_FOUND:
            raise
        store.refs.reclaim(orphan.location, orphan.ref)
