"""Control of the starter: start it, stop it, and say what it does."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Final

from omnigraph.errors import ErrorCode, NotAllowedError, StorageError
from omnigraph.limits import WARM_START_SECONDS_MAX, WARM_STOP_SECONDS_MAX
from omnigraph.warm import client, place
from omnigraph.warm.callers import start_variables

READY: Final = "ready"
"""What a new starter prints when it serves clients; anything else is why it does not."""

_OTHER_RELEASE: Final = "it has another release"

_KEPT: Final = (b"HOME", b"PATH", b"XDG_CACHE_HOME")


@dataclass(frozen=True, slots=True)
class Status:
    """A starter that runs.

    Attributes:
        seconds: How long it has been running.
        idle_seconds_max: How long it runs without a command.
        memory_bytes: What it has in memory for itself.
        commands: Commands that it has run.
        refused: Clients that it has left to run their command themselves.
        clients: Clients that it serves now, without the one that asked for this.
        refusal: Why a command of the process that asks would run without it; None if it would not.
    """

    pid: int
    seconds: float
    idle_seconds_max: float
    memory_bytes: int
    commands: int
    refused: int
    clients: int
    refusal: str | None


def read_status() -> Status | None:
    """The starter of this user and this installation; None if none runs, or none answers."""
    answer = _ask(client.STATUS)
    if answer is None:
        return None
    facts = {"refusal": _OTHER_RELEASE, **json.loads(answer)}
    # A starter of another release may answer with other facts.
    known = {field.name: facts.get(field.name, 0) for field in fields(Status)}
    return Status(**{**known, "memory_bytes": _memory(known["pid"])})


def start(command: Sequence[str], *, idle_seconds: float) -> tuple[Status, bool]:
    """Start a starter unless one runs that would run the commands of this process.

    Returns:
        The starter, and whether it is new.

    Args:
        command: The module that becomes a starter, and its arguments.

    Raises:
        NotAllowedError: this system has no way to do it, or the directory is not private.
        StorageError: it did not start; the message says why.
    """
    _require_possible()
    before = read_status()
    if before is not None and before.refusal is None:
        return before, False
    if before is not None:
        stop()
    _spawn([*command, str(idle_seconds)])
    status = read_status()
    if status is None:
        message = "a starter runs, and does not answer"
        raise StorageError(message, hint="commands run without it; end it, and try again")
    return status, True


def stop() -> int | None:
    """Stop the starter; commands that it runs go on to their end.

    Returns:
        The process that has ended; None if none ran.

    Raises:
        StorageError: it does not end.
    """
    status = read_status()
    if status is None:
        return None
    process = os.pidfd_open(status.pid)
    _ask(client.STOP)
    deadline = time.monotonic() + WARM_STOP_SECONDS_MAX
    while _is_alive(process):
        if time.monotonic() > deadline:
            message = f"process {status.pid} does not stop"
            raise StorageError(message, hint=f"kill {status.pid}; commands run without it")
        time.sleep(0.01)
    os.close(process)
    return status.pid


def _is_alive(process: int) -> bool:
    return not select.select([process], [], [], 0)[0]


def _ask(kind: bytes) -> bytes | None:
    try:
        with client.connect() as connection:
            connection.settimeout(WARM_STOP_SECONDS_MAX)
            connection.sendall(client.encode(kind))
            parts = []
            while part := connection.recv(1 << 16):
                parts.append(part)
            return b"".join(parts) or None
    except OSError:
        return None


def _spawn(command: Sequence[str]) -> None:
    environment = {
        name: value
        for name, value in os.environb.items()
        # No secrets of the shell that happened to start it.
        if name in _KEPT or name in start_variables({name: value})
    }
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", *command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=environment,
        start_new_session=True,
    )
    assert process.stdout is not None
    with process.stdout:
        said = _read_to_end(process.stdout.fileno())
    if said is None:
        process.kill()
        message = f"the starter was not ready after {WARM_START_SECONDS_MAX:g} s"
        raise StorageError(message, hint="commands run without it; try again later")
    # The starter outlives this process, so it is not waited for.
    process.returncode = 0
    if said != READY:
        message = f"the starter did not start: {said.rpartition(chr(10))[2] or 'it ended at once'}"
        raise StorageError(message, hint="commands run without it")


def _read_to_end(stream: int) -> str | None:
    """What a new starter prints before it lets go of its streams; None if it takes too long."""
    deadline, parts = time.monotonic() + WARM_START_SECONDS_MAX, list[bytes]()
    while select.select([stream], [], [], max(deadline - time.monotonic(), 0))[0]:
        part = os.read(stream, 1 << 16)
        if not part:
            return b"".join(parts).decode(errors="replace").strip()
        parts.append(part)
    return None


def _require_possible() -> None:
    if sys.platform != "linux" or not hasattr(os, "pidfd_open"):
        message = "a starter needs Linux: other systems cannot copy a process with these libraries"
        raise NotAllowedError(message, hint="commands run without it", code=ErrorCode.NOT_ALLOWED)
    try:
        home = Path(place.directory())
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(place.open_directory(str(home)))
    except PermissionError as cause:
        message = f"{cause} is not a directory of this user alone"
        raise NotAllowedError(message, hint=f"remove it, or chmod 700 {cause}") from cause
    except OSError as cause:
        message = f"the directory of the starter cannot be made: {cause}"
        raise NotAllowedError(message, hint="set XDG_CACHE_HOME to a directory of yours") from cause


def _memory(pid: int) -> int:
    """The memory of a process that it shares with no file."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    (line,) = [line for line in status.splitlines() if line.startswith("RssAnon:")]
    return int(line.split()[1]) << 10
