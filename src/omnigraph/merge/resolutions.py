"""Resolutions: the user's decisions about conflicts, for all of them or one by one."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from omnigraph.conversion.exact_values import convert_value
from omnigraph.errors import InvalidInputError
from omnigraph.integrity.violations import shorten
from omnigraph.merge.conflicts import Conflict
from omnigraph.model.types import Scalar, VectorType
from omnigraph.schema.catalog import ENDPOINTS, EdgeType, SchemaType
from omnigraph.schema.schema_facts import Facet
from omnigraph.schema.values import Misfit

_SCHEMA_HINT: Final = 'write {"type": …, "property": …, "facet": …, "take": "ours"}'


class Choice(StrEnum):
    """The side whose value is kept."""

    OURS = "ours"
    THEIRS = "theirs"


@dataclass(frozen=True, slots=True)
class Given:
    """A JSON value of neither side."""

    value: object

    def fitting(self, type_: SchemaType, name: str) -> object:
        """The value converted to the property's type."""
        if name in type_.key:
            message = (
                f"the resolutions give a value for {type_.name} {name}, which is part of the key"
            )
            raise InvalidInputError(message, hint="take ours or theirs")
        if self.value is None:
            return None
        kind = Scalar.STRING if _is_end(type_, name) else type_.property_named(name).type
        found = convert_value(kind, self.value)
        if isinstance(found, Misfit):
            message = f"the resolutions give {shorten(self.value)} for {type_.name} {name}: "
            raise InvalidInputError(message + found.reason, hint=found.hint)
        if isinstance(kind, VectorType) and not _are_finite(found):
            message = f"the resolutions give {shorten(self.value)} for {type_.name} {name}, "
            raise InvalidInputError(message + f"which is not {kind.dimension} finite numbers")
        return found


def _are_finite(numbers: object) -> bool:
    assert isinstance(numbers, Sequence), "a vector is made of numbers"
    return all(each is not None and math.isfinite(each) for each in numbers)


def _is_end(type_: SchemaType, name: str) -> bool:
    return isinstance(type_, EdgeType) and name in ENDPOINTS


Decision = Choice | Given
_Place = tuple[str, str | None, str | None]
_SchemaPlace = tuple[str, str | None, str]


@dataclass(slots=True)
class Resolutions:
    """Decisions by type, id and property, and one for all other conflicts.

    Attributes:
        schema: Decisions about schemas, by type, property and facet.
        used: The places that were in conflict; a decision about any other is a mistake. For
            `schema`, these are `used_schema`.
    """

    everything: Choice | None = None
    named: Mapping[_Place, Decision] = field(default_factory=dict)
    used: set[_Place] = field(default_factory=set)
    schema: Mapping[_SchemaPlace, Choice] = field(default_factory=dict)
    used_schema: set[_SchemaPlace] = field(default_factory=set)

    @property
    def types(self) -> frozenset[str]:
        """The types of the rows that decisions name."""
        return frozenset(type_name for type_name, _, _ in self.named)

    def decide(self, conflict: Conflict) -> Decision | None:
        """The decision about a conflict, or None."""
        properties = () if conflict.property is None else (conflict.property,)
        return self.decide_place(conflict.type_name, conflict.id, properties)

    def decide_place(
        self, type_name: str, id_: str | None, properties: Iterable[str]
    ) -> Decision | None:
        """The decision about any of these properties of a row, or about the whole row."""
        for each in (*properties, None):
            place = (type_name, id_, each)
            if place in self.named:
                self.used.add(place)
                return self.named[place]
        return self.everything

    def names(self, type_name: str, id_: str | None, properties: Iterable[str]) -> bool:
        """Whether a decision names any of these properties of a row, or the whole row."""
        return any((type_name, id_, each) in self.named for each in (*properties, None))

    def decide_schema(self, type_name: str, name: str | None, facet: str) -> Choice | None:
        """The decision about a facet of a type or of one of its properties, or None."""
        place = (type_name, name, facet)
        if place in self.schema:
            self.used_schema.add(place)
            return self.schema[place]
        return self.everything

    def given(self, type_name: str, id_: str | None, properties: Iterable[str]) -> str | None:
        """The first of these properties for which a value was given, or None."""
        named = ((each, self.named.get((type_name, id_, each))) for each in properties)
        return next((each for each, decision in named if isinstance(decision, Given)), None)

    def require_used(self) -> None:
        """Reject decisions about rows or properties that do not conflict."""
        if unused := self.unused():
            message = f"the resolutions name what does not conflict: {unused}"
            raise InvalidInputError(message, hint="remove these from the resolutions")

    def unused(self) -> str:
        """The first decisions that were not needed, as text; otherwise empty."""
        places = [_format_schema_place(place) for place in self.schema.keys() - self.used_schema]
        places += map(_spelt, self.named.keys() - self.used)
        return ", ".join(sorted(places)[:5])


