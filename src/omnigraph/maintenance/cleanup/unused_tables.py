"""Unused tables: of killed schema changes and inits, and of dropped types that no commit reads.

A new table has a fresh location, and nothing refers to it until a publish does. So a location that
neither a kept commit nor a sidecar names is garbage, unless its writer has not come that far.
Writers do not claim tables that are half as old as `STAGED_AGE_MIN` (`limits.STAGED_SECONDS_MAX`).
The table of a dropped type was published, and no write refers to it again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from omnigraph.clock import creation_time, is_ulid
from omnigraph.errors import NotFoundError
from omnigraph.maintenance.cleanup.ages import Ages
from omnigraph.manifest.layout import MANIFEST
from omnigraph.manifest.reader import Manifest
from omnigraph.storage.objects import Objects


def find_unused_tables(
    manifest: Manifest, unpinned: Collection[str], *, dropped: Collection[str], ages: Ages
) -> tuple[str, ...]:
    """The locations of tables that nothing names, and that no write in progress has made.

    Args:
        unpinned: Locations that were listed before sidecars and branches were read, and that
            neither a kept commit nor a sidecar names.
        dropped: Locations of dropped types.
    """
    candidates = [each for each in unpinned if each in dropped or _is_old(each, ages)]
    if not candidates:
        return ()
    named = set(_named_by_refs_without_a_branch(manifest, ages))
    return tuple(
        location
        for location in candidates
        if location not in named
        and (location in dropped or _is_quiet(manifest.store.objects, location, ages))
    )


def _is_old(location: str, ages: Ages) -> bool:
    table_id = location.rpartition("/")[2]
    # Tables of older releases have other names. No release creates those any more.
    return is_ulid(table_id) and ages.is_staged_long_ago(creation_time(table_id))


def _is_quiet(objects: Objects, location: str, ages: Ages) -> bool:
    return all(map(ages.is_staged_long_ago, objects.times(location).values()))


def _named_by_refs_without_a_branch(manifest: Manifest, ages: Ages) -> Iterator[str]:
    """What the refs pin that get a name in a moment, or lost it a moment ago."""
    since = ages.now - ages.nameless
    branches = manifest.names.survey().branches
    known = {branch.ref for branch in branches}
    known |= {
        branch.ref
        for branch in manifest.names.retired_branches()
        if branch.retired_at is not None and branch.retired_at <= since
    }
    for ref in manifest.store.refs.list(MANIFEST):
        if ref in known:
            continue
        try:
            contents = manifest.open_ref(ref).contents
        except NotFoundError:
            if manifest.store.refs.exists(MANIFEST, ref):
                raise
        else:
            yield from (pin.location for pin in contents.pins)
