"""Exports into object stores: files written where they stay, and the list of them last.

An object is stored completely or not at all. A folder is complete when it has the list of its
contents, and the list of an earlier export is replaced in one step: until then that export stays,
and whoever reads by the list never sees parts of two. An export that was killed has left files and
a record of itself, without a list; the next one deletes them.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from omnigraph.errors import (
    AlreadyExistsError,
    ErrorCode,
    OmnigraphError,
    OutcomeUnknownError,
    StorageError,
)
from omnigraph.export.folders import BucketFolder
from omnigraph.export.targets import target_exists_error
from omnigraph.formats.export_folders import CONTENTS, UNFINISHED, is_of_a_run, parse_contents
from omnigraph.storage.meter import Meter
from omnigraph.storage.objects import Objects
from omnigraph.storage.roots import Root

_log: Final = logging.getLogger(__name__)

_REFUSALS: Final = (ErrorCode.STORAGE_DENIED, ErrorCode.BUCKET_NOT_FOUND)
"""Answers by which nothing was stored."""


def bucket_uri(target: str) -> str:
    """The URI of a target in an object store, as those of graphs are written.

    >>> bucket_uri("s3a://lake/exports/people/")
    's3://lake/exports/people'
    """
    root, name = _split(target)
    return f"{root.uri}/{name}"


def _split(target: str) -> tuple[Root, str]:
    """The root of the objects next to a target, and its name."""
    folder, _, name = target.rstrip("/").rpartition("/")
    return Root.in_store(folder), name


@contextmanager
def make_object(target: str, *, replaces: bool) -> Iterator[pa.NativeFile]:
    """A stream into an object, which is stored at the end of the block."""
    root, name = _split(target)
    objects = Objects(root, Meter())
    if not replaces and (objects.exists(name) or objects.holds_any(name)):
        raise target_exists_error(target)
    if objects.holds_any(name):
        raise _other_objects_error(target)
    with objects.write(name) as stream:
        yield stream


@dataclass(slots=True)
class BucketTarget:
    """A folder that is being written.

    Attributes:
        folder: Where its files go.
        tag: The tag of the list of an earlier export that is replaced.
        old: Its objects, and those that killed exports have left.
        may_be_complete: Whether the list of contents is stored, or may be, even later. Its files
            are then not deleted.
    """

    folder: BucketFolder
    tag: str | None
    old: frozenset[str]
    may_be_complete: bool = False

    def finish(self, contents: bytes, files: tuple[str, ...]) -> None:
        """Store the list of contents, which completes the export, and delete what it replaces."""
        objects, name = self.folder.objects, self.folder.name
        missing = {f"{name}/{file}" for file in files}.difference(objects.list(name))
        # A complete export deletes what it takes for the rest of a killed one.
        if missing and self._is_overtaken():
            raise self._overtaken_error()
        if missing:
            message = f"{min(missing)} was written, but is missing from {self.folder.root.uri}"
            hint = "do driver and workers use the same store? Then export again"
            raise StorageError(message, hint=hint)
        self._store_list(contents)
        # Only what was there at the beginning: others may write the next export already.
        _delete_rest(objects, sorted(self.old - {self._list_path}))

    @property
    def _list_path(self) -> str:
        return f"{self.folder.name}/{CONTENTS}"

    def _store_list(self, contents: bytes) -> None:
        """Store the list, if that of the beginning is still there; raises as `finish`."""
        objects, path = self.folder.objects, self._list_path
        self.may_be_complete = True
        failure: OmnigraphError | None = None
        try:
            if self.tag is None:
                is_stored = objects.put_if_absent(path, contents)
            else:
                is_stored = objects.update(path, contents, expecting=self.tag)
        except OmnigraphError as cause:
            is_stored, failure = False, cause
        if is_stored:
            return
        # Either the answer was lost, or a client that repeats a request met its own list.
        try:
            stored = objects.read(path)
        except OmnigraphError as cause:
            raise self._unknown_error() from failure or cause
        if stored is not None and stored.data == contents:
            return
        is_overtaken = (None if stored is None else stored.tag) != self.tag
        is_refused = failure is not None and failure.code in _REFUSALS
        # A request without an answer may still arrive, unless its condition no longer holds.
        self.may_be_complete = not (is_overtaken or is_refused or failure is None)
        if failure is None or is_overtaken:
            raise self._overtaken_error() from failure
        raise failure

    def _unknown_error(self) -> OutcomeUnknownError:
        place = f"{self.folder.root.uri}/{self._list_path}"
        message = f"whether the export is complete is unknown: {place} cannot be read"
        hint = f"it is, if that names files with {self.folder.run_id}; else export again"
        return OutcomeUnknownError(message, hint=hint)

    def _is_overtaken(self) -> bool:
        stored = self.folder.objects.read(self._list_path)
        return (None if stored is None else stored.tag) != self.tag

    def _overtaken_error(self) -> AlreadyExistsError:
        place = f"{self.folder.root.uri}/{self.folder.name}"
        message = f"another export to {place} was complete first"
        hint = "keep that one, or export again: --replace, or replace=True in Python"
        return AlreadyExistsError(message, hint=hint)


@contextmanager
def make_folder(target: str, run_id: str, *, replaces: bool) -> Iterator[BucketTarget]:
    """A folder to write files into; the block has to finish it.

    If the block fails, its files are deleted, and an earlier export stays. They are not deleted if
    the list of them may have been stored nevertheless.
    """
    root, name = _split(target)
    folder = BucketFolder(root, name, run_id)
    bucket_target = _require_free(folder, target, replaces=replaces)
    record = f"{name}/{UNFINISHED}.{run_id}.json"
    folder.objects.put(record, b"{}\n")
    try:
        yield bucket_target
    except BaseException:
        if bucket_target.may_be_complete:
            raise
        # What cannot be deleted now is deleted by the next export.
        with suppress(OmnigraphError):
            files = [path for path in folder.objects.list(name) if run_id in path]
            folder.objects.delete_all([path for path in files if path != record])
            folder.objects.delete(record)
        raise
    _delete_rest(folder.objects, [record])


def _delete_rest(objects: Objects, paths: list[str]) -> None:
    """Delete what a complete export does not need, or leave it to the next one."""
    try:
        objects.delete_all(paths)
    except OmnigraphError as failure:
        _log.warning("%d objects are left to the next export: %s", len(paths), failure)


def _require_free(folder: BucketFolder, target: str, *, replaces: bool) -> BucketTarget:
    """The target, if it is free, or what is there may be replaced."""
    objects, name = folder.objects, folder.name
    below = frozenset(objects.list(name))
    if not below:
        if objects.exists(name) and not replaces:
            raise target_exists_error(target)
        return BucketTarget(folder, None, frozenset())
    contents = objects.read(f"{name}/{CONTENTS}")
    files = None if contents is None else parse_contents(contents.data)
    known = {f"{name}/{file}" for file in files or ()}
    others = [path for path in below - known if not is_of_a_run(path)]
    if not replaces and (others or contents is not None):
        raise target_exists_error(target)
    if others:
        raise _other_objects_error(target)
    return BucketTarget(folder, None if contents is None else contents.tag, below)


def _other_objects_error(target: str) -> AlreadyExistsError:
    message = f"{target} is a folder with other objects in it"
    return AlreadyExistsError(message, hint="choose a folder of its own")
