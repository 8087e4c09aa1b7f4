"""The user's cache: derived data that is expensive to make, kept between processes.

Nothing depends on it. What is absent, damaged or not the user's own is made again, and what cannot
be written is not kept.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Final

CACHED_VERSIONS_MAX: Final = 8
"""Releases, of the package and of Python, for which the user's cache keeps files at once."""


_DIGEST_BYTES: Final = 32


def cache_directory() -> Path:
    """The user's cache directory of this package."""
    home = os.environ.get("XDG_CACHE_HOME")
    return (Path(home) if home else Path.home() / ".cache") / "omnigraph"


def recall(name: str, key: bytes) -> bytes | None:
    """What was kept by this name for this key; None if nothing was, or it cannot be trusted."""
    try:
        content = _read_own(_path(name, key))
    except (OSError, RuntimeError):
        return None
    digest, data = content[:_DIGEST_BYTES], content[_DIGEST_BYTES:]
    return data if sha256(data).digest() == digest else None


def keep(name: str, key: bytes, data: bytes) -> None:
    """Keep data by a name, for a key: whatever it was made from.

    The newest few keys of a name are kept, so that installed releases do not displace each other.
    """
    with suppress(OSError, RuntimeError):
        path = _path(name, key)
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # A reader finds all of it or none.
        unfinished = path.with_name(f"unfinished-{os.getpid()}-{path.name}")
        try:
            with open(unfinished, "xb", opener=_open_private) as file:
                file.write(sha256(data).digest() + data)
            unfinished.replace(path)
        finally:
            unfinished.unlink(missing_ok=True)
        by_age = sorted(path.parent.glob(f"{name}-*"), key=_changed_ns, reverse=True)
        for old in by_age[CACHED_VERSIONS_MAX:]:
            old.unlink()


def _path(name: str, key: bytes) -> Path:
    return cache_directory() / f"{name}-{sha256(key).hexdigest()[:16]}"


def _changed_ns(path: Path) -> int:
    return path.stat().st_mtime_ns


def _open_private(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_CLOEXEC, 0o600)


def _read_own(path: Path) -> bytes:
    """The content of a file that no other user can have written."""
    with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC), "rb") as file:  # noqa: PTH123
        facts = os.fstat(file.fileno())
        if facts.st_uid != os.geteuid() or facts.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            raise PermissionError(path)
        return file.read()
