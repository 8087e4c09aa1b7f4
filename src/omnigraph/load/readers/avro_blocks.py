"""Blocks of an Avro file: what they stand for, found without holding what is decompressed."""

from __future__ import annotations

import bz2
import lzma
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Final

import pyarrow as pa

_PIECE_BYTES: Final = 1 << 20
_SYNC_BYTES: Final = 16
_LONG_BYTES_MAX: Final = 10
_UNBOUNDED: Final = 1 << 62

Expand = Callable[[bytes], Iterator[int]]


def block_sizes(path: Path) -> Iterator[int]:
    """The number of records of each block, and its bytes, decompressed piece by piece.

    The numbers end where the file is damaged: its reader says what is wrong with it.
    """
    import fastavro

    with path.open("rb") as file:
        try:
            codec = fastavro.reader(file).metadata.get("avro.codec", "null")
        except Exception:  # noqa: BLE001  # what the reader refuses, it refuses as damaged
            return
        end = path.stat().st_size
        while (count := _read_long(file)) is not None and (size := _read_long(file)) is not None:
            if count < 0 or size < 0:
                # Nobody writes such a block, and readers may take it for anything.
                yield _UNBOUNDED
                return
            yield count
            if (expand := _EXPANDERS.get(codec)) is None:
                yield _UNBOUNDED
                return
            try:
                yield from expand(file.read(min(size, end)))
            except (zlib.error, OSError, lzma.LZMAError, pa.ArrowException, EOFError):
                return
            file.seek(_SYNC_BYTES, 1)


def _read_long(file: IO[bytes]) -> int | None:
    """A number as Avro writes it, with a sign in its last bit; None where the file ends."""
    value = 0
    for place in range(_LONG_BYTES_MAX):
        byte = file.read(1)
        if not byte:
            return None
        value |= (byte[0] & 0x7F) << (7 * place)
        if byte[0] < 0x80:
            return (value >> 1) ^ -(value & 1)
    return None


def _plain(block: bytes) -> Iterator[int]:
    yield len(block)


def _deflated(block: bytes) -> Iterator[int]:
    state = zlib.decompressobj(-zlib.MAX_WBITS)
    rest = block
    while rest and not state.eof:
        yield len(state.decompress(rest, _PIECE_BYTES))
        rest = state.unconsumed_tail


def _by_bzip2(block: bytes) -> Iterator[int]:
    yield from _pieces(bz2.BZ2Decompressor(), block)


def _by_xz(block: bytes) -> Iterator[int]:
    yield from _pieces(lzma.LZMADecompressor(), block)


def _pieces(state: bz2.BZ2Decompressor | lzma.LZMADecompressor, block: bytes) -> Iterator[int]:
    piece = state.decompress(block, _PIECE_BYTES)
    while piece:
        yield len(piece)
        piece = b"" if state.eof else state.decompress(b"", _PIECE_BYTES)


def _by_zstandard(block: bytes) -> Iterator[int]:
    with pa.CompressedInputStream(pa.BufferReader(block), "zstd") as stream:
        while piece := stream.read(_PIECE_BYTES):
            yield len(piece)


_EXPANDERS: Final[dict[str, Expand]] = {
    "null": _plain,
    "deflate": _deflated,
    "bzip2": _by_bzip2,
    "xz": _by_xz,
    "zstandard": _by_zstandard,
    # No element of it stands for more than 64 bytes, and each takes two or more.
    "snappy": _plain,
}
