r"""Patterns of `@check`: the regular expressions that Python, RE2 and Java interpret alike.

The local engine checks data with RE2 and Spark with Java's engine; a pattern that they interpret
differently would accept a row on one engine and refuse it on the other. So a pattern may use only:

- characters, `.`, `|`, groups `( )` and `(?: )`, and a leading `(?i)`;
- `^` and `$`, which mean the ends of the text, and `\b`, `\B`;
- `*`, `+`, `?`, `{n}`, `{n,}`, `{n,m}`, each with an optional `?` after it; counts are at most
  1000, where nested ones multiply;
- `[ ]` and `[^ ]` with ranges, where `[`, `&&`, `--`, `~~`, `||` and a leading `]` are escaped;
- `\d \D \w \W \s \S`, which are ASCII, `\t \n \r \f`, `\xHH`, and `\` before punctuation.

Look-around, back-references, possessive and atomic forms, named groups, `\p{ }`, `\A \Z \v` are
refused. Python compiles the subset with `re.ASCII`; the evaluator must rule out `$` before a final
newline (`\Z` in Python, `\z` in Java, RE2 as it is).
"""

from __future__ import annotations

import re
from typing import Final

PATTERN_LENGTH_MAX: Final = 1000
GROUPS_DEEP_MAX: Final = 50
"""Python's own compiler is recursive; no pattern written by hand reaches either bound."""

_COPIES_MAX: Final = 1000
_TOKEN: Final = re.compile(
    r"""
      (?P<escape>   \\ (?: [dDwWsSbBtnrf] | x[0-9A-Fa-f]{2} | [^A-Za-z0-9\s\w] ))
    | (?P<group>    \( (?: \?: | (?!\?) ))
    | (?P<close>    \) )
    | (?P<set>      \[ \^? (?: \\ (?: [dDwWsStnrf] | x[0-9A-Fa-f]{2} | [^A-Za-z0-9\s\w] )
                             | (?! && | -- | ~~ | \|\| ) [^\\\[\]] )+ \] )
    | (?P<repeat>   (?: [*+?] | \{ (?P<low>[0-9]{1,4}) (?: , (?P<high>[0-9]{0,4}) )? \} ) \?? )
    | (?P<plain>    [^\\()\[{*+?] )
    """,
    re.VERBOSE,
)


def pattern_fault(pattern: str) -> str | None:
    r"""Why a pattern is refused, or None if every engine interprets it alike.

    >>> pattern_fault(r"^[a-z]+@[a-z]+\.org$")
    >>> pattern_fault(r"(?=secret)")
    "'(?=secret)' is outside the common subset"
    """
    if len(pattern) > PATTERN_LENGTH_MAX:
        return f"it is longer than {PATTERN_LENGTH_MAX} characters"
    if re.search("[\ud800-\udfff]", pattern):
        return "it has half of a surrogate pair"
    return _subset_fault(pattern) or _compile_fault(pattern)


def _subset_fault(pattern: str) -> str | None:
    at = len("(?i)") if pattern.startswith("(?i)") else 0
    # RE2 expands a counted repetition, so it bounds the product of nested counts: `copies` has
    # the largest so far in each open group, `last` that of the latest item.
    copies, last = [1], 1
    before: str | None = None
    while at < len(pattern):
        token = _TOKEN.match(pattern, at)
        if token is None:
            return f"{pattern[at : at + 20]!r} is outside the common subset"
        match token.lastgroup:
            case "group":
                copies.append(1)
                if len(copies) > GROUPS_DEEP_MAX:
                    return f"groups nest deeper than {GROUPS_DEEP_MAX}"
            case "close":
                last = copies.pop()
                if not copies:
                    return "a ')' has no '('"
                copies[-1] = max(copies[-1], last)
            case "repeat" if before == "repeat":
                return f"{token.group()!r} repeats a repetition"
            case "repeat":
                last *= max(1, int(token["low"] or 0), int(token["high"] or 0))
                if last > _COPIES_MAX:
                    return f"{token.group()!r} repeats more than {_COPIES_MAX} times"
                copies[-1] = max(copies[-1], last)
            case _:
                last = 1
        at, before = token.end(), token.lastgroup
    return None


def _compile_fault(pattern: str) -> str | None:
    try:
        re.compile(pattern, re.ASCII)
    except (re.error, OverflowError, RecursionError) as cause:
        return str(cause)
    return None
