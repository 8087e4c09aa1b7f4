"""Small objects beside the tables: put-if-absent, conditional update, list, delete."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import obstore
from obstore.exceptions import AlreadyExistsError as ObjectExistsError
from obstore.exceptions import NotFoundError as ObjectNotFoundError
from obstore.exceptions import PreconditionError
from obstore.store import LocalStore, S3Store

from omnigraph.errors import ErrorCode, InvalidInputError, StorageError
from omnigraph.limits import UPDATE_TURN_SECONDS_MAX
from omnigraph.storage.meter import Meter
from omnigraph.storage.roots import Root
from omnigraph.storage.translate import translating
from omnigraph.storage.turns import turn


@dataclass(frozen=True, slots=True)
class StoredObject:
    """An object's bytes, and the tag that a conditional update names them by."""

    data: bytes
    tag: str


class Objects:
    """The small objects below one root; paths are relative to it."""

    def __init__(self, root: Root, meter: Meter) -> None:
        self._root = root
        self._meter = meter

    @cached_property
    def _store(self) -> LocalStore | S3Store:
        if self._root.bucket is None:
            if Path(self._root.uri).is_file():
                message = f"{self._root.uri} is a file, not a directory"
                raise InvalidInputError(message, code=ErrorCode.INVALID_URI)
            return LocalStore(self._root.uri)
        return S3Store(self._root.bucket, prefix=self._root.prefix)

    def read(self, path: str) -> StoredObject | None:
        """The object at `path`, or None where there is none."""
        self._meter.count(reads=1)
        with self._translating("reading", path):
            try:
                answer = obstore.get(self._store, path)
                tag = answer.meta["e_tag"]
                assert tag is not None, "every store we use tags its objects"
                return StoredObject(bytes(answer.bytes()), tag)
            except (FileNotFoundError, ObjectNotFoundError):
                return None

    def put(self, path: str, data: bytes) -> None:
        """Store `data` at `path`, replacing what was there."""
        self._meter.count(writes=1)
        self._make_directory()
        with self._translating("writing", path):
            obstore.put(self._store, path, data, mode="overwrite", use_multipart=False)

    def put_if_absent(self, path: str, data: bytes) -> bool:
        """Store `data` only if nothing is at `path`; of several callers exactly one gets True."""
        self._meter.count(writes=1)
        self._make_directory()
        with self._translating("writing", path):
            try:
                obstore.put(self._store, path, data, mode="create", use_multipart=False)
            except ObjectExistsError:
                return False
            return True

    def update(self, path: str, data: bytes, *, expecting: str) -> bool:
        """Replace the object only if its tag is still `expecting`; False if it changed or went."""
        self._meter.count(writes=1)
        with self._translating("updating", path):
            if self._root.is_local:
                return self._update_locally(path, data, expecting)
            try:
                obstore.put(self._store, path, data, mode={"e_tag": expecting}, use_multipart=False)
            except (PreconditionError, ObjectNotFoundError, FileNotFoundError):
                return False
            return True

    def _update_locally(self, path: str, data: bytes, expecting: str) -> bool:
        # obstore has no conditional update for local disks (lance-facts 11), so updaters take turns
        # on the directory. One that cannot have its turn must not write.
        folder = str(Path(path).parent)
        with turn(self._root, folder, seconds_max=UPDATE_TURN_SECONDS_MAX) as had:
            if not had:
                message = f"the object {path} of {self._root.uri} is being updated by a process"
                raise StorageError(message, hint="look for a process that hangs, then try again")
            try:
                current = obstore.head(self._store, path)["e_tag"]
            except (FileNotFoundError, ObjectNotFoundError):
                return False
            if current != expecting:
                return False
            obstore.put(self._store, path, data, mode="overwrite", use_multipart=False)
            return True

    def list(self, prefix: str) -> tuple[str, ...]:
        """The paths below the folder `prefix`, sorted."""
        return tuple(sorted(self._listed(prefix)))

    def holds_any(self, prefix: str = "") -> bool:
        """Whether any object lies below the folder `prefix`; reads one page at the most."""
        return next(self._listed(prefix), None) is not None

    def _listed(self, prefix: str) -> Iterator[str]:
        self._meter.count(reads=1)
        if self._root.is_local and not Path(self._root.uri).exists():
            return
        with self._translating("listing", prefix):
            for page in obstore.list(self._store, prefix or None):
                yield from (each["path"] for each in page)

    def delete(self, path: str) -> None:
        """Remove the object; one that is not there is as good as removed."""
        self._meter.count(writes=1)
        with self._translating("deleting", path):
            try:
                obstore.delete(self._store, path)
            except (FileNotFoundError, ObjectNotFoundError):
                return

    def _make_directory(self) -> None:
        if self._root.is_local:
            with self._translating("creating", ""):
                Path(self._root.uri).mkdir(parents=True, exist_ok=True)

    @contextmanager
    def _translating(self, action: str, path: str) -> Iterator[None]:
        where = f"{self._root.uri}/{path}" if path else self._root.uri
        with translating(action, where):
            yield
