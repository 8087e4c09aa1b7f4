"""Digests of wide values: what an engine compares instead of vectors and blobs.

An engine that joins rows holds all their columns. A vector or a blob is only compared for equality,
for which 16 bytes are enough. The references of `changes.wide` already contain their digests.
Values that the type of their column lacks are compared by texts.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import blake2b
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_DIGEST_BYTES: Final = 16
_ROWS_AT_ONCE: Final = 1024


def slim(rows: pa.Table) -> pa.Table:
    """The rows with a digest instead of each vector and blob: equal where those are equal.

    >>> vectors = pa.array([[0.0, 1.0], [-0.0, 1.0], None], pa.list_(pa.float32(), 2))
    >>> one, other, none = slim(pa.table({"v": vectors}))["v"].to_pylist()
    >>> one == other, none
    (True, None)
    """
    for place, field in enumerate(rows.schema):
        column = rows.column(place)
        if is_wide(field.type):
            digests = pa.array(_digests(column), pa.utf8())
        elif pa.types.is_struct(field.type):
            digests = pc.struct_field(column, "digest")
        else:
            continue
        rows = rows.set_column(place, pa.field(field.name, pa.utf8()), digests)
    return rows


def is_wide(kind: pa.DataType) -> bool:
    """Whether values of this type are compared by their digests."""
    return bool(pa.types.is_fixed_size_list(kind) or pa.types.is_large_binary(kind))


def digests_of(values: pa.Array) -> Iterator[str | None]:
    """The digest of each vector or blob; null has none."""
    return _of_vectors(values) if pa.types.is_fixed_size_list(values.type) else _of_bytes(values)


def describe_values(values: pa.ChunkedArray, is_wanted: pa.ChunkedArray) -> pa.ChunkedArray:
    """Texts that are equal for equal values; null where they are not wanted.

    >>> numbers = pa.chunked_array([[1, 2], [3]])
    >>> describe_values(numbers, pc.greater(numbers, 1)).to_pylist()
    [None, '2', '3']
    """
    wanted = values.filter(is_wanted)
    texts = _digests(wanted) if is_wide(values.type) else map(repr, wanted.to_pylist())
    nothing = pa.nulls(len(values), pa.utf8())
    mask = pa.array(is_wanted.to_numpy())
    described = pc.replace_with_mask(nothing, mask, pa.array(texts, pa.utf8()))
    return pa.chunked_array([described], pa.utf8())


def _digests(column: pa.ChunkedArray) -> Iterator[str | None]:
    for start in range(0, len(column), _ROWS_AT_ONCE):
        yield from digests_of(column.slice(start, _ROWS_AT_ONCE).combine_chunks())


def _of_bytes(values: pa.Array) -> Iterator[str | None]:
    for value in values:
        yield _digest(memoryview(value.as_buffer())) if value.is_valid else None


def _of_vectors(values: pa.Array) -> Iterator[str | None]:
    # Null vectors occupy items, too, with arbitrary values.
    items = values.values.slice(values.offset * values.type.list_size)
    numbers = items.to_numpy(zero_copy_only=False)[: len(values) * values.type.list_size]
    # Zeros of either sign are equal, and so are all NaNs.
    numbers = np.where(np.isnan(numbers), np.float32(np.nan), numbers + np.float32(0))
    rows = numbers.astype(np.float32).reshape(len(values), values.type.list_size)
    for row, is_valid in zip(rows, values.is_valid().to_pylist(), strict=True):
        yield _digest(row.data) if is_valid else None


def _digest(data: memoryview) -> str:
    return blake2b(data, digest_size=_DIGEST_BYTES).hexdigest()
