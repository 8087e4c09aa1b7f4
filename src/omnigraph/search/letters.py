"""Letters: which characters words are made of, in small letters and without accents.

The tables, here and in `letters.txt`, are those of the Unicode version that Lance's tokenizers
have, which is newer than that of some Pythons: an index and a scan must find the same words
(tests/contract/search).
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache
from importlib.resources import files
from typing import Final

_NEWER_LOWER: Final = {
    0x1C89: 0x1C8A,
    0xA7CB: 0x0264,
    0xA7CC: 0xA7CD,
    0xA7CE: 0xA7CF,
    0xA7D2: 0xA7D3,
    0xA7D4: 0xA7D5,
    0xA7DA: 0xA7DB,
    0xA7DC: 0x019B,
    **{code: code + 0x20 for code in range(0x10D50, 0x10D66)},
    **{code: code + 0x1B for code in range(0x16EA0, 0x16EB9)},
}
"""Small letters that Unicode has since version 16."""

_NEWER_FOLDED: Final = {
    "\ua7f1": "S",
    **{chr(0x1CCF0 + digit): str(digit) for digit in range(10)},
}
"""Likewise, characters that are variants of ASCII."""

_FOLDED: Final = {
    "ß": "ss",
    "ẞ": "SS",
    "Æ": "AE",
    "æ": "ae",
    "Œ": "OE",
    "œ": "oe",
    "Ø": "O",
    "ø": "o",
    "Ł": "L",
    "ł": "l",
    "Đ": "D",
    "Ð": "D",
    "đ": "d",
    "ð": "d",
    "Þ": "TH",
    "þ": "th",
    "Ħ": "H",
    "ħ": "h",
    "Ŧ": "T",
    "ŧ": "t",
    "Ŋ": "N",
    "ŋ": "n",
    "\N{LATIN SMALL LETTER DOTLESS I}": "i",
    "ĸ": "k",
    "\N{LATIN SMALL LETTER LONG S}": "s",
}
"""Letters that no decomposition makes ASCII of."""


@cache
def words_pattern() -> re.Pattern[str]:
    """Matches the longest runs of letters and digits.

    >>> words_pattern().findall("naïve re-use of x²")
    ['naïve', 're', 'use', 'of', 'x²']
    """
    # The letters and digits beyond ASCII, as ranges of code points.
    beyond = files(__package__).joinpath("letters.txt").read_text("ascii").split()
    ranges = "".join(
        "-".join(f"\\U{int(code, 16):08x}" for code in one.split("-")) for one in beyond
    )
    return re.compile(f"[0-9A-Za-z{ranges}]+")


def lower(word: str) -> str:
    """The word in small letters, each by itself: a sigma at the end is like any other.

    >>> lower("ÉCLAIR"), lower("ΔΣ") == "ΔΣ".lower()
    ('éclair', False)
    """
    return word.lower() if word.isascii() else "".join(map(_lower_letter, word))


def fold(word: str) -> str:
    """The word without accents, and other variants of ASCII as ASCII; other letters stay.

    >>> fold("crème"), fold("straße"), fold("世界")
    ('creme', 'strasse', '世界')
    """
    return word if word.isascii() else "".join(map(_fold_letter, word))


@cache
def _lower_letter(letter: str) -> str:
    newer = _NEWER_LOWER.get(ord(letter))
    return letter.lower() if newer is None else chr(newer)


@cache
def _fold_letter(letter: str) -> str:
    if letter.isascii():
        return letter
    if known := _FOLDED.get(letter) or _NEWER_FOLDED.get(letter):
        return known
    parts = unicodedata.normalize("NFKD", letter)
    return "".join(part if part.isascii() else _FOLDED.get(part, "") for part in parts) or letter
