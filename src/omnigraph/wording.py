"""Wording that many rooms share: counts, sizes in bytes, instants, hidden types."""

from __future__ import annotations

from collections.abc import Sized
from datetime import UTC, datetime
from typing import Final

_UNITS: Final = ("B", "KiB", "MiB", "GiB", "TiB")


def count_of(count: int, noun: str) -> str:
    """A number of things.

    >>> count_of(1, "row"), count_of(2000, "row")
    ('1 row', '2,000 rows')
    """
    return f"1 {noun}" if count == 1 else f"{count:,} {noun}s"


def size_of(byte_count: int) -> str:
    """A number of bytes, in the largest unit of which there is at least one.

    >>> size_of(134), size_of(256 << 20), size_of(8719)
    ('134 B', '256 MiB', '8.5 KiB')
    """
    size, unit = float(byte_count), _UNITS[0]
    for larger in _UNITS[1:]:
        if size < 1024:
            break
        size, unit = size / 1024, larger
    return f"{size:,.1f}".removesuffix(".0") + f" {unit}"


def format_instant(instant: datetime) -> str:
    """An instant as every answer, file and message for programs has it: in UTC, with a `Z`.

    >>> format_instant(datetime(2024, 2, 29, 13, 30, tzinfo=UTC))
    '2024-02-29T13:30:00Z'
    """
    return instant.astimezone(UTC).isoformat().replace("+00:00", "Z")


def describe_hidden(names: Sized) -> str:
    """How many types a result leaves out, because the actor may not read them.

    >>> describe_hidden(["Salary"]), describe_hidden(["Earns", "Salary"])
    ('1 type is hidden', '2 types are hidden')
    """
    verb = "is" if len(names) == 1 else "are"
    return f"{count_of(len(names), 'type')} {verb} hidden"
