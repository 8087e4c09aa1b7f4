"""Checkpoints of Spark: the id of one, and what identifies each of its batches.

Spark writes `metadata` with the id when it makes a checkpoint, and `offsets/<number>` before it
runs a batch: what the batch reads of each source, and when it was planned. It never writes either
again, so a batch that runs once more has the same entry (docs/substrate.md).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from os import PathLike
from pathlib import Path
from typing import Final, Self, TypeAlias

from omnigraph.errors import ErrorCode, InvalidParameterError, StorageError
from omnigraph.limits import LOAD_BLOCK_BYTES
from omnigraph.model.arguments import require_path
from omnigraph.model.streams import StreamBatch
from omnigraph.storage.remote_files import RemotePath, RemoteReader, find_file
from omnigraph.storage.schemes import is_remote

_LOCAL: Final = "file:"

Fetch: TypeAlias = Callable[[str], bytes | None]
"""Returns what a file holds, wherever Spark can read it, or None."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """Where Spark keeps how far a stream is.

    Attributes:
        location: An absolute path of this machine, or a URL.
        fetch: Reads what this process cannot read itself.
    """

    location: str
    fetch: Fetch | None = None

    @classmethod
    def parse(cls, location: str | PathLike[str], fetch: Fetch | None = None) -> Self:
        """Validate a location that a caller gave.

        >>> Checkpoint.parse("file:///var/streams/people/").location
        '/var/streams/people'
        """
        text = str(require_path(location, "checkpoint"))
        if not text.strip():
            message = "a stream needs a checkpoint, where Spark keeps how far it is"
            raise InvalidParameterError(message, hint="name a directory for it", name="checkpoint")
        if text.startswith(_LOCAL):
            text = "/" + text.removeprefix(_LOCAL).lstrip("/")
        if "://" not in text:
            text = str(Path(text).absolute())
        return cls(text.rstrip("/"), fetch)

    def batch(self, stream: str, number: int) -> StreamBatch:
        """One of its batches, whose entry Spark has written."""
        digest = sha256(self._read(f"offsets/{number}")).hexdigest()[:32]
        return StreamBatch(stream, self._read_id(), number, digest)

    def _read_id(self) -> str:
        data = self._read("metadata")
        try:
            found = json.loads(data)["id"]
        except (ValueError, KeyError, TypeError) as cause:
            message = f"{self.location}/metadata is not what Spark writes: {data[:100]!r}"
            raise StorageError(message, hint=_HINT, code=ErrorCode.CORRUPTED) from cause
        return str(found)

    def _read(self, name: str) -> bytes:
        path = f"{self.location}/{name}"
        data = _read_remote(path) if is_remote(path) else _read_local(path)
        if data is None and self.fetch is not None:
            data = self.fetch(path)
        if data is None:
            message = f"{path} cannot be read, which says what the stream's batches are"
            raise StorageError(message, hint=_HINT)
        return data


_HINT: Final = (
    "the checkpoint has to be where this process can read it, and nobody else may change it; "
    "with graph.ingest, anywhere that Spark can read"
)


def _read_remote(url: str) -> bytes | None:
    found = find_file(RemotePath.parse(url))
    return None if found is None else RemoteReader(found, block_bytes=LOAD_BLOCK_BYTES).read()


def _read_local(path: str) -> bytes | None:
    try:
        return Path(path).read_bytes()
    except FileNotFoundError:
        return None
    except OSError as cause:
        message = f"{path} cannot be read: {cause.strerror}"
        raise StorageError(message, hint=_HINT) from cause
