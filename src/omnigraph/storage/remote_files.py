"""Files in object stores that belong to no graph: found, listed and read a range at a time."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import Any, Final, Self

import obstore
from obstore.exceptions import NotFoundError as ObjectNotFoundError
from obstore.exceptions import PreconditionError
from obstore.store import ObjectStore, from_url

from omnigraph.errors import ErrorCode, InvalidInputError, NotFoundError, StorageError
from omnigraph.lang.diagnostics import did_you_mean
from omnigraph.storage.translate import translate_errors

_SETTINGS: Final = ("AWS_", "GOOGLE_", "AZURE_")
_NEARBY_MAX: Final = 1000
"""Objects that are compared with a name that does not exist: one page of a listing."""


@dataclass(frozen=True, slots=True)
class RemotePath:
    """A place in an object store: `s3://bucket`, and the key or the prefix of keys in it."""

    bucket: str
    key: str

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse the URL of an object or a folder.

        >>> RemotePath.parse("s3://lake/raw/2024/")
        RemotePath(bucket='s3://lake', key='raw/2024')
        """
        scheme, _, rest = text.partition("://")
        bucket, _, key = rest.partition("/")
        if not bucket:
            message = f"{text[:200]} does not name a bucket"
            hint = f"write {scheme}://bucket/path"
            raise InvalidInputError(message, hint=hint, code=ErrorCode.INVALID_URI)
        return cls(f"{scheme}://{bucket}", key.strip("/"))

    @property
    def url(self) -> str:
        """The URL, without a slash at its end."""
        return f"{self.bucket}/{self.key}" if self.key else self.bucket

    @property
    def name(self) -> str:
        """The last part of the URL."""
        return self.url.rpartition("/")[2]


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """An object, as it was when it was found; the tag tells whether it was replaced since."""

    path: RemotePath
    byte_count: int
    tag: str | None


def find_file(path: RemotePath) -> RemoteFile | None:
    """The object at exactly this path, or None."""
    if not path.key:
        return None
    with translate_errors("reading", path.url):
        try:
            meta = obstore.head(_store(path), path.key)
        except (FileNotFoundError, ObjectNotFoundError):
            # A head of a missing bucket says no more; the listing that follows does.
            return None
    return RemoteFile(path, meta["size"], meta["e_tag"])


def list_files(folder: RemotePath) -> Iterator[RemoteFile]:
    """The objects below a folder, in the order of the store."""
    with translate_errors("listing", folder.url):
        for page in obstore.list(_store(folder), folder.key or None):
            for meta in page:
                path = RemotePath(folder.bucket, meta["path"])
                yield RemoteFile(path, meta["size"], _quote_tag(meta["e_tag"]))


def _quote_tag(tag: str | None) -> str | None:
    """A tag as requests name it; in a listing, Azure leaves out the quotes."""
    return tag if tag is None or tag.endswith('"') else f'"{tag}"'


def missing_file_error(path: RemotePath) -> NotFoundError:
    """The error for a path with nothing at it or below it; similar names beside it are a hint."""
    folder = path.key.rpartition("/")[0]
    beside = islice(list_files(RemotePath(path.bucket, folder)), _NEARBY_MAX)
    depth = len(folder) + 1 if folder else 0
    names = {file.path.key[depth:].partition("/")[0] for file in beside}
    message = f"no object exists at or below {path.url[:200]}"
    otherwise = "check the path: it is the name of an object, or of a folder of them"
    return NotFoundError(message, hint=did_you_mean(path.name, names, otherwise=otherwise))


class RemoteReader(io.RawIOBase):
    """Reads one object, from any place on; every request is for the version that was found.

    Args:
        block_bytes: How much is requested at least; more is better where all is read in order.
    """

    def __init__(self, file: RemoteFile, *, block_bytes: int) -> None:
        super().__init__()
        self._file = file
        self._block_bytes = block_bytes
        self._position = 0
        self._block = memoryview(b"")
        self._block_start = 0

    def readable(self) -> bool:
        """Whether it can be read: always."""
        return True

    def seekable(self) -> bool:
        """Whether it can be read from any place on: always."""
        return True

    def tell(self) -> int:
        """How far it was read."""
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        """Continue from another place."""
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._file.byte_count}
        self._position = start[whence] + offset
        return self._position

    def readinto(self, buffer: Any, /) -> int:
        """Read as much as the buffer holds, or up to the end."""
        view = memoryview(buffer).cast("B")
        data = self.read(len(view))
        view[: len(data)] = data
        return len(data)

    def read(self, size: int = -1, /) -> bytes:
        """So many bytes, or those up to the end."""
        left = max(0, self._file.byte_count - self._position)
        wanted = left if size < 0 else min(size, left)
        parts: list[memoryview] = []
        while wanted:
            part = self._held()[:wanted] or self._fetch(wanted)[:wanted]
            parts.append(part)
            self._position += len(part)
            wanted -= len(part)
        return bytes(parts[0]) if len(parts) == 1 else b"".join(parts)

    def _held(self) -> memoryview:
        """What of the last block is at the position and behind it."""
        start = self._position - self._block_start
        return self._block[start:] if 0 <= start < len(self._block) else memoryview(b"")

    def _fetch(self, wanted: int) -> memoryview:
        path, start = self._file.path, self._position
        end = min(self._file.byte_count, start + max(wanted, self._block_bytes))
        with translate_errors("reading", path.url):
            try:
                options: obstore.GetOptions = {"range": (start, end), "if_match": self._file.tag}
                data = obstore.get(_store(path), path.key, options=options).bytes()
            except PreconditionError as cause:
                raise _changed_error(path, "replaced") from cause
            except (FileNotFoundError, ObjectNotFoundError) as cause:
                raise _changed_error(path, "deleted") from cause
        if len(data) != end - start:
            raise _changed_error(path, "cut off")
        self._block, self._block_start = memoryview(data), start
        return self._block


def _changed_error(path: RemotePath, what: str) -> StorageError:
    message = f"{path.url} was {what} while it was read"
    hint = "load again when nobody writes to it"
    return StorageError(message, hint=hint, code=ErrorCode.OBJECT_CHANGED)


def _store(path: RemotePath) -> ObjectStore:
    settings = tuple(
        sorted(item for item in os.environ.items() if item[0].upper().startswith(_SETTINGS))
    )
    return _connect(path.bucket, settings)


@lru_cache(maxsize=16)
def _connect(bucket: str, settings: tuple[tuple[str, str], ...]) -> ObjectStore:  # noqa: ARG001
    """The store of a bucket, with its connections, for as long as the settings are the same."""
    return from_url(bucket)
