"""Standard output: the one place that data leaves by, and what happens when it cannot."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TextIO

from omnigraph.errors import StorageError


class OutputClosedError(Exception):
    """Whoever was reading has stopped, as `head` does. Nobody needs to be told."""


@contextmanager
def standard_output() -> Iterator[TextIO]:
    """Standard output, to write data to.

    Raises:
        OutputClosedError: the reader is gone.
        StorageError: what was written could not be kept; the message says why.
    """
    if sys.stdout is None:
        message = "standard output is closed, and the answer has nowhere to go"
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
    """Write text as the terminal's locale spells it."""
    with standard_output() as stream:
        stream.write(text)


def write_bytes(data: bytes) -> None:
    """Write bytes as they are."""
    with standard_output() as stream:
        stream.flush()
        stream.buffer.write(data)


def finish() -> None:
    """See to it that what was written has arrived."""
    if sys.stdout is not None:
        with standard_output() as stream:
            stream.flush()


def discard_rest(stream: TextIO) -> None:
    """Send what is left of a stream that cannot be written nowhere."""
    # Python writes what is left once more when it exits, and would complain then, on its own terms.
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
