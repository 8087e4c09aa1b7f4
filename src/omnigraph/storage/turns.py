"""Turns: writers on one machine queue instead of racing. Courtesy only, never correctness."""

from __future__ import annotations

import fcntl
import os
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from omnigraph.storage.roots import Root

_POLL_SECONDS: Final = 0.002
_locks: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)


@contextmanager
def turn(root: Root, name: str, *, seconds_max: float) -> Iterator[bool]:
    """Hold the turn called `name` in this block; says whether it was had.

    After `seconds_max`, or where there is no such directory, the block runs without it: a process
    that was stopped while it held the turn must not stop the others. Threads of one process take
    turns anywhere; processes do so on local disks, where the kernel gives the turn back however its
    holder ends.
    """
    ends = time.monotonic() + seconds_max
    lock = _locks[f"{root.uri}/{name}"]
    had = lock.acquire(timeout=seconds_max)
    try:
        if had and root.is_local:
            with _directory_turn(Path(root.uri), name, ends) as had_directory:
                yield had_directory
        else:
            yield had
    finally:
        if had:
            lock.release()


@contextmanager
def _directory_turn(root: Path, name: str, ends: float) -> Iterator[bool]:
    # The directory itself is locked: a lock file would be one more object in the graph.
    try:
        descriptor = os.open(root / name, os.O_RDONLY | os.O_DIRECTORY)
    except OSError:
        yield False
        return
    try:
        yield _locked(descriptor, ends)
    finally:
        # Closing is not enough: a child forked meanwhile holds the same lock by its own descriptor.
        fcntl.flock(descriptor, fcntl.LOCK_UN)
        os.close(descriptor)


def _locked(descriptor: int, ends: float) -> bool:
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= ends:
                return False
            time.sleep(_POLL_SECONDS)
        else:
            return True
