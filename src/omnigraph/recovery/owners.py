"""Owners: the process that holds a sidecar, and whether it is provably gone."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from omnigraph.model.ids import OperationId

_START_FIELD = 19
"""The field of /proc/<pid>/stat with the start time, counted after the command's parenthesis."""

_operations: set[OperationId] = set()
_lock = threading.Lock()


@dataclass(frozen=True, slots=True)
class Owner:
    """A process, distinguished from any other that ever had its number.

    Attributes:
        host: One boot of one machine, and one of its process namespaces.
        started: When the process started, in kernel ticks.
    """

    host: str
    pid: int
    started: int


def this_process() -> Owner | None:
    """This process as an owner; None where the system does not say; then only leases count."""
    host, pid = _host(), os.getpid()
    try:
        started = _start_of(pid)
    except OSError:
        return None
    return Owner(host, pid, started) if host and started is not None else None


@contextmanager
def track_operation(operation_id: OperationId) -> Iterator[None]:
    """Record that a thread of this process works on the operation during the block.

    A thread may end while its process runs on, so a living process does not prove ongoing work.
    """
    with _lock:
        _operations.add(operation_id)
    try:
        yield
    finally:
        with _lock:
            _operations.discard(operation_id)


def is_gone(owner: Owner | None, operation_id: OperationId) -> bool:
    """Whether it is certain that the owner no longer works on the operation."""
    if owner is None or owner.host != _host():
        return False
    try:
        if _start_of(owner.pid) is None:
            return not _is_of_other_user(owner.pid)
        return not is_at_work(owner, operation_id)
    except OSError:
        # A process that may open no more files learns nothing of others.
        return False


def is_at_work(owner: Owner, operation_id: OperationId) -> bool:
    """Whether it is certain that the owner works on the operation."""
    if owner.host != _host() or _start_of(owner.pid) != owner.started:
        return False
    if owner.pid != os.getpid():
        return True
    with _lock:
        return operation_id in _operations


@cache
def _host() -> str:
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot}/{Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return ""


def _start_of(pid: int) -> int | None:
    """When the process with this number started; None if no such process is running."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError, PermissionError, NotADirectoryError):
        return None
    state, *fields = stat.rpartition(")")[2].split()
    # A zombie has ended: its parent has not read its exit status yet.
    return None if state in "ZX" else int(fields[_START_FIELD - 1])


def _is_of_other_user(pid: int) -> bool:
    """Whether there is such a process of another user, hidden from /proc."""
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except (ProcessLookupError, OverflowError):
        return False
    return False
