"""Spelling: how a printer writes a text or a number so that it reads back as the same value."""

from __future__ import annotations

from decimal import Decimal


def quoted(text: str) -> str:
    r"""The text as a string literal; what an editor would not show is escaped.

    >>> print(quoted('say "hi"\n'))
    "say \"hi\"\n"
    """
    return f'"{"".join(map(_escaped, text))}"'


def positional(number: float | str) -> str:
    """The digits of a finite float without an exponent, which the languages do not have.

    >>> positional(1e-7), positional("1e3")
    ('0.0000001', '1000.0')
    """
    text = f"{Decimal(number if isinstance(number, str) else repr(number)):f}"
    return text if "." in text else f"{text}.0"


def _escaped(each: str) -> str:
    plain = {'"': r"\"", "\\": r"\\", "\n": r"\n", "\r": r"\r", "\t": r"\t"}
    if each in plain:
        return plain[each]
    if each.isprintable():
        return each
    units = each.encode("utf-16-be")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))
