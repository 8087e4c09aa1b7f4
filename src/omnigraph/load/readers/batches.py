"""Batches of a split: what every reader yields, and record batches made into them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from omnigraph.conversion.typed_columns import Notation
from omnigraph.errors import InvalidInputError
from omnigraph.integrity.deltas import POSITION
from omnigraph.load.positions import positions
from omnigraph.load.routes import Route
from omnigraph.load.shaping.batches import ShapedBatch, Shaping
from omnigraph.load.shaping.columns import known_columns, shape_columns
from omnigraph.load.shaping.routing import shape_routed
from omnigraph.load.sources import FileInput
from omnigraph.schema.catalog import SchemaType


@dataclass(frozen=True, slots=True)
class SplitBatch:
    """Some rows of a split, shaped.

    Attributes:
        bytes_read: How much of the split was read up to here.
        line_count: Lines that the next split of the same input has before it because of this batch;
            0 where places do not depend on other splits.
    """

    shaped: ShapedBatch
    bytes_read: int = 0
    line_count: int = 0


def shape_record_batches(
    shaping: Shaping,
    number: int,
    of: str | Route,
    batches: Iterable[pa.RecordBatch],
    *,
    first: int = 1,
) -> Iterator[tuple[int, ShapedBatch]]:
    """Shape record batches of typed values that follow one another, each with its row count.

    Args:
        number: The split that they are of.
        of: Their type, or how each of them says its own.
        first: The place of their first row.
    """
    for batch in batches:
        if batch.num_rows:
            _require_texts(batch, of, first)
            placed = with_positions(batch, positions(number, first, batch.num_rows))
            first += batch.num_rows
            if isinstance(of, str):
                shaped = shape_columns(shaping, of, placed, notation=Notation.VALUES)
            else:
                shaped = shape_routed(shaping, of, placed)
            yield batch.num_rows, shaped


def _require_texts(batch: pa.RecordBatch, of: str | Route, first: int) -> None:
    """Refuse texts that are not UTF-8: Lance writes them, and never reads that table again.

    Files of columns do not promise that theirs are, nor does what other libraries export.
    """
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        if not _has_texts(column.type):
            continue
        try:
            column.validate(full=True)
        except pa.ArrowInvalid as cause:
            where = of if isinstance(of, str) else of.column
            reason = str(cause).splitlines()[0]
            message = f"{where}: {name} cannot be read, at row {first} or after: {reason[:200]}"
            hint = "write these texts as UTF-8; bytes are for properties of type Blob"
            raise InvalidInputError(message, hint=hint) from cause


def _has_texts(type_: pa.DataType) -> bool:
    if pa.types.is_dictionary(type_):
        return _has_texts(type_.value_type)
    if pa.types.is_nested(type_):
        return any(_has_texts(type_.field(place).type) for place in range(type_.num_fields))
    return any(
        is_text(type_)
        for is_text in (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
    )


def named_columns(
    shaping: Shaping, type_: SchemaType, columns: Sequence[str], source: FileInput
) -> dict[str, str]:
    """The columns of a file that are read, by the names that the type has for them."""
    drops = shaping.ignores_unknown
    named = source.columns.name_columns(columns, source.name, drops=drops)
    known = known_columns(shaping, type_, list(named), source.name)
    return {name: named[name] for name in known}


def with_positions(batch: pa.RecordBatch, column: pa.Array) -> pa.RecordBatch:
    """The batch with the column `POSITION` before its own."""
    fields = [pa.field(POSITION, pa.int64()), *batch.schema]
    return pa.RecordBatch.from_arrays([column, *batch.columns], schema=pa.schema(fields))
