"""Readings: columns typed as a load types them, with the rows that do not convert."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.conversion.exact_values import convert_value
from omnigraph.conversion.raw_values import from_text, to_python
from omnigraph.conversion.typed_columns import Doubt, Notation, convert_column, find_doubtful
from omnigraph.limits import LOAD_BISECTED_ROWS_MIN, LOAD_DOUBTS_MAX
from omnigraph.model.types import PropertyType
from omnigraph.schema.arrow import value_field
from omnigraph.schema.conversion import is_null
from omnigraph.schema.values import Misfit

Places = npt.NDArray[np.int64]

NONE_REFUSED: Final[Places] = np.empty(0, np.int64)


@dataclass(frozen=True, slots=True)
class TypedColumn:
    """Values of one type, null where they were null or do not convert.

    Attributes:
        refused: The rows that do not convert, in order.
    """

    values: pa.Array
    refused: Places


def read_column(type_: PropertyType, values: pa.Array, notation: Notation) -> TypedColumn:
    """The values as a load reads them: all at once, and one by one where one is in doubt.

    A value of JSON that is in doubt is refused: whether it was written `3` or `3.0` decides, and
    only its line says so.
    """
    kind = value_field("", type_, nullable=True).type
    pieces: list[pa.Array] = []
    doubtful: list[Places] = []
    first = 0
    for part, typed in _Search(type_, kind, notation).run(values):
        places = np.arange(len(part)) if typed is None else find_doubtful(part, typed)
        doubtful.append(first + places)
        pieces.append(pa.nulls(len(part), kind) if typed is None else typed)
        first += len(part)
    whole = pieces[0] if len(pieces) == 1 else pa.concat_arrays(pieces)
    places = np.concatenate(doubtful)
    if not len(places) or notation is Notation.JSON:
        return TypedColumn(whole, places)
    converted = [
        _read_value(type_, value, notation) for value in to_python(values.take(pa.array(places)))
    ]
    is_refused = np.array([isinstance(value, Misfit) for value in converted])
    exact = pa.array([None if isinstance(value, Misfit) else value for value in converted], kind)
    at = np.arange(len(values))
    at[places] = len(values) + np.arange(len(places))
    return TypedColumn(pa.concat_arrays([whole, exact]).take(pa.array(at)), places[is_refused])


def explain_value(type_: PropertyType, value: object, notation: Notation) -> Misfit:
    """Why `read_column` refuses a value."""
    misfit = _read_value(type_, value, notation)
    assert isinstance(misfit, Misfit), "it was refused"
    return misfit


def _read_value(type_: PropertyType, value: object, notation: Notation) -> object:
    if is_null(value):
        return None
    if notation is Notation.TEXT and isinstance(value, str):
        value = from_text(type_, value)
    return convert_value(type_, value)


@dataclass(slots=True)
class _Search:
    """Finds the values in doubt by halving, at a bounded cost."""

    type: PropertyType
    kind: pa.DataType
    notation: Notation
    failures_left: int = LOAD_DOUBTS_MAX

    def run(self, values: pa.Array) -> Iterator[tuple[pa.Array, pa.Array | None]]:
        """Parts of the values in order, each with its typed values; None if any is in doubt."""
        typed: pa.Array | None = None
        if self.failures_left:
            try:
                typed = convert_column(self.type, values, self.kind, self.notation)
            except Doubt:
                self.failures_left -= 1
        if typed is not None or len(values) <= LOAD_BISECTED_ROWS_MIN or not self.failures_left:
            yield values, typed
            return
        half = len(values) // 2
        yield from self.run(values.slice(0, half))
        yield from self.run(values.slice(half))
