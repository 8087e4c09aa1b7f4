"""Diagnostics: errors and warnings about a text, with their places and hints."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from enum import StrEnum
from itertools import islice
from typing import Final

from omnigraph.errors import ErrorCode, InvalidInputError
from omnigraph.lang.source import Source, Span

ERRORS_MAX: Final = 100
"""Errors after which checking a text ends: a longer list helps no reader, and each has its cost."""

_SHOWN_MAX: Final = 20
"""Diagnostics rendered into one error message; the rest are counted. The error carries all."""

_LINE_WIDTH_MAX: Final = 160
"""Columns of source shown around a span; generated text can have lines of a megabyte."""

_NAMES_COMPARED_MAX: Final = 500
_NAME_LENGTH_COMPARED_MAX: Final = 64
"""Comparing two names is quadratic in their length, so beyond these there is no hint."""


class Severity(StrEnum):
    """Whether a diagnostic refuses the text."""

    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One thing wrong with a text: where, what, and what to do about it.

    Attributes:
        code: Stable across releases; one per rule.
    """

    code: str
    span: Span
    message: str
    hint: str = ""
    severity: Severity = Severity.ERROR

    def render(self, source: Source) -> str:
        r"""Show the message, the line, and a caret under the span.

        >>> source = Source("person.pg", "node Person {\n  name: Strng\n}")
        >>> wrong = Diagnostic("S001", Span(22, 27), "unknown type Strng", "try String")
        >>> print(wrong.render(source))
        error[S001]: unknown type Strng
         --> person.pg:2:9
          |
        2 |   name: Strng
          |         ^^^^^ try String
        """
        line, column = source.position(self.span.start)
        text, before, under = _excerpt(source.line(line), column - 1, self.span)
        margin = " " * len(str(line))
        return "\n".join(
            (
                f"{self.severity}[{self.code}]: {self.message}",
                f"{margin}--> {source.name}:{line}:{column}",
                f"{margin} |",
                f"{line} | {text}",
                f"{margin} | {' ' * before}{'^' * under} {self.hint}".rstrip(),
            )
        )


def _excerpt(line: str, column: int, span: Span) -> tuple[str, int, int]:
    """The part of a line to show, and how many blanks and carets mark the span in it."""
    cut = max(0, column - _LINE_WIDTH_MAX // 2)
    end = max(column, min(len(line), column + span.end - span.start))
    before = _to_printable(line[cut:column])
    under = _to_printable(line[column : min(end, cut + _LINE_WIDTH_MAX)])
    after = _to_printable(line[end : cut + _LINE_WIDTH_MAX])
    return before + under + after, len(before), max(1, len(under))


def _to_printable(text: str) -> str:
    """Text safe to show: a tab is one blank, so that carets line up; the rest is escaped."""
    return "".join(
        character
        if character.isprintable()
        else " "
        if character == "\t"
        else ascii(character)[1:-1]
        for character in text
    )


class DiagnosticsError(InvalidInputError):
    """A text is refused; `diagnostics` has all its errors and warnings.

    No data was read or written.
    """

    def __init__(
        self,
        diagnostics: Sequence[Diagnostic],
        source: Source,
        *,
        code: ErrorCode = ErrorCode.INVALID_INPUT,
    ) -> None:
        super().__init__(
            _summary(diagnostics, source),
            code=code,
            source=source.name,
            diagnostics=[_facts(diagnostic, source) for diagnostic in diagnostics],
        )
        self.diagnostics = tuple(diagnostics)
        self.source = source

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (self.diagnostics, self.source, self.code)


def _rebuild(
    diagnostics: tuple[Diagnostic, ...], source: Source, code: ErrorCode
) -> DiagnosticsError:
    return DiagnosticsError(diagnostics, source, code=code)


def errors_in(diagnostics: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
    """The diagnostics that refuse a text."""
    return tuple(diagnostic for diagnostic in diagnostics if diagnostic.severity is Severity.ERROR)


def _summary(diagnostics: Sequence[Diagnostic], source: Source) -> str:
    errors = errors_in(diagnostics)
    count = "1 error" if len(errors) == 1 else f"{len(errors)} errors"
    shown = [error.render(source) for error in errors[:_SHOWN_MAX]]
    if hidden := len(errors) - len(shown):
        shown.append(f"… and {hidden} more")
    return "\n\n".join([f"{source.name} has {count}", *shown])


def _facts(diagnostic: Diagnostic, source: Source) -> dict[str, object]:
    line, column = source.position(diagnostic.span.start)
    return {
        "code": diagnostic.code,
        "severity": str(diagnostic.severity),
        "line": line,
        "column": column,
        "message": diagnostic.message,
        "hint": diagnostic.hint,
    }


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that is most similar to an unknown one, if any is close.

    >>> nearest("Strng", ["String", "Bool"]), nearest("Quux", ["String", "Bool"])
    ('String', None)
    """
    if len(name) > _NAME_LENGTH_COMPARED_MAX:
        return None
    names = islice(known, _NAMES_COMPARED_MAX)
    folded = {name.casefold(): name for name in names if len(name) <= _NAME_LENGTH_COMPARED_MAX}
    close = get_close_matches(name.casefold(), folded, n=1, cutoff=0.6)
    return folded[close[0]] if close else None


def did_you_mean(name: str, known: Iterable[str], *, otherwise: str = "") -> str:
    """A hint naming the nearest known name, or `otherwise` when none is near.

    >>> did_you_mean("Persn", ["Person"])
    'did you mean Person?'
    """
    near = nearest(name, known)
    return f"did you mean {near}?" if near else otherwise
