"""Limits of a query as callers and settings write them: time, memory and rows, or none."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Final, TypeAlias

from omnigraph.errors import InvalidParameterError
from omnigraph.limits import QUERY_BYTES_MIN
from omnigraph.model.arguments import require_number
from omnigraph.model.durations import require_duration
from omnigraph.model.sizes import format_size, require_size

NO_LIMIT: Final = "none"
"""The word that lifts a limit."""

Timeout: TypeAlias = "str | float | timedelta"
"""A text such as `30s`, seconds, or a `timedelta`; or `none`."""


@dataclass(frozen=True, slots=True)
class QueryLimits:
    """How much a query may take; None is no limit.

    Attributes:
        memory: Bytes.
    """

    timeout: timedelta | None = None
    memory: int | None = None
    max_rows: int | None = None


def require_timeout(value: object, name: str) -> timedelta | None:
    """How long a query may run; None for `none`.

    >>> require_timeout("30s", "timeout"), require_timeout(0.5, "timeout")
    (datetime.timedelta(seconds=30), datetime.timedelta(microseconds=500000))
    """
    if value == NO_LIMIT:
        return None
    if isinstance(value, int | float) and not isinstance(value, bool):
        value = _seconds(value, name)
    timeout = require_duration(value, name)
    if not timeout:
        message = f"{name} must be more than 0"
        raise InvalidParameterError(message, hint=f"give it time, or {NO_LIMIT}", name=name)
    return timeout


def require_memory(value: object, name: str) -> int | None:
    """How many bytes a query may hold; None for `none`."""
    if value == NO_LIMIT:
        return None
    byte_count = require_size(value, name)
    if byte_count < QUERY_BYTES_MIN:
        least = format_size(QUERY_BYTES_MIN)
        message = f"{name} is {format_size(byte_count)}, and a query needs at least {least}"
        raise InvalidParameterError(message, hint=f"give it more, or {NO_LIMIT}", name=name)
    return byte_count


def require_max_rows(value: object, name: str) -> int | None:
    """How many rows a query may return; None for `none`."""
    if value == NO_LIMIT:
        return None
    row_count = require_number(value, name)
    if row_count < 1:
        message = f"{name} is {row_count}, and must be at least 1"
        raise InvalidParameterError(message, hint=f"allow some rows, or {NO_LIMIT}", name=name)
    return row_count


def _seconds(value: float, name: str) -> timedelta:
    try:
        return timedelta(seconds=value)
    except (OverflowError, ValueError) as cause:
        message = f"{name} is {value}, which is not a duration"
        raise InvalidParameterError(message, hint="give seconds, or 30s", name=name) from cause
