"""Arguments as callers give them: of the kind they have to be, or refused by their names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from operator import index
from os import PathLike, fspath
from pathlib import Path
from typing import Final

from omnigraph.errors import InvalidParameterError

_SHOWN_MAX: Final = 100


def checked_text(value: object, name: str) -> str:
    """A text.

    >>> checked_text("ada", "actor")
    'ada'

    Raises:
        InvalidParameterError: it is something else.
    """
    if isinstance(value, str):
        return value
    raise misfit(value, name, "a text")


def checked_path(value: object, name: str, *, hint: str = "") -> str | Path:
    """A text, or a path of any library.

    Raises:
        InvalidParameterError: it is something else.
    """
    if isinstance(value, PathLike):
        value = fspath(value)
        if isinstance(value, str):
            return Path(value)
    elif isinstance(value, str):
        return value
    raise misfit(value, name, "a text or a path", hint=hint)


def checked_number(value: object, name: str) -> int:
    """A whole number, whoever's it is: NumPy has its own.

    Raises:
        InvalidParameterError: it is something else, such as a text, a fraction or a bool.
    """
    if not isinstance(value, bool) and hasattr(value, "__index__"):
        return index(value)
    raise misfit(value, name, "a whole number")


def checked_texts(value: object, name: str) -> tuple[str, ...] | None:
    """Several texts, or one; None, which often is all, stays None.

    >>> checked_texts("Person", "types"), checked_texts(["Person", "City"], "types")
    (('Person',), ('Person', 'City'))

    Raises:
        InvalidParameterError: it is something else, or has something else in it.
    """
    if value is None:
        return None
    if isinstance(value, str):
        return (value,)
    if isinstance(value, Iterable) and not isinstance(value, bytes):
        return tuple(checked_text(each, f"each of {name}") for each in value)
    raise misfit(value, name, "a text or several")


def checked_names(value: object, name: str) -> Mapping[str, object]:
    """Values by their names; None has none.

    Raises:
        InvalidParameterError: it is no mapping, or a name in it is no text.
    """
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise misfit(value, name, "a mapping from names to values")
    for each in value:
        checked_text(each, f"each name in {name}")
    return value


def misfit(value: object, name: str, what: str, *, hint: str = "") -> InvalidParameterError:
    """What to raise for a value that is not what it has to be."""
    shown = " ".join(repr(value).split())[:_SHOWN_MAX]
    message = f"{name} has to be {what}, and is {shown}"
    return InvalidParameterError(message, hint=hint, name=name)
