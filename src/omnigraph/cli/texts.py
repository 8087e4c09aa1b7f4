"""Texts that a command reads: files and standard input."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

from omnigraph.errors import InvalidInputError

STANDARD_INPUT: Final = "-"


def read_text(path: str) -> str:
    """The text of a file in UTF-8, or of standard input if the path is `-`.

    A byte order mark at its start is dropped.
    """
    if path == STANDARD_INPUT:
        return _read_standard_input()
    from omnigraph.storage.texts import read_file

    return read_file(Path(path))


def _read_standard_input() -> str:
    from omnigraph.lang.source import decode_text

    name = display_name(STANDARD_INPUT)
    try:
        data = b"" if sys.stdin is None else sys.stdin.buffer.read()
    except OSError as cause:
        message = f"{name} cannot be read: {cause.strerror}"
        raise InvalidInputError(message, hint="pipe a text into it, or name a file") from cause
    return decode_text(data, name)


def display_name(path: str) -> str:
    """The name of a text in messages."""
    return "standard input" if path == STANDARD_INPUT else path
