"""Attempts to shape rows a column at a time; the rows in doubt are found by halving.

A row with a value that does not convert is refused by the attempt itself. Halving finds what no
column tells, such as a line that is not JSON.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.conversion.readings import TypedColumn
from omnigraph.conversion.typed_columns import Doubt
from omnigraph.integrity.deltas import POSITION, delta_schema
from omnigraph.limits import LOAD_BISECTED_ROWS_MIN, LOAD_DOUBTS_MAX
from omnigraph.load.shaping.batches import Shaping, TypedRows
from omnigraph.load.shaping.identities import identities
from omnigraph.schema.catalog import SchemaType

Indices = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class AttemptResult:
    """Shaped rows, and the places of those that only the exact converter can shape."""

    rows: TypedRows
    doubtful: Indices


Attempt = Callable[[Indices], AttemptResult]
"""Shapes the rows at some indices of a batch, all of one type; raises `Doubt`."""


@dataclass(slots=True)
class DoubtSearch:
    """Finds the rows of a batch that are in doubt, at a bounded cost."""

    failures_left: int = LOAD_DOUBTS_MAX

    def run(self, indices: Indices, attempt: Attempt) -> Iterator[tuple[Indices, TypedRows | None]]:
        """The typed rows, in pieces and in order; None for rows that are in doubt."""
        try:
            shaped = attempt(indices) if self.failures_left else None
        except Doubt:
            shaped = None
            self.failures_left -= 1
        if shaped is not None:
            yield np.delete(indices, shaped.doubtful), shaped.rows
            yield indices[shaped.doubtful], None
            return
        if len(indices) <= LOAD_BISECTED_ROWS_MIN or not self.failures_left:
            yield indices, None
            return
        half = len(indices) // 2
        yield from self.run(indices[:half], attempt)
        yield from self.run(indices[half:], attempt)


GivenColumns = Mapping[str, TypedColumn | None]
"""Typed columns by their names in a delta; a column that is absent was not given."""


def assemble_rows(
    shaping: Shaping, type_: SchemaType, given: GivenColumns, positions: pa.Array
) -> AttemptResult:
    """Rows of a delta, each with its id, its defaults and its position."""
    schema, count = delta_schema(type_), len(positions)
    filled = {POSITION: positions}
    for field in schema:
        column = given.get(field.name)
        filled.setdefault(
            field.name, _fill(type_, field, count) if column is None else column.values
        )
    is_sound = np.ones(count, np.bool_)
    for column in given.values():
        if column is not None:
            is_sound[column.refused] = False
    for name in type_.key:
        is_sound &= filled[name].is_valid().to_numpy(zero_copy_only=False)
    rows = pa.RecordBatch.from_arrays([filled[field.name] for field in schema], schema=schema)
    rows = rows.filter(pa.array(is_sound))
    minted_count = 0 if type_.key else rows["id"].null_count
    ids = identities(type_, rows, shaping.seed)
    rows = rows.set_column(rows.schema.get_field_index("id"), schema.field("id"), ids)
    if ids.null_count:
        is_sound[is_sound] = ids.is_valid().to_numpy(zero_copy_only=False)
        rows = rows.filter(ids.is_valid())
    shaped = TypedRows(pa.Table.from_batches([rows], schema), minted_count)
    return AttemptResult(shaped, np.flatnonzero(~is_sound))


def _fill(type_: SchemaType, field: pa.Field, count: int) -> pa.Array:
    """The column of a property or end that the input does not have."""
    defaults = {property_.name: property_.default for property_ in type_.properties}
    filler = pa.array([defaults.get(field.name)], field.type)
    return filler.take(pa.array(np.zeros(count, dtype=np.int64)))
