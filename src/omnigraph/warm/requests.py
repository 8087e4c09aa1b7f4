"""Requests as the starter reads them: bounded in size and in time, from its own user alone."""

from __future__ import annotations

import socket
import time
from collections.abc import Mapping
from dataclasses import dataclass

from omnigraph.warm.client import ANSWER_SECONDS_MAX, GO, LENGTH, REQUEST_BYTES_MAX

STREAMS = 3
"""Standard input, output and error; a working directory follows them."""


class BadRequestError(Exception):
    """The bytes are no request; nothing was done."""


@dataclass(frozen=True, slots=True)
class Request:
    """What a client wants, and what its process has.

    Attributes:
        kind: `command`, `status` or `stop`.
        identity: Its installation and the options of its Python.
    """

    kind: bytes
    identity: bytes
    arguments: tuple[bytes, ...]
    environment: Mapping[bytes, bytes]


def receive(connection: socket.socket) -> Request:
    """The request of a client.

    Raises:
        BadRequestError: it is too long, too late, or no request.
        OSError: the connection broke.
    """
    deadline = time.monotonic() + ANSWER_SECONDS_MAX
    connection.settimeout(ANSWER_SECONDS_MAX)
    (length,) = LENGTH.unpack(_receive_until(connection, LENGTH.size, deadline))
    if length > REQUEST_BYTES_MAX:
        message = f"it has {length} bytes, and may have {REQUEST_BYTES_MAX}"
        raise BadRequestError(message)
    return parse(_receive_until(connection, length, deadline))


def receive_go(connection: socket.socket) -> tuple[int, ...] | None:
    """The streams and the directory of a client that wants its command run now, opened here.

    None if the client has given up, and runs the command itself.
    """
    word, descriptors, _, _ = socket.recv_fds(connection, len(GO), STREAMS + 1)
    return tuple(descriptors) if word == GO and len(descriptors) == STREAMS + 1 else None


def _receive_until(connection: socket.socket, missing: int, deadline: float) -> bytes:
    parts = []
    while missing > 0:
        if time.monotonic() > deadline:
            message = "it takes too long"
            raise BadRequestError(message)
        part = connection.recv(min(missing, 1 << 16))
        if not part:
            message = "it ends too early"
            raise BadRequestError(message)
        parts.append(part)
        missing -= len(part)
    return b"".join(parts)


def parse(body: bytes) -> Request:
    r"""A request from its bytes.

    >>> parse(b"command\0me\0002\0omnigraph\0log\0A=1").arguments
    (b'omnigraph', b'log')

    Raises:
        BadRequestError: they are no request.
    """
    fields = body.split(b"\0")
    if len(fields) < 3 or not fields[2].isdigit() or len(fields[2]) > 7:
        message = "it has no fields"
        raise BadRequestError(message)
    kind, identity, count, *others = fields
    arguments, variables = others[: int(count)], others[int(count) :]
    pairs = [variable.partition(b"=") for variable in variables]
    is_complete = len(arguments) == int(count) > 0
    if not is_complete or not all(name and equals for name, equals, _ in pairs):
        message = "it lacks arguments or variables"
        raise BadRequestError(message)
    environment = {name: value for name, _, value in pairs}
    return Request(kind, identity, tuple(arguments), environment)
