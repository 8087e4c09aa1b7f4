"""Opening inputs of a load: their contents unpacked, and their failures translated into ours."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO, Final

import pyarrow as pa

from omnigraph.errors import ErrorCode, InvalidInputError, StorageError
from omnigraph.formats.compression import Compression, suffix_of
from omnigraph.limits import REMOTE_PART_BYTES
from omnigraph.load.sources import FileInput, Form, SparkFile
from omnigraph.storage.remote_files import RemoteReader

REMOTE_BLOCK_BYTES: Final = 8 << 20
"""How much of an object that is read in order is requested at a time, at least."""


ACCESS_HINT: Final = "check the file and its permissions"
"""What to do about a file that cannot be read in this process."""

_MAGIC: Final = {b"\x1f\x8b": Compression.GZIP, b"\x28\xb5\x2f\xfd": Compression.ZSTD}


@contextmanager
def open_file(
    file: FileInput, *, access_hint: str = ACCESS_HINT
) -> Iterator[tuple[Any, pa.NativeFile]]:
    """The contents of a file, and the file itself, whose position is how far it was read."""
    try:
        with _open_raw(file, access_hint) as raw:
            if file.compression is None:
                yield raw, raw
                return
            with pa.CompressedInputStream(raw, file.compression.value) as stream:
                yield stream, raw
    except pa.ArrowInvalid as cause:
        raise _unpacking_error(file, cause) from cause
    except OSError as cause:
        if isinstance(cause, FileNotFoundError | PermissionError) or cause.errno is not None:
            message = f"{file.name} cannot be read: {cause.strerror or cause}"
            raise StorageError(message, hint=access_hint) from cause
        # Arrow raises it for a file that is cut off or is of another kind.
        raise _unpacking_error(file, cause) from cause


@contextmanager
def _open_raw(file: FileInput, access_hint: str) -> Iterator[pa.NativeFile]:
    """The stored bytes of a file."""
    if isinstance(file.path, str | pa.Buffer):
        is_held = isinstance(file.path, pa.Buffer)
        with pa.BufferReader(file.path) if is_held else pa.OSFile(file.path, "rb") as raw:
            yield raw
        return
    assert not isinstance(file.path, SparkFile), "Spark reads it, and its task gets the contents"
    # What is unpacked or read as text is read in order; of other forms, parts are.
    is_in_order = file.compression is not None or file.form in (Form.CSV, Form.AVRO)
    block_bytes = REMOTE_BLOCK_BYTES if is_in_order else REMOTE_PART_BYTES
    try:
        with pa.PythonFile(RemoteReader(file.path, block_bytes=block_bytes), mode="r") as raw:
            yield raw
    except StorageError as failure:
        if failure.code is ErrorCode.STORAGE_DENIED and access_hint != ACCESS_HINT:
            failure.hint += _WORKERS_HINT
        raise


_WORKERS_HINT: Final = (
    "; workers of Spark have their own environment: set spark.executorEnv.NAME for each"
)


def _unpacking_error(file: FileInput, cause: BaseException) -> InvalidInputError:
    if file.compression is None:
        return _contents_error(file.name, cause)
    return _packing_error(file.name, file.compression)


def _packing_error(name: str, compression: Compression) -> InvalidInputError:
    message = f"{name} cannot be unpacked: it is not {compression}, or not whole"
    hint = f"pack it again, or take {suffix_of(compression)} from its name if it is not packed"
    return InvalidInputError(message, hint=hint)


@contextmanager
def translate_errors(name: str) -> Iterator[None]:
    """Re-raise what Arrow's readers raise about contents as ours."""
    try:
        yield
    except (pa.ArrowException, UnicodeDecodeError) as cause:
        # Names of columns are decoded where they are read.
        raise _contents_error(name, cause) from cause
    except OSError as cause:
        if cause.errno is not None:
            raise
        # Arrow raises it for what is cut off or damaged.
        raise _contents_error(name, cause) from cause


def _contents_error(name: str, cause: BaseException) -> InvalidInputError:
    first = (str(cause).splitlines() or ["no reason given"])[0]
    message = f"{name} cannot be read: {first[:300]}"
    hint = "check that it is whole, in UTF-8, and of the kind that its media type or name says"
    return InvalidInputError(message, hint=hint)


class RawStream(io.RawIOBase):
    """An Arrow stream, for Python's readers."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def readable(self) -> bool:
        """Whether it can be read: always."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read as much as the buffer holds, or less."""
        data = self._stream.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)


class UnpackingStream:
    """A stream that is unpacked if its first bytes say so."""

    def __init__(self, stream: BinaryIO, name: str) -> None:
        self._name = name
        self._source = _CountingStream(stream)
        first = self._source.peek(4)
        codec = next((codec for magic, codec in _MAGIC.items() if first.startswith(magic)), None)
        self._codec = codec
        self._stream: Any = self._source
        if codec is not None:
            file = pa.PythonFile(self._source, mode="r")
            self._stream = pa.CompressedInputStream(file, codec.value)

    @property
    def bytes_read(self) -> int:
        """How much of the stream was read, before it was unpacked."""
        return self._source.bytes_read

    def read(self, size: int) -> bytes:
        """More of its contents; no bytes at its end."""
        try:
            data: bytes = self._stream.read(size)
        except OSError as cause:
            if self._codec is None or cause.errno is not None:
                raise
            raise _packing_error(self._name, self._codec) from cause
        return data


class _CountingStream:
    """A stream that can be peeked into; it may return fewer bytes than requested."""

    closed = False

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._peeked = b""
        self.bytes_read = 0

    def peek(self, size: int) -> bytes:
        while len(self._peeked) < size and (more := self._stream.read(size - len(self._peeked))):
            self._peeked += more
        return self._peeked

    def read(self, size: int = -1) -> bytes:
        data = self._peeked or self._stream.read(size)
        self._peeked = b""
        self.bytes_read += len(data)
        return data

    def close(self) -> None:
        """It belongs to the caller."""