def read_resolutions(text: str | None) -> Resolutions:
    """Parse the value of `--resolve`: `ours`, `theirs`, or the JSON text of a file of resolutions.

    The file is a list of `{"type", "id", "property"?, "take": "ours"|"theirs"}` or, with `"value"`
    instead of `"take"`, a value of neither side. A decision about schemas has no `"id"`:
    `{"type", "property"?, "facet", "take"}`. One entry that has only `"take"` decides all others.
    """
    if text is None:
        return Resolutions()
    if text in set(Choice):
        return Resolutions(everything=Choice(text))
    try:
        entries = json.loads(text)
    except (ValueError, RecursionError) as cause:
        message = f"the resolutions are neither ours nor theirs nor JSON: {cause}"
        raise InvalidInputError(message, hint="write a list of decisions") from cause
    if not isinstance(entries, list):
        message = "the resolutions are not a list"
        raise InvalidInputError(message, hint='write [{"type": …, "id": …, "take": "ours"}]')
    numbered = [each for each in enumerate(entries, start=1) if not _is_about_the_rest(each[1])]
    about_schemas = [(number, entry) for number, entry in numbered if _is_about_schema(entry)]
    about_rows = [(number, entry) for number, entry in numbered if not _is_about_schema(entry)]
    named: dict[_Place, Decision] = {}
    for place, decision in _decisions(about_rows):
        if place in named:
            raise _repetition(_spelt(place))
        named[place] = decision
    schema: dict[_SchemaPlace, Choice] = {}
    for schema_place, choice in _schema_decisions(about_schemas):
        if schema_place in schema:
            raise _repetition(_format_schema_place(schema_place))
        schema[schema_place] = choice
    return Resolutions(_decision_about_the_rest(entries), named=named, schema=schema)


def _is_about_the_rest(entry: object) -> bool:
    return isinstance(entry, dict) and entry.keys() == {"take"} and entry["take"] in list(Choice)


def _decision_about_the_rest(entries: Iterable[Any]) -> Choice | None:
    found = [Choice(entry["take"]) for entry in entries if _is_about_the_rest(entry)]
    if len(found) > 1:
        rest = "all others"
        raise _repetition(rest)
    return found[0] if found else None


def _repetition(place: str) -> InvalidInputError:
    message = f"the resolutions decide about {place} twice"
    return InvalidInputError(message, hint="remove one of the two")


def _is_about_schema(entry: object) -> bool:
    return isinstance(entry, dict) and "facet" in entry


def _schema_decisions(
    entries: Iterable[tuple[int, Any]],
) -> Iterable[tuple[_SchemaPlace, Choice]]:
    for number, entry in entries:
        type_name, name, facet = (entry.get(word) for word in ("type", "property", "facet"))
        if not isinstance(type_name, str):
            message = f"resolution {number}, about a schema, names no type"
            raise InvalidInputError(message, hint=_SCHEMA_HINT)
        if "id" in entry:
            message = f"resolution {number}, of {type_name}, names a row and a facet of the schema"
            raise InvalidInputError(message, hint="leave out the id or the facet")
        if not isinstance(name, str | None):
            message = f"resolution {number}, of {type_name}, names no property by its name"
            raise InvalidInputError(message, hint=_SCHEMA_HINT)
        if facet not in list(Facet):
            message = f"resolution {number}, of {type_name}, names the facet {shorten(facet)}"
            hint = f"there are {', '.join(Facet)}; the conflict names its own"
            raise InvalidInputError(message, hint=hint)
        if entry.get("take") not in list(Choice) or "value" in entry:
            message = f"resolution {number}, about the schema of {type_name}, does not take a side"
            hint = "take ours or theirs; for something else, change the schema of a branch"
            raise InvalidInputError(message, hint=hint)
        yield (type_name, name, facet), Choice(entry["take"])


def _decisions(entries: Iterable[tuple[int, object]]) -> Iterable[tuple[_Place, Decision]]:
    for number, entry in entries:
        if not isinstance(entry, dict) or not isinstance(entry.get("type"), str):
            message = f"resolution {number} names no type"
            raise InvalidInputError(message, hint='write {"type": …, "id": …, "take": "ours"}')
        place = (entry["type"], entry.get("id"), entry.get("property"))
        if not isinstance(place[1], str) or not isinstance(place[2], str | None):
            message = f"resolution {number}, of {entry['type']}, names no row by its id"
            raise InvalidInputError(message, hint='write {"type": …, "id": …, "take": "ours"}')
        if ("take" in entry) == ("value" in entry):
            message = f"resolution {number}, of {_spelt(place)}, needs take or value, and not both"
            hint = 'write "take": "ours", "take": "theirs" or "value": …'
            raise InvalidInputError(message, hint=hint)
        if "value" in entry:
            if place[2] is None:
                message = f"resolution {number} gives a value and names no property"
                raise InvalidInputError(message)
            yield place, Given(entry["value"])
        elif entry["take"] in list(Choice):
            yield place, Choice(entry["take"])
        else:
            message = f"resolution {number} takes {shorten(entry['take'])}"
            raise InvalidInputError(message, hint="take ours or theirs")


def _format_schema_place(place: _SchemaPlace) -> str:
    type_name, property_, facet = place
    return f"{facet} of {type_name}" + (f" {property_}" if property_ else "")


def _spelt(place: _Place) -> str:
    type_name, id_, property_ = place
    return f"{type_name} {id_!r}" + (f" {property_}" if property_ else "")
