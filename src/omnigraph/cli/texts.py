"""Texts that a command is given: a file, standard input, or the command line itself."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

from omnigraph.errors import InvalidInputError, NotFoundError

STANDARD_INPUT: Final = "-"


def read_text(path: str) -> str:
    """The text of a file in UTF-8, or of standard input if the path is `-`.

    A byte order mark at its start is no part of it.

    Raises:
        NotFoundError: there is no such file.
        InvalidInputError: it cannot be read, or is not UTF-8.
    """
    from omnigraph.lang.source import decoded

    name = shown_name(path)
    try:
        data = _read(path)
    except FileNotFoundError as cause:
        from omnigraph.storage.nearby import near_file

        message = f"there is no file {path}"
        raise NotFoundError(message, hint=near_file(Path(path))) from cause
    except (OSError, ValueError) as cause:
        reason = cause.strerror if isinstance(cause, OSError) else cause
        message = f"{name} cannot be read: {reason}"
        hint = "check the path, and who may read it"
        raise InvalidInputError(message, hint=hint) from cause
    return decoded(data, name)


def shown_name(path: str) -> str:
    """What to call a text in messages."""
    return "standard input" if path == STANDARD_INPUT else path


def _read(path: str) -> bytes:
    if path != STANDARD_INPUT:
        return Path(path).read_bytes()
    return b"" if sys.stdin is None else sys.stdin.buffer.read()
