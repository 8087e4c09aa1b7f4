"""Cleanup: what killed processes and deleted branches left behind, and nothing needs.

Scratch belongs to one load, and is rubbish once that has ended. A ref's name is used once and tells
when it was made and for which branch (docs/decisions/0007), so one question is left: does anything
need it? Names of branches, the manifests that they carry, the histories that merged a deleted
branch (docs/decisions/0008) and the sidecars of writes in progress are all that can.
"""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from omnigraph.branching.retirement import find_released
from omnigraph.clock import Clock, is_ulid
from omnigraph.errors import (
    BranchNotFoundError,
    ConflictError,
    ErrorCode,
    NotFoundError,
    OmnigraphError,
    StorageError,
)
from omnigraph.limits import LEASE_SECONDS
from omnigraph.manifest.branches import RetiredBranch
from omnigraph.manifest.deletions import finish_deletion
from omnigraph.manifest.layout import BRANCHES, MANIFEST, RETIRED
from omnigraph.manifest.reader import Manifest
from omnigraph.model.names import MAIN
from omnigraph.recovery.scratch import SCRATCH, find_scratch, is_held
from omnigraph.recovery.sidecars import Sidecars
from omnigraph.storage.objects import Objects
from omnigraph.storage.store import Store
from omnigraph.storage.tables import REF_FOLDER

NAMELESS_AGE_MIN: Final = timedelta(seconds=4 * LEASE_SECONDS)
"""How old a ref must be that no branch has, or how long ago its branch was deleted. Whoever makes a
branch names it within a lease, nobody can write to one that has no name, and whoever merges a
branch publishes within a lease of having found its name."""

STAGED_AGE_MIN: Final = timedelta(days=1)
"""How old a ref of a branch that lives must be. A first write makes it before it stages its rows,
and nothing names it until they are published: age is all that tells it from rubbish. And how long
ago scratch must have been written, which may belong to a load on another machine."""

_DIGITS: Final = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_TIME_DIGITS: Final = 10


@dataclass(frozen=True, slots=True)
class OrphanedRef:
    """A ref of a table, or of the manifest, that nothing names."""

    location: str
    ref: str

    @property
    def branch_ref(self) -> str:
        """The ref of the branch that it was made for."""
        return self.ref.partition("/")[0]


@dataclass(frozen=True, slots=True)
class Trouble:
    """What kept a ref, all those of a table, or scratch from going; the next cleanup tries."""

    location: str
    ref: str | None
    message: str


@dataclass(frozen=True, slots=True)
class RefCleanup:
    """What a cleanup of refs did, or would do.

    Attributes:
        reclaimed: The refs that went; in a dry run, those that would.
        troubles: What could not be looked at or removed. All else was.
    """

    reclaimed: tuple[OrphanedRef, ...] = ()
    troubles: tuple[Trouble, ...] = ()


@dataclass(frozen=True, slots=True)
class CleanupResult:
    """What a cleanup did, or would do.

    Attributes:
        refs: The refs that went; in a dry run, those that would.
        scratch: The folders of scratch, below the graph's root.
        troubles: What could not be looked at or removed. All else was.
    """

    refs: tuple[OrphanedRef, ...] = ()
    scratch: tuple[str, ...] = ()
    troubles: tuple[Trouble, ...] = ()


def clean(
    manifest: Manifest,
    sidecars: Sidecars,
    clock: Clock,
    *,
    dry_run: bool = False,
    age_min: timedelta | None = None,
) -> CleanupResult:
    """Remove what nothing names and is too old to be in the making: refs, and scratch of loads.

    Args:
        age_min: As for `clean_refs`.

    Raises:
        StorageError: the branches, or what they pin, could not be read. Nothing was removed.
        RecoveryNeededError: a sidecar cannot be read, and might name any ref.
    """
    refs = clean_refs(manifest, sidecars, clock, dry_run=dry_run, age_min=age_min)
    least = STAGED_AGE_MIN if age_min is None else age_min
    before = clock.now() - least
    scratch, troubles = _clean_scratch(manifest.store.objects, before, dry_run=dry_run)
    return CleanupResult(refs.reclaimed, scratch, (*refs.troubles, *troubles))


