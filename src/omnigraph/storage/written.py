"""Files that were written to the end: Lance does not hear when a full disk refuses the last bytes.

On a local disk, Lance loses the error of a file's last write, and would commit a file that was cut
short (docs/substrate.md). So what was staged there is looked at before anything refers to it.
Object stores take a file whole or refuse it.
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
    """Refuse data files that are shorter than what was written.

    Raises:
        StorageError: a file was cut short. Nothing refers to it.
    """
    if not address.root.is_local:
        return
    for fragment in fragments:
        for file in fragment.files:
            _require(_folder(address) / "data" / file.path, file.file_size_bytes, _LANCE_END)


def require_deletions(address: TableAddress, fragment: Fragment) -> None:
    """Refuse a list of deletions that was cut short.

    Raises:
        StorageError: it was. Nothing refers to it.
    """
    found = fragment.deletion_file
    if found is None or not address.root.is_local:
        return
    path = _folder(address) / found.path(fragment.id)
    end = _ARROW_END if path.suffix == ".arrow" else b""
    _require(path, None, end)


def require_index(address: TableAddress, uuid: str) -> None:
    """Refuse index files that were cut short.

    Raises:
        StorageError: one was. Nothing refers to it.
    """
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
