r"""Patterns of `@check`, in a form that RE2 and Java's engine interpret alike.

`schema.patterns` defines the dialect. Within it the engines still differ: Java's `$` also matches
before a final newline and its `.` excludes more than newlines, RE2's `\s` lacks the vertical tab,
its `(?i)` folds beyond ASCII. So a pattern is rewritten before it is bound: `^` and `$` become `\A`
and `\z`, and whatever matches one character becomes an explicit set of code points.

What remains is `\b`, which in Java before 19 also counts letters beyond ASCII. Where a pattern has
one and treats all characters beyond ASCII alike, they are replaced in the searched text by one that
no engine takes for a letter (`Pattern.is_searched_in_ascii`). Only a pattern that has `\b` and
names characters beyond ASCII still depends on the version of Java.
"""

from __future__ import annotations

import re
import string
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, TypeAlias

Ranges: TypeAlias = "tuple[tuple[int, int], ...]"
"""Code points, as first and last of each run; sorted, and no two runs touch."""

STAND_IN: Final = "\N{SNOWMAN}"
"""Replaces characters beyond ASCII where a pattern treats them all alike."""

BEYOND_ASCII: Final = r"[\x{80}-\x{10FFFF}]"

_LAST: Final = 0x10FFFF
_ASCII_LAST: Final = 0x7F
_TOKEN: Final = re.compile(
    r"""
      (?P<boundary> \\[bB] )
    | (?P<escape>   \\ (?: x[0-9A-Fa-f]{2} | . ))
    | (?P<set>      \[ \^? (?: \\. | [^\\\]] )+ \] )
    | (?P<any>      \. )
    | (?P<start>    \^ )
    | (?P<end>      \$ )
    | (?P<syntax>   \(\?: | [()|*+?] | \{[0-9,]+\} )
    | (?P<plain>    . )
    """,
    re.VERBOSE | re.DOTALL,
)
_SET_ITEM: Final = re.compile(r"\\x[0-9A-Fa-f]{2}|\\.|.", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Pattern:
    """A pattern for both engines, and the text that it must be searched in."""

    text: str
    is_searched_in_ascii: bool


def make_portable(pattern: str) -> Pattern:
    r"""A checked pattern, rewritten so that every engine matches it in the same texts.

    >>> make_portable("^a.$").text
    '\\A[\\x{61}][\\x{0}-\\x{9}\\x{B}-\\x{10FFFF}]\\z'
    """
    folds = pattern.startswith("(?i)")
    parts: list[str] = []
    has_boundary = False
    are_alike = True
    for token in _TOKEN.finditer(pattern, len("(?i)") if folds else 0):
        match token.lastgroup:
            case "boundary":
                has_boundary = True
                parts.append(token.group())
            case "start":
                parts.append(r"\A")
            case "end":
                parts.append(r"\z")
            case "syntax":
                parts.append(token.group())
            case _:
                ranges = _ranges_of(token, folds=folds)
                beyond = _complement((*_complement(ranges), (0, _ASCII_LAST)))
                are_alike = are_alike and beyond in ((), ((_ASCII_LAST + 1, _LAST),))
                parts.append(_format_set(ranges))
    return Pattern("".join(parts), is_searched_in_ascii=has_boundary and are_alike)


def _ranges_of(token: re.Match[str], *, folds: bool) -> Ranges:
    text = token.group()
    match token.lastgroup:
        case "any":
            return _complement(_one("\n"))
        case "set":
            negated = text.startswith("[^")
            ranges = _merge_ranges(list(_set_ranges(text[2 if negated else 1 : -1])))
            ranges = _fold_case(ranges) if folds else ranges
            return _complement(ranges) if negated else ranges
        case "escape":
            ranges = _unescape(text)
        case _:
            ranges = _one(text)
    return _fold_case(ranges) if folds else ranges


def _set_ranges(body: str) -> Iterator[tuple[int, int]]:
    items = _SET_ITEM.findall(body)
    at = 0
    while at < len(items):
        low = _unescape(items[at])
        # A dash between two characters makes a range; first, last or after a class it is itself.
        if at + 2 < len(items) and items[at + 1] == "-" and _is_one(low):
            high = _unescape(items[at + 2])
            if _is_one(high):
                yield low[0][0], high[0][0]
                at += 3
                continue
        yield from low
        at += 1


def _unescape(text: str) -> Ranges:
    r"""What `\d`, `\n`, `\x41`, `\.` or a plain character matches."""
    if not text.startswith("\\"):
        return _one(text)
    letter = text[1:]
    if len(letter) == 3:
        return _one(chr(int(letter[1:], 16)))
    if letter in _CLASSES:
        return _CLASSES[letter]
    return _one(_CONTROLS.get(letter, letter))


def _one(character: str) -> Ranges:
    return ((ord(character), ord(character)),)


def _is_one(ranges: Ranges) -> bool:
    return len(ranges) == 1 and ranges[0][0] == ranges[0][1]


def _fold_case(ranges: Ranges) -> Ranges:
    """The code points, with both cases of every ASCII letter among them."""
    more = [
        _one(letter.swapcase())[0]
        for letter in string.ascii_letters
        if any(low <= ord(letter) <= high for low, high in ranges)
    ]
    return _merge_ranges([*ranges, *more])


def _merge_ranges(ranges: list[tuple[int, int]]) -> Ranges:
    merged: list[tuple[int, int]] = []
    for low, high in sorted(ranges):
        if merged and low <= merged[-1][1] + 1:
            merged[-1] = merged[-1][0], max(high, merged[-1][1])
        else:
            merged.append((low, high))
    return tuple(merged)


def _complement(ranges: Ranges) -> Ranges:
    gaps: list[tuple[int, int]] = []
    start = 0
    for low, high in _merge_ranges(list(ranges)):
        if start < low:
            gaps.append((start, low - 1))
        start = high + 1
    if start <= _LAST:
        gaps.append((start, _LAST))
    return tuple(gaps)


def _format_set(ranges: Ranges) -> str:
    if not ranges:
        # A set of everything, negated: no engine accepts an empty set.
        return rf"[^\x{{0}}-\x{{{_LAST:X}}}]"
    runs = (rf"\x{{{low:X}}}" + (rf"-\x{{{high:X}}}" if high > low else "") for low, high in ranges)
    return f"[{''.join(runs)}]"


def _ranges_in(characters: str) -> Ranges:
    return _merge_ranges([_one(character)[0] for character in characters])


_CONTROLS: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_DIGITS: Final = _ranges_in(string.digits)
_WORDS: Final = _ranges_in(string.ascii_letters + string.digits + "_")
_SPACES: Final = _ranges_in(" \t\n\r\f\v")
_CLASSES: Final = {
    "d": _DIGITS,
    "D": _complement(_DIGITS),
    "w": _WORDS,
    "W": _complement(_WORDS),
    "s": _SPACES,
    "S": _complement(_SPACES),
}
