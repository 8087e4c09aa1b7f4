"""Bodies of requests: read in pieces, decompressed, and never larger or slower than allowed."""

from __future__ import annotations

import asyncio
import time
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Final, Protocol

import zstandard
from starlette.requests import ClientDisconnect, Request

from omnigraph.errors import CancelledError, ErrorCode, InvalidInputError, LimitExceededError

_GZIP_WINDOW: Final = 31
_PIECE_BYTES: Final = 1 << 20
_ZSTD_PIECE_BYTES: Final = 1 << 10
"""A block of four bytes can stand for 128 KiB, so that this is 32 MiB at most."""
_BYTES_PER_SECOND_MIN: Final = 8 << 10
_SMALL_BYTES: Final = 1 << 20
"""Expansion below this is no attack, however much it is."""


class _Decompressor(Protocol):
    """Decompresses pieces into pieces of bounded size: a small one may stand for gigabytes."""

    def expand(self, piece: bytes) -> Iterator[bytes]: ...

    def finish(self) -> None: ...


async def read_body(
    request: Request, *, bytes_max: int, seconds_max: float, expansion: int
) -> bytes:
    """The whole body, decompressed."""
    pieces = bytearray()
    try:
        async with asyncio.timeout(seconds_max):
            async for piece in body_pieces(request, bytes_max=bytes_max, expansion=expansion):
                pieces += piece
    except TimeoutError as cause:
        raise _slow_error(seconds_max) from cause
    return bytes(pieces)


async def save_body(
    request: Request, target: Path, *, bytes_max: int, seconds_max: float, expansion: int
) -> tuple[int, str]:
    """Write the body, decompressed, to a file; its size, and the SHA-256 of it."""
    with target.open("wb") as file:

        async def write(piece: bytes) -> None:
            await asyncio.to_thread(file.write, piece)

        return await receive_body(
            request, write, bytes_max=bytes_max, seconds_max=seconds_max, expansion=expansion
        )


async def receive_body(
    request: Request,
    take: Callable[[bytes], Awaitable[None]],
    *,
    bytes_max: int,
    seconds_max: float,
    expansion: int,
) -> tuple[int, str]:
    """Give the body, decompressed, to a function, piece by piece; its size, and its SHA-256."""
    digest, size = sha256(), 0
    begun_at = time.monotonic()
    pieces = body_pieces(request, bytes_max=bytes_max, expansion=expansion).__aiter__()
    while True:
        try:
            # Large bodies may take long, as long as they keep coming.
            ends_at = begun_at + seconds_max + size / _BYTES_PER_SECOND_MIN
            seconds = min(seconds_max, ends_at - time.monotonic())
            piece = await asyncio.wait_for(anext(pieces, None), seconds)
        except TimeoutError as cause:
            raise _slow_error(time.monotonic() - begun_at) from cause
        if piece is None:
            return size, digest.hexdigest()
        digest.update(piece)
        size += len(piece)
        await take(piece)


async def body_pieces(request: Request, *, bytes_max: int, expansion: int) -> AsyncIterator[bytes]:
    """The body, decompressed, piece by piece."""
    declared = request.headers.get("content-length", "")
    if declared.isdigit() and int(declared) > bytes_max:
        raise _large_error(bytes_max)
    encoding = request.headers.get("content-encoding", "identity").strip().lower()
    expander = _Expander(_decompressor(encoding), bytes_max, expansion)
    try:
        async for raw in request.stream():
            for piece in expander.expand(raw):
                yield piece
        expander.finish()
    except (zlib.error, zstandard.ZstdError) as cause:
        message = f"the body is not {encoding}, as its header Content-Encoding says: {cause}"
        raise InvalidInputError(message, hint="leave the header out, or compress it") from cause
    except ClientDisconnect as cause:
        message = "the client left before its request was complete"
        raise CancelledError(message) from cause


