"""Cleanup: what killed processes, and deletes that failed, left behind, and nothing names.

Scratch belongs to one load, and is rubbish once that has ended. A ref's name is used once and tells
when it was made and for which branch (docs/decisions/0007), so one question is left: does anything
name it? Names of branches, the manifests that they carry and the sidecars of writes in progress are
all that can.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from omnigraph.clock import Clock, is_ulid
from omnigraph.errors import ErrorCode, NotFoundError, OmnigraphError
from omnigraph.limits import LEASE_SECONDS
from omnigraph.manifest.layout import MANIFEST
from omnigraph.manifest.reader import Manifest
from omnigraph.model.names import MAIN
from omnigraph.recovery.sidecars import Sidecars
from omnigraph.recovery.staging import SCRATCH, find_scratch, is_held
from omnigraph.storage.objects import Objects
from omnigraph.storage.store import Store
from omnigraph.storage.tables import REF_FOLDER

NAMELESS_AGE_MIN: Final = timedelta(seconds=4 * LEASE_SECONDS)
"""How old a ref of a branch that is gone must be. Whoever makes a branch names it within a lease,
and nobody can write to one that has no name."""

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
    """Remove the refs that nothing names and that are too old to be in the making.

    No answer changes, of any branch or commit. Each table is looked at by itself: what fails with
    one of them is told, and keeps none of the others.

    Args:
        age_min: Instead of `NAMELESS_AGE_MIN` and `STAGED_AGE_MIN`, for who knows that nobody else
            is at work.

    Raises:
        StorageError: the branches, or what they pin, could not be read. Nothing was removed.
        RecoveryNeededError: a sidecar cannot be read, and might name any ref.
    """
    known = _look(manifest, sidecars)
    now = clock.now()
    orphans: list[OrphanedRef] = []
    troubles: list[Trouble] = []
    for location in (MANIFEST, *sorted(known.locations)):
        try:
            refs = _refs(manifest.store, location)
        except OmnigraphError as failure:
            troubles.append(Trouble(location, None, failure.message))
            continue
        found = [OrphanedRef(location, ref) for ref in refs]
        orphans += [each for each in found if known.lets_go(each, now, age_min)]
    if dry_run or not orphans:
        return RefCleanup(tuple(orphans), tuple(troubles))
    # A second look: nothing may have a name that it had not a moment ago, and this is cheap.
    again = _look(manifest, sidecars)
    reclaimed = []
    for each in orphans:
        if not again.lets_go(each, now, age_min):
            continue
        try:
            _reclaim(manifest.store, each)
        except OmnigraphError as failure:
            troubles.append(Trouble(each.location, each.ref, failure.message))
        else:
            reclaimed.append(each)
    return RefCleanup(tuple(reclaimed), tuple(troubles))


@dataclass(frozen=True, slots=True)
class _Known:
    """All that names a ref.

    Attributes:
        living: The refs of the branches that have a name.
        pinned: The refs of tables that a branch pins, or a write in progress is about to move.
        locations: Where the tables are.
    """

    living: frozenset[str]
    pinned: frozenset[OrphanedRef]
    locations: frozenset[str]

    def lets_go(self, orphan: OrphanedRef, now: datetime, age_min: timedelta | None) -> bool:
        if orphan in self.pinned:
            return False
        is_nameless = orphan.branch_ref not in self.living
        if orphan.location == MANIFEST and not is_nameless:
            return False
        least = age_min
        if least is None:
            least = NAMELESS_AGE_MIN if is_nameless else STAGED_AGE_MIN
        return now - made_at(orphan.ref.rpartition("/")[2]) >= least


def _look(manifest: Manifest, sidecars: Sidecars) -> _Known:
    branches = manifest.names.every()
    pinned = set()
    for name in (MAIN, *(each.name for each in branches)):
        for pin in manifest.current(name).pins.values():
            pinned.add(OrphanedRef(pin.location, pin.ref or MAIN))
    locations = frozenset(each.location for each in pinned)
    for intent in sidecars.find().require_readable():
        pinned |= {OrphanedRef(each.location, each.ref or MAIN) for each in intent.tables}
    return _Known(frozenset(each.ref for each in branches), frozenset(pinned), locations)


def _refs(store: Store, location: str) -> list[str]:
    """The refs that we made, the youngest first: those come before what they were made from."""
    named = set(store.refs.list(location))
    # A kill within Lance, or a writer that slept through the end of its branch, leaves files alone.
    depth = 1 if location == MANIFEST else 2
    folder = f"{location}/{REF_FOLDER}/"
    for path in store.objects.list(folder.removesuffix("/")):
        named.add("/".join(path.removeprefix(folder).split("/")[:depth]))
    ours = (ref for ref in named if _is_ours(ref, depth))
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
