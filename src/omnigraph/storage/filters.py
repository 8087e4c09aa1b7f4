"""Lance filter texts, built from values that may hold anything.

Lance takes filters as SQL text and uses its scalar indexes for them; the same filter as a pyarrow
expression costs several times more, and exponentially so for long OR chains (lance-facts 12).
Quoting lives here and nowhere else.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

NOTHING: Final = "false"
"""The filter that no row passes."""


def column(name: str) -> str:
    """A column, whatever its name: `order` and `from` are legal property names.

    >>> column("order")
    '`order`'
    """
    return f"`{name}`"


def text_literal(value: str) -> str:
    """A string literal that means exactly `value`.

    >>> text_literal("it's")
    "'it''s'"
    """
    return "'" + value.replace("'", "''") + "'"


def text_in(name: str, values: Iterable[str]) -> str:
    """Rows whose `name` is one of `values`; at least one is needed.

    >>> text_in("id", ["a", "b"])
    "`id` IN ('a', 'b')"
    """
    return f"{column(name)} IN ({', '.join(map(text_literal, values))})"
