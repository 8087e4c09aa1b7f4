"""The state folder of a server: one process uses it at a time."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from typing import Final

from omnigraph.errors import InvalidInputError

_LOCK: Final = "lock"


class StateLock:
    """A lock on a state folder. The kernel releases it, however its process ends."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._descriptor: int | None = None

    def acquire(self) -> None:
        """Lock the folder until `release`, or until the process ends."""
        self._folder.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(self._folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as cause:
            holder = os.pread(descriptor, 20, 0).decode("ascii", "replace").strip()
            os.close(descriptor)
            who = f"the server with the process id {holder}" if holder else "another server"
            message = f"{who} uses the state folder {self._folder}"
            hint = "stop that server, or give this one a folder of its own with --state"
            raise InvalidInputError(message, hint=hint) from cause
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, str(os.getpid()).encode(), 0)
        self._descriptor = descriptor

    def release(self) -> None:
        """Let another server use the folder."""
        if self._descriptor is None:
            return
        # Closing is not enough: a child that was forked meanwhile has the same lock.
        fcntl.flock(self._descriptor, fcntl.LOCK_UN)
        os.close(self._descriptor)
        self._descriptor = None
