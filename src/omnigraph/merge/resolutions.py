"""Resolutions: what people decided about conflicts, for all of them or one by one."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from omnigraph.errors import InvalidInputError
from omnigraph.merge.conflicts import Conflict


class Choice(StrEnum):
    """The side whose value stands."""

    OURS = "ours"
    THEIRS = "theirs"


@dataclass(frozen=True, slots=True)
class Given:
    """A value of neither side."""

    value: object


Decision = Choice | Given
_Place = tuple[str, str | None, str | None]


@dataclass(slots=True)
class Resolutions:
    """Decisions by type, id and property; and one for all that is not named.

    Attributes:
        used: The places that were asked for; a decision about anything else is a mistake.
    """

    everything: Choice | None = None
    named: Mapping[_Place, Decision] = field(default_factory=dict)
    used: set[_Place] = field(default_factory=set)

    def decide(self, conflict: Conflict) -> Decision | None:
        """What was decided about a conflict; None if nothing was."""
        exact = (conflict.type_name, conflict.id, conflict.property)
        for place in (exact, (conflict.type_name, conflict.id, None)):
            if place in self.named:
                self.used.add(place)
                return self.named[place]
        return self.everything

    def require_used(self) -> None:
        """Refuse decisions about what does not conflict.

        Raises:
            InvalidInputError: a decision names a row or a property that is in no conflict.
        """
        unused = sorted(self.named.keys() - self.used, key=str)
        if unused:
            names = ", ".join(map(_spelt, unused[:5]))
            message = f"the resolutions name what does not conflict: {names}"
            raise InvalidInputError(message, hint="remove these from the resolutions")


def read_resolutions(text: str | None) -> Resolutions:
    """What `--resolve` says: `ours`, `theirs`, or the JSON text of a file of resolutions.

    The file is a list of `{"type", "id", "property"?, "take": "ours"|"theirs"}` or, with `"value"`
    in the place of `"take"`, a value of neither side.

    Raises:
        InvalidInputError: it is none of these; the message names the place.
    """
    if text is None:
        return Resolutions()
    if text in set(Choice):
        return Resolutions(everything=Choice(text))
    try:
        entries = json.loads(text)
    except ValueError as cause:
        message = f"the resolutions are neither ours nor theirs nor JSON: {cause}"
        raise InvalidInputError(message, hint="write a list of decisions") from cause
    if not isinstance(entries, list):
        message = "the resolutions are not a list"
        raise InvalidInputError(message, hint='write [{"type": …, "id": …, "take": "ours"}]')
    return Resolutions(named=dict(_decisions(entries)))


def _decisions(entries: Iterable[object]) -> Iterable[tuple[_Place, Decision]]:
    for number, entry in enumerate(entries, start=1):
        if not isinstance(entry, dict) or not isinstance(entry.get("type"), str):
            message = f"resolution {number} names no type"
            raise InvalidInputError(message, hint='write {"type": …, "id": …, "take": "ours"}')
        place = (entry["type"], entry.get("id"), entry.get("property"))
        if ("take" in entry) == ("value" in entry):
            message = f"resolution {number}, of {_spelt(place)}, needs take or value, and not both"
            raise InvalidInputError(message)
        if "value" in entry:
            if place[2] is None:
                message = f"resolution {number} gives a value and names no property"
                raise InvalidInputError(message)
            yield place, Given(entry["value"])
        elif entry["take"] in set(Choice):
            yield place, Choice(entry["take"])
        else:
            message = f"resolution {number} takes {entry['take']!r}"
            raise InvalidInputError(message, hint="take ours or theirs")


def _spelt(place: _Place) -> str:
    type_name, id_, property_ = place
    return f"{type_name} {id_!r}" + (f" {property_}" if property_ else "")
