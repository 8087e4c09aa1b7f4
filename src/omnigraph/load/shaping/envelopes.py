"""Envelopes: the row of one line of JSON, or what is wrong with it.

This is the slow and exact parser, for lines that `lines` could not read a block at a time.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from omnigraph.integrity.convert import RawRow
from omnigraph.integrity.violations import Breach, Rule, Violation, shorten
from omnigraph.lang.diagnostics import did_you_mean
from omnigraph.schema.catalog import ENDPOINTS, EdgeType, NodeType, SchemaType

ENDS: Final = ("from", "to")
"""The names of an edge's ends outside of its table."""

_NODE: Final = ("type", "id", "data")
_EDGE: Final = ("edge", "id", *ENDS, "data")
_OTHER_ENDS: Final = (*ENDPOINTS, "source", "target", "start", "end")
_EXAMPLES: Final = '{"type": …, "data": {…}} or {"edge": …, "from": …, "to": …}'
_LINE: Final = "line"
"""The name in place of the type and the property of a line that has neither."""


@dataclass(frozen=True, slots=True)
class LineRow:
    """A row as a line has it, before any value is converted."""

    type: SchemaType
    row: RawRow


class Object(dict[str, Any]):
    """A JSON object, with the names that it has twice."""

    repeated: frozenset[str] = frozenset()


def read_line(
    text: str,
    position: int,
    types: Mapping[str, SchemaType],
    *,
    of_type: SchemaType | None,
    ignores_unknown: bool,
) -> LineRow | Violation | None:
    """The row of a line, or why it has none, without its origin; None for a line that is blank.

    Args:
        types: Those of the schema, by name.
        of_type: The type of all rows of the file, which may then have no envelopes.
        ignores_unknown: Whether unknown members of an envelope are dropped instead of refused.
    """
    if not text.strip():
        return None
    if (part := _part_of_document(text.strip())) is not None:
        return refusal(text, part)
    try:
        document = json.loads(text, object_pairs_hook=_object, parse_float=_float)
    except json.JSONDecodeError as cause:
        # The fault of a line that is cut off is reported behind the line's end.
        column = min(cause.pos, len(text.rstrip())) + 1
        return refusal(text, f"it is not valid JSON: {cause.msg}, column {column}")
    except (ValueError, RecursionError) as cause:
        return refusal(text, f"it cannot be read: {cause}")
    if not isinstance(document, Object):
        return refusal(text, "it is not a JSON object")
    if of_type is not None and not _is_envelope_of(of_type, document):
        return _read_flat(of_type, document, position)
    return _read_envelope(document, text, position, types, ignores_unknown=ignores_unknown)


def _part_of_document(text: str) -> str | None:
    """The message for a line that begins an array or an object of several lines."""
    if text.startswith("["):
        return "a list begins here (write one object a line, as jq -c '.[]' does)"
    if text == "{":
        return "an object begins here, and goes on (write one object a line, as jq -c . does)"
    return None


def has_envelopes(type_: SchemaType) -> bool:
    """Whether a line that begins with the name of this type is an envelope of it, not a row."""
    return not any(property_.name == word_of(type_) for property_ in type_.properties)


def ends_in(type_: SchemaType, names: Mapping[str, object]) -> tuple[str, ...]:
    """Which of the columns of flat rows are the ends of an edge; none for a node."""
    if not isinstance(type_, EdgeType):
        return ()
    return ENDPOINTS if any(name in names for name in ENDPOINTS) else ENDS


def flat_row(type_: SchemaType, row: Mapping[str, Any], position: int) -> RawRow:
    """A row whose properties are beside its id and its ends."""
    ends = ends_in(type_, row)
    if not ends:
        return RawRow(row, position)
    values = {name: value for name, value in row.items() if name not in ends}
    return RawRow(values, position, source=row.get(ends[0]), target=row.get(ends[1]))


def _object(pairs: list[tuple[str, Any]]) -> Object:
    object_ = Object(pairs)
    if len(object_) < len(pairs):
        times = Counter(name for name, _ in pairs)
        object_.repeated = frozenset(name for name, count in times.items() if count > 1)
    return object_


def _float(text: str) -> float | str:
    number = float(text)
    # A number that is too large for a float is refused, not infinite.
    return number if math.isfinite(number) else text


