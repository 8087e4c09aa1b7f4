"""Bodies of answers: large ones are received in large pieces, into one piece of memory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any, Final

import httpcore
import httpx

_LARGE_BYTES: Final = 1 << 20
_RECEIVED_BYTES_MAX: Final = 1 << 20


def read_body(response: httpx.Response, *, seconds_max: float) -> bytes | memoryview:
    """The body of an answer; a large one is copied once.

    Args:
        seconds_max: How long to wait for its next piece.
    """
    size = response.headers.get("content-length", "")
    is_plain = "content-encoding" not in response.headers and size.isascii() and size.isdigit()
    if not is_plain or int(size) < _LARGE_BYTES:
        return response.read()
    import pyarrow as pa

    # Arrow's memory is used again for the next result: new memory costs more than what is copied.
    body = memoryview(pa.allocate_buffer(int(size))).cast("B")
    place = 0
    # The connection of a body that httpx has not read to its end is closed with it.
    with closing(response):
        for piece in _pieces(response, len(body), seconds_max):
            body[place : place + len(piece)] = piece
            place += len(piece)
    return body


def _pieces(response: httpx.Response, size: int, seconds_max: float) -> Iterator[bytes]:
    """The pieces of a body of a known size.

    httpx receives 64 KB at a time and copies them three times, which takes longer than to send
    them. So it receives the first piece, with all that came along with the headers, and the others
    are read from its connection.
    """
    pieces = response.iter_raw()
    connection = response.extensions.get("network_stream")
    if connection is None:
        yield from pieces
        return
    first = next(pieces, b"")
    yield first
    missing = size - len(first)
    while missing:
        piece = _receive(connection, min(missing, _RECEIVED_BYTES_MAX), seconds_max)
        if not piece:
            message = f"the answer ended {missing:,} bytes too early"
            raise httpx.RemoteProtocolError(message)
        missing -= len(piece)
        yield piece


def _receive(connection: Any, bytes_max: int, seconds_max: float) -> bytes:
    try:
        received: bytes = connection.read(bytes_max, timeout=seconds_max)
    except httpcore.TimeoutException as cause:
        raise httpx.ReadTimeout(str(cause)) from cause
    except httpcore.NetworkError as cause:
        raise httpx.ReadError(str(cause)) from cause
    return received
