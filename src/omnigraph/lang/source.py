"""Source text and places in it: a name, a text, spans, lines and columns."""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, NamedTuple

from omnigraph.errors import InvalidInputError

_LINE_END: Final = re.compile(r"\r\n|\n|\r")

_TEXTS_MAX: Final = 16
"""Texts whose lines are remembered: who asks for one place usually asks for others."""


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """The characters from `start` up to, and not including, `end`."""

    start: int
    end: int

    def to(self, other: Span) -> Span:
        """The span from the start of this one to the end of `other`."""
        return Span(self.start, other.end)


class Position(NamedTuple):
    """A line and a column, both counted from 1; a column is a character, not a byte."""

    line: int
    column: int


@dataclass(frozen=True, slots=True)
class Source:
    r"""A text and its name in diagnostics.

    Only `\n`, `\r\n` and a lone `\r` end a line, as in every editor.
    """

    name: str
    text: str

    @property
    def _starts(self) -> tuple[int, ...]:
        return _find_starts(self.text)

    def position(self, offset: int) -> Position:
        r"""The line and column of a character.

        >>> Source("a.pg", "one\ntwo").position(5)
        Position(line=2, column=2)
        """
        line = bisect_right(self._starts, offset)
        return Position(line, offset - self._starts[line - 1] + 1)

    def line(self, number: int) -> str:
        """The text of one line, without its ending."""
        start = self._starts[number - 1]
        end = self._starts[number] if number < len(self._starts) else len(self.text)
        return self.text[start:end].rstrip("\r\n")

    def at(self, span: Span) -> str:
        """The characters a span covers."""
        return self.text[span.start : span.end]


@lru_cache(maxsize=_TEXTS_MAX)
def _find_starts(text: str) -> tuple[int, ...]:
    return (0, *(match.end() for match in _LINE_END.finditer(text)))


def decode_text(data: bytes, name: str) -> str:
    """The text of a UTF-8 file, without a leading byte order mark.

    >>> decode_text("\ufeffnode".encode(), "schema.pg")
    'node'
    """
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as cause:
        line = data.count(b"\n", 0, cause.start) + 1
        message = f"{name} is not UTF-8: line {line} has the byte 0x{data[cause.start]:02x}"
        raise InvalidInputError(message, hint="save it as UTF-8") from cause
