"""Lance filter texts, built from arbitrary values.

Lance takes filters as SQL text and uses its scalar indexes for them; the same filter as a pyarrow
expression costs several times more, and exponentially more for long OR chains (docs/substrate.md,
Filters). Quoting is done here and nowhere else.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, date, datetime
from typing import Final, TypeAlias, assert_never

I64_MIN: Final = -(2**63)
OPERATORS: Final = frozenset(["=", "<", "<=", ">", ">="])

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


def number_in(name: str, values: Iterable[int]) -> str:
    """Rows whose `name` is one of these numbers; at least one is needed.

    >>> number_in("_rowid", [7, 9])
    '`_rowid` IN (7, 9)'
    """
    return f"{column(name)} IN ({', '.join(map(str, values))})"


Literal: TypeAlias = "str | bool | int | float | date | datetime"
"""Values of scalar types and enums."""


def literal(value: Literal) -> str:
    """A literal that means exactly this value; an instant without a zone is UTC.

    Lance converts it to the column's type, and rejects one that does not fit.

    >>> literal(date(1999, 12, 31)), literal(True), literal(-7)
    ("date '1999-12-31'", 'true', '-7')
    >>> literal(float("inf"))
    "CAST('inf' AS DOUBLE)"
    """
    match value:
        case bool():
            return "true" if value else "false"
        case int():
            # Lance parses the digits without the sign, and 2**63 does not fit.
            return str(value) if value > I64_MIN else f"CAST('{value}' AS BIGINT)"
        case float():
            return f"CAST('{value!r}' AS DOUBLE)"
        case datetime():
            instant = value.astimezone(UTC) if value.tzinfo else value
            return f"timestamp '{instant.replace(tzinfo=None).isoformat()}Z'"
        case date():
            return f"date '{value.isoformat()}'"
        case str():
            return text_literal(value)
        case _:
            assert_never(value)


def compare(name: str, operator: str, value: Literal) -> str:
    """Rows whose `name` satisfies this comparison with a value; null satisfies none.

    >>> compare("age", ">=", 18)
    '`age` >= 18'
    """
    assert operator in OPERATORS, operator
    return f"{column(name)} {operator} {literal(value)}"


def is_one_of(name: str, values: Iterable[Literal]) -> str:
    """Rows whose `name` is one of `values`, which may be empty."""
    literals = ", ".join(map(literal, values))
    return f"{column(name)} IN ({literals})" if literals else NOTHING


def is_null(name: str) -> str:
    """Rows whose `name` is null."""
    return f"{column(name)} IS NULL"


def is_not_null(name: str) -> str:
    """Rows whose `name` is not null."""
    return f"{column(name)} IS NOT NULL"


def starts_with(name: str, text: str) -> str:
    """Rows whose `name` begins with `text`, taken literally: there are no wildcards."""
    return f"starts_with({column(name)}, {text_literal(text)})"


def negate(text: str) -> str:
    """Rows for which a filter is false; rows for which it is unknown pass neither filter."""
    return f"NOT ({text})"


def conjoin(texts: Iterable[str]) -> str | None:
    """Rows that pass all of these filters; None if there are no filters."""
    return " AND ".join(f"({text})" for text in texts) or None
