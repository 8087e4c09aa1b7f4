"""How a copy of the starter becomes the process of a command: with all that its caller has."""

from __future__ import annotations

import ctypes
import io
import os
import signal
import sys
import time
from typing import Final, TextIO

from omnigraph.warm.callers import Caller
from omnigraph.warm.requests import STREAMS, Request

_SET_DEATH_SIGNAL: Final = 1
"""The option of `prctl` for the signal that a process gets when its parent dies."""

_UNCATCHABLE: Final = (signal.SIGKILL, signal.SIGSTOP)


def die_with_parent(parent: int) -> None:
    """Have the kernel kill this process when its parent dies; its caller will take it for dead."""
    ctypes.CDLL(None).prctl(_SET_DEATH_SIGNAL, signal.SIGKILL)
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGKILL)


def take_over(request: Request, descriptors: tuple[int, ...], caller: Caller) -> None:
    """Give this process the streams, directory, variables, umask and signals of the caller."""
    for place, descriptor in enumerate(descriptors[:STREAMS]):
        os.dup2(descriptor, place, inheritable=True)
    os.fchdir(descriptors[STREAMS])
    for descriptor in descriptors:
        os.close(descriptor)
    os.umask(caller.umask)
    os.environb.clear()
    os.environb.update(request.environment)
    time.tzset()
    sys.argv = [os.fsdecode(argument) for argument in request.arguments]
    _open_streams()
    _take_over_signals(caller)


def _take_over_signals(caller: Caller) -> None:
    """As they are in a Python that the caller has just started."""
    for number in set(range(1, 32)).difference(_UNCATCHABLE):
        signal.signal(number, signal.SIG_IGN if number in caller.ignores else signal.SIG_DFL)
    if signal.SIGINT not in caller.ignores:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.pthread_sigmask(signal.SIG_SETMASK, caller.blocks)


def _open_streams() -> None:
    """Open the standard streams as Python does when it starts."""
    sys.stdin = sys.__stdin__ = _reader(sys.stdin)  # type: ignore[misc]  # final for typeshed
    sys.stdout = sys.__stdout__ = _writer(1, "<stdout>", sys.stdout)  # type: ignore[misc]
    sys.stderr = sys.__stderr__ = _writer(2, "<stderr>", sys.stderr)  # type: ignore[misc]


def _reader(like: TextIO) -> io.TextIOWrapper:
    raw = io.FileIO(0, "r", closefd=False)
    raw.name = "<stdin>"
    return io.TextIOWrapper(io.BufferedReader(raw), encoding=like.encoding, errors=like.errors)


def _writer(descriptor: int, name: str, like: TextIO) -> io.TextIOWrapper:
    """A stream with the encoding of the starter's own, which started with the same variables."""
    raw = io.FileIO(descriptor, "w", closefd=False)
    raw.name = name
    assert isinstance(like, io.TextIOWrapper)
    # Without a buffer where PYTHONUNBUFFERED asks for it.
    buffer = raw if like.write_through else io.BufferedWriter(raw)
    return io.TextIOWrapper(
        buffer,
        encoding=like.encoding,
        errors=like.errors,
        newline="\n",
        line_buffering=descriptor == 2 or raw.isatty(),
        write_through=like.write_through,
    )
