"""Requests of schema changes as people write them: what to fill, and what to convert."""

from __future__ import annotations

from collections.abc import Iterable

from omnigraph.errors import InvalidInputError
from omnigraph.evolution.fills import parse_fill
from omnigraph.schema.change_requests import PropertyPath


def parse_fills(texts: Iterable[str]) -> dict[PropertyPath, str]:
    """By type and property, the expressions of `Type.property=expression`."""
    fills: dict[PropertyPath, str] = {}
    for fill in map(parse_fill, texts):
        path = fill.type_name, fill.property
        if path in fills:
            message = f"{fill.type_name}.{fill.property} is filled twice"
            raise InvalidInputError(message, hint="remove one of the two")
        fills[path] = fill.expression
    return fills


def parse_conversions(texts: Iterable[str]) -> frozenset[PropertyPath]:
    """The properties of `Type.property`."""
    return frozenset(map(_parse_path, texts))


def _parse_path(text: str) -> PropertyPath:
    type_name, dot, name = (part.strip() for part in text.partition("."))
    if not (type_name and dot and name):
        message = f"{text[:200]!r} does not name a property to convert"
        raise InvalidInputError(message, hint="write Type.property")
    return type_name, name
