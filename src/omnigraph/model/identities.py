"""Identities of types and properties: what stays when they are renamed (docs/decisions/0012)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Self


@dataclass(frozen=True, slots=True)
class TypeIdentity:
    """What a type and its properties are called in comparisons, whatever their names are now.

    Attributes:
        origin: The name that the type was introduced by, with a number if that was taken.
        properties: By its name, the origin of each property whose origin is not its name.
        dropped: The origins of dropped properties; no later property gets one of them.
    """

    origin: str
    properties: Mapping[str, str] = field(default_factory=dict, hash=False)
    dropped: tuple[str, ...] = ()

    def origin_of(self, name: str) -> str:
        """The origin of the property that has this name now.

        >>> TypeIdentity("Person", {"mail": "email"}).origin_of("mail")
        'email'
        """
        return self.properties.get(name, name)

    def origins(self, names: Iterable[str]) -> dict[str, str]:
        """By origin, the names of some properties.

        >>> TypeIdentity("Person", {"mail": "email"}).origins(["age", "mail"])
        {'age': 'age', 'email': 'mail'}
        """
        return {self.origin_of(name): name for name in names}

    def evolve(self, before: Iterable[str], after: Mapping[str, str | None]) -> Self:
        """The identity after a schema change.

        Args:
            before: The names of the properties until now.
            after: By its new name, the name that each property had until now; None for a new one.

        >>> identity = TypeIdentity("Person").evolve(["email"], {"mail": "email"})
        >>> identity
        TypeIdentity(origin='Person', properties={'mail': 'email'}, dropped=())
        >>> identity.evolve(["mail"], {"email": None})
        TypeIdentity(origin='Person', properties={'email': 'email~2'}, dropped=('email',))
        """
        kept = {name: self.origin_of(old) for name, old in after.items() if old is not None}
        known = {self.origin_of(name) for name in before}
        dropped = tuple(sorted({*self.dropped, *(known - set(kept.values()))}))
        origins = dict(kept)
        for name, old in after.items():
            if old is None:
                origins[name] = free_origin(name, {*origins.values(), *dropped})
        renamed = {name: origins[name] for name in sorted(origins) if origins[name] != name}
        return type(self)(self.origin, renamed, dropped)


def free_origin(name: str, taken: Collection[str]) -> str:
    """The origin of something new of this name: the name, or the first numbered one that is free.

    >>> free_origin("email", ["email", "email~2"])
    'email~3'
    """
    origin, number = name, 2
    while origin in taken:
        origin, number = f"{name}~{number}", number + 1
    return origin
