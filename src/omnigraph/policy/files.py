"""Policy files: the policy of a process that runs for long, read again when its file changes."""

from __future__ import annotations

import logging
import threading
from pathlib import Path
from typing import Final

from omnigraph.errors import OmnigraphError
from omnigraph.policy.policies import AccessPolicy

_log: Final = logging.getLogger(__name__)


class PolicyFile:
    """The policy of a file, as the file is now. A change that is not valid has no effect."""

    def __init__(self, path: Path) -> None:
        """Read the policy."""
        self._path = path
        self._lock = threading.Lock()
        self._policy = AccessPolicy.read(path)
        self._seen = self._states()
        self._edition = 0

    def current(self) -> tuple[int, AccessPolicy]:
        """The policy, and how often it has changed before.

        A file that cannot be read, or is not valid, is reported in the log; until it is mended, the
        policy before it holds.
        """
        states = self._states()
        with self._lock:
            if states != self._seen:
                self._seen = states
                self._read()
            return self._edition, self._policy

    def _read(self) -> None:
        try:
            self._policy = AccessPolicy.read(self._path)
        except OmnigraphError as fault:
            _log.warning("%s; the policy before this change holds", fault)
            return
        self._edition += 1
        # The file may name other rules now.
        self._seen = self._states()

    def _states(self) -> tuple[tuple[int, int, int] | None, ...]:
        return tuple(map(_state, (self._path, Path(self._policy.rules.name))))


def _state(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
