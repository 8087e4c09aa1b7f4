"""Spelling: formats texts and numbers as literals that parse to the same value."""

from __future__ import annotations

from decimal import Decimal


def quote(text: str) -> str:
    r"""The text as a string literal, with unprintable characters escaped.

    >>> print(quote('say "hi"\n'))
    "say \"hi\"\n"
    """
    return f'"{"".join(map(_escape, text))}"'


def format_float(number: float | str) -> str:
    """The digits of a finite float without an exponent, which the languages do not have.

    >>> format_float(1e-7), format_float("1e3")
    ('0.0000001', '1000.0')
    """
    text = f"{Decimal(number if isinstance(number, str) else repr(number)):f}"
    return text if "." in text else f"{text}.0"


def _escape(character: str) -> str:
    plain = {'"': r"\"", "\\": r"\\", "\n": r"\n", "\r": r"\r", "\t": r"\t"}
    if character in plain:
        return plain[character]
    if character.isprintable():
        return character
    units = character.encode("utf-16-be")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))
