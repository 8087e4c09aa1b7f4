"""Turns: writers on one machine queue instead of racing. Courtesy only, never correctness."""

from __future__ import annotations

import fcntl
import os
import threading
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

from omnigraph.storage.roots import Root

_POLL_SECONDS: Final = 0.002
_locks: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)


@contextmanager
def turns(root: Root, names: Iterable[str], *, seconds_max: float) -> Iterator[None]:
    """Hold several turns during the block. The wait for all of them together has one limit."""
    ends = time.monotonic() + seconds_max
    with ExitStack() as held:
        for name in names:
            left = max(0.0, ends - time.monotonic())
            held.enter_context(turn(root, name, seconds_max=left))
        yield


@contextmanager
def turn(root: Root, name: str, *, seconds_max: float) -> Iterator[bool]:
    """Hold the turn called `name` during the block; yields whether it was acquired.

    After `seconds_max`, or where there is no such directory, the block runs without it: a process
    that was suspended while it held the turn must not block the others. Threads of one process take
    turns on any storage; processes do so on local disks, where the kernel releases the turn however
    its holder ends.
    """
    ends = time.monotonic() + seconds_max
    lock = _locks[f"{root.uri}/{name}"]
    acquired = lock.acquire(timeout=seconds_max)
    try:
        if acquired and root.is_local:
            with _directory_turn(Path(root.uri), name, ends) as directory_acquired:
                yield directory_acquired
        else:
            yield acquired
    finally:
        if acquired:
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
        yield _try_lock(descriptor, ends)
    finally:
        # Closing is not enough: a child forked meanwhile holds the same lock by its own copy.
        fcntl.flock(descriptor, fcntl.LOCK_UN)
        os.close(descriptor)


def _try_lock(descriptor: int, ends: float) -> bool:
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= ends:
                return False
            time.sleep(_POLL_SECONDS)
        else:
            return True
