"""The inventory of a table: its files by kind and ref, and which of them its versions name.

Lance keeps the files of a table below its folder, and those of each ref below `tree/<ref>` in it.
A version of a ref names files of its own folder, and of the folders of the refs it came from.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from itertools import takewhile
from typing import Final
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
from lance import LanceDataset

from omnigraph.clock import is_ulid
from omnigraph.storage.array_files import ARRAYS_FOLDER, version_of
from omnigraph.storage.forks import REF_SUFFIX, REFS_FOLDER, registration_path
from omnigraph.storage.objects import Entry, Objects
from omnigraph.storage.shared_files import path_inside
from omnigraph.storage.tables import REF_FOLDER, Tables, is_minted, ref_folder
from omnigraph.storage.translate import translate_errors

NAMED_FILES_PER_CHUNK: Final = 1 << 17
"""Rows of a table's list of files by version that are held at a time."""


_VERSION_MAX: Final = (1 << 64) - 1
_INVERTED_DIGITS: Final = 20


class FileKind(StrEnum):
    """The kinds of files that a table consists of; other files are ignored."""

    VERSION = "version"
    DETACHED = "detached version"
    """A version that no head and no other version refers to: the preview of a write."""
    DATA = "data"
    """A data file, or a large value beside it."""
    DELETION = "deletion"
    INDEX = "index"
    TRANSACTION = "transaction"
    ARRAYS = "arrays"
    """What was derived of a version (`storage.array_files`), or was about to be."""


_FORMS: Final = (
    (FileKind.VERSION, re.compile(r"_versions/([0-9]+)\.manifest")),
    (FileKind.DETACHED, re.compile(r"_versions/d([0-9]+)\.manifest")),
    (FileKind.DATA, re.compile(r"(data/[^/]+)\.lance")),
    (FileKind.DATA, re.compile(r"(data/[^/]+)/[^/]+\.blob")),
    (FileKind.DELETION, re.compile(r"(_deletions/[^/]+)")),
    (FileKind.INDEX, re.compile(r"(_indices/[^/]+)/.+")),
    (FileKind.TRANSACTION, re.compile(r"(_transactions/[^/]+\.txn)")),
    (FileKind.ARRAYS, re.compile(rf"({ARRAYS_FOLDER}/[^/]+)")),
)


@dataclass(frozen=True, slots=True)
class TableFile:
    """One file of a table.

    Attributes:
        ref: The ref in whose folder it is; None is main's.
        name: What versions name it by: a path below the root, that of the folder for the files of
            an index, and without its suffix for data.
        version: The number of a version.
    """

    path: str
    size: int
    written_at: datetime
    kind: FileKind
    ref: str | None
    name: str
    version: int | None = None


@dataclass(frozen=True, slots=True)
class Inventory:
    """The files of one table at one moment.

    Attributes:
        refs: The refs that it has, main left out; those among them of which only files are left.
        entries: All files below its folder, whatever their kind.
    """

    location: str
    files: tuple[TableFile, ...]
    refs: frozenset[str]
    entries: tuple[Entry, ...] = field(repr=False)

    def ref_size(self, ref: str) -> int:
        """How many bytes a ref's own files have, and its name."""
        folder = f"{ref_folder(self.location, ref)}/"
        name = registration_path(self.location, ref)
        return sum(
            entry.size
            for entry in self.entries
            if entry.path.startswith(folder) or entry.path == name
        )

    def versions(self, ref: str | None) -> dict[int, TableFile]:
        """The versions of a ref by number."""
        return {
            file.version: file
            for file in self.files
            if file.kind is FileKind.VERSION and file.ref == ref and file.version is not None
        }


def take_inventory(objects: Objects, location: str) -> Inventory:
    """List the files of a table. Files that are not of a table's own kinds are left out."""
    entries = objects.entries(location)
    refs = frozenset({*_registered_refs(location, entries), *_minted_refs(location, entries)})
    files = (_table_file(location, refs, entry) for entry in entries)
    found = tuple(file for file in files if file is not None)
    return Inventory(location, found, refs, entries)


def _registered_refs(location: str, entries: Iterable[Entry]) -> Iterator[str]:
    """The refs that Lance has registered, as it does for those of other programs."""
    prefix = f"{location}/{REFS_FOLDER}/"
    for entry in entries:
        if entry.path.startswith(prefix):
            ref = _registered_ref(entry.path.removeprefix(prefix))
            if ref is not None:
                yield ref


def _minted_refs(location: str, entries: Iterable[Entry]) -> Iterator[str]:
    """The refs that have a file in a folder with a minted name: their last version may be gone."""
    prefix = f"{location}/{REF_FOLDER}/"
    for entry in entries:
        if entry.path.startswith(prefix):
            ref = "/".join(takewhile(is_ulid, entry.path.removeprefix(prefix).split("/")))
            if is_minted(ref):
                yield ref


def stray_refs(objects: Objects, location: str) -> dict[str, datetime]:
    """The refs of a table without minted names, and when the newest file of each was written.

    Other programs create them. Those are included of which a kill has left
    only files, or only the name.
    """
    times: dict[str, datetime] = {}
    for folder, find in ((REFS_FOLDER, _registered_ref), (REF_FOLDER, _foldered_ref)):
        prefix = f"{location}/{folder}"
        for path, written_at in objects.times(prefix).items():
            ref = find(path.removeprefix(f"{prefix}/"))
            if ref is not None and not is_minted(ref):
                times[ref] = max(written_at, times.get(ref, written_at))
    return times