def _clean_scratch(
    objects: Objects, before: datetime, *, dry_run: bool
) -> tuple[tuple[str, ...], list[Trouble]]:
    gone: list[str] = []
    troubles: list[Trouble] = []
    try:
        found = find_scratch(objects)
    except OmnigraphError as failure:
        return (), [Trouble(SCRATCH, None, failure.message)]
    for each in found:
        try:
            if each.written_at > before or is_held(objects, each.load_id):
                continue
            if not dry_run:
                objects.clear(each.folder)
        except OmnigraphError as failure:
            troubles.append(Trouble(each.folder, None, failure.message))
        else:
            gone.append(each.folder)
    return tuple(gone), troubles


def clean_refs(
    manifest: Manifest,
    sidecars: Sidecars,
    clock: Clock,
    *,
    dry_run: bool = False,
    age_min: timedelta | None = None,
) -> RefCleanup:
    """Remove the refs that nothing needs and that are too old to be in the making.

    Deletions of branches that were interrupted are finished first. No answer changes, of any branch
    or of any commit that a branch has in its history. Each table is looked at by itself: a failure
    with one of them is reported, and keeps none of the others.

    Args:
        age_min: Instead of `NAMELESS_AGE_MIN` and `STAGED_AGE_MIN`, for who knows that nobody else
            is at work.

    Raises:
        StorageError: main, or what it pins, could not be read. Nothing was removed.
        RecoveryNeededError: a sidecar cannot be read, and might name any ref.
    """
    now = clock.now()
    if not dry_run:
        _finish_deletions(manifest, now)
    known = _look(manifest, sidecars, now, age_min)
    orphans: list[OrphanedRef] = []
    troubles = [Trouble(BRANCHES, None, failure.message) for failure in known.failures]
    for location in (MANIFEST, *sorted(known.locations)):
        try:
            refs = _refs(manifest.store, location, known.released)
        except OmnigraphError as failure:
            troubles.append(Trouble(location, None, failure.message))
            continue
        found = [OrphanedRef(location, ref) for ref in refs]
        orphans += [each for each in found if known.lets_go(each, now, age_min)]
    if dry_run or not (orphans or known.released):
        return RefCleanup(tuple(orphans), tuple(troubles))
    # A second look: something may need by now what nothing needed a moment ago.
    again = _look(manifest, sidecars, now, age_min)
    reclaimed: list[OrphanedRef] = []
    held: set[str] = set()
    for each in orphans:
        if each.branch_ref in held or not again.lets_go(each, now, age_min):
            continue
        try:
            _reclaim(manifest.store, each)
        except OmnigraphError as failure:
            troubles.append(Trouble(each.location, each.ref, failure.message))
            if each.location == MANIFEST:
                # Lance refuses where somebody has just created a branch from it.
                held.add(each.branch_ref)
        else:
            reclaimed.append(each)
    _forget(manifest, known.released & again.released, troubles)
    return RefCleanup(tuple(reclaimed), tuple(troubles))


def _finish_deletions(manifest: Manifest, now: datetime) -> None:
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
    """Remove the records of deleted branches of which nothing is left."""
    for retired in released:
        if any(retired.owns(each.ref) for each in troubles):
            continue
        try:
            manifest.names.forget(retired)
        except OmnigraphError as failure:
            troubles.append(Trouble(RETIRED, retired.ref, failure.message))


