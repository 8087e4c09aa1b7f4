"""Attendants: one process for each client, to check it, run its command and report the end."""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Final, NoReturn

from omnigraph.warm import client, freshness
from omnigraph.warm.become import die_with_parent, take_over
from omnigraph.warm.callers import Caller, look_at, start_variables
from omnigraph.warm.requests import BadRequestError, Request, receive, receive_go

_WHOLE_JOB: Final = frozenset(
    {signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGWINCH, signal.SIGTSTP, signal.SIGCONT}
)
"""Signals that a terminal sends to all processes of a job."""


class Service(IntEnum):
    """What an attendant did, as its exit code."""

    RAN = 0
    REFUSED = 1
    ANSWERED = 2


@dataclass(slots=True)
class Starter:
    """The starter as it knows itself; each attendant has a copy.

    Attributes:
        process: A descriptor of the process, to signal it even when its number was taken again.
        variables: Its variables that only a new process can obey.
        files: What it has imported.
        run_command: Runs the command of `sys.argv` and ends the process.
    """

    process: int
    pid: int
    identity: bytes
    variables: Mapping[bytes, bytes]
    files: Mapping[str, freshness.Fingerprint]
    run_command: Callable[[], NoReturn]
    idle_seconds: float
    started: float
    commands: int = 0
    refused: int = 0


def attend(connection: socket.socket, starter: Starter, clients: int) -> Service:
    """Serve one client to its end.

    Raises:
        BadRequestError: it sent no request.
        OSError: it is gone, or of another user.
    """
    pid = client.require_own(connection)
    request = receive(connection)
    caller = look_at(pid)
    refusal = find_refusal(starter, request, caller)
    match request.kind:
        case client.COMMAND:
            return _serve_command(connection, starter, request, caller, refusal)
        case client.STATUS:
            status = _status(starter, clients, refusal)
            connection.sendall(json.dumps(status).encode())
        case client.STOP:
            signal.pidfd_send_signal(starter.process, signal.SIGTERM)
            connection.sendall(b"{}")
        case _:
            message = f"nobody can ask for {request.kind!r}"
            raise BadRequestError(message)
    return Service.ANSWERED


def find_refusal(starter: Starter, request: Request, caller: Caller) -> str | None:
    """Why a command of this caller would not be the same here; None if it would."""
    if request.identity != starter.identity:
        return "it uses another Python, or other options of Python"
    if not freshness.is_fresh(starter.files):
        return "what is installed has changed"
    mine, theirs = starter.variables, start_variables(request.environment)
    if mine != theirs:
        names = {name for name, _ in mine.items() ^ theirs.items()}
        return f"it has another {b', '.join(sorted(names)).decode('ascii', 'replace')}"
    own = look_at(os.getpid()).traits
    unlike = [name for name, trait in caller.traits.items() if trait != own[name]]
    return f"it has other {', '.join(unlike)}" if unlike else None


def _serve_command(
    connection: socket.socket,
    starter: Starter,
    request: Request,
    caller: Caller,
    refusal: str | None,
) -> Service:
    if refusal is not None:
        if not freshness.is_fresh(starter.files):
            signal.pidfd_send_signal(starter.process, signal.SIGTERM)
        return Service.REFUSED
    connection.sendall(client.READY)
    descriptors = receive_go(connection)
    if descriptors is None:
        return Service.REFUSED
    attendant = os.getpid()
    if (command := os.fork()) == 0:
        die_with_parent(attendant)
        connection.close()
        os.close(starter.process)
        # Signals of the terminal reach the command and whatever it starts, but nothing else.
        os.setpgid(0, 0)
        take_over(request, descriptors, caller)
        starter.run_command()
    for descriptor in descriptors:
        os.close(descriptor)
    _report(connection, command)
    return Service.RAN


def _report(connection: socket.socket, command: int) -> None:
    """Pass signals to the command until it ends, and report its end; without a client, kill it."""
    connection.settimeout(None)
    ended = os.pidfd_open(command)
    polls = select.poll()
    polls.register(ended, select.POLLIN)
    polls.register(connection, select.POLLIN)
    has_client = True
    while True:
        ready = {descriptor for descriptor, _ in polls.poll()}
        if ended in ready:
            break
        if has_client and not _pass_signals(connection, command):
            has_client = False
            polls.unregister(connection)
            _kill_job(command, signal.SIGKILL)
    _, status = os.waitpid(command, 0)
    if has_client:
        connection.sendall(client.ENDING.pack(os.waitstatus_to_exitcode(status)))


def _pass_signals(connection: socket.socket, command: int) -> bool:
    """Pass on what the client got; False if the client is gone."""
    try:
        numbers = connection.recv(64)
    except OSError:
        return False
    for number in numbers:
        if number not in client.FORWARDED:
            continue
        # To stop a process whose job is not of a terminal takes the signal that cannot be ignored.
        sent = signal.SIGSTOP if number == signal.SIGTSTP else number
        if number in _WHOLE_JOB:
            _kill_job(command, sent)
        else:
            os.kill(command, sent)
    return bool(numbers)


def _kill_job(command: int, number: int) -> None:
    # It is in the table of processes until it is waited for, so its number is not reused. Its
    # job exists as soon as it has made one.
    try:
        os.killpg(command, number)
    except ProcessLookupError:
        os.kill(command, number)


def _status(starter: Starter, clients: int, refusal: str | None) -> dict[str, object]:
    return {
        "pid": starter.pid,
        "seconds": round(time.monotonic() - starter.started, 3),
        "idle_seconds_max": starter.idle_seconds,
        "commands": starter.commands,
        "refused": starter.refused,
        "clients": clients,
        "refusal": refusal,
    }
