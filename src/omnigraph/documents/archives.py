"""Archives: a request and files of any size in one body, as tar.

The first member is the request, a document. The others are files, named by their numbers.
"""

from __future__ import annotations

import json
import os
import tarfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from omnigraph.documents.values import to_document
from omnigraph.errors import InvalidInputError, StorageError
from omnigraph.limits import REMOTE_PIECE_BYTES

MEDIA_TYPE: Final = "application/x-tar"
_REQUEST: Final = "request.json"
_BLOCK: Final = 512
_REQUEST_BYTES_MAX: Final = 64 << 20


def archive_pieces(request: object, files: Sequence[Path]) -> Iterator[bytes]:
    """A request and files as an archive; the same ones give the same bytes.

    Raises:
        StorageError: a file cannot be read, or changes meanwhile.
    """
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
        raise StorageError(message, hint="check the file, and who may read it") from cause
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


def unpack_request(archive: Path, folder: Path) -> tuple[Any, list[Path]]:
    """The request of an archive as JSON, and its files, written to a folder.

    Raises:
        InvalidInputError: it is no such archive. Some files may have been written.
    """
    request: Any = None
    files: list[Path] = []
    try:
        with tarfile.open(archive, "r:") as members:
            for member in members:
                data = members.extractfile(member) if member.isreg() else None
                if data is None:
                    raise _archive_error(why=f"{member.name[:100]!r} is no file")
                if request is None:
                    if member.name != _REQUEST or member.size > _REQUEST_BYTES_MAX:
                        raise _archive_error(why=f"it does not begin with {_REQUEST}")
                    request = json.loads(data.read())
                    continue
                if member.name != str(len(files)):
                    raise _archive_error(why=f"{member.name[:100]!r} is no number of a file")
                # Names are numbers, so that no member can name a place elsewhere.
                files.append(folder / member.name)
                _copy(data, files[-1])
    except (tarfile.TarError, ValueError, RecursionError, EOFError) as cause:
        raise _archive_error(why=str(cause)) from cause
    if not isinstance(request, dict):
        raise _archive_error(why=f"it has no {_REQUEST}")
    return request, files


def unpack_folder(archive: Any, folder: Path) -> None:
    """Write the files of an archive to a folder.

    Args:
        archive: A file to read from, which need not be able to seek.

    Raises:
        InvalidInputError: it is no archive, or has a name that leads out of the folder.
    """
    try:
        with tarfile.open(fileobj=archive, mode="r|") as members:
            for member in members:
                target = (folder / member.name).resolve()
                data = members.extractfile(member) if member.isreg() else None
                if data is None or not target.is_relative_to(folder.resolve()):
                    raise _archive_error(why=f"{member.name[:100]!r} is no file of an export")
                target.parent.mkdir(parents=True, exist_ok=True)
                _copy(data, target)
    except (tarfile.TarError, EOFError) as cause:
        raise _archive_error(why=str(cause)) from cause


def first_member(archive: Any) -> Iterator[bytes]:
    """The first file of an archive, piece by piece.

    Raises:
        InvalidInputError: it is no archive.
    """
    try:
        with tarfile.open(fileobj=archive, mode="r|") as members:
            member = members.next()
            data = None if member is None else members.extractfile(member)
            if data is None:
                raise _archive_error(why="it is empty")
            while piece := data.read(REMOTE_PIECE_BYTES):
                yield piece
    except tarfile.TarError as cause:
        raise _archive_error(why=str(cause)) from cause


def _copy(data: Any, target: Path) -> None:
    with target.open("wb") as file:
        while piece := data.read(REMOTE_PIECE_BYTES):
            file.write(piece)


def _archive_error(*, why: str) -> InvalidInputError:
    message = f"the archive cannot be read: {why}"
    return InvalidInputError(message, hint="send one as a client of this release writes it")
