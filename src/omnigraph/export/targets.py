"""Targets: files and directories that get their name when they are complete, or never."""

from __future__ import annotations

import logging
import os
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from errno import EROFS
from pathlib import Path
from typing import Final
from urllib.parse import unquote

from omnigraph.errors import AlreadyExistsError, ErrorCode, InvalidInputError, StorageError
from omnigraph.formats.export_folders import find_replaced, place_beside, replaced_beside
from omnigraph.storage.schemes import SCHEMES, is_remote

_log: Final = logging.getLogger(__name__)

_SCHEME: Final = re.compile(r"(?:file(?=:/)|[A-Za-z][A-Za-z0-9+.\-]*(?=://)):")
_FILE: Final = re.compile(r"file:(?://(?:localhost)?)?(?=/(?!/))")


def parse_target(target: str) -> str:
    """The target as a path or as the URL of an object store.

    >>> parse_target("file:///data/my%20graph.jsonl"), parse_target("gs://lake/out/graph")
    ('/data/my graph.jsonl', 'gs://lake/out/graph')
    """
    if is_remote(target) or not (scheme := _SCHEME.match(target)):
        return target
    if path := _FILE.match(target):
        return unquote(target[path.end() :])
    name = scheme[0].removesuffix(":")
    if name == "file":
        message = f"{target[:200]} does not name a file of this machine"
        hint = "write file:///directory/name"
    else:
        stores = ", ".join(f"{each}://" for each in SCHEMES)
        message = f"{target[:200]} cannot be written: exports cannot go to {name}://"
        hint = f"export to {stores} or a directory of this machine, and copy it from there"
    raise InvalidInputError(message, hint=hint, code=ErrorCode.INVALID_URI)


@contextmanager
def make_target(
    target: Path, mark: str, *, replaces: bool, is_ours: Callable[[Path], bool]
) -> Iterator[Path]:
    """A place beside the target to make a file or a directory in; it is renamed at the end.

    If the block fails, the place is deleted and the target is unchanged. A directory is replaced by
    two renames: if the process is killed in between, the next export to the target restores it.

    Args:
        mark: Distinguishes processes that make the same target at once.
        replaces: Whether an existing target is replaced. Only one that `is_ours` can be.
    """
    with translate_disk_errors(target):
        _restore(target)
    require_free(target, replaces=replaces, is_ours=is_ours)
    place = place_beside(target, mark)
    with translate_disk_errors(target):
        try:
            yield place
            # Others may have made the target meanwhile.
            require_free(target, replaces=replaces, is_ours=is_ours)
            _rename(place, target, replaced_beside(target, mark))
        finally:
            _remove(place)


def target_exists_error(target: str | Path) -> AlreadyExistsError:
    """The error for a target that exists and is not to be replaced."""
    hint = "choose another name, or replace it: --replace, or replace=True in Python"
    return AlreadyExistsError(f"{target} exists", hint=hint)


def require_free(target: Path, *, replaces: bool, is_ours: Callable[[Path], bool]) -> None:
    """Refuse a target that exists, unless it is empty, or an export that is to be replaced."""
    if not target.parent.is_dir():
        message = f"directory {target.parent} does not exist"
        raise InvalidInputError(message, hint="create it, or choose another place")
    if not os.path.lexists(target) or _is_empty(target):
        return
    if is_ours(target):
        if replaces:
            return
        raise target_exists_error(target)
    if target.is_dir():
        message = f"{target} is a directory with other files in it"
        raise AlreadyExistsError(message, hint="choose a directory of its own")
    message = f"{target} exists, and is not an earlier export"
    raise AlreadyExistsError(message, hint="choose another name, or move it")


def _is_empty(target: Path) -> bool:
    """Whether it is a directory with nothing in it."""
    return target.is_dir() and not target.is_symlink() and next(target.iterdir(), None) is None


def _restore(target: Path) -> None:
    """Rename an earlier export back that a killed one was about to replace."""
    if (replaced := find_replaced(target)) is not None:
        replaced.rename(target)
        _log.warning("%s is the earlier export again: the one to replace it was killed", target)


def _rename(place: Path, target: Path, old: Path) -> None:
    if not target.is_dir() or target.is_symlink():
        place.replace(target)
        return
    # No call replaces a directory that is not empty.
    target.rename(old)
    try:
        place.rename(target)
    except OSError:
        old.rename(target)
        raise
    _remove(old)


def _remove(place: Path) -> None:
    if place.is_dir() and not place.is_symlink():
        shutil.rmtree(place, ignore_errors=True)
    else:
        place.unlink(missing_ok=True)


@contextmanager
def translate_disk_errors(target: str | Path) -> Iterator[None]:
    """Re-raise failures of the disk as `StorageError`, with the original as the cause."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as cause:
        # The text of an error of Arrow's names the place where the target is made.
        reason = os.strerror(cause.errno) if cause.errno else str(cause)
        message = f"writing {target} failed: {reason}"
        is_denied = isinstance(cause, PermissionError) or cause.errno == EROFS
        code = ErrorCode.STORAGE_DENIED if is_denied else None
        hint = "check the space and the rights there"
        raise StorageError(message, hint=hint, code=code) from cause