class _Expander:
    """Decompresses pieces, as long as they are neither too many nor expand too much."""

    def __init__(self, decompressor: _Decompressor, bytes_max: int, expansion: int) -> None:
        self._decompressor = decompressor
        self._bytes_max = bytes_max
        self._expansion = expansion
        self._received = self._sent = 0

    def expand(self, raw: bytes) -> Iterator[bytes]:
        self._received += len(raw)
        for piece in self._decompressor.expand(raw):
            self._sent += len(piece)
            if self._sent > self._bytes_max:
                raise _large_error(self._bytes_max)
            require_expansion(self._sent, self._received, self._expansion)
            yield piece

    def finish(self) -> None:
        self._decompressor.finish()


def require_expansion(expanded: int, compressed: int, expansion: int) -> None:
    """Refuse what expands far more than texts do."""
    if expanded > _SMALL_BYTES and expanded > expansion * compressed:
        message = f"the body expands more than {expansion} times"
        hint = "send it uncompressed"
        raise LimitExceededError(message, hint=hint, code=ErrorCode.BODY_TOO_LARGE)


def require_whole_expansion(path: Path, encoding: str, *, bytes_max: int, expansion: int) -> None:
    """Refuse a compressed file that is larger than allowed, or expands far more than texts do.

    It is decompressed for that, to nowhere. What cannot be is left to whoever reads the file.
    """
    expander = _Expander(_decompressor(encoding), bytes_max, expansion)
    with path.open("rb") as file, suppress(zlib.error, zstandard.ZstdError):
        while raw := file.read(_PIECE_BYTES):
            for _ in expander.expand(raw):
                pass


def _decompressor(encoding: str) -> _Decompressor:
    if encoding in ("identity", ""):
        return _Identity()
    if encoding == "gzip":
        return _Gzip()
    if encoding == "zstd":
        return _Zstd()
    message = f"bodies are compressed by gzip or zstd, and not by {encoding[:50]!r}"
    raise InvalidInputError(message, code=ErrorCode.UNSUPPORTED_MEDIA)


class _Identity:
    def expand(self, piece: bytes) -> Iterator[bytes]:
        if piece:
            yield piece

    def finish(self) -> None:
        pass


class _Gzip:
    def __init__(self) -> None:
        self._state = zlib.decompressobj(_GZIP_WINDOW)

    def expand(self, piece: bytes) -> Iterator[bytes]:
        rest = piece
        while rest:
            if self._state.eof:
                # Several members may follow each other.
                self._state = zlib.decompressobj(_GZIP_WINDOW)
            yield self._state.decompress(rest, _PIECE_BYTES)
            rest = self._state.unconsumed_tail or self._state.unused_data

    def finish(self) -> None:
        if not self._state.eof:
            message = "it ends too early"
            raise zlib.error(message)


class _Zstd:
    def __init__(self) -> None:
        self._state = zstandard.ZstdDecompressor().decompressobj()

    def expand(self, piece: bytes) -> Iterator[bytes]:
        rest = piece
        while rest:
            if self._state.eof:
                rest, self._state = (
                    self._state.unused_data + rest,
                    zstandard.ZstdDecompressor().decompressobj(),
                )
            yield self._state.decompress(rest[:_ZSTD_PIECE_BYTES])
            rest = rest[_ZSTD_PIECE_BYTES:]

    def finish(self) -> None:
        if not self._state.eof:
            message = "it ends too early"
            raise zstandard.ZstdError(message)


def _large_error(bytes_max: int) -> LimitExceededError:
    message = f"the body is larger than {bytes_max:,} bytes"
    hint = "send less, or ask the operator to raise the limit"
    return LimitExceededError(message, hint=hint, code=ErrorCode.BODY_TOO_LARGE)


def _slow_error(seconds: float) -> LimitExceededError:
    message = f"the body did not arrive within {seconds:.3g} s"
    return LimitExceededError(message, hint="send it faster", code=ErrorCode.BODY_TOO_LARGE)
