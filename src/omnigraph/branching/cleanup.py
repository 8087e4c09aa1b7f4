"""Cleanup of refs that nothing names: what killed processes, and deletes that failed, left behind.

A ref's name is used once and tells when it was made and for which branch (docs/decisions/0007), so
one question is left: does anything name it? Names of branches, the manifests that they carry and
the sidecars of writes in progress are all that can.
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
from omnigraph.storage.store import Store
from omnigraph.storage.tables import REF_FOLDER

NAMELESS_AGE_MIN: Final = timedelta(seconds=4 * LEASE_SECONDS)
"""How old a ref of a branch that is gone must be. Whoever makes a branch names it within a lease,
and nobody can write to one that has no name."""

STAGED_AGE_MIN: Final = timedelta(days=1)
"""How old a ref of a branch that lives must be. A first write makes it before it stages its rows,
and nothing names it until they are published: age is all that tells it from rubbish."""

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
    """What kept a ref, or all those of a table, from being cleaned up; the next cleanup tries."""

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
