"""Validation of callers' arguments: values of the required kind, or an error with their name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from operator import index
from os import PathLike, fspath
from pathlib import Path
from typing import Final, TypeVar

from omnigraph.errors import InvalidParameterError

_SHOWN_MAX: Final = 100

Choice = TypeVar("Choice", bound=StrEnum)


def require_text(value: object, name: str) -> str:
    """A text.

    >>> require_text("ada", "actor")
    'ada'
    """
    if isinstance(value, str):
        return value
    raise misfit_error(value, name, "a text")


def require_path(value: object, name: str, *, hint: str = "") -> str | Path:
    """A text, or a path of any library."""
    if isinstance(value, PathLike):
        value = fspath(value)
        if isinstance(value, str):
            return Path(value)
    elif isinstance(value, str):
        return value
    raise misfit_error(value, name, "a text or a path", hint=hint)


def require_number(value: object, name: str) -> int:
    """A whole number of any library: NumPy has its own."""
    if not isinstance(value, bool) and hasattr(value, "__index__"):
        return index(value)
    raise misfit_error(value, name, "a whole number")


def require_texts(value: object, name: str) -> tuple[str, ...] | None:
    """Several texts, or one; None, which often means all, is returned as None.

    >>> require_texts("Person", "types"), require_texts(["Person", "City"], "types")
    (('Person',), ('Person', 'City'))
    """
    if value is None:
        return None
    if isinstance(value, str):
        return (value,)
    if isinstance(value, Iterable) and not isinstance(value, bytes):
        return tuple(require_text(item, f"each of {name}") for item in value)
    raise misfit_error(value, name, "a text or several")


def require_choice(value: object, choices: type[Choice], name: str) -> Choice:
    """One of several words."""
    word = require_text(value, name)
    if word in set(choices):
        return choices(word)
    message = f"{word[:_SHOWN_MAX]!r} is not a valid {name}"
    raise InvalidParameterError(message, hint=f"use one of {', '.join(choices)}", name=name)


def require_names(value: object, name: str) -> Mapping[str, object]:
    """Values by name; None is an empty mapping."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise misfit_error(value, name, "a mapping from names to values")
    for key in value:
        require_text(key, f"each name in {name}")
    return value


def misfit_error(value: object, name: str, what: str, *, hint: str = "") -> InvalidParameterError:
    """The error for a value of the wrong kind."""
    shown = " ".join(repr(value).split())[:_SHOWN_MAX]
    message = f"{name} must be {what}, not {shown}"
    return InvalidParameterError(message, hint=hint, name=name)