def _is_envelope_of(type_: SchemaType, row: Object) -> bool:
    word = word_of(type_)
    return has_envelopes(type_) and next(iter(row.items()), None) == (word, type_.name)


def word_of(type_: SchemaType) -> str:
    """The member of an envelope that names its type."""
    return "type" if isinstance(type_, NodeType) else "edge"


def _read_flat(type_: SchemaType, row: Object, position: int) -> LineRow | Violation:
    return _repetition(type_, row) or LineRow(type_, flat_row(type_, row, position))


def _read_envelope(
    envelope: Object,
    text: str,
    position: int,
    types: Mapping[str, SchemaType],
    *,
    ignores_unknown: bool,
) -> LineRow | Violation:
    words = [word for word in ("type", "edge") if word in envelope]
    if len(words) != 1:
        reason = 'it has both "type" and "edge"' if words else 'it has neither "type" nor "edge"'
        return refusal(text, f"{reason} (write {_EXAMPLES})", member="type")
    type_ = _type(words[0], envelope[words[0]], types)
    if isinstance(type_, str):
        return refusal(text, type_, member="type")
    for member, reason in _faults(type_, envelope, ignores_unknown=ignores_unknown):
        return refusal(text, reason, member=member)
    data = envelope.get("data")
    values = Object() if data is None else data
    repetition = _repetition(type_, values)
    if repetition is not None:
        return repetition
    if envelope.get("id") is not None:
        values["id"] = envelope["id"]
    row = RawRow(values, position, source=envelope.get("from"), target=envelope.get("to"))
    return LineRow(type_, row)


def _type(word: str, name: object, types: Mapping[str, SchemaType]) -> SchemaType | str:
    """The type of that name, or what is wrong with it."""
    if not isinstance(name, str):
        return f"{word} is {shorten(name)}, and no name"
    type_ = types.get(name)
    if type_ is None:
        near = did_you_mean(name, types)
        advice = f" ({near})" if near else ""
        return f"the schema has no type {name[:100]}{advice}"
    if word_of(type_) != word:
        kind = "a node" if isinstance(type_, NodeType) else "an edge"
        return f"{name} is {kind} type (write {word_of(type_)})"
    return type_


def _faults(
    type_: SchemaType, envelope: Object, *, ignores_unknown: bool
) -> Iterator[tuple[str, str]]:
    known = _NODE if isinstance(type_, NodeType) else _EDGE
    for name in envelope:
        if name not in known and not ignores_unknown:
            yield name[:100], _describe_misplaced(type_, name, known)
    for name in sorted(envelope.repeated):
        if name in known:
            yield name, f"{name} is given twice"
    data = envelope.get("data")
    if data is not None and not isinstance(data, Object):
        yield "data", f"data is {shorten(data)}, and no object"
    elif data is not None and envelope.get("id") is not None and data.get("id") is not None:
        yield "id", "there is an id in data and one beside it"


def _describe_misplaced(type_: SchemaType, name: str, known: Iterable[str]) -> str:
    """The message for a member that does not belong beside the type."""
    beside = f'"{name[:100]}" is beside "{word_of(type_)}"'
    if any(property_.name == name for property_ in type_.properties):
        return f'{beside}, and properties go into "data"'
    if isinstance(type_, EdgeType) and name in _OTHER_ENDS:
        return f'{beside}, and the ends of an edge are "from" and "to"'
    advice = did_you_mean(name, known) or 'properties go into "data"'
    return f"{beside}, where nothing is called so ({advice})"


def _repetition(type_: SchemaType, row: Object) -> Violation | None:
    known = {"id", *(property_.name for property_ in type_.properties), *ends_in(type_, row)}
    for name in sorted(row.repeated & known):
        breach = Breach(Rule.TYPE, type_.name, (name,))
        return Violation(breach, None, None, "", f"{type_.name}: {name} is given twice")
    return None


def refusal(text: str | None, reason: str, *, member: str = _LINE) -> Violation:
    """What is wrong with a line that has no row, without its origin; `member` is at fault."""
    breach = Breach(Rule.TYPE, _LINE, (member,))
    shown = None if text is None else shorten(text.strip())
    return Violation(breach, None, shown, "", f"the line is refused: {reason}")
