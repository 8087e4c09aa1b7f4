"""The client: has a starter run this command if there is one, and imports next to nothing.

Whatever keeps a starter from running it, this process runs the command itself. So nothing here
fails: each doubt is a reason to return.
"""

from __future__ import annotations

import os
import signal
import socket
import struct
import sys

from omnigraph.warm import place

VARIABLE = "OMNIGRAPH_WARM"
AUTO, OFF = "auto", "off"

# Not among the limits: the module that has them would take longer to import than this one.
ANSWER_SECONDS_MAX = 3.0
"""How long a starter may take to be ready for a command: milliseconds, but on a crowded machine."""

REQUEST_BYTES_MAX = 8 << 20
"""Arguments and environment together; Linux allows 6 MiB at most."""

COMMAND, STATUS, STOP = b"command", b"status", b"stop"
"""What a client can ask for."""

READY, GO = b"R", b"G"
"""The starter would run the command; it shall. Without the second word it never does."""

LENGTH = struct.Struct("!I")
ENDING = struct.Struct("!i")
"""An exit code, or the number of the signal that killed the command, negative."""

_BY_CALLER = frozenset({"--install-completion", "--show-completion"})
"""Options that look which shell has started the command."""

FORWARDED = (
    signal.SIGHUP,
    signal.SIGINT,
    signal.SIGQUIT,
    signal.SIGTERM,
    signal.SIGUSR1,
    signal.SIGUSR2,
    signal.SIGWINCH,
    signal.SIGTSTP,
    signal.SIGCONT,
)
"""Signals that the command gets when this process gets them."""


def run_warm() -> None:
    """Have a starter run the command of this process and end as it ends; return if none does."""
    if not _is_wanted():
        return
    try:
        connection = connect()
    except OSError:
        return
    with connection:
        try:
            is_ready = _offer(connection)
        except OSError:
            return
        if is_ready:
            _follow(connection)


def check_wish() -> None:
    """Refuse a value of the variable that means nothing.

    Raises:
        InvalidParameterError: it is neither `auto` nor `off`.
    """
    if _wish() not in (AUTO, OFF):
        # Imported here: a client that reaches a starter needs none of it.
        from omnigraph.errors import InvalidParameterError

        message = f"{VARIABLE} is {_wish()!r}, which is neither {AUTO} nor {OFF}"
        raise InvalidParameterError(message, hint=f"set it to {AUTO} or {OFF}, or unset it")


def connect() -> socket.socket:
    """A connection to the starter of this user and this installation.

    Raises:
        OSError: none runs, or it does not belong to this user.
    """
    folder = place.open_directory(place.directory())
    try:
        connection = socket.socket(socket.AF_UNIX)
        try:
            connection.settimeout(ANSWER_SECONDS_MAX)
            connection.connect(place.address(folder, place.socket_name()))
            require_own(connection)
        except BaseException:
            connection.close()
            raise
        return connection
    finally:
        os.close(folder)


def require_own(connection: socket.socket) -> int:
    """The process at the other end.

    Raises:
        PermissionError: it is of another user.
    """
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
    pid, user, _ = struct.unpack("3i", credentials)
    if user != os.geteuid():
        raise PermissionError(user)
    return int(pid)


def encode(kind: bytes) -> bytes:
    """A request of this process: what it wants, and its identity, arguments and environment."""
    # None of them can have a zero byte: the operating system ends them with it.
    arguments = [os.fsencode(argument) for argument in sys.argv]
    variables = [b"%s=%s" % variable for variable in os.environb.items()]
    count = b"%d" % len(arguments)
    body = b"\0".join([kind, place.identity(), count, *arguments, *variables])
    return LENGTH.pack(len(body)) + body


def _send_go(connection: socket.socket) -> None:
    """Have the command run with the standard streams and the working directory of this process.

    They are not part of the request: a starter that hangs would keep the streams open, and whoever
    reads the output of this process would wait for more.
    """
    folder = os.open(".", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        socket.send_fds(connection, [GO], [0, 1, 2, folder])
    finally:
        os.close(folder)


def _wish() -> str:
    return os.environ.get(VARIABLE) or AUTO


def _is_wanted() -> bool:
    if _wish() != AUTO or sys.platform != "linux":
        return False
    if not _BY_CALLER.isdisjoint(sys.argv[1:]) or os.getuid() != os.geteuid():
        return False
    # The commands about the starter do not run in it.
    words = [argument for argument in sys.argv[1:] if not argument.startswith("-")]
    return words[:1] != ["warm"] and _has_streams()


def _has_streams() -> bool:
    """Whether all three are open, and none is a terminal that this process would wait for."""
    try:
        for descriptor in range(3):
            os.fstat(descriptor)
    except OSError:
        return False
    try:
        # A background job that reads its terminal is stopped; a starter's process would not be.
        return os.tcgetpgrp(0) == os.getpgrp()
    except OSError:
        return True


def _offer(connection: socket.socket) -> bool:
    request = encode(COMMAND)
    if len(request) > REQUEST_BYTES_MAX:
        return False
    connection.sendall(request)
    return connection.recv(1) == READY


def _follow(connection: socket.socket) -> None:
    """Forward signals to the command until it ends, and end like it; return if it did not start."""
    connection.settimeout(None)
    # From the start of the command on, no signal may end this process without the command.
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, FORWARDED)
    try:
        try:
            _send_go(connection)
        except OSError:
            return
        for number in FORWARDED:
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, _forwarder(connection))
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    answer = b""
    while len(answer) < ENDING.size:
        part = connection.recv(ENDING.size - len(answer))
        if not part:
            # The process that looked after the command was killed, and the command with it.
            _die_of(signal.SIGKILL)
        answer += part
    (ending,) = ENDING.unpack(answer)
    if ending < 0:
        _die_of(-ending)
    os._exit(ending)


def _forwarder(connection: socket.socket):  # type: ignore[no-untyped-def]  # without typing
    def forward(number: int, _frame: object) -> None:
        try:
            connection.sendall(bytes([number]))
        except OSError:
            # The command has ended, and its end is about to be read.
            return
        if number == signal.SIGTSTP:
            os.kill(os.getpid(), signal.SIGSTOP)

    return forward


def _die_of(number: int) -> None:
    import resource

    # The command has left its own image of memory, if it was to leave one.
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if number != signal.SIGKILL:
        signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
    # A signal that by default does nothing cannot have killed it; as shells report it.
    os._exit(128 + number)
