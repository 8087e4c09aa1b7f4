"""Columns of one type: rows whose columns are properties, from Parquet, Arrow or CSV."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from omnigraph.conversion.raw_values import from_text, to_python
from omnigraph.conversion.readings import TypedColumn, read_column
from omnigraph.conversion.typed_columns import Notation
from omnigraph.errors import InvalidInputError
from omnigraph.integrity.deltas import POSITION
from omnigraph.lang.diagnostics import did_you_mean
from omnigraph.load.shaping.attempts import AttemptResult, DoubtSearch, Indices, assemble_rows
from omnigraph.load.shaping.batches import (
    BatchBuilder,
    RawInput,
    ShapedBatch,
    Shaping,
)
from omnigraph.load.shaping.envelopes import ends_in, flat_row
from omnigraph.model.types import Scalar
from omnigraph.schema.catalog import ENDPOINTS, SchemaType


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
        exact: Whether the exact converter types every value; the result is the same.
    """
    type_ = shaping.catalog.type_named(type_name)
    batch = batch.select([POSITION, *known_columns(shaping, type_, batch.schema.names)])
    return ColumnShaper(shaping, type_, _without_views(batch), notation).shape(exact=exact)


def _without_views(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The batch without string views, which Arrow cannot take by index."""
    kinds = {pa.string_view(): pa.utf8(), pa.binary_view(): pa.binary()}
    fields = [field.with_type(kinds.get(field.type, field.type)) for field in batch.schema]
    return batch.cast(pa.schema(fields))


def known_columns(
    shaping: Shaping, type_: SchemaType, names: Sequence[str], file: str | None = None
) -> list[str]:
    """The columns that a type has, which must be all unless unknown columns are ignored.

    Args:
        file: The file that has the columns, if there is one.
    """
    given = [name for name in names if name != POSITION]
    takes = _takes(type_, given)
    have = f"the rows of {type_.name} have" if file is None else f"{file} has"
    for name in given:
        if given.count(name) > 1:
            message = f'{have} two columns "{name[:100]}"'
            raise InvalidInputError(message, hint="rename one of them")
        if name not in takes and not shaping.ignores_unknown:
            message = f'{have} a column "{name[:100]}", and {type_.name} has no such property'
            raise InvalidInputError(message, hint=_hint_for_unknown(name, takes))
    return [name for name in given if name in takes]


def taken_columns(type_: SchemaType, names: Sequence[str]) -> list[str]:
    """Those of some columns that are the type's, in their order."""
    takes = _takes(type_, names)
    return [name for name in names if name in takes]


def _takes(type_: SchemaType, names: Sequence[str]) -> set[str]:
    own = {"id", *(property_.name for property_ in type_.properties)}
    return own.union(ends_in(type_, dict.fromkeys(names)))


def _hint_for_unknown(name: str, takes: Iterable[str]) -> str:
    for mark, name_of_mark in ((";", "semicolons"), ("\t", "tabs"), ("|", "bars")):
        if mark in name:
            delimiter = "tab" if mark == "\t" else f"'{mark}'"
            plain = f"columns are separated by commas, and not by {name_of_mark}"
            return f"{plain}, unless --csv delimiter={delimiter} says so"
    advice = "rename it, or drop such columns: --ignore-unknown, or ignore_unknown=True in Python"
    near = did_you_mean(name, takes)
    return f"{near}; {advice}" if near else advice


@dataclass(slots=True)
class ColumnShaper:
    """Shapes one batch, all of whose columns the type has."""

    shaping: Shaping
    type: SchemaType
    batch: pa.RecordBatch
    notation: Notation

    def shape(self, *, exact: bool) -> ShapedBatch:
        """See `shape_columns`."""
        builder = BatchBuilder(self.shaping)
        whole = np.arange(self.batch.num_rows)
        pieces = [(whole, None)] if exact else DoubtSearch().run(whole, self._attempt)
        doubtful: list[RawInput] = []
        for indices, rows in pieces:
            if rows is not None:
                builder.put(self.type, rows)
            elif len(indices):
                doubtful += self._raws(self.batch.take(pa.array(indices)))
        builder.convert(self.type, doubtful)
        return builder.build()

    def _attempt(self, indices: Indices) -> AttemptResult:
        batch = self.batch
        if len(indices) < batch.num_rows:
            batch = batch.slice(int(indices[0]), len(indices))
        return self.typed_rows(batch)

    def typed_rows(self, batch: pa.RecordBatch) -> AttemptResult:
        """Rows of the batch, or of one like it, a column at a time."""
        columns = dict(zip(batch.schema.names, batch.columns, strict=True))
        positions = columns.pop(POSITION)
        ends = ends_in(self.type, columns)
        typed: dict[str, TypedColumn | None] = {}
        for name, own in (("id", "id"), *zip(ENDPOINTS, ends, strict=False)):
            if own in columns:
                typed[name] = read_column(Scalar.STRING, columns[own], self.notation)
        for property_ in self.type.properties:
            name = property_.name
            if name in columns and name not in ends:
                typed[name] = read_column(property_.type, columns[name], self.notation)
        return assemble_rows(self.shaping, self.type, typed, positions)

    def _raws(self, batch: pa.RecordBatch) -> Iterator[RawInput]:
        columns = {
            name: self._values(name, values)
            for name, values in zip(batch.schema.names, batch.columns, strict=True)
        }
        names = [name for name in columns if name != POSITION]
        for position, *values in zip(
            columns[POSITION], *(columns[name] for name in names), strict=True
        ):
            row = dict(zip(names, values, strict=True))
            yield RawInput(position, flat_row(self.type, row, position), row)

    def _values(self, name: str, values: pa.Array) -> list[Any]:
        plain_values = to_python(values)
        kinds = {property_.name: property_.type for property_ in self.type.properties}
        kind = kinds.get(name)
        if self.notation is not Notation.TEXT or kind is None:
            return plain_values
        return [None if value is None else from_text(kind, value) for value in plain_values]
