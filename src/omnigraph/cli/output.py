"""Standard output: the only way out for data, and what happens when it cannot be written."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TextIO

from omnigraph.errors import StorageError


class OutputClosedError(Exception):
    """The reader has stopped, as `head` does. This is no failure to report."""


@contextmanager
def standard_output() -> Iterator[TextIO]:
    """Standard output, to write data to."""
    if sys.stdout is None:
        message = "standard output is closed"
        raise StorageError(message, hint="leave it open, or send it to a file")
    try:
        yield sys.stdout
    except BrokenPipeError as cause:
        discard_rest(sys.stdout)
        raise OutputClosedError from cause
    except OSError as cause:
        discard_rest(sys.stdout)
        message = f"standard output cannot be written: {cause.strerror or cause}"
        raise StorageError(message, hint="send it to where there is room") from cause


def write_text(text: str) -> None:
    """Write text in the encoding of the terminal's locale."""
    with standard_output() as stream:
        stream.write(text)


def write_bytes(data: bytes) -> None:
    """Write bytes as they are."""
    with standard_output() as stream:
        stream.flush()
        stream.buffer.write(data)


def finish() -> None:
    """Flush what was written."""
    if sys.stdout is not None:
        with standard_output() as stream:
            stream.flush()


def discard_rest(stream: TextIO) -> None:
    """Discard what is left in the buffer of a stream that cannot be written."""
    # Python flushes the rest once more when it exits, and would print an error of its own.
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
