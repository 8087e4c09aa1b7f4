"""Uploads: an export to an object store, made on this machine and sent when it is complete.

An object is stored completely or not at all. Of a directory the list of its contents is sent last,
and deleted first when another export replaces it: a directory that has one is complete.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from omnigraph.errors import AlreadyExistsError
from omnigraph.export.contents import CONTENTS, parse_contents
from omnigraph.export.targets import target_exists_error, translate_disk_errors
from omnigraph.storage.meter import Meter
from omnigraph.storage.objects import Objects
from omnigraph.storage.roots import Root

_SCHEME: Final = "s3://"


def is_remote(target: str) -> bool:
    """Whether a target is in an object store."""
    return target.startswith(_SCHEME)


@contextmanager
def upload_target(target: str, *, replaces: bool) -> Iterator[Path]:
    """A place on this machine to make a file or a directory in; it is sent when the block ends.

    If the block fails, nothing is sent.

    Raises:
        AlreadyExistsError: the target exists and may not be replaced.
        InvalidInputError: the target names no bucket and folder.
        StorageError: the disk is full, or the store refused. A directory without its contents
            is not complete.
    """
    folder, _, name = target.rstrip("/").rpartition("/")
    objects = Objects(Root.parse(folder), Meter())
    old = _require_free(objects, target, name, replaces=replaces)
    with TemporaryDirectory(prefix="omnigraph-export-") as directory, translate_disk_errors(target):
        place = Path(directory, name)
        yield place
        if place.is_dir():
            _send_directory(objects, name, place, old)
        else:
            objects.upload(name, place)


def _require_free(objects: Objects, target: str, name: str, *, replaces: bool) -> frozenset[str]:
    """The objects of an earlier export that are to be replaced."""
    below = frozenset(objects.list(name))
    if not below and (replaces or not objects.exists(name)):
        return frozenset()
    if not replaces:
        raise target_exists_error(target)
    contents = objects.read(f"{name}/{CONTENTS}")
    files = parse_contents(contents.data) if contents is not None else None
    if files is None or not below <= {f"{name}/{file}" for file in files}:
        message = f"{target} is a folder with other objects in it"
        raise AlreadyExistsError(message, hint="choose a folder of its own")
    return below


def _send_directory(objects: Objects, name: str, place: Path, old: frozenset[str]) -> None:
    objects.delete(f"{name}/{CONTENTS}")
    files = [path.relative_to(place).as_posix() for path in place.rglob("*") if path.is_file()]
    for file in sorted(files, key=lambda file: (file == CONTENTS, file)):
        if file == CONTENTS:
            for obsolete in sorted(old - {f"{name}/{new}" for new in files}):
                objects.delete(obsolete)
        objects.upload(f"{name}/{file}", place / file)