@dataclass(frozen=True, slots=True)
class _Known:
    """All that needs a ref.

    Attributes:
        living: The refs of the branches that have a name.
        opaque: Those of them whose manifests cannot be read, so that nobody knows what they pin.
        retired: The refs of branches that were deleted and whose commits others have.
        released: The branches that were deleted and whose commits nobody has any more.
        pinned: The refs of tables that a branch pins, or a write in progress is about to move.
        locations: Where the tables are.
        failures: What cannot be read: then a ref that no branch has may belong to what cannot.
    """

    living: frozenset[str]
    opaque: frozenset[str]
    retired: frozenset[str]
    released: frozenset[RetiredBranch]
    pinned: frozenset[OrphanedRef]
    locations: frozenset[str]
    failures: tuple[StorageError, ...]

    def lets_go(self, orphan: OrphanedRef, now: datetime, age_min: timedelta | None) -> bool:
        """Whether nothing needs a ref, and nothing can be about to."""
        if orphan in self.pinned:
            return False
        if any(each.owns(orphan.ref) for each in self.released):
            return True
        owner = orphan.branch_ref
        if owner in self.retired or owner in self.opaque:
            return False
        is_nameless = owner not in self.living
        if is_nameless and self.failures:
            return False
        if orphan.location == MANIFEST and not is_nameless:
            return False
        least = age_min
        if least is None:
            least = NAMELESS_AGE_MIN if is_nameless else STAGED_AGE_MIN
        return now - made_at(orphan.ref.rpartition("/")[2]) >= least


def _look(
    manifest: Manifest, sidecars: Sidecars, now: datetime, age_min: timedelta | None
) -> _Known:
    # Sidecars first: a write that settles meanwhile has published what it was about to move.
    intents = sidecars.find().require_readable()
    survey = manifest.names.survey()
    histories = {MAIN: manifest.open(MAIN)}
    failures = list(survey.unreadable.values())
    opaque = set()
    for branch in survey.branches:
        try:
            histories[branch.name] = manifest.open(branch.name)
        except BranchNotFoundError:
            # It was deleted while we looked, and is not among the retired of old.
            opaque.add(branch.ref)
        except StorageError as failure:
            opaque.add(branch.ref)
            failures.append(failure)
    pinned = {
        OrphanedRef(pin.location, pin.ref or MAIN)
        for opened in histories.values()
        for pin in opened.contents.pins
    }
    locations = frozenset(each.location for each in pinned)
    pinned |= {
        OrphanedRef(table.location, table.ref or MAIN)
        for intent in intents
        for table in intent.tables
    }
    living = {each.ref: each.source_ref for each in survey.branches}
    retired = [each for each in manifest.names.retired_branches() if each.ref not in living]
    is_merging = any(each.merge_source_commit_id is not None for each in intents)
    least = NAMELESS_AGE_MIN if age_min is None else age_min
    old = [each for each in retired if each.retired_at and now - each.retired_at >= least]
    released: frozenset[RetiredBranch] = frozenset()
    if not failures and not is_merging:
        released = find_released(
            manifest, retired, among=old, histories=histories, sources=living.values()
        )
    kept = frozenset(each.ref for each in retired) - {each.ref for each in released}
    return _Known(
        frozenset(living),
        frozenset(opaque),
        kept,
        released,
        frozenset(pinned),
        locations,
        tuple(failures),
    )


def _refs(store: Store, location: str, released: Collection[RetiredBranch]) -> list[str]:
    """The refs that we made, the youngest first: those come before what they were made from."""
    named = set(store.refs.list(location))
    # Older releases named refs by their branches: only who deletes one tells that it was ours.
    legacy = [ref for ref in named if any(each.owns(ref) for each in released)]
    # A kill within Lance, or a writer that slept through the end of its branch, leaves files alone.
    depth = 1 if location == MANIFEST else 2
    folder = f"{location}/{REF_FOLDER}/"
    for path in store.objects.list(folder.removesuffix("/")):
        named.add("/".join(path.removeprefix(folder).split("/")[:depth]))
    ours = {*legacy, *(ref for ref in named if _is_ours(ref, depth))}
    return sorted(ours, key=lambda ref: ref.rpartition("/")[2], reverse=True)


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


def made_at(ulid: str) -> datetime:
    """When an id was made.

    >>> made_at("01ARZ3NDEKTSV4RRFFQ69G5FAV")
    datetime.datetime(2016, 7, 30, 23, 54, 10, 259000, tzinfo=datetime.timezone.utc)
    """
    milliseconds = 0
    for digit in ulid[:_TIME_DIGITS]:
        milliseconds = milliseconds * len(_DIGITS) + _DIGITS.index(digit)
    return datetime.fromtimestamp(0, UTC) + timedelta(milliseconds=milliseconds)
