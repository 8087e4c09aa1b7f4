"""Lines of JSON: envelopes, or rows of one type."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.conversion.readings import NONE_REFUSED, TypedColumn, read_column
from omnigraph.conversion.typed_columns import Doubt, Notation, json_type, read_objects
from omnigraph.integrity.deltas import POSITION
from omnigraph.load.positions import place_of
from omnigraph.load.shaping.attempts import (
    Attempt,
    AttemptResult,
    DoubtSearch,
    GivenColumns,
    Indices,
    assemble_rows,
)
from omnigraph.load.shaping.batches import (
    BatchBuilder,
    RawInput,
    ShapedBatch,
    Shaping,
)
from omnigraph.load.shaping.envelopes import (
    ENDS,
    LineRow,
    ends_in,
    has_envelopes,
    read_line,
    refusal,
    word_of,
)
from omnigraph.model.types import ListType, Scalar
from omnigraph.schema.catalog import ENDPOINTS, Catalog, EdgeType, SchemaType

LOAD_GROUPS_MAX: Final = 64
"""Kinds of lines distinguished in one block of text; the rest is read line by line."""


TEXT: Final = "text"
"""The column of a batch of lines that has each line, with or without its newline."""

_ENVELOPE: Final = re.compile(r'\s*\{\s*"(type|edge)"\s*:\s*"([A-Za-z][A-Za-z0-9_]*)"')
_SECOND_OBJECT: Final = r"\}\s*[^\s,}\]]"
"""Something other than the end of an object, an array or a member follows a closing brace: either
the brace is inside a string, or the line holds more than one object."""

_BYTE_ORDER_MARK: Final = "\ufeff"


def shape_lines(
    shaping: Shaping, batch: pa.RecordBatch, *, type_name: str | None = None, exact: bool = False
) -> ShapedBatch:
    """Shape lines of JSON: envelopes, or rows of one type.

    Args:
        batch: With the columns `POSITION` and `TEXT`; a line that is not UTF-8 is null.
        type_name: The type that the lines' file is named by, if it is.
        exact: Whether the exact converter types every value; the result is the same.
    """
    of_type = None if type_name is None else shaping.catalog.type_named(type_name)
    return _LineShaper(shaping, of_type, batch[POSITION], _end_lines(batch[TEXT])).shape(
        exact=exact
    )


def refused_line(shaping: Shaping, position: int, text: str, reason: str) -> ShapedBatch:
    """The batch of one line that a reader could not parse."""
    builder = BatchBuilder(shaping)
    builder.refuse(position, text, refusal(text, reason))
    return builder.build()


@dataclass(slots=True)
class _LineShaper:
    shaping: Shaping
    of_type: SchemaType | None
    positions: pa.Array
    text: pa.Array

    def shape(self, *, exact: bool) -> ShapedBatch:
        builder = BatchBuilder(self.shaping)
        doubtful = [] if not exact else [np.arange(len(self.text))]
        for indices, type_, attempt in () if exact else self._groups(doubtful):
            for piece, rows in DoubtSearch().run(indices, attempt):
                if rows is None:
                    doubtful.append(piece)
                else:
                    builder.put(type_, rows)
        self._read(np.sort(np.concatenate(doubtful)) if doubtful else (), builder)
        return builder.build()

    def _groups(self, doubtful: list[Indices]) -> Iterator[tuple[Indices, SchemaType, Attempt]]:
        """Groups of lines with one prefix; other lines are added to `doubtful`."""
        left = self._sound_lines()
        doubtful.append(np.flatnonzero(~left))
        for _ in range(LOAD_GROUPS_MAX):
            if not left.any():
                return
            first = int(np.argmax(left))
            kind = self._kind(self.text[first].as_py())
            if kind is None:
                left[first] = False
                doubtful.append(np.array([first]))
                continue
            prefix, type_, attempt = kind
            begins = pc.fill_null(pc.starts_with(self.text, prefix), False)  # noqa: FBT003
            mask = begins.to_numpy(zero_copy_only=False)
            indices = np.flatnonzero(mask & left)
            left &= ~mask
            yield indices, type_, attempt
        doubtful.append(np.flatnonzero(left))

    def _sound_lines(self) -> npt.NDArray[np.bool_]:
        """The lines that Arrow can parse safely: each is one object, if it is JSON at all."""
        ends = pc.or_(pc.ends_with(self.text, "}\n"), pc.ends_with(self.text, "}\r\n"))
        alone = pc.invert(pc.match_substring_regex(self.text, _SECOND_OBJECT))
        begins = pc.starts_with(self.text, "{")
        is_sound = pc.fill_null(pc.and_(pc.and_(ends, begins), alone), False)  # noqa: FBT003
        return np.array(is_sound.to_numpy(zero_copy_only=False), dtype=np.bool_)

    def _kind(self, line: str) -> tuple[str, SchemaType, Attempt] | None:
        """How lines like this one begin, and how to read them; None if it is not plain."""
        if (begins := _ENVELOPE.match(line)) is not None:
            word, name = begins.groups()
            if self.of_type is None:
                named = _find_type(self.shaping.catalog, word, name)
                if named is None:
                    return None
                return begins[0], named, self._attempt(named, flat=False)
            is_own = (word, name) == (word_of(self.of_type), self.of_type.name)
            if is_own and has_envelopes(self.of_type):
                return begins[0], self.of_type, self._attempt(self.of_type, flat=False)
        if self.of_type is None:
            return None
        # A row may begin with any property, so all lines that are no envelopes form one group.
        return "{", self.of_type, self._attempt(self.of_type, flat=True)

    def _attempt(self, type_: SchemaType, *, flat: bool) -> Attempt:
        def attempt(indices: Indices) -> AttemptResult:
            whole = len(indices) == len(self.text)
            text = self.text if whole else self.text.take(pa.array(indices))
            positions = self.positions if whole else self.positions.take(pa.array(indices))
            read = _read_flat if flat else _read_envelopes
            given = read(self.shaping, type_, text)
            return assemble_rows(self.shaping, type_, given, positions)

        return attempt

    def _read(self, indices: Sequence[int] | Indices, builder: BatchBuilder) -> None:
        """Read lines one by one."""
        if not len(indices):
            return
        types = {type_.name: type_ for type_ in self.shaping.catalog.types}
        raws: dict[str, list[RawInput]] = {}
        at = pa.array(indices, pa.int64())
        for position, raw in zip(
            self.positions.take(at).to_pylist(), self.text.take(at).to_pylist(), strict=True
        ):
            if raw is None:
                builder.refuse(position, None, refusal(None, "it is not UTF-8"))
                continue
            text = raw.removeprefix(_BYTE_ORDER_MARK) if place_of(position) == 1 else raw
            line = read_line(
                text,
                position,
                types,
                of_type=self.of_type,
                ignores_unknown=self.shaping.ignores_unknown,
            )
            original = text.rstrip("\r\n")
            if isinstance(line, LineRow):
                raws.setdefault(line.type.name, []).append(RawInput(position, line.row, original))
            elif line is not None:
                builder.refuse(position, original, line)
        # In the order of the catalog: reports then do not depend on rows that are valid.
        for name, type_ in types.items():
            builder.convert(type_, raws.get(name, ()))


def _find_type(catalog: Catalog, word: str, name: str) -> SchemaType | None:
    return next(
        (type_ for type_ in catalog.types if type_.name == name and word_of(type_) == word), None
    )


def _end_lines(text: pa.Array) -> pa.Array:
    """The lines, each with its newline."""
    if pa.types.is_large_string(text.type) or pa.types.is_string_view(text.type):
        text = text.cast(pa.utf8())
    if pc.all(pc.ends_with(text, "\n"), min_count=0).as_py():
        return text
    return pc.binary_join_element_wise(text, pa.scalar("\n"), "")


def _read_envelopes(shaping: Shaping, type_: SchemaType, text: pa.Array) -> GivenColumns:
    table = _read_objects(
        shaping, type_, text, partial(_envelope_schema, type_, shaping.ignores_unknown)
    )
    outside = {name: table[name].combine_chunks() for name in table.schema.names}
    data = outside.pop("data")
    inside = dict(zip((column.name for column in data.type), data.flatten(), strict=True))
    other = "type" if isinstance(type_, EdgeType) else "edge"
    if other in outside and outside[other].null_count < len(text):
        raise Doubt
    columns = _convert_json(type_, inside, text)
    columns["id"] = _either(outside["id"], inside["id"])
    for name, own in zip(ENDPOINTS, ENDS, strict=True) if isinstance(type_, EdgeType) else ():
        columns[name] = TypedColumn(outside[own], NONE_REFUSED)
    return columns


def _read_flat(shaping: Shaping, type_: SchemaType, text: pa.Array) -> GivenColumns:
    ends = ends_in(type_, {})
    if ends and _might_have(text, *ENDPOINTS):
        ends = ENDPOINTS
    table = _read_objects(shaping, type_, text, partial(_flat_schema, type_, ends))
    columns = {name: table[name].combine_chunks() for name in table.schema.names}
    own = {name: columns.pop(end) for name, end in zip(ENDPOINTS, ends, strict=False)}
    given = _convert_json(type_, columns, text)
    for name, column in {**own, "id": columns["id"]}.items():
        given[name] = TypedColumn(column, NONE_REFUSED)
    return given


def _read_objects(
    shaping: Shaping,
    type_: SchemaType,
    text: pa.Array,
    schema: Callable[[frozenset[str]], pa.Schema],
) -> pa.Table:
    """The lines as columns; integers are read again as floats where some are written `3.0`."""
    ignores_unknown = shaping.ignores_unknown
    try:
        return read_objects(text, schema(frozenset()), ignores_unknown=ignores_unknown)
    except Doubt:
        fractional = frozenset(_fractional(type_, text))
        if not fractional:
            raise
        return read_objects(text, schema(fractional), ignores_unknown=ignores_unknown)


def _fractional(type_: SchemaType, text: pa.Array) -> Iterator[str]:
    """The properties with integers that some lines write with a decimal point."""
    for property_ in type_.properties:
        kind = property_.type.item if isinstance(property_.type, ListType) else property_.type
        if isinstance(kind, Scalar) and kind.is_integer:
            pattern = rf'"{property_.name}"\s*:[-\[\s0-9,.]*[0-9]\.[0-9]'
            if pc.any(pc.match_substring_regex(text, pattern)).as_py():
                yield property_.name


def _convert_json(
    type_: SchemaType, columns: Mapping[str, pa.Array], text: pa.Array
) -> dict[str, TypedColumn | None]:
    given: dict[str, TypedColumn | None] = {}
    for property_ in type_.properties:
        if property_.name not in columns:
            continue
        values = columns[property_.name]
        column = read_column(property_.type, values, Notation.JSON)
        if property_.default is not None and values.null_count:
            # Only an absent property gets its default.
            if _might_have(text.filter(values.is_null()), property_.name):
                raise Doubt
            filler = pa.array([property_.default], column.values.type)[0]
            column = replace(column, values=pc.fill_null(column.values, filler))
        given[property_.name] = column
    return given


def _might_have(text: pa.Array, *names: str) -> bool:
    """Whether any of some lines might have one of these names, however it is escaped."""
    spellings = [*(f'"{name}"' for name in names), "\\u"]
    return any(pc.any(pc.match_substring(text, spelling)).as_py() for spelling in spellings)


def _either(first: pa.Array, second: pa.Array) -> TypedColumn:
    if second.null_count == len(second):
        return TypedColumn(first, NONE_REFUSED)
    is_twice = pc.and_(first.is_valid(), second.is_valid()).to_numpy(zero_copy_only=False)
    return TypedColumn(pc.coalesce(first, second), np.flatnonzero(is_twice))


@lru_cache(maxsize=256)
def _envelope_schema(
    type_: SchemaType,
    ignores_unknown: bool,  # noqa: FBT001
    fractional: frozenset[str],
) -> pa.Schema:
    is_edge = isinstance(type_, EdgeType)
    names = ["edge", *ENDS] if is_edge else ["type"]
    if ignores_unknown:
        # Not ignored: a line that has both is no envelope.
        names.append("type" if is_edge else "edge")
    inside = [
        ("id", pa.utf8()),
        *(
            (property_.name, json_type(property_.type, has_fractions=property_.name in fractional))
            for property_ in type_.properties
        ),
    ]
    return pa.schema([*((name, pa.utf8()) for name in [*names, "id"]), ("data", pa.struct(inside))])


@lru_cache(maxsize=256)
def _flat_schema(
    type_: SchemaType,
    ends: tuple[str, ...],
    fractional: frozenset[str],
) -> pa.Schema:
    # A property with the name of an end is the end.
    columns = [
        (property_.name, json_type(property_.type, has_fractions=property_.name in fractional))
        for property_ in type_.properties
        if property_.name not in ends
    ]
    return pa.schema([*((name, pa.utf8()) for name in ("id", *ends)), *columns])
