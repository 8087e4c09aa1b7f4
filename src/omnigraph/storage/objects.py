"""Small objects beside the tables: put-if-absent, conditional update, list, delete."""

from __future__ import annotations

import io
import mmap
import os
import shutil
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from stat import S_ISDIR
from typing import Any, Final, Literal
from urllib.parse import quote

import obstore
import pyarrow as pa
from obstore.exceptions import AlreadyExistsError as ObjectExistsError
from obstore.exceptions import BaseError as ObjectStoreError
from obstore.exceptions import NotFoundError as ObjectNotFoundError
from obstore.exceptions import PreconditionError
from obstore.store import LocalStore, ObjectStore, S3Store, from_url

from omnigraph.errors import ErrorCode, InvalidInputError, StorageError
from omnigraph.storage.meter import Meter
from omnigraph.storage.roots import Root
from omnigraph.storage.translate import translate_errors
from omnigraph.storage.turns import turn

UPDATE_TURN_SECONDS_MAX: Final = 10.0
"""How long a conditional update on a local disk waits for another before it gives up."""

OBJECTS_PER_DELETE_MAX: Final = 1000
"""Objects that S3 deletes in one request."""

UPLOAD_PART_BYTES: Final = 16 << 20
UPLOAD_PARTS_AT_ONCE: Final = 4
"""A stream is sent to S3 in parts of this size, of which it takes 10,000, and a few at a time."""


@dataclass(frozen=True, slots=True)
class StoredObject:
    """An object's bytes, and the tag that a conditional update names them by."""

    data: bytes
    tag: str


@dataclass(frozen=True, slots=True)
class Entry:
    """An object in a listing; `size` is in bytes."""

    path: str
    size: int
    written_at: datetime


