"""The plan of a copy: which files of the source the target lacks, by what they are for.

A version of a table is only copied after the files that it names, so a version that the target has
is complete, and what is left to copy follows from two listings.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from omnigraph.errors import StorageError
from omnigraph.maintenance.cleanup.survey import Place, read_contents
from omnigraph.maintenance.copying.cut import GraphCut
from omnigraph.manifest.layout import MANIFEST, RECOVERIES, SCHEMAS
from omnigraph.manifest.reader import Manifest
from omnigraph.manifest.rows import Contents
from omnigraph.storage.array_files import version_of
from omnigraph.storage.forks import registration_path
from omnigraph.storage.inventory import (
    FileKind,
    Inventory,
    NamedFiles,
    TableFile,
    collect_named_files,
    take_inventory,
)
from omnigraph.storage.objects import Entry
from omnigraph.storage.tables import ref_folder

Ends: TypeAlias = Mapping[str | None, int]
"""By ref of a table, the newest version that is copied."""

_NAMED: Final = (FileKind.DATA, FileKind.DELETION, FileKind.INDEX, FileKind.TRANSACTION)


@dataclass(frozen=True, slots=True)
class TableCopy:
    """What the target lacks of one table.

    Attributes:
        files: The files that versions name.
        versions: The versions, each before those that follow from it.
        names: The names that Lance has of refs that other programs made.
        gaps: By folder of a ref, the highest number below its newest version that no version has.
    """

    files: tuple[Entry, ...] = ()
    versions: tuple[Entry, ...] = ()
    names: tuple[Entry, ...] = ()
    gaps: Mapping[str, int] | None = None


@dataclass(frozen=True, slots=True)
class CopyPlan:
    """What the target lacks.

    Attributes:
        newest: The newest version of main's manifest.
        state: The file with the state of that version: without it, no graph can be opened.
    """

    tables: tuple[TableCopy, ...]
    schemas: tuple[Entry, ...]
    manifest: TableCopy
    newest: Entry
    state: Entry
    commits: int


def plan_copy(
    manifest: Manifest, cut: GraphCut, has: Mapping[str, int], *, is_first: bool
) -> CopyPlan:
    """Find what the target lacks of a cut.

    Args:
        has: By path, the sizes of the objects of the target.
        is_first: Whether the target was never complete: then it may have versions of main's
            manifest that were stored before their files.
    """
    source = manifest.store.objects
    inventory = take_inventory(source, MANIFEST)
    lacking = _lacking(inventory, cut.ends, has)
    if is_first:
        lacking |= _lacking(inventory, {None: cut.ends[None]}, {})
    for ref, versions in lacking.items():
        # What expired is about to be removed, and nobody reads it.
        record = cut.let_go.by_ref.get(ref)
        for version in () if record is None else record.versions & versions.keys():
            del versions[version]
    contents = read_contents(manifest, _places(lacking))
    tables = []
    pinned = [*contents.values(), *(opened.contents for opened in cut.tips.values())]
    for location, ends in sorted(_table_ends(pinned).items()):
        tables.append(_plan_table(manifest, take_inventory(source, location), ends, has))
    if manifest.store.tables.exists(RECOVERIES):
        end = manifest.store.tables.head_version(RECOVERIES, ref=None)
        tables.append(_plan_table(manifest, take_inventory(source, RECOVERIES), {None: end}, has))
    schemas = tuple(each for each in source.entries(SCHEMAS) if has.get(each.path) != each.size)
    depths = {place: _depth(each) for place, each in contents.items()}
    own = _plan_table(manifest, inventory, cut.ends, has, lacking=lacking, depths=depths)
    entries = {entry.path: entry for entry in inventory.entries}
    main = cut.tips[None].table
    newest = inventory.versions(None).get(main.version)
    if newest is None or (state := entries.get(next(main.data_paths()))) is None:
        message = f"version {main.version} of the manifest was removed while it was copied"
        raise StorageError(message, hint="try again")
    return CopyPlan(
        tuple(tables),
        schemas,
        own,
        newest=entries[newest.path],
        state=state,
        commits=sum(_is_commit(place, each) for place, each in contents.items()),
    )


def _lacking(
    inventory: Inventory, ends: Ends, has: Mapping[str, int]
) -> dict[str | None, dict[int, TableFile]]:
    """By ref, the versions up to its end that the target does not have."""
    return {
        ref: {
            version: file
            for version, file in inventory.versions(ref).items()
            if version <= end and has.get(file.path) != file.size
        }
        for ref, end in ends.items()
    }


def _places(lacking: Mapping[str | None, Collection[int]]) -> Iterator[Place]:
    for ref, versions in lacking.items():
        yield from ((ref, version) for version in versions)


def _table_ends(contents: Iterable[Contents]) -> dict[str, dict[str | None, int]]:
    """By table and ref, the newest version that is pinned, or was when its type was dropped."""
    ends: dict[str, dict[str | None, int]] = defaultdict(dict)
    for each in contents:
        places = [
            *((pin.location, pin.ref, pin.version) for pin in each.pins),
            *((gone.location, gone.ref, gone.sealed_version) for gone in each.tombstones),
        ]
        for location, ref, version in places:
            ends[location][ref] = max(version, ends[location].get(ref, 0))
    return ends


def _depth(contents: Contents) -> int:
    """How many commits lead to the newest one: more than to any before it."""
    head = next((each for each in contents.recent if each.commit_id == contents.head), None)
    return (head and head.generation) or 0


def _is_commit(place: Place, contents: Contents) -> bool:
    """Whether a commit made a version: a new branch starts with one of its source's."""
    places = ((each.ref, each.manifest_version) for each in contents.recent)
    return place in places


def _plan_table(
    manifest: Manifest,
    inventory: Inventory,
    ends: Ends,
    has: Mapping[str, int],
    *,
    lacking: dict[str | None, dict[int, TableFile]] | None = None,
    depths: Mapping[Place, int] | None = None,
) -> TableCopy:
    lacking = _lacking(inventory, ends, has) if lacking is None else lacking
    entries = {entry.path: entry for entry in inventory.entries}
    named = NamedFiles()
    for ref, versions in lacking.items():
        if versions:
            others = set(inventory.versions(ref)) - versions.keys()
            collect_named_files(manifest.store.tables, inventory.location, ref, others, named)
    files = [
        entries[file.path]
        for file in inventory.files
        if (file.kind in _NAMED and file.name in named.by_kept)
        or (file.kind is FileKind.ARRAYS and version_of(file.path) in lacking.get(file.ref, ()))
    ]
    depths = depths or {}
    ordered = sorted(
        (depths.get((ref, version), 0), version, file.path)
        for ref, versions in lacking.items()
        for version, file in versions.items()
    )
    registered = {registration_path(inventory.location, ref) for ref in ends if ref}
    return TableCopy(
        tuple(each for each in files if has.get(each.path) != each.size),
        tuple(entries[path] for _, _, path in ordered if has.get(path) != entries[path].size),
        tuple(
            entry
            for path, entry in sorted(entries.items())
            if path in registered and has.get(path) != entry.size
        ),
        dict(_gaps(inventory, ends)),
    )


def _gaps(inventory: Inventory, ends: Ends) -> Iterator[tuple[str, int]]:
    for ref, end in ends.items():
        versions = {version for version in inventory.versions(ref) if version <= end}
        if versions and (missing := set(range(min(versions), end)) - versions):
            yield ref_folder(inventory.location, ref), max(missing)
