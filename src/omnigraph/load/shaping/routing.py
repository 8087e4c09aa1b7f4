"""Rows of several types in one batch: parted by their types, and each part shaped as its own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from operator import attrgetter
from typing import assert_never

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.conversion.typed_columns import Notation
from omnigraph.errors import InvalidInputError
from omnigraph.integrity.deltas import POSITION
from omnigraph.integrity.violations import Breach, Rule, Tally, Violation, shorten
from omnigraph.lang.diagnostics import did_you_mean
from omnigraph.load.routes import ByColumn, ByEnvelope, Route
from omnigraph.load.shaping.batches import BatchBuilder, ShapedBatch, Shaping
from omnigraph.load.shaping.columns import shape_columns, taken_columns
from omnigraph.load.shaping.lines import TEXT, shape_lines
from omnigraph.schema.catalog import SchemaType

_ROW = "row"
"""The name in place of the type of a row that has none."""

_AFTER = "after"
"""The column of a feed with rows as they are after a change (`streams.source`)."""


def shape_routed(shaping: Shaping, route: Route, batch: pa.RecordBatch) -> ShapedBatch:
    """Shape rows of several types; a row of no type is a violation.

    Args:
        batch: With the column `POSITION`.
    """
    column = route.column
    if column not in batch.schema.names:
        have = ", ".join(name for name in batch.schema.names if name != POSITION)
        message = f"the rows have no column {column!r} that says their types"
        raise InvalidInputError(message, hint=f"they have {have}")
    match route:
        case ByColumn():
            return _RowRouter(shaping, column, batch).shape()
        case ByEnvelope():
            return _shape_envelopes(shaping, column, batch)
        case _:
            assert_never(route)


def _shape_envelopes(shaping: Shaping, column: str, batch: pa.RecordBatch) -> ShapedBatch:
    is_row = batch[column].is_valid()
    if pc.all(is_row, min_count=0).as_py():
        return _shape_texts(shaping, batch[POSITION], batch[column])
    own = batch.filter(is_row)
    shaped = _shape_texts(shaping, own[POSITION], own[column])
    return _join([shaped, _refuse_nulls(shaping, column, batch.filter(pc.invert(is_row)))])


def _refuse_nulls(shaping: Shaping, column: str, batch: pa.RecordBatch) -> ShapedBatch:
    reason = f"{column} is null: there is no row to load"
    if column == _AFTER:
        reason += " (a deleted row has none: leave it out, as the option ops of a feed does)"
    violation = Violation(Breach(Rule.TYPE, _ROW, (column,)), None, None, "", reason)
    builder = BatchBuilder(shaping)
    for position in batch[POSITION].to_pylist():
        builder.refuse(position, {column: None}, violation)
    return builder.build()


def _shape_texts(shaping: Shaping, positions: pa.Array, values: pa.Array) -> ShapedBatch:
    text = _decode(values)
    # A document of several lines is no line of a file: only the exact parser reads it.
    is_exact = pc.any(pc.match_substring(pc.utf8_trim_whitespace(text), "\n"), min_count=0).as_py()
    lines = pa.record_batch({POSITION: positions, TEXT: text})
    return shape_lines(shaping, lines, exact=bool(is_exact))


def _decode(values: pa.Array) -> pa.Array:
    """The texts; null where bytes are not UTF-8."""
    try:
        return values.cast(pa.utf8())
    except pa.ArrowInvalid:
        texts = [None if value is None else _text(value) for value in values.to_pylist()]
        return pa.array(texts, pa.utf8())


def _text(value: object) -> str | None:
    if not isinstance(value, bytes):
        return str(value)
    try:
        return value.decode()
    except UnicodeDecodeError:
        return None


@dataclass(slots=True)
class _RowRouter:
    """Parts the rows of a batch by the types that a column names."""

    shaping: Shaping
    column: str
    batch: pa.RecordBatch

    def shape(self) -> ShapedBatch:
        names = _decode(self.batch[self.column])
        rows = self.batch.drop_columns([self.column])
        types = {type_.name: type_ for type_ in self.shaping.catalog.types}
        parts: list[ShapedBatch] = []
        for name in pc.unique(names).to_pylist():
            is_own = names.is_null() if name is None else pc.equal(names, name)
            own = rows.filter(pc.fill_null(is_own, False))  # noqa: FBT003
            type_ = types.get(name) if name is not None else None
            if type_ is None:
                parts.append(self._refuse(name, own, self._no_type(name, types)))
            else:
                parts += self._shape_type(type_, own)
        return _join(parts)

    def _shape_type(self, type_: SchemaType, rows: pa.RecordBatch) -> Iterator[ShapedBatch]:
        """The rows of a type; one with a value that the type does not take is refused."""
        taken = taken_columns(type_, [name for name in rows.schema.names if name != POSITION])
        for name in () if self.shaping.ignores_unknown else rows.schema.names:
            if name == POSITION or name in taken:
                continue
            has_value = rows[name].is_valid()
            if not pc.any(has_value, min_count=0).as_py():
                continue
            breach = Breach(Rule.TYPE, type_.name, (name,))
            reason = f"{type_.name} has no property {name}, and the row has a value for it"
            violation = Violation(breach, None, None, "", reason)
            yield self._refuse(type_.name, rows.filter(has_value), violation)
            rows = rows.filter(pc.invert(has_value))
        if rows.num_rows:
            own = rows.select([POSITION, *taken])
            yield shape_columns(self.shaping, type_.name, own, notation=Notation.VALUES)

    def _no_type(self, name: str | None, types: Mapping[str, SchemaType]) -> Violation:
        breach = Breach(Rule.TYPE, _ROW, (self.column,))
        reason = "it is null" if name is None else f"the schema has no type {name[:100]}"
        near = None if name is None else did_you_mean(name, types)
        advice = f" ({near})" if near else ""
        shown = None if name is None else shorten(name)
        return Violation(breach, None, shown, "", f"{self.column} says no type: {reason}{advice}")

    def _refuse(self, name: str | None, rows: pa.RecordBatch, violation: Violation) -> ShapedBatch:
        builder = BatchBuilder(self.shaping)
        for row in rows.to_pylist():
            position = row.pop(POSITION)
            given = {name: value for name, value in row.items() if value is not None}
            builder.refuse(position, {self.column: name, **given}, violation)
        return builder.build()


def _join(parts: list[ShapedBatch]) -> ShapedBatch:
    """The parts of one batch together; no two have rows of one table."""
    tally = Tally()
    for part in parts:
        tally.add_report(part.report)
    return ShapedBatch(
        {key: rows for part in parts for key, rows in part.rows.items()},
        {key: count for part in parts for key, count in part.minted_counts.items()},
        tally.report(),
        tuple(
            sorted(
                (reject for part in parts for reject in part.rejects), key=attrgetter("position")
            )
        ),
    )
