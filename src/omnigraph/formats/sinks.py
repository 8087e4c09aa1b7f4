"""Sinks: the streams that lines are written to, a file, compressed or not, or standard output."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, Protocol

import pyarrow as pa

from omnigraph.formats.compression import Compression

STANDARD_OUTPUT: Final = "-"
"""How standard output is named in the place of a file."""


class Sink(Protocol):
    """A stream of bytes that lines are written to."""

    def write(self, data: pa.Buffer | bytes, /) -> object:
        """Write all of the bytes."""
        ...


@contextmanager
def compress(file: pa.NativeFile, compression: Compression | None) -> Iterator[pa.NativeFile]:
    """The stream itself, or one that compresses what is written to it."""
    if compression is None:
        yield file
        return
    # Arrow writes neither name nor time into the header: equal rows give equal files.
    with pa.CompressedOutputStream(file, compression.value) as stream:
        yield stream


@contextmanager
def standard_output() -> Iterator[Sink]:
    """Standard output as a stream of bytes; it stays open."""
    sys.stdout.flush()
    yield sys.stdout.buffer
    sys.stdout.buffer.flush()
