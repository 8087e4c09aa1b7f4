"""Sizes in bytes as callers write them: `512MB`, `2GiB`."""

from __future__ import annotations

import re
from typing import Final

from omnigraph.errors import InvalidParameterError
from omnigraph.model.arguments import misfit_error

_FORM: Final = re.compile(r"([0-9]{1,15}) ?([kmgt]i?)?b", re.IGNORECASE)
_UNITS: Final[dict[str, int]] = {
    **{unit: 1000**power for power, unit in enumerate(("", "k", "m", "g", "t"))},
    **{f"{unit}i": 1024**power for power, unit in enumerate(("k", "m", "g", "t"), start=1)},
}
_HINT: Final = "write a number and a unit, such as 512MB or 2GiB"


def require_size(value: object, name: str) -> int:
    """A number of bytes: a text such as `512MB` or `2GiB`, or the number itself.

    >>> require_size("512MB", "memory"), require_size("2GiB", "memory")
    (512000000, 2147483648)
    """
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if not isinstance(value, str):
        raise misfit_error(value, name, "a size", hint=_HINT)
    form = _FORM.fullmatch(value.strip())
    if form is None:
        message = f"{name} is {value[:100]!r}, which is not a size"
        raise InvalidParameterError(message, hint=_HINT, name=name)
    return int(form[1]) * _UNITS[(form[2] or "").lower()]


def format_size(byte_count: int) -> str:
    """A size in the largest unit that it is a multiple of.

    >>> format_size(512_000_000), format_size(2 << 30), format_size(1_001)
    ('512MB', '2GiB', '1001B')
    """
    for unit, size in sorted(_UNITS.items(), key=lambda each: -each[1]):
        if byte_count and byte_count % size == 0:
            return f"{byte_count // size}{unit.upper().replace('I', 'i')}B"
    return f"{byte_count}B"
