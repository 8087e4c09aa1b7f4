"""Truncated files: checks that staged files are complete, since Lance misses errors of full disks.

On a local disk, Lance loses the error of a file's last write, and would commit a truncated file
(docs/substrate.md, Full disks). So files staged there are checked before anything refers to them.
Object stores store a file whole or not at all.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from omnigraph.errors import StorageError
from omnigraph.storage.tables import Fragment, TableAddress

_LANCE_END: Final = b"LANC"
_ARROW_END: Final = b"ARROW1"


def require_data(address: TableAddress, fragments: Iterable[Fragment]) -> None:
    """Reject data files that are shorter than what was written."""
    if not address.root.is_local:
        return
    for fragment in fragments:
        for file in fragment.files:
            _require(_folder(address) / "data" / file.path, file.file_size_bytes, _LANCE_END)


def require_deletions(address: TableAddress, fragment: Fragment) -> None:
    """Reject a truncated deletion file."""
    deletion_file = fragment.deletion_file
    if deletion_file is None or not address.root.is_local:
        return
    path = _folder(address) / deletion_file.path(fragment.id)
    end = _ARROW_END if path.suffix == ".arrow" else b""
    _require(path, None, end)


def require_index(address: TableAddress, uuid: str) -> None:
    """Reject truncated index files."""
    if not address.root.is_local:
        return
    for path in (_folder(address) / "_indices" / uuid).iterdir():
        _require(path, None, _LANCE_END)


def _require(path: Path, size: int | None, end: bytes) -> None:
    try:
        with path.open("rb") as file:
            actual = file.seek(0, 2)
            file.seek(max(0, actual - len(end)))
            is_whole = file.read() == end if end else actual > 0
    except OSError as cause:
        message = f"the file {path} was written and cannot be read: {cause.strerror}"
        raise StorageError(message) from cause
    if not is_whole or (size is not None and size != actual):
        message = f"the file {path} was cut short after {actual:,} bytes"
        raise StorageError(message, hint="look for space on the disk, then try again")


def _folder(address: TableAddress) -> Path:
    return Path(address.root.uri, address.folder)
