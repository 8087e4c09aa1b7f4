"""Who holds a sidecar, and whether that process can be proved to be gone."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from omnigraph.model.ids import OperationId

_STARTED = 19
"""Where /proc/<pid>/stat has the start time, counted after the command's closing parenthesis."""

_working: set[OperationId] = set()
_lock = threading.Lock()


@dataclass(frozen=True, slots=True)
class Owner:
    """A process, told apart from any other that ever had its number.

    Attributes:
        host: One boot of one machine, and which of its process number spaces.
        started: When the process started, in the kernel's own ticks.
    """

    host: str
    pid: int
    started: int


def this_process() -> Owner | None:
    """This process as an owner; None where the system does not tell, and then leases decide."""
    host, pid = _host(), os.getpid()
    started = _start_of(pid)
    return Owner(host, pid, started) if host and started is not None else None


@contextmanager
def working(operation_id: OperationId) -> Iterator[None]:
    """Say that a thread of this process is at work on the operation in this block.

    A thread may end without its process, so the process alone does not say that its work goes on.
    """
    with _lock:
        _working.add(operation_id)
    try:
        yield
    finally:
        with _lock:
            _working.discard(operation_id)


def is_gone(owner: Owner | None, operation_id: OperationId) -> bool:
    """Whether nobody can be at work on the operation any more; False where that is not certain."""
    if owner is None or owner.host != _host():
        return False
    if _start_of(owner.pid) is None:
        return not _is_hidden(owner.pid)
    return not is_at_work(owner, operation_id)


def is_at_work(owner: Owner, operation_id: OperationId) -> bool:
    """Whether the owner is seen at work on the operation; False where nobody can tell."""
    if owner.host != _host() or _start_of(owner.pid) != owner.started:
        return False
    if owner.pid != os.getpid():
        return True
    with _lock:
        return operation_id in _working


@cache
def _host() -> str:
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot}/{Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return ""


def _start_of(pid: int) -> int | None:
    """When the process of this number started; None if there is none, or none that still runs."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    state, *fields = stat.rpartition(")")[2].split()
    # A zombie has ended: only its parent has not asked how.
    return None if state in "ZX" else int(fields[_STARTED - 1])


def _is_hidden(pid: int) -> bool:
    """Whether there is such a process all the same, of a user whose processes we may not see."""
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except (ProcessLookupError, OverflowError):
        return False
    return False
