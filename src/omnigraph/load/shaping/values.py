"""Shaping of dictionaries of Python values, by property."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from omnigraph.conversion.typed_columns import Doubt, Notation
from omnigraph.errors import InvalidInputError
from omnigraph.integrity.deltas import POSITION, delta_schema
from omnigraph.load.shaping.attempts import AttemptResult, DoubtSearch, Indices
from omnigraph.load.shaping.batches import (
    BatchBuilder,
    RawInput,
    ShapedBatch,
    Shaping,
    TypedRows,
)
from omnigraph.load.shaping.columns import ColumnShaper, known_columns
from omnigraph.load.shaping.envelopes import flat_row
from omnigraph.load.shaping.value_columns import columns_of
from omnigraph.schema.catalog import SchemaType


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
        exact: Whether the exact converter types every value; the result is the same.
    """
    type_ = shaping.catalog.type_named(type_name)
    return _ValueShaper(shaping, type_, rows, positions).shape(exact=exact)


@dataclass(slots=True)
class _ValueShaper:
    shaping: Shaping
    type: SchemaType
    rows: Sequence[Mapping[str, Any]]
    positions: pa.Array

    def shape(self, *, exact: bool) -> ShapedBatch:
        builder = BatchBuilder(self.shaping)
        whole = np.arange(len(self.rows))
        pieces = [(whole, None)] if exact else DoubtSearch().run(whole, self._attempt)
        places = self.positions.to_numpy()
        doubtful: list[RawInput] = []
        for indices, rows in pieces:
            if rows is not None:
                builder.put(self.type, rows)
                continue
            for index in indices.tolist():
                position, row = int(places[index]), self.rows[index]
                doubtful.append(RawInput(position, flat_row(self.type, row, position), dict(row)))
        builder.convert(self.type, doubtful)
        return builder.build()

    def _attempt(self, indices: Indices) -> AttemptResult:
        if not len(indices):
            return AttemptResult(TypedRows(delta_schema(self.type).empty_table()), indices)
        first, count = int(indices[0]), len(indices)
        columns = columns_of(self.rows[first : first + count])
        try:
            names = known_columns(self.shaping, self.type, list(columns))
        except InvalidInputError as cause:
            # Rows with unknown names are refused one by one.
            raise Doubt from cause
        known = {name: columns[name] for name in names}
        batch = pa.record_batch({POSITION: self.positions.slice(first, count), **known})
        return ColumnShaper(self.shaping, self.type, batch, Notation.VALUES).typed_rows(batch)
