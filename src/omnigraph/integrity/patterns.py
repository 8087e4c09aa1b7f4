r"""Patterns of `@check` in the words that RE2 and Java's engine understand alike.

`schema.patterns` has the dialect. Within it the engines still differ: Java's `$` also matches
before a final newline and its `.` refuses more than newlines, RE2's `\s` lacks the vertical tab and
its `(?i)` folds beyond ASCII. So a pattern is rewritten before it is bound: `^` and `$` become `\A`
and `\z`, and whatever matches one character becomes a set of code points, spelt out.

What remains is `\b`, which for Java before 19 also sees letters beyond ASCII. Where a pattern has
one and treats all characters beyond ASCII alike, the text it is searched in has them replaced by
one that is no letter to anybody (`Pattern.is_searched_in_ascii`). Only a pattern that has `\b` and
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
"""What characters beyond ASCII become where they are all alike to a pattern."""

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


def portable(pattern: str) -> Pattern:
    r"""A checked pattern, rewritten so that every engine finds it in the same texts.

    >>> portable("^a.$").text
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
                found = _ranges_of(token, folds=folds)
                beyond = _complement((*_complement(found), (0, _ASCII_LAST)))
                are_alike = are_alike and beyond in ((), ((_ASCII_LAST + 1, _LAST),))
                parts.append(_spelt(found))
    return Pattern("".join(parts), is_searched_in_ascii=has_boundary and are_alike)


def _ranges_of(token: re.Match[str], *, folds: bool) -> Ranges:
    text = token.group()
    match token.lastgroup:
        case "any":
            return _complement(_one("\n"))
        case "set":
            negated = text.startswith("[^")
            found = _merged(list(_set_ranges(text[2 if negated else 1 : -1])))
            found = _folded(found) if folds else found
            return _complement(found) if negated else found
        case "escape":
            found = _escaped(text)
        case _:
            found = _one(text)
    return _folded(found) if folds else found


def _set_ranges(body: str) -> Iterator[tuple[int, int]]:
    items = _SET_ITEM.findall(body)
    at = 0
    while at < len(items):
        low = _escaped(items[at])
        # A dash between two characters makes a range; first, last or after a class it is itself.
        if at + 2 < len(items) and items[at + 1] == "-" and _is_one(low):
            high = _escaped(items[at + 2])
            if _is_one(high):
                yield low[0][0], high[0][0]
                at += 3
                continue
        yield from low
        at += 1


def _escaped(text: str) -> Ranges:
    r"""What `\d`, `\n`, `\x41`, `\.` or a plain character stands for."""
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


def _folded(ranges: Ranges) -> Ranges:
    """The code points, with both cases of every ASCII letter among them."""
    more = [
        _one(each.swapcase())[0]
        for each in string.ascii_letters
        if any(low <= ord(each) <= high for low, high in ranges)
    ]
    return _merged([*ranges, *more])


def _merged(ranges: list[tuple[int, int]]) -> Ranges:
    merged: list[tuple[int, int]] = []
    for low, high in sorted(ranges):
        if merged and low <= merged[-1][1] + 1:
            merged[-1] = merged[-1][0], max(high, merged[-1][1])
        else:
            merged.append((low, high))
    return tuple(merged)


def _complement(ranges: Ranges) -> Ranges:
    left: list[tuple[int, int]] = []
    start = 0
    for low, high in _merged(list(ranges)):
        if start < low:
            left.append((start, low - 1))
        start = high + 1
    if start <= _LAST:
        left.append((start, _LAST))
    return tuple(left)


def _spelt(ranges: Ranges) -> str:
    if not ranges:
        # A set of everything, negated: no engine takes an empty set.
        return rf"[^\x{{0}}-\x{{{_LAST:X}}}]"
    runs = (rf"\x{{{low:X}}}" + (rf"-\x{{{high:X}}}" if high > low else "") for low, high in ranges)
    return f"[{''.join(runs)}]"


def _of(characters: str) -> Ranges:
    return _merged([_one(each)[0] for each in characters])


_CONTROLS: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_DIGITS: Final = _of(string.digits)
_WORDS: Final = _of(string.ascii_letters + string.digits + "_")
_SPACES: Final = _of(" \t\n\r\f\v")
_CLASSES: Final = {
    "d": _DIGITS,
    "D": _complement(_DIGITS),
    "w": _WORDS,
    "W": _complement(_WORDS),
    "s": _SPACES,
    "S": _complement(_SPACES),
}
