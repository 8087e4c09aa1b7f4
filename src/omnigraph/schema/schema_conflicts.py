"""Conflicts of two schemas, and how a caller decides them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from omnigraph.schema.schema_facts import Facet

SideName = Literal["ours", "theirs"]


@dataclass(frozen=True, slots=True)
class SchemaConflict:
    """Changes of two schemas that exclude each other.

    Attributes:
        declaration: The type or interface, by its name in the base if it has one:
            `node:Person`, `interface:Named`.
        property: The property, by its name in the base if it has one; None for the type itself.
        base: What the base states, in the language of schemas; None if that is nothing. For
            `ours` and `theirs` likewise.
        reason: Why it is a conflict, where the three texts do not say it. Such a conflict cannot
            be decided: one of the schemas has to change.
    """

    declaration: str
    property: str | None
    facet: Facet
    base: str | None = None
    ours: str | None = None
    theirs: str | None = None
    reason: str = ""

    def __str__(self) -> str:
        name = self.declaration.replace(":", " ", 1)
        place = f"{name}, property {self.property}" if self.property else name
        if self.reason:
            return f"{place}: {self.reason}"
        if self.facet is Facet.PRESENCE:
            side, other = ("ours", "theirs") if self.ours is None else ("theirs", "ours")
            return f"{place} was dropped by {side} and changed by {other}"
        ours, theirs = (text or "nothing" for text in (self.ours, self.theirs))
        return f"{place}: the {self.facet} is {ours} in ours and {theirs} in theirs"

    def to_json(self) -> dict[str, object]:
        """The conflict as plain values that JSON can represent."""
        return {
            "declaration": self.declaration,
            "property": self.property,
            "facet": str(self.facet),
            "base": self.base,
            "ours": self.ours,
            "theirs": self.theirs,
            "reason": self.reason,
        }


Decide = Callable[[SchemaConflict], SideName | None]
"""Chooses the side of a conflict, or None to leave it open."""