class Objects:
    """The small objects below one root; paths are relative to it."""

    def __init__(self, root: Root, meter: Meter) -> None:
        self._root = root
        self._meter = meter

    @cached_property
    def _store(self) -> ObjectStore:
        root = self._root
        match root.scheme:
            case "":
                return LocalStore(root.uri)
            case "s3":
                return S3Store(root.bucket, prefix=root.prefix)
            case scheme:
                return from_url(f"{scheme}://{root.bucket}/{quote(root.prefix)}")

    @property
    def is_local(self) -> bool:
        """Whether they are files of this machine, and to read one is no request."""
        return self._root.is_local

    def read(self, path: str) -> StoredObject | None:
        """The object at `path`, or None."""
        self._meter.count(reads=1)
        if not self._has_root():
            return None
        with self._translate_errors("reading", path):
            return self._fetch(path)

    def _fetch(self, path: str) -> StoredObject | None:
        try:
            answer = obstore.get(self._store, path)
            data = bytes(answer.bytes())
        except (FileNotFoundError, ObjectNotFoundError) as cause:
            _require_bucket(cause)
            return None
        except ObjectStoreError:
            if self._is_below_a_file(path):
                return None
            raise
        return StoredObject(data, self._tag(data, answer.meta))

    def _is_below_a_file(self, path: str) -> bool:
        """Whether a parent of the path is a local file, so that nothing can be at the path."""
        folders = Path(path).parents[:-1]
        return self._root.is_local and any(Path(self._root.uri, each).is_file() for each in folders)

    def _tag(self, data: bytes, meta: obstore.ObjectMeta) -> str:
        if self._root.is_local:
            # A disk's own tag is inode, time and size, and a later object can have the same ones.
            # So the tag is made from the content, as on S3.
            return sha256(data).hexdigest()
        tag = meta[self._condition]
        assert tag is not None, "a store tags every object"
        return tag

    @property
    def _condition(self) -> Literal["version", "e_tag"]:
        """What a conditional update compares: Google's store compares generations."""
        return "version" if self._root.scheme == "gs" else "e_tag"

    def put(self, path: str, data: bytes | memoryview) -> None:
        """Store `data` at `path`, replacing what was there."""
        self._meter.count(writes=1)
        self._make_directory()
        with self._translate_errors("writing", path):
            obstore.put(self._store, path, data, mode="overwrite", use_multipart=False)

    def upload(self, path: str, file: Path) -> None:
        """Store a local file of any size at `path`, replacing what was there."""
        self._meter.count(writes=1)
        self._make_directory()
        with self._translate_errors("writing", path):
            obstore.put(self._store, path, file, mode="overwrite")

    def put_parts(self, path: str, parts: Sequence[bytes | memoryview]) -> None:
        """Store parts of any size, one after the other, at `path`, replacing what was there."""
        self._meter.count(writes=1)
        self._make_directory()
        with self._translate_errors("writing", path):
            if not self._root.is_local:
                obstore.put(self._store, path, iter(parts), mode="overwrite")
                return
            with self._unfinished(path) as unfinished, unfinished.open("wb") as file:
                file.writelines(parts)

    def copy_from(self, source: Objects, entry: Entry) -> bool:
        """Store an object of another root at the same path, whole or not at all.

        Returns:
            Whether it was stored; False if the source does not have it any more.
        """
        path, where = entry.path, f"{source._root.uri}/{entry.path}"
        source._meter.count(reads=1)
        self._meter.count(writes=1)
        self._make_directory()
        with translate_errors("copying", where):
            try:
                if not self._root.is_local and source.is_local:
                    self._require_size(Path(source._root.uri, path).stat().st_size, entry, where)
                    obstore.put(self._store, path, Path(source._root.uri, path), mode="overwrite")
                    return True
                if not self._root.is_local:
                    answer = obstore.get(source._store, path)
                    self._require_size(answer.meta["size"], entry, where)
                    if entry.size <= UPLOAD_PART_BYTES:
                        obstore.put(self._store, path, bytes(answer.bytes()), mode="overwrite")
                        return True
                    # Not by `put`: while it reads a stream, no other call of obstore can run.
                    with obstore.open_writer(
                        self._store, path, buffer_size=UPLOAD_PART_BYTES
                    ) as writer:
                        for part in answer.stream(UPLOAD_PART_BYTES):
                            writer.write(part)
                    return True
                with self._unfinished(path) as unfinished:
                    if source.is_local:
                        shutil.copyfile(Path(source._root.uri, path), unfinished)
                    else:
                        stream = obstore.get(source._store, path).stream()
                        with unfinished.open("wb") as file:
                            file.writelines(stream)
                    self._require_size(unfinished.stat().st_size, entry, where)
            except (FileNotFoundError, ObjectNotFoundError) as cause:
                _require_bucket(cause)
                return False
            return True

    @staticmethod
    def _require_size(size: int, entry: Entry, where: str) -> None:
        if size != entry.size:
            message = f"{where} has {size:,} bytes, and was listed with {entry.size:,}"
            raise StorageError(message, hint="try again")

    @contextmanager
    def _unfinished(self, path: str) -> Iterator[Path]:
        """A local file to write, which is the object at `path` at the end of the block."""
        # Not by obstore: what it leaves unfinished it never lists, and nobody would find it.
        target = Path(self._root.uri, path)
        target.parent.mkdir(parents=True, exist_ok=True)
        unfinished = target.with_name(f"unfinished-{os.getpid()}-{threading.get_ident()}")
        try:
            yield unfinished
            unfinished.replace(target)
        finally:
            unfinished.unlink(missing_ok=True)

    @contextmanager
    def write(self, path: str) -> Iterator[pa.NativeFile]:
        """A stream of any length; at the end of the block it is the object at `path`.

        If the block fails, nothing is stored, and what was there stays. Only for object stores.
        """
        assert not self._root.is_local, "on a disk, a file is written beside and renamed"
        self._meter.count(writes=1)
        with (
            self._translate_errors("writing", path),
            obstore.open_writer(
                self._store,
                path,
                buffer_size=UPLOAD_PART_BYTES,
                max_concurrency=UPLOAD_PARTS_AT_ONCE,
            ) as writer,
            pa.PythonFile(_Upload(writer), mode="w") as stream,
        ):
            yield stream

    def map(self, path: str) -> memoryview | None:
        """The bytes at `path`, or None; on a local disk, mapped into memory and not read."""
        if not self._root.is_local:
            stored = self.read(path)
            return None if stored is None else memoryview(stored.data)
        self._meter.count(reads=1)
        with self._translate_errors("reading", path):
            try:
                with Path(self._root.uri, path).open("rb") as file:
                    if not os.fstat(file.fileno()).st_size:
                        return memoryview(b"")
                    return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
            except FileNotFoundError:
                return None

    def exists(self, path: str) -> bool:
        """Whether there is an object at exactly this path."""
        self._meter.count(reads=1)
        if not self._has_root():
            return False
        with self._translate_errors("reading", path):
            try:
                obstore.head(self._store, path)
            except (FileNotFoundError, ObjectNotFoundError) as cause:
                _require_bucket(cause)
                return False
            return True

    def put_if_absent(self, path: str, data: bytes) -> bool:
        """Store `data` only if nothing is at `path`; of several callers exactly one gets True."""
        self._meter.count(writes=1)
        self._make_directory()
        with self._translate_errors("writing", path):
            try:
                obstore.put(self._store, path, data, mode="create", use_multipart=False)
            except ObjectExistsError:
                return False
            return True

    def update(self, path: str, data: bytes, *, expecting: str) -> bool:
        """Replace the object only if its tag is still `expecting`; False if changed or deleted."""
        self._meter.count(writes=1)
        if not self._has_root():
            return False
        with self._translate_errors("updating", path):
            if self._root.is_local:
                return self._update_locally(path, data, expecting)
            try:
                is_version = self._condition == "version"
                mode: obstore.UpdateVersion = (
                    {"version": expecting} if is_version else {"e_tag": expecting}
                )
                obstore.put(self._store, path, data, mode=mode, use_multipart=False)
            except (PreconditionError, ObjectNotFoundError, FileNotFoundError) as cause:
                _require_bucket(cause)
                return False
            return True

    def _update_locally(self, path: str, data: bytes, expecting: str) -> bool:
        # obstore has no conditional update for local disks (docs/substrate.md, Single objects), so
        # updates of one directory take turns. An update that does not get its turn must not write.
        if self._fetch(path) is None:
            return False
        folder = str(Path(path).parent)
        with turn(self._root, folder, seconds_max=UPDATE_TURN_SECONDS_MAX) as acquired:
            if not acquired:
                message = f"the object {path} of {self._root.uri} is being updated by a process"
                raise StorageError(message, hint="look for a process that hangs, then try again")
            current = self._fetch(path)
            if current is None or current.tag != expecting:
                return False
            obstore.put(self._store, path, data, mode="overwrite", use_multipart=False)
            return True

    def list(self, prefix: str) -> tuple[str, ...]:
        """The paths below the folder `prefix`, sorted."""
        return tuple(sorted(self.times(prefix)))

    def folders(self, prefix: str) -> tuple[str, ...]:
        """The paths of the folders right below the folder `prefix`, sorted."""
        self._meter.count(reads=1)
        if not self._has_root():
            return ()
        with self._translate_errors("listing", prefix):
            entries = obstore.list_with_delimiter(self._store, prefix)
        return tuple(sorted(entries["common_prefixes"]))

    def times(self, prefix: str) -> dict[str, datetime]:
        """The paths below the folder `prefix`, each with the time it was last written."""
        return {entry.path: entry.written_at for entry in self._list_entries(prefix)}

    def entries(self, prefix: str) -> tuple[Entry, ...]:
        """The objects below the folder `prefix`, sorted by path."""
        return tuple(sorted(self._list_entries(prefix), key=lambda entry: entry.path))

    def written_at(self, path: str) -> datetime | None:
        """When the object at exactly this path was last written, or None."""
        self._meter.count(reads=1)
        if not self._has_root():
            return None
        with self._translate_errors("reading", path):
            try:
                return obstore.head(self._store, path)["last_modified"]
            except (FileNotFoundError, ObjectNotFoundError) as cause:
                _require_bucket(cause)
                return None

    def tags(self, prefix: str) -> dict[str, str | None]:
        """The paths below the folder `prefix`, each with its tag where the listing has it.

        A disk's listing has none: there a tag is made from the object's content.
        """
        self._meter.count(reads=1)
        if not self._has_root():
            return {}
        with self._translate_errors("listing", prefix):
            pages = obstore.list(self._store, prefix or None)
            entries = [entry for page in pages for entry in page]
        is_local = self._root.is_local
        return {entry["path"]: None if is_local else entry["e_tag"] for entry in entries}

    def holds_any(self, prefix: str = "") -> bool:
        """Whether any object is below the folder `prefix`; reads at most one page."""
        return next(self._list_entries(prefix), None) is not None

    def _list_entries(self, prefix: str) -> Iterator[Entry]:
        self._meter.count(reads=1)
        if not self._has_root():
            return
        with self._translate_errors("listing", prefix):
            for page in obstore.list(self._store, prefix or None):
                yield from (
                    Entry(meta["path"], meta["size"], meta["last_modified"]) for meta in page
                )

    def delete(self, path: str) -> None:
        """Delete the object; it need not exist."""
        self._remove(path)

    def _remove(self, path: str) -> None:
        self._meter.count(writes=1)
        if not self._has_root():
            return
        with self._translate_errors("deleting", path):
            try:
                obstore.delete(self._store, path)
            except (FileNotFoundError, ObjectNotFoundError) as cause:
                _require_bucket(cause)

    def delete_all(self, paths: Sequence[str]) -> None:
        """Delete objects, which need not exist; in few requests where the store can."""
        if self._root.is_local:
            for path in paths:
                self._remove(path)
            return
        for first in range(0, len(paths), OBJECTS_PER_DELETE_MAX):
            some = paths[first : first + OBJECTS_PER_DELETE_MAX]
            self._meter.count(writes=1)
            with self._translate_errors("deleting", some[0]):
                try:
                    obstore.delete(self._store, list(some))
                except (FileNotFoundError, ObjectNotFoundError) as cause:
                    # Other stores than S3 report a missing one, and may have left the rest.
                    _require_bucket(cause)
                    for path in some:
                        self._remove(path)

    def remove_empty_folders(self, paths: Iterable[str]) -> None:
        """Remove the folders of deleted objects that are empty now; object stores have none."""
        if not self._root.is_local:
            return
        for folder in {str(Path(path).parent) for path in paths}:
            # Another process may have written to it, or removed it.
            with suppress(OSError):
                Path(self._root.uri, folder).rmdir()

    def clear(self, prefix: str) -> None:
        """Delete every object below the folder `prefix`, and the folder itself."""
        for path in self.list(prefix):
            self._remove(path)
        if self._root.is_local:
            # Only empty directories are left, unless another process is still writing there.
            shutil.rmtree(Path(self._root.uri, prefix), ignore_errors=True)

    def _has_root(self) -> bool:
        """Whether a local root exists; for a bucket, the next request reports that."""
        if not self._root.is_local:
            return True
        with self._translate_errors("opening", ""):
            # Not Path.is_dir, which returns False for a directory that may not be searched.
            try:
                mode = Path(self._root.uri).stat().st_mode
            except FileNotFoundError:
                return False
            except NotADirectoryError as cause:
                raise _is_a_file_error(self._root) from cause
        if not S_ISDIR(mode):
            raise _is_a_file_error(self._root)
        return True

    def _make_directory(self) -> None:
        if self._root.is_local and not self._has_root():
            with self._translate_errors("creating", ""):
                Path(self._root.uri).mkdir(parents=True, exist_ok=True)

    @contextmanager
    def _translate_errors(self, action: str, path: str) -> Iterator[None]:
        where = f"{self._root.uri}/{path}" if path else self._root.uri
        with translate_errors(action, where):
            yield


class _Upload(io.RawIOBase):
    """A stream of obstore's, for Arrow; whoever opened that closes it."""

    def __init__(self, writer: obstore.WritableFile) -> None:
        super().__init__()
        self._writer = writer

    def writable(self) -> bool:
        return True

    def write(self, data: Any, /) -> int:
        # Arrow gives signed bytes, which obstore does not take.
        return self._writer.write(memoryview(data).cast("B"))


def _require_bucket(cause: Exception) -> None:
    """Accept a missing object, but not a missing bucket: stores report both the same way."""
    if any(mark in str(cause) for mark in ("NoSuchBucket", "ContainerNotFound")):
        raise cause


def _is_a_file_error(root: Root) -> InvalidInputError:
    message = f"{root.uri} is a file, and a graph is a directory"
    hint = "check the path, or choose another place"
    return InvalidInputError(message, hint=hint, code=ErrorCode.INVALID_URI)
