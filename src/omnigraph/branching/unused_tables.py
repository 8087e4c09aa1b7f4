"""Unused tables: those that a killed schema change or a killed init created, and no commit names.

A new table has a fresh location, and nothing refers to it until a publish does. A manifest names
every table that its commits read: a pin is replaced by another one of the same table, or by a
tombstone, which stays (docs/decisions/0012). So a location that neither the newest version of any
ref of the manifest nor a sidecar names is garbage, unless its writer has not come that far. Writers
do not claim tables that are half as old as `STAGED_AGE_MIN` (`limits.STAGED_SECONDS_MAX`).
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from omnigraph.choices import TableKind
from omnigraph.clock import creation_time, is_ulid
from omnigraph.errors import NotFoundError
from omnigraph.manifest.layout import MANIFEST
from omnigraph.manifest.reader import Manifest, OpenManifest
from omnigraph.model.names import MAIN
from omnigraph.recovery.sidecars import Sidecars
from omnigraph.storage.objects import Objects


def find_unused_tables(
    manifest: Manifest, sidecars: Sidecars, *, before: datetime
) -> tuple[str, ...]:
    """The locations of tables that nothing names, and that nobody wrote to since `before`.

    Raises:
        StorageError: a ref of the manifest cannot be read, and might name any table.
        RecoveryNeededError: a sidecar cannot be read, and might name any table.
    """
    objects = manifest.store.objects
    # In this order: a table that is created later is not listed, and a write that settles after the
    # sidecars were read has published its tables.
    locations = [location for location in _list_locations(objects) if _is_old(location, before)]
    if not locations:
        return ()
    named = {*_named_by_sidecars(sidecars), *_named_by_manifests(manifest)}
    return tuple(
        location
        for location in locations
        if location not in named and _is_quiet(objects, location, before)
    )


def _list_locations(objects: Objects) -> list[str]:
    folders = (folder for kind in TableKind for folder in objects.folders(kind.folder))
    # Tables of older releases have other names. No release creates those any more.
    return sorted(folder for folder in folders if is_ulid(folder.rpartition("/")[2]))


def _is_old(location: str, before: datetime) -> bool:
    return creation_time(location.rpartition("/")[2]) < before


def _is_quiet(objects: Objects, location: str, before: datetime) -> bool:
    return all(written_at < before for written_at in objects.times(location).values())


def _named_by_sidecars(sidecars: Sidecars) -> Iterator[str]:
    for intent in sidecars.find().require_readable():
        yield from (table.location for table in intent.tables)
        if intent.schema_intent is not None:
            yield from (pin.location for pin in intent.schema_intent.pins)


def _named_by_manifests(manifest: Manifest) -> Iterator[str]:
    for opened in _open_every_ref(manifest):
        contents = opened.contents
        yield from (pin.location for pin in contents.pins)
        yield from (tombstone.location for tombstone in contents.tombstones)


def _open_every_ref(manifest: Manifest) -> Iterator[OpenManifest]:
    """The newest manifest of each ref, whether or not a branch has it."""
    yield manifest.open(MAIN)
    for ref in manifest.store.refs.list(MANIFEST):
        try:
            yield manifest.open_ref(ref)
        except NotFoundError:
            if manifest.store.refs.exists(MANIFEST, ref):
                raise