def _registered_ref(path: str) -> str | None:
    return unquote(path.removesuffix(REF_SUFFIX)) if path.endswith(REF_SUFFIX) else None


def _foldered_ref(path: str) -> str | None:
    """The ref that a file in the folder of refs is of."""
    parts = path.split("/")
    for length in range(1, len(parts)):
        inside = "/".join(parts[length:])
        if any(form.fullmatch(inside) for _, form in _FORMS):
            return "/".join(parts[:length])
    return None


def _table_file(location: str, refs: Collection[str], entry: Entry) -> TableFile | None:
    inside = entry.path.removeprefix(f"{location}/")
    ref = None
    if inside.startswith(f"{REF_FOLDER}/"):
        ref = _ref_of(inside.removeprefix(f"{REF_FOLDER}/"), refs)
        if ref is None:
            return None
        inside = inside.removeprefix(f"{REF_FOLDER}/{ref}/")
    for kind, form in _FORMS:
        if (match := form.fullmatch(inside)) is not None:
            name = f"{ref_folder(location, ref)}/{match[1]}"
            number = _number(match[1]) if kind is FileKind.VERSION else None
            return TableFile(
                entry.path, entry.size, entry.written_at, kind, ref, name, version=number
            )
    return None


def _ref_of(path: str, refs: Collection[str]) -> str | None:
    """The ref in whose folder a path is; files of a ref that does not exist are not the table's."""
    return next((ref for ref in refs if path.startswith(f"{ref}/")), None)


def _number(digits: str) -> int:
    """The version that a file name stands for: Lance counts down; old tables count up."""
    number = int(digits)
    return _VERSION_MAX - number if len(digits) == _INVERTED_DIGITS else number


@dataclass(frozen=True, slots=True)
class NamedFiles:
    """The files that versions name, by `TableFile.name`.

    Attributes:
        by_kept: Those that versions name which stay.
        by_removed: Those that versions name which are to be removed.
    """

    by_kept: set[str] = field(default_factory=set)
    by_removed: set[str] = field(default_factory=set)


def collect_named_files(
    tables: Tables, location: str, ref: str | None, removed: Collection[int], into: NamedFiles
) -> None:
    """Add the files that the versions of a ref name, in whatever folder they are."""
    uri = tables.uri(location)
    with translate_errors("opening", uri):
        # Not a shared handle: it is of the newest version, and read from storage.
        handle = tables.main(location).checkout_version((ref, None))
    gone = pa.array(sorted(removed), pa.int64())
    with translate_errors("reading the versions of", uri):
        for rows in _in_chunks(handle.tracked_files()):
            is_removed = pc.is_in(rows["version"], value_set=gone)
            kept = rows.filter(pc.invert(is_removed))
            for name in _names_of(location, kept):
                into.by_kept.add(name)
            for name in _names_of(location, rows.filter(is_removed)):
                into.by_removed.add(name)
        if ref is not None:
            _collect_inherited_indexes(tables, handle, location, ref, frozenset(removed), into)


def collect_arrays(
    inventory: Inventory, removed: Mapping[str | None, Collection[int]], into: NamedFiles
) -> None:
    """Add the arrays that were made of versions: they stay for as long as their version does."""
    for file in inventory.files:
        if file.kind is FileKind.ARRAYS:
            version = version_of(file.path)
            if version in removed.get(file.ref, ()):
                into.by_removed.add(file.name)
            elif version in inventory.versions(file.ref):
                into.by_kept.add(file.name)


def _in_chunks(reader: pa.RecordBatchReader) -> Iterator[pa.Table]:
    """The rows of a reader, many at a time: versions have most of their files in common."""
    batches: list[pa.RecordBatch] = []
    for batch in reader:
        batches.append(batch)
        if sum(each.num_rows for each in batches) >= NAMED_FILES_PER_CHUNK:
            yield pa.Table.from_batches(batches).unify_dictionaries()
            batches = []
    if batches:
        yield pa.Table.from_batches(batches).unify_dictionaries()


def _names_of(location: str, rows: pa.Table) -> Iterator[str]:
    places = pc.binary_join_element_wise(rows["base_uri"].cast(pa.string()), rows["path"], "/")
    for place in pc.unique(places).to_pylist():
        yield _file_name(location, place)


def _collect_inherited_indexes(
    tables: Tables,
    handle: LanceDataset,
    location: str,
    ref: str,
    removed: frozenset[int],
    into: NamedFiles,
) -> None:
    """Add the indexes of other refs, which Lance leaves out (docs/substrate.md, Removing files)."""
    for version in (reference["version"] for reference in handle.version_refs()):
        address = tables.address(location, ref=ref, version=version)
        opened = tables.at_home(address, handle.checkout_version(version))
        folders = opened.base_paths()
        names = into.by_removed if version in removed else into.by_kept
        for index in opened.describe_indices():
            for segment in index.segments:
                if segment.base_id is not None:
                    folder = folders[segment.base_id].path
                    names.add(_file_name(location, f"{folder}/_indices/{segment.uuid}/"))


def _file_name(location: str, place: str) -> str:
    """What `TableFile.name` is for a file that a version names.

    A version names absolute places, perhaps below a root where the graph was before.
    """
    parts = f"{location}{path_inside(location, place)}".split("/")
    for number in range(len(parts)):
        inside = "/".join(parts[number:])
        for _, form in _FORMS:
            if (match := form.fullmatch(inside)) is not None:
                return "/".join((*parts[:number], match[1]))
    return "/".join(parts).rstrip("/")
