"""Shape: raw rows made into the typed rows of a delta, by type, and what the others break.

Pure, and the same in every process: whoever reads an input, on this machine or as an executor of
Spark, calls `shape_lines` or `shape_columns` for each batch and collects what they return. A batch
is an Arrow record batch whose column `POSITION` has the row's `positions.position`: the number of
its split and the line or row within it. Everything else follows from it: the origin that reports
show, the id that is minted where none is given, and the order of rows.

Nearly all rows are shaped a column at a time (`columns`). Rows in which anything is in doubt are
found by halving, and converted value by value (`integrity.convert`), with the same outcome.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from operator import attrgetter
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import InvalidInputError
from omnigraph.integrity.convert import RawRow, convert_rows
from omnigraph.integrity.deltas import POSITION, delta_schema
from omnigraph.integrity.violations import Report, Tally, ToOrigin, Violation
from omnigraph.lang.diagnostics import did_you_mean
from omnigraph.limits import LOAD_BISECTED_ROWS_MIN, LOAD_DOUBTS_MAX, LOAD_GROUPS_MAX
from omnigraph.model.tables import TableKey
from omnigraph.model.types import ListType, PropertyType, Scalar, VectorType
from omnigraph.pipeline.columns import Doubt, Notation, json_type, read_objects, typed
from omnigraph.pipeline.envelopes import (
    ENDS,
    LineRow,
    ends_in,
    flat_row,
    has_envelopes,
    read_line,
    refusal,
    word_of,
)
from omnigraph.pipeline.identities import identities
from omnigraph.pipeline.positions import (
    minted_id,
    place_of,
)
from omnigraph.pipeline.values import columns_of
from omnigraph.schema.catalog import ENDPOINTS, Catalog, EdgeType, SchemaType

TEXT: Final = "text"
"""The column of a batch of lines that has each line, with or without its newline."""

_ENVELOPE: Final = re.compile(r'\s*\{\s*"(type|edge)"\s*:\s*"([A-Za-z][A-Za-z0-9_]*)"')
_SECOND_OBJECT: Final = r"\}\s*[^\s,}\]]"
"""Something other than the end of an object, an array or a member follows a closing brace: either a
text has the brace, or the line does not hold one object alone."""

_BYTE_ORDER_MARK: Final = "\ufeff"
_NUMBER: Final = re.compile(r"-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?|NaN|-?Infinity")
_Indices = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Shaping:
    """All that shaping depends on beside the rows; small, and can be shipped to any process.

    Attributes:
        to_origin: How reports name the rows.
        seed: A ULID of this load alone, from which the ids of rows without one are counted on.
        ignores_unknown: Whether values that no property takes are dropped instead of refused.
        keeps_rejects: Whether each row that is refused is kept, to be written elsewhere.
    """

    catalog: Catalog
    to_origin: ToOrigin
    seed: str
    ignores_unknown: bool = False
    keeps_rejects: bool = False


@dataclass(frozen=True, slots=True)
class Reject:
    """A row that was refused.

    Attributes:
        row: As the input has it: the text of a line, or values by column.
        violations: What it breaks; at least one.
    """

    position: int
    row: object
    violations: tuple[Violation, ...]

    @property
    def origin(self) -> str:
        """Where the row is from."""
        return self.violations[0].origin


@dataclass(frozen=True, slots=True)
class ShapedBatch:
    """What became of a batch: rows by table, with the columns of `delta_schema`, in input order.

    Attributes:
        minted_counts: How many of a table's rows got an id that was minted.
    """

    rows: Mapping[TableKey, pa.Table] = field(default_factory=dict)
    minted_counts: Mapping[TableKey, int] = field(default_factory=dict)
    report: Report = field(default_factory=Report)
    rejects: tuple[Reject, ...] = ()


def shape_lines(
    shaping: Shaping, batch: pa.RecordBatch, *, type_name: str | None = None, exact: bool = False
) -> ShapedBatch:
    """Shape lines of JSON: envelopes, or rows of one type.

    Args:
        batch: With the columns `POSITION` and `TEXT`; a line that is not UTF-8 is null.
        type_name: The type that the lines' file is named by, if it is.
        exact: Whether every value goes through the converter; it makes no difference.
    """
    of_type = None if type_name is None else shaping.catalog.type_named(type_name)
    return _Lines(shaping, of_type, batch[POSITION], _ended(batch[TEXT])).shaped(exact=exact)


def shape_columns(
    shaping: Shaping,
    type_name: str,
    batch: pa.RecordBatch,
    *,
    notation: Notation,
    exact: bool = False,
) -> ShapedBatch:
    """Shape rows of one type whose columns are properties; an absent column gets its default.

    Args:
        batch: With the column `POSITION`.
        notation: `TEXT` for CSV, where every column is text, `VALUES` for all else.
        exact: Whether every value goes through the converter; it makes no difference.

    Raises:
        InvalidInputError: no property takes one of the columns.
    """
    type_ = shaping.catalog.type_named(type_name)
    batch = batch.select([POSITION, *known_columns(shaping, type_, batch.schema.names)])
    return _Columns(shaping, type_, batch, notation).shaped(exact=exact)


def shape_values(
    shaping: Shaping,
    type_name: str,
    rows: Sequence[Mapping[str, Any]],
    positions: pa.Array,
    *,
    exact: bool = False,
) -> ShapedBatch:
    """Shape dictionaries of Python's own values, by property.

    Args:
        exact: Whether every value goes through the converter; it makes no difference.
    """
    type_ = shaping.catalog.type_named(type_name)
    return _Values(shaping, type_, rows, positions).shaped(exact=exact)


def refused_line(shaping: Shaping, position: int, text: str, reason: str) -> ShapedBatch:
    """A line that a reader could not make a row of."""
    parts = _Parts(shaping)
    parts.refuse(position, text, refusal(text, reason))
    return parts.shaped()


def known_columns(
    shaping: Shaping, type_: SchemaType, names: Sequence[str], file: str | None = None
) -> list[str]:
    """Those of some columns that a type takes, which must be all unless unknown ones are ignored.

    Args:
        file: The one that has the columns, if a file has.

    Raises:
        InvalidInputError: no property takes one of them, or it stands twice.
    """
    given = [each for each in names if each != POSITION]
    takes = {"id", *(each.name for each in type_.properties)}
    takes.update(ends_in(type_, dict.fromkeys(given)))
    have = f"the rows of {type_.name} have" if file is None else f"{file} has"
    for name in given:
        if given.count(name) > 1:
            message = f'{have} two columns "{name[:100]}"'
            raise InvalidInputError(message, hint="rename one of them")
        if name not in takes and not shaping.ignores_unknown:
            message = f'{have} a column "{name[:100]}", and {type_.name} has no such property'
            raise InvalidInputError(message, hint=_unknown_column(name, takes))
    return [each for each in given if each in takes]


def _unknown_column(name: str, takes: Iterable[str]) -> str:
    for mark, told in ((";", "semicolons"), ("\t", "tabs"), ("|", "bars")):
        if mark in name:
            return f"columns are separated by commas, and not by {told}"
    advice = "rename it, or drop such columns: --ignore-unknown, or ignore_unknown=True in Python"
    near = did_you_mean(name, takes)
    return f"{near}; {advice}" if near else advice


class BatchCollector:
    """What became of all batches of a load, in the order they were added."""

    def __init__(self) -> None:
        self._rows: dict[TableKey, list[pa.Table]] = {}
        self._tally = Tally()
        self.rejects: list[Reject] = []

    def add(self, shaped: ShapedBatch) -> None:
        """Add one batch."""
        for key, rows in shaped.rows.items():
            self._rows.setdefault(key, []).append(rows)
        self._tally.add_report(shaped.report)
        self.rejects.extend(shaped.rejects)

    def rows(self) -> dict[TableKey, pa.Table]:
        """The rows by table."""
        return {key: pa.concat_tables(parts) for key, parts in sorted(self._rows.items())}

    def report(self) -> Report:
        """What the rows that are not among them break."""
        return self._tally.report()


@dataclass(frozen=True, slots=True)
class _TypedRows:
    """Rows of one type, with the columns of `delta_schema`; the ids of so many were minted."""

    rows: pa.Table
    minted_count: int = 0


@dataclass(frozen=True, slots=True)
class _Raw:
    """A row for the converter, and as the input has it."""

    position: int
    row: RawRow
    original: object


@dataclass(slots=True)
class _Parts:
    """What became of a batch, in pieces."""

    shaping: Shaping
    pieces: dict[SchemaType, list[_TypedRows]] = field(default_factory=dict)
    tally: Tally = field(default_factory=Tally)
    rejects: list[Reject] = field(default_factory=list)

    def put(self, type_: SchemaType, piece: _TypedRows) -> None:
        if len(piece.rows):
            self.pieces.setdefault(type_, []).append(piece)

    def refuse(self, position: int, original: object, violation: Violation) -> None:
        named = replace(violation, origin=self.shaping.to_origin(position))
        self.tally.add(named)
        if self.shaping.keeps_rejects:
            self.rejects.append(Reject(position, original, (named,)))

    def convert(self, type_: SchemaType, raws: Sequence[_Raw]) -> None:
        """Type every value by itself."""
        if not raws:
            return
        piece, report = self._converted(type_, raws)
        self.tally.add_report(report)
        self.put(type_, piece)
        if len(piece.rows) < len(raws) and self.shaping.keeps_rejects:
            standing = set(piece.rows[POSITION].to_pylist())
            for raw in raws:
                if raw.position not in standing:
                    violations = self._converted(type_, [raw])[1].violations
                    self.rejects.append(Reject(raw.position, raw.original, violations))

    def _converted(self, type_: SchemaType, raws: Sequence[_Raw]) -> tuple[_TypedRows, Report]:
        at = minted_count = 0

        def in_turn() -> Iterator[RawRow]:
            nonlocal at
            for each in raws:
                at = each.position
                yield each.row

        def mint() -> str:
            # The converter calls it while it holds the row that needs an id.
            nonlocal minted_count
            minted_count += 1
            return minted_id(self.shaping.seed, at)

        found = convert_rows(
            type_,
            in_turn(),
            mint=mint,
            ignores_unknown=self.shaping.ignores_unknown,
            to_origin=self.shaping.to_origin,
        )
        return _TypedRows(found.rows, minted_count), found.report

    def shaped(self) -> ShapedBatch:
        rows = {type_.table_key: _in_order(pieces) for type_, pieces in self.pieces.items()}
        minted = {
            type_.table_key: sum(piece.minted_count for piece in pieces)
            for type_, pieces in self.pieces.items()
        }
        self.rejects.sort(key=attrgetter("position"))
        return ShapedBatch(rows, minted, self.tally.report(), tuple(self.rejects))


def _in_order(pieces: list[_TypedRows]) -> pa.Table:
    if len(pieces) == 1:
        return pieces[0].rows
    rows = pa.concat_tables([piece.rows for piece in pieces])
    positions = rows[POSITION].to_numpy()
    if np.all(positions[1:] > positions[:-1]):
        return rows
    return rows.take(pa.array(np.argsort(positions)))


Attempt = Callable[[_Indices], _TypedRows]
"""Shapes the rows at some indices of a batch, all of one type; raises `Doubt`."""


@dataclass(slots=True)
class _Halving:
    """Finds the rows of a batch that are in doubt, at a bounded cost."""

    failures_left: int = LOAD_DOUBTS_MAX

    def run(
        self, indices: _Indices, attempt: Attempt
    ) -> Iterator[tuple[_Indices, _TypedRows | None]]:
        """What became of the rows, in pieces and in order; None of those that are in doubt."""
        try:
            found = attempt(indices) if self.failures_left else None
        except Doubt:
            found = None
            self.failures_left -= 1
        if found is not None or len(indices) <= LOAD_BISECTED_ROWS_MIN or not self.failures_left:
            yield indices, found
            return
        half = len(indices) // 2
        yield from self.run(indices[:half], attempt)
        yield from self.run(indices[half:], attempt)


@dataclass(slots=True)
class _Lines:
    shaping: Shaping
    of_type: SchemaType | None
    positions: pa.Array
    text: pa.Array

    def shaped(self, *, exact: bool) -> ShapedBatch:
        parts = _Parts(self.shaping)
        doubtful = [] if not exact else [np.arange(len(self.text))]
        for indices, type_, attempt in () if exact else self._groups(doubtful):
            for piece, rows in _Halving().run(indices, attempt):
                if rows is None:
                    doubtful.append(piece)
                else:
                    parts.put(type_, rows)
        self._read(np.sort(np.concatenate(doubtful)) if doubtful else (), parts)
        return parts.shaped()

    def _groups(self, doubtful: list[_Indices]) -> Iterator[tuple[_Indices, SchemaType, Attempt]]:
        """Lines of one kind, which begin alike; others are added to those in doubt."""
        left = self._sound()
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

    def _sound(self) -> npt.NDArray[np.bool_]:
        """The lines that Arrow can be given: each is one object, if it is JSON at all."""
        ends = pc.or_(pc.ends_with(self.text, "}\n"), pc.ends_with(self.text, "}\r\n"))
        alone = pc.invert(pc.match_substring_regex(self.text, _SECOND_OBJECT))
        begins = pc.starts_with(self.text, "{")
        found = pc.fill_null(pc.and_(pc.and_(ends, begins), alone), False)  # noqa: FBT003
        return np.array(found.to_numpy(zero_copy_only=False), dtype=np.bool_)

    def _kind(self, line: str) -> tuple[str, SchemaType, Attempt] | None:
        """How lines like this one begin, and how to read them; None if it is not plain."""
        if (begins := _ENVELOPE.match(line)) is not None:
            word, name = begins.groups()
            if self.of_type is None:
                named = _named(self.shaping.catalog, word, name)
                if named is None:
                    return None
                return begins[0], named, self._attempt(named, flat=False)
            is_own = (word, name) == (word_of(self.of_type), self.of_type.name)
            if is_own and has_envelopes(self.of_type):
                return begins[0], self.of_type, self._attempt(self.of_type, flat=False)
        if self.of_type is None:
            return None
        # A row may begin with any property, so all that do not begin like an envelope are alike.
        return "{", self.of_type, self._attempt(self.of_type, flat=True)

    def _attempt(self, type_: SchemaType, *, flat: bool) -> Attempt:
        def attempt(indices: _Indices) -> _TypedRows:
            whole = len(indices) == len(self.text)
            text = self.text if whole else self.text.take(pa.array(indices))
            positions = self.positions if whole else self.positions.take(pa.array(indices))
            read = _read_flat if flat else _read_envelopes
            given = read(self.shaping, type_, text)
            return _assembled(self.shaping, type_, given, positions)

        return attempt

    def _read(self, indices: Sequence[int] | _Indices, parts: _Parts) -> None:
        """Read lines one by one."""
        if not len(indices):
            return
        types = {each.name: each for each in self.shaping.catalog.types}
        raws: dict[str, list[_Raw]] = {}
        at = pa.array(indices, pa.int64())
        for position, found in zip(
            self.positions.take(at).to_pylist(), self.text.take(at).to_pylist(), strict=True
        ):
            if found is None:
                parts.refuse(position, None, refusal(None, "it is not UTF-8"))
                continue
            text = found.removeprefix(_BYTE_ORDER_MARK) if place_of(position) == 1 else found
            line = read_line(
                text,
                position,
                types,
                of_type=self.of_type,
                ignores_unknown=self.shaping.ignores_unknown,
            )
            original = text.rstrip("\r\n")
            if isinstance(line, LineRow):
                raws.setdefault(line.type.name, []).append(_Raw(position, line.row, original))
            elif line is not None:
                parts.refuse(position, original, line)
        # In the order of the catalog: what is reported then does not depend on rows that are right.
        for name, type_ in types.items():
            parts.convert(type_, raws.get(name, ()))


@dataclass(slots=True)
class _Columns:
    shaping: Shaping
    type: SchemaType
    batch: pa.RecordBatch
    notation: Notation

    def shaped(self, *, exact: bool) -> ShapedBatch:
        parts = _Parts(self.shaping)
        whole = np.arange(self.batch.num_rows)
        pieces = [(whole, None)] if exact else _Halving().run(whole, self._attempt)
        doubtful: list[_Raw] = []
        for indices, rows in pieces:
            if rows is not None:
                parts.put(self.type, rows)
            elif len(indices):
                doubtful += self._raws(self.batch.slice(int(indices[0]), len(indices)))
        parts.convert(self.type, doubtful)
        return parts.shaped()

    def _attempt(self, indices: _Indices) -> _TypedRows:
        batch = self.batch
        if len(indices) < batch.num_rows:
            batch = batch.slice(int(indices[0]), len(indices))
        return self.typed_rows(batch)

    def typed_rows(self, batch: pa.RecordBatch) -> _TypedRows:
        columns = dict(zip(batch.schema.names, batch.columns, strict=True))
        positions = columns.pop(POSITION)
        ends = ends_in(self.type, columns)
        kinds = {each.name: each.type for each in delta_schema(self.type)}
        found: dict[str, pa.Array | None] = {}
        for name, own in (("id", "id"), *zip(ENDPOINTS, ends, strict=False)):
            if own in columns:
                found[name] = typed(Scalar.STRING, columns[own], pa.utf8(), self.notation)
        for each in self.type.properties:
            if each.name in columns and each.name not in ends:
                kind = kinds[each.name]
                found[each.name] = typed(each.type, columns[each.name], kind, self.notation)
        return _assembled(self.shaping, self.type, found, positions)

    def _raws(self, batch: pa.RecordBatch) -> Iterator[_Raw]:
        columns = {
            name: self._values(name, values)
            for name, values in zip(batch.schema.names, batch.columns, strict=True)
        }
        names = [name for name in columns if name != POSITION]
        for position, *values in zip(
            columns[POSITION], *(columns[name] for name in names), strict=True
        ):
            row = dict(zip(names, values, strict=True))
            yield _Raw(position, flat_row(self.type, row, position), row)

    def _values(self, name: str, values: pa.Array) -> list[Any]:
        found = _python(values)
        kind = next((each.type for each in self.type.properties if each.name == name), None)
        if self.notation is not Notation.TEXT or kind is None:
            return found
        return [None if each is None else _from_text(kind, each) for each in found]


@dataclass(slots=True)
class _Values:
    shaping: Shaping
    type: SchemaType
    rows: Sequence[Mapping[str, Any]]
    positions: pa.Array

    def shaped(self, *, exact: bool) -> ShapedBatch:
        parts = _Parts(self.shaping)
        whole = np.arange(len(self.rows))
        pieces = [(whole, None)] if exact else _Halving().run(whole, self._attempt)
        places = self.positions.to_numpy()
        doubtful: list[_Raw] = []
        for indices, rows in pieces:
            if rows is not None:
                parts.put(self.type, rows)
                continue
            for index in indices.tolist():
                position, row = int(places[index]), self.rows[index]
                doubtful.append(_Raw(position, flat_row(self.type, row, position), dict(row)))
        parts.convert(self.type, doubtful)
        return parts.shaped()

    def _attempt(self, indices: _Indices) -> _TypedRows:
        if not len(indices):
            return _TypedRows(delta_schema(self.type).empty_table())
        first, count = int(indices[0]), len(indices)
        columns = columns_of(self.rows[first : first + count])
        try:
            names = known_columns(self.shaping, self.type, list(columns))
        except InvalidInputError as cause:
            # Rows of their own names are refused one by one.
            raise Doubt from cause
        found = {name: columns[name] for name in names}
        batch = pa.record_batch({POSITION: self.positions.slice(first, count), **found})
        return _Columns(self.shaping, self.type, batch, Notation.VALUES).typed_rows(batch)


def _named(catalog: Catalog, word: str, name: str) -> SchemaType | None:
    return next(
        (each for each in catalog.types if each.name == name and word_of(each) == word), None
    )


def _python(values: pa.Array) -> list[Any]:
    """Values of Python; one that it does not have, such as a day of the year 12000, as text."""
    try:
        return values.to_pylist()  # type: ignore[no-any-return]
    except (ValueError, OverflowError, pa.ArrowInvalid):
        return [_python_value(each) for each in values]


def _python_value(value: pa.Scalar) -> object:
    try:
        return value.as_py()
    except (ValueError, OverflowError, pa.ArrowInvalid):
        return str(value.cast(pa.utf8()).as_py())


def _from_text(type_: PropertyType, text: str) -> object:
    """The value that a cell of CSV has; the text itself where it is none of the type.

    >>> _from_text(Scalar.I32, "7"), _from_text(Scalar.BOOL, "true"), _from_text(Scalar.I32, "x")
    (7, True, 'x')
    """
    match type_:
        case Scalar.BOOL if text in ("true", "false"):
            return text == "true"
        case Scalar() if type_.is_numeric and _NUMBER.fullmatch(text):
            if text.lstrip("-").isdigit():
                return int(text) if len(text) <= _DIGITS_MAX else text
            number = float(text)
            return number if abs(number) != float("inf") or "Infinity" in text else text
        case ListType() | VectorType():
            found = _loaded(text)
            return found if isinstance(found, list) else text
        case _:
            return text


_DIGITS_MAX: Final = 400
"""Longer numbers are of no type, and Python refuses to read them."""


def _loaded(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _ended(text: pa.Array) -> pa.Array:
    """The lines, each with its newline."""
    if pa.types.is_large_string(text.type) or pa.types.is_string_view(text.type):
        text = text.cast(pa.utf8())
    if pc.all(pc.ends_with(text, "\n"), min_count=0).as_py():
        return text
    return pc.binary_join_element_wise(text, pa.scalar("\n"), "")


_Given = Mapping[str, "pa.Array | None"]
"""Typed columns by their names in a delta; what is left out was not given."""


def _read_envelopes(shaping: Shaping, type_: SchemaType, text: pa.Array) -> _Given:
    schema = _envelope_schema(type_, shaping.ignores_unknown)
    table = read_objects(text, schema, ignores_unknown=shaping.ignores_unknown)
    outside = {name: table[name].combine_chunks() for name in table.schema.names}
    data = outside.pop("data")
    inside = dict(zip((each.name for each in data.type), data.flatten(), strict=True))
    other = "type" if isinstance(type_, EdgeType) else "edge"
    if other in outside and outside[other].null_count < len(text):
        raise Doubt
    found = _from_json(type_, inside, text)
    found["id"] = _one_of(outside["id"], inside["id"])
    for name, own in zip(ENDPOINTS, ENDS, strict=True) if isinstance(type_, EdgeType) else ():
        found[name] = outside[own]
    return found


def _read_flat(shaping: Shaping, type_: SchemaType, text: pa.Array) -> _Given:
    ends = ends_in(type_, {})
    if ends and _says(text, *ENDPOINTS):
        ends = ENDPOINTS
    schema = _flat_schema(type_, ends)
    table = read_objects(text, schema, ignores_unknown=shaping.ignores_unknown)
    columns = {name: table[name].combine_chunks() for name in table.schema.names}
    own = {name: columns.pop(end) for name, end in zip(ENDPOINTS, ends, strict=False)}
    found = _from_json(type_, columns, text)
    found.update(own, id=columns["id"])
    return found


def _from_json(
    type_: SchemaType, columns: Mapping[str, pa.Array], text: pa.Array
) -> dict[str, pa.Array | None]:
    kinds = {each.name: each.type for each in delta_schema(type_)}
    found: dict[str, pa.Array | None] = {}
    for each in type_.properties:
        if each.name not in columns:
            continue
        values = columns[each.name]
        column = typed(each.type, values, kinds[each.name], Notation.JSON)
        if each.default is not None and values.null_count:
            # Only where the property is not there at all does it get its default.
            if _says(text.filter(values.is_null()), each.name):
                raise Doubt
            filler = pa.array([each.default], kinds[each.name])[0]
            column = pc.fill_null(column, filler)
        found[each.name] = column
    return found


def _says(text: pa.Array, *names: str) -> bool:
    """Whether any of some lines might have one of these names, spelt in whatever way."""
    spellings = [*(f'"{name}"' for name in names), "\\u"]
    return any(pc.any(pc.match_substring(text, each)).as_py() for each in spellings)


def _one_of(first: pa.Array, second: pa.Array) -> pa.Array:
    if second.null_count == len(second):
        return first
    if pc.any(pc.and_(first.is_valid(), second.is_valid())).as_py():
        raise Doubt
    return pc.coalesce(first, second)


@lru_cache(maxsize=256)
def _envelope_schema(type_: SchemaType, ignores_unknown: bool) -> pa.Schema:  # noqa: FBT001
    is_edge = isinstance(type_, EdgeType)
    names = ["edge", *ENDS] if is_edge else ["type"]
    if ignores_unknown:
        # Not ignored: a line that has both is no envelope.
        names.append("type" if is_edge else "edge")
    inside = [("id", pa.utf8()), *((each.name, json_type(each.type)) for each in type_.properties)]
    return pa.schema([*((name, pa.utf8()) for name in [*names, "id"]), ("data", pa.struct(inside))])


@lru_cache(maxsize=256)
def _flat_schema(type_: SchemaType, ends: tuple[str, ...]) -> pa.Schema:
    # What is called like an end is one.
    columns = [
        (each.name, json_type(each.type)) for each in type_.properties if each.name not in ends
    ]
    return pa.schema([*((name, pa.utf8()) for name in ("id", *ends)), *columns])


def _assembled(
    shaping: Shaping, type_: SchemaType, given: _Given, positions: pa.Array
) -> _TypedRows:
    """Rows of a delta, each with its id, its defaults and its position."""
    schema, count = delta_schema(type_), len(positions)
    columns: dict[str, pa.Array] = {POSITION: positions}
    for each in type_.properties:
        column = given.get(each.name)
        if column is None:
            kind = schema.field(each.name).type
            filler = pa.array([each.default], kind)
            column = filler.take(pa.array(np.zeros(count, dtype=np.int64)))
        columns[each.name] = column
    if isinstance(type_, EdgeType):
        for name in ENDPOINTS:
            end = given.get(name)
            columns[name] = pa.nulls(count, pa.utf8()) if end is None else end
    ids, minted_count = identities(type_, columns, given.get("id"), shaping.seed, positions)
    columns["id"] = ids
    rows = pa.Table.from_arrays([columns[each.name] for each in schema], schema=schema)
    return _TypedRows(rows, minted_count)
