"""Uploads: an export to an object store, made on this machine first and sent when it is whole.

An object appears whole or not at all. Of a directory the list of its contents is sent last, and is
the first to go where another export takes its place: what has one is whole.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from omnigraph.errors import AlreadyExistsError
from omnigraph.export.targets import CONTENTS, taken, translating_disk
from omnigraph.storage.meter import Meter
from omnigraph.storage.objects import Objects
from omnigraph.storage.roots import Root

_SCHEME: Final = "s3://"


def is_remote(target: str) -> bool:
    """Whether a target lies in an object store."""
    return target.startswith(_SCHEME)


@contextmanager
def uploaded(target: str, *, replaces: bool) -> Iterator[Path]:
    """A place on this machine to make a file or a directory in; it is sent when the block ends.

    If the block fails, nothing is sent.

    Raises:
        AlreadyExistsError: the target exists and may not be replaced.
        InvalidInputError: the target names no bucket and folder.
        StorageError: the disk is full, or the store refused. Without its contents no directory is
            whole.
    """
    folder, _, name = target.rstrip("/").rpartition("/")
    objects = Objects(Root.parse(folder), Meter())
    old = _require_free(objects, target, name, replaces=replaces)
    with TemporaryDirectory(prefix="omnigraph-export-") as directory, translating_disk(target):
        place = Path(directory, name)
        yield place
        if place.is_dir():
            _send_directory(objects, name, place, old)
        else:
            objects.upload(name, place)


def _require_free(objects: Objects, target: str, name: str, *, replaces: bool) -> frozenset[str]:
    """The objects of an earlier export that go."""
    below = frozenset(objects.list(name))
    if not below and (replaces or not objects.exists(name)):
        return frozenset()
    if not replaces:
        raise taken(target)
    found = objects.read(f"{name}/{CONTENTS}")
    try:
        files = json.loads(found.data)["files"] if found is not None else ()
        ours = {f"{name}/{each}" for each in (CONTENTS, *files)}
    except (ValueError, KeyError, TypeError):
        ours = set()
    if not below <= ours:
        message = f"{target} is a folder with other objects in it"
        raise AlreadyExistsError(message, hint="choose a folder of its own")
    return below


def _send_directory(objects: Objects, name: str, place: Path, old: frozenset[str]) -> None:
    objects.delete(f"{name}/{CONTENTS}")
    files = [each.relative_to(place).as_posix() for each in place.rglob("*") if each.is_file()]
    for each in sorted(files, key=lambda path: (path == CONTENTS, path)):
        if each == CONTENTS:
            for gone in sorted(old - {f"{name}/{kept}" for kept in files}):
                objects.delete(gone)
        objects.upload(f"{name}/{each}", place / each)
