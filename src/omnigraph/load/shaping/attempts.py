"""Attempts to shape rows a column at a time; the rows in doubt are found by halving."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.conversion.typed_columns import Doubt
from omnigraph.integrity.deltas import POSITION, delta_schema
from omnigraph.limits import LOAD_BISECTED_ROWS_MIN, LOAD_DOUBTS_MAX
from omnigraph.load.shaping.batches import Shaping, TypedRows
from omnigraph.load.shaping.identities import identities
from omnigraph.schema.catalog import ENDPOINTS, EdgeType, SchemaType

Indices = npt.NDArray[np.int64]

Attempt = Callable[[Indices], TypedRows]
"""Shapes the rows at some indices of a batch, all of one type; raises `Doubt`."""


@dataclass(slots=True)
class DoubtSearch:
    """Finds the rows of a batch that are in doubt, at a bounded cost."""

    failures_left: int = LOAD_DOUBTS_MAX

    def run(self, indices: Indices, attempt: Attempt) -> Iterator[tuple[Indices, TypedRows | None]]:
        """The typed rows, in pieces and in order; None for rows that are in doubt."""
        try:
            rows = attempt(indices) if self.failures_left else None
        except Doubt:
            rows = None
            self.failures_left -= 1
        if rows is not None or len(indices) <= LOAD_BISECTED_ROWS_MIN or not self.failures_left:
            yield indices, rows
            return
        half = len(indices) // 2
        yield from self.run(indices[:half], attempt)
        yield from self.run(indices[half:], attempt)


GivenColumns = Mapping[str, "pa.Array | None"]
"""Typed columns by their names in a delta; a column that is absent was not given."""


def assemble_rows(
    shaping: Shaping, type_: SchemaType, given: GivenColumns, positions: pa.Array
) -> TypedRows:
    """Rows of a delta, each with its id, its defaults and its position."""
    schema, count = delta_schema(type_), len(positions)
    columns: dict[str, pa.Array] = {POSITION: positions}
    for property_ in type_.properties:
        column = given.get(property_.name)
        if column is None:
            kind = schema.field(property_.name).type
            filler = pa.array([property_.default], kind)
            column = filler.take(pa.array(np.zeros(count, dtype=np.int64)))
        columns[property_.name] = column
    if isinstance(type_, EdgeType):
        for name in ENDPOINTS:
            end = given.get(name)
            columns[name] = pa.nulls(count, pa.utf8()) if end is None else end
    ids, minted_count = identities(type_, columns, given.get("id"), shaping.seed, positions)
    columns["id"] = ids
    rows = pa.Table.from_arrays([columns[column.name] for column in schema], schema=schema)
    return TypedRows(rows, minted_count)
