"""Archives: a request and files of any size in one body, as tar.

The first member is the request, a document. The others are files, named by their numbers.
"""

from __future__ import annotations

import json
import os
import re
import tarfile
from collections.abc import Generator, Iterator, Sequence
from pathlib import Path
from typing import IO, Any, Final

from omnigraph.documents.values import parse_json, to_document
from omnigraph.errors import InvalidInputError, StorageError
from omnigraph.limits import LOAD_INPUTS_MAX, REMOTE_PIECE_BYTES

MEDIA_TYPE: Final = "application/x-tar"
_REQUEST: Final = "request.json"
_BLOCK: Final = 512
_PIECE_BYTES: Final = 64 << 10
_LARGE_SIZE: Final = re.compile(rb"[0-9]{1,3} size=([0-9]{1,19})\n")


def archive_pieces(request: object, files: Sequence[Path]) -> Iterator[bytes]:
    """A request and files as an archive; the same ones give the same bytes."""
    data = json.dumps(to_document(request)).encode()
    yield _header(_REQUEST, len(data)) + data + _padding(len(data))
    for number, path in enumerate(files):
        yield from _member_pieces(str(number), path)
    yield bytes(2 * _BLOCK)


def folder_pieces(folder: Path) -> Iterator[bytes]:
    """The files of a folder as an archive, by their paths in it."""
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            yield from _member_pieces(str(path.relative_to(folder)), path)
    yield bytes(2 * _BLOCK)


def _member_pieces(name: str, path: Path) -> Iterator[bytes]:
    try:
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            yield _header(name, size)
            sent = 0
            while sent < size and (piece := file.read(min(REMOTE_PIECE_BYTES, size - sent))):
                sent += len(piece)
                yield piece
    except OSError as cause:
        message = f"{path} cannot be read: {cause.strerror or cause}"
        raise StorageError(message, hint="check the file and its permissions") from cause
    if sent < size:
        message = f"{path} became shorter while it was read"
        raise StorageError(message, hint="load it when nobody writes to it")
    yield _padding(size)


def _header(name: str, size: int) -> bytes:
    member = tarfile.TarInfo(name)
    member.size = size
    return member.tobuf(tarfile.PAX_FORMAT)


def _padding(size: int) -> bytes:
    return bytes(-size % _BLOCK)


class RequestArchive:
    """Unpacks the archive of a request while it arrives.

    The request is known before the first file is written: whoever receives the archive decides then
    whether to go on. Members are plain files, so that none stands for more bytes than are sent.
    """

    def __init__(self, folder: Path, *, request_bytes_max: int) -> None:
        self._folder = folder
        self._request_bytes_max = request_bytes_max
        self._held = bytearray()
        self._parts = self._unpack()
        self._wanted = next(self._parts)
        self._is_whole = False
        self.request: dict[str, Any] | None = None
        self.files: list[Path] = []

    def feed(self, data: bytes) -> None:
        """Take the next bytes. It stops once the request is known, and goes on without data."""
        self._held += data
        known = self.request
        while len(self._held) >= self._wanted:
            part = bytes(self._held[: self._wanted])
            del self._held[: self._wanted]
            self._wanted = self._parts.send(part)
            if self.request is not known:
                return

    def finish(self) -> None:
        """Require that all of the archive has arrived."""
        if not self._is_whole or self._held:
            raise _archive_error(why="it ends too early")

    def close(self) -> None:
        """Close the file that is being written."""
        self._parts.close()

    def _unpack(self) -> Generator[int, bytes, None]:
        """Yields how many bytes it needs next, and is sent them."""
        size = yield from _member_size(_REQUEST)
        if size > self._request_bytes_max:
            raise _archive_error(why=f"its {_REQUEST} is larger than {self._request_bytes_max:,}")
        request = parse_json((yield size), f"{_REQUEST} of the archive")
        if not isinstance(request, dict):
            raise _archive_error(why=f"its {_REQUEST} is not an object")
        yield -size % _BLOCK
        self.request = request
        inputs = request.get("inputs")
        count = len(inputs) if isinstance(inputs, list) else 0
        if count > LOAD_INPUTS_MAX:
            raise _archive_error(why=f"it has more than {LOAD_INPUTS_MAX:,} inputs")
        for number in range(count):
            size = yield from _member_size(str(number))
            # Names are numbers, so that no member can name a place elsewhere.
            self.files.append(self._folder / str(number))
            with self.files[-1].open("wb") as file:
                for start in range(0, size, _PIECE_BYTES):
                    file.write((yield min(_PIECE_BYTES, size - start)))
            yield -size % _BLOCK
        if any((yield _BLOCK)):
            raise _archive_error(why=f"it has more files than the {len(self.files)} of its inputs")
        self._is_whole = True
        while not any((yield _BLOCK)):
            pass
        raise _archive_error(why="it goes on after its end")


