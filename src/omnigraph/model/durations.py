"""Durations as callers write them: `30d`, `12h`, `90m`, `30s` and `500ms`."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Final

from omnigraph.errors import InvalidParameterError
from omnigraph.model.arguments import misfit_error

DURATION_DAYS_MAX: Final = 100_000


_FORM: Final = re.compile(r"([0-9]{1,9})(d|h|ms|m|s)")
_UNITS: Final = {
    "d": timedelta(days=1),
    "h": timedelta(hours=1),
    "m": timedelta(minutes=1),
    "s": timedelta(seconds=1),
    "ms": timedelta(milliseconds=1),
}
_HINT: Final = "write a number and a unit, such as 30d, 12h, 90m, 30s or 500ms"


def require_duration(value: object, name: str) -> timedelta:
    """A duration: a text such as `30d`, or a `timedelta`.

    >>> require_duration("90m", "grace")
    datetime.timedelta(seconds=5400)
    """
    if isinstance(value, timedelta):
        duration = value
    elif isinstance(value, str):
        duration = _parse(value, name)
    else:
        raise misfit_error(value, name, "a duration", hint=_HINT)
    if duration < timedelta(0):
        message = f"{name} is {format_duration(duration)}, and may not be negative"
        raise InvalidParameterError(message, hint=_HINT, name=name)
    if duration > timedelta(days=DURATION_DAYS_MAX):
        message = f"{name} is longer than {DURATION_DAYS_MAX:,} days"
        raise InvalidParameterError(message, hint=_HINT, name=name)
    return duration


def _parse(text: str, name: str) -> timedelta:
    form = _FORM.fullmatch(text.strip())
    if form is None:
        message = f"{name} is {text!r}, which is not a duration"
        raise InvalidParameterError(message, hint=_HINT, name=name)
    return int(form[1]) * _UNITS[form[2]]


def format_duration(duration: timedelta) -> str:
    """A duration in the largest unit that it is a multiple of.

    >>> format_duration(timedelta(days=30)), format_duration(timedelta(seconds=90))
    ('30d', '90s')
    """
    for unit, length in _UNITS.items():
        count, rest = divmod(duration, length)
        if count and not rest:
            return f"{count}{unit}"
    return f"{duration.total_seconds():g}s"
