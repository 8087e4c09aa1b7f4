"""Cells: the values of a result as JSON, as CSV and as text in a table."""

from __future__ import annotations

import json
import math
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date, datetime
from typing import Any, Final

import numpy as np
import pyarrow as pa

from omnigraph.wording import format_instant

Plain = str | int | float | bool | list[Any] | dict[str, Any] | None
"""A value that JSON has."""

_ENCODER: Final = json.JSONEncoder(ensure_ascii=False, allow_nan=False)


def plain_rows(batch: pa.RecordBatch) -> Iterator[tuple[Plain, ...]]:
    """The rows of a batch, each value one that JSON has.

    Integers stay whole and exact, whatever their width. A float has the fewest digits that read
    back as the same float of its width. What JSON has no number for becomes the text "NaN",
    "Infinity" or "-Infinity", never a null. Dates and instants are ISO-8601, instants in UTC with
    a `Z`. Bytes are base64.

    >>> from datetime import date
    >>> batch = pa.record_batch({"n": [2**63 - 1], "x": [math.inf], "d": [date(2024, 2, 29)]})
    >>> list(plain_rows(batch))
    [(9223372036854775807, 'Infinity', '2024-02-29')]
    """
    columns = [_plain_values(column) for column in batch.columns]
    return zip(*columns, strict=True)


def plain_value(value: object) -> Any:
    """A value of Python's, or a row by column, as one that JSON has.

    >>> plain_value({"d": date(2024, 2, 29), "x": math.nan, "b": b"hi", "l": [1, None]})
    {'d': '2024-02-29', 'x': 'NaN', 'b': 'aGk=', 'l': [1, None]}
    """
    match value:
        case datetime():
            return format_instant(value)
        case date():
            return value.isoformat()
        case float():
            return _plain_float(value)
        case bytes():
            return b64encode(value).decode()
        case Mapping():
            return {str(name): plain_value(item) for name, item in value.items()}
        case list() | tuple():
            return [plain_value(item) for item in value]
        case _:
            return value


def to_json(value: object) -> str:
    """One JSON text on one line."""
    return _ENCODER.encode(value)


def to_text(value: Plain) -> str:
    """A value that is not null as plain text: a list as JSON, all else without quotes.

    >>> [to_text(each) for each in ("a b", True, 2.5, ["x", 1])]
    ['a b', 'true', '2.5', '["x", 1]']
    """
    return value if isinstance(value, str) else to_json(value)


def csv_line(values: Sequence[Plain]) -> str:
    r"""One record in the format of RFC 4180: a null is empty, an empty text a pair of quotes.

    >>> csv_line(["a", None, "", 'say "hi" twice', [1, 2]])
    'a,,"","say ""hi"" twice","[1, 2]"\r\n'
    """
    fields = ("" if value is None else _csv_field(to_text(value)) for value in values)
    return ",".join(fields) + "\r\n"


def _csv_field(text: str) -> str:
    if text and not any(character in text for character in ',"\r\n'):
        return text
    doubled = text.replace('"', '""')
    return f'"{doubled}"'


def _plain_values(column: pa.Array) -> list[Plain]:
    convert = _conversion(column.type)
    values = column.to_pylist()
    if convert is None:
        return values  # type: ignore[no-any-return]
    return [None if value is None else convert(value) for value in values]


def _conversion(kind: pa.DataType) -> Callable[[Any], Plain] | None:
    """How values of a type become plain; None if they already are."""
    conversions = (
        {field.name: _conversion(field.type) for field in kind} if pa.types.is_struct(kind) else {}
    )
    if pa.types.is_float32(kind):
        return _plain_float_32
    if pa.types.is_floating(kind):
        return _plain_float
    if pa.types.is_timestamp(kind):
        return format_instant
    if pa.types.is_date(kind):
        return date.isoformat
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return lambda value: b64encode(value).decode()
    if pa.types.is_list(kind) or pa.types.is_fixed_size_list(kind):
        convert = _conversion(kind.value_type)
        if convert is None:
            return None
        return lambda items: [None if item is None else convert(item) for item in items]
    if pa.types.is_struct(kind):
        return lambda values: _plain_object(values, conversions)
    return None


def _plain_object(
    values: Mapping[str, Any], conversions: Mapping[str, Callable[[Any], Plain] | None]
) -> dict[str, Plain]:
    return {
        name: value if value is None or (convert := conversions[name]) is None else convert(value)
        for name, value in values.items()
    }


def _plain_float(value: float) -> float | str:
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _plain_float_32(value: float) -> float | str:
    return _plain_float(float(str(np.float32(value))))