def _member_size(name: str) -> Generator[int, bytes, int]:
    """The size of the next member by its header, which has to be that of a plain file."""
    member = _parse_header((yield _BLOCK))
    size = member.size
    if member.type == tarfile.XHDTYPE and member.size <= _BLOCK:
        # The header of a file cannot say that it has 8 GiB or more: one before it does.
        extended = _LARGE_SIZE.fullmatch((yield member.size))
        yield -member.size % _BLOCK
        if extended is None:
            raise _archive_error(why="a member has more attributes than its size")
        member, size = _parse_header((yield _BLOCK)), int(extended[1])
    if member.type != tarfile.REGTYPE:
        raise _archive_error(why=f"{member.name[:100]!r} is not a plain file")
    if member.name != name:
        raise _archive_error(why=f"it has {member.name[:100]!r}, and not {name!r} there")
    return size


def _parse_header(block: bytes) -> tarfile.TarInfo:
    try:
        member = tarfile.TarInfo.frombuf(block, "utf-8", "surrogateescape")
    except tarfile.TarError as cause:
        raise _archive_error(why=str(cause)) from cause
    if member.size < 0:
        raise _archive_error(why=f"{member.name[:100]!r} has a negative size")
    return member


def unpack_folder(archive: Any, folder: Path) -> None:
    """Write the files of an archive to a folder.

    Args:
        archive: A file to read from, which need not be able to seek.
    """
    try:
        with tarfile.open(fileobj=archive, mode="r|") as members:
            for member in members:
                target = (folder / member.name).resolve()
                data = _plain_file(members, member)
                if data is None or not target.is_relative_to(folder.resolve()):
                    raise _archive_error(why=f"{member.name[:100]!r} is not a file of an export")
                target.parent.mkdir(parents=True, exist_ok=True)
                _copy(data, target)
    except (tarfile.TarError, EOFError) as cause:
        raise _archive_error(why=str(cause)) from cause


def first_member(archive: Any) -> Iterator[bytes]:
    """The first file of an archive, piece by piece."""
    try:
        with tarfile.open(fileobj=archive, mode="r|") as members:
            member = members.next()
            data = None if member is None else _plain_file(members, member)
            if data is None:
                raise _archive_error(why="it is empty")
            while piece := data.read(REMOTE_PIECE_BYTES):
                yield piece
    except tarfile.TarError as cause:
        raise _archive_error(why=str(cause)) from cause


def _plain_file(members: tarfile.TarFile, member: tarfile.TarInfo) -> IO[bytes] | None:
    """The content of a member; None if it is not a file, or claims more bytes than were sent."""
    is_plain = member.type == tarfile.REGTYPE and not member.issparse()
    return members.extractfile(member) if is_plain else None


def _copy(data: Any, target: Path) -> None:
    with target.open("wb") as file:
        while piece := data.read(REMOTE_PIECE_BYTES):
            file.write(piece)


def _archive_error(*, why: str) -> InvalidInputError:
    message = f"the archive cannot be read: {why}"
    return InvalidInputError(message, hint="send one as a client of this release writes it")
