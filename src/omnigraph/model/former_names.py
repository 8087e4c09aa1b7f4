"""Former names: what types and properties were called when they were introduced.

Identities record the first name of each (docs/decisions/0012); names in between are not recorded.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Self

from omnigraph.model.tables import TablePin, Tombstone


@dataclass(frozen=True, slots=True)
class FormerNames:
    """What can be said about names that a schema has no more.

    Attributes:
        types: By its first name, the name that a type has now; None if it was dropped.
        properties: By the name of a type, and by first names, the same of its properties.
    """

    types: Mapping[str, str | None] = field(default_factory=dict)
    properties: Mapping[str, Mapping[str, str | None]] = field(default_factory=dict)

    @classmethod
    def of(cls, pins: Iterable[TablePin], tombstones: Iterable[Tombstone]) -> Self:
        """Those of a snapshot."""
        types: dict[str, str | None] = {_first(dead.origin): None for dead in tombstones}
        properties: dict[str, dict[str, str | None]] = {}
        for pin in pins:
            name, identity = str(pin.key.type_name), pin.identity
            if _first(identity.origin) != name:
                types[_first(identity.origin)] = name
            own: dict[str, str | None] = {_first(origin): None for origin in identity.dropped}
            own |= {_first(origin): now for now, origin in identity.properties.items()}
            properties[name] = own
        return cls(types, properties)

    def describe_type(self, name: str) -> str:
        """What became of a type that was introduced by this name; empty if there was none."""
        return _describe(name, self.types)

    def describe_edge(self, word: str) -> str:
        """What became of an edge type by the word that queries had for it."""
        words = {
            name.casefold(): now and f"{now[:1].lower()}{now[1:]}"
            for name, now in self.types.items()
        }
        return _describe(word.casefold(), words)

    def describe_property(self, type_name: str, name: str) -> str:
        """The same of a property of a type that has this name now."""
        return _describe(name, self.properties.get(type_name, {}))


def _describe(name: str, names: Mapping[str, str | None]) -> str:
    if name not in names:
        return ""
    now = names[name]
    return "it was dropped" if now is None else f"it is called {now} now"


def _first(origin: str) -> str:
    """The name that something was introduced by.

    >>> _first("email"), _first("email~2")
    ('email', 'email')
    """
    return origin.partition("~")[0]
