"""Chunks of a column: the values of consecutive fragments, joined while they are few.

A table of two thousand one-row fragments has two thousand arrays, and every reader of them would
pay for each. So neighbours are joined, as in a log-structured tree: a value is copied a few times,
however many fragments follow, and a column has few chunks. Whoever adds a fragment, or takes one
away, keeps the chunks of the others.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, Generic, Self, TypeVar

import pyarrow as pa

JOINED_CHUNK_ROWS_MAX: Final = 1 << 16
JOINED_CHUNK_BYTES_MAX: Final = 16 << 20
"""Values of small fragments that are joined in memory to one array."""


Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True, slots=True)
class ColumnChunk(Generic[Key]):
    """Values of consecutive fragments.

    Attributes:
        keys: What identifies the values of each fragment.
        arrays: One array, unless it is a large fragment's, which is not copied.
    """

    keys: tuple[Key, ...]
    arrays: tuple[pa.Array, ...]
    row_count: int
    byte_count: int

    @classmethod
    def of(cls, key: Key, values: pa.ChunkedArray) -> Self:
        """The values of one fragment."""
        return cls((key,), tuple(values.chunks), len(values), values.nbytes)


def find_reusable(
    before: Iterable[ColumnChunk[Key]], keys: Sequence[Key]
) -> list[ColumnChunk[Key] | int]:
    """How the fragments with these keys are made of another version's chunks, in their order.

    A number is the position of a fragment that no chunk has.
    """
    by_first = {chunk.keys[0]: chunk for chunk in before}
    parts: list[ColumnChunk[Key] | int] = []
    place = 0
    while place < len(keys):
        chunk = by_first.get(keys[place])
        if chunk is not None and tuple(keys[place : place + len(chunk.keys)]) == chunk.keys:
            parts.append(chunk)
            place += len(chunk.keys)
        else:
            parts.append(place)
            place += 1
    return parts


@dataclass(slots=True)
class _Group(Generic[Key]):
    """Neighbours that become one chunk."""

    chunks: list[ColumnChunk[Key]] = field(default_factory=list)
    row_count: int = 0
    byte_count: int = 0

    def add(self, chunks: Iterable[ColumnChunk[Key]]) -> None:
        for chunk in chunks:
            self.chunks.append(chunk)
            self.row_count += chunk.row_count
            self.byte_count += chunk.byte_count

    def joins(self, later: _Group[Key]) -> bool:
        """Whether it is to be joined with its later neighbour.

        Only if it is not much larger: so each value is copied a logarithmic number of times.
        """
        return (
            self.row_count <= 2 * later.row_count
            and self.row_count + later.row_count <= JOINED_CHUNK_ROWS_MAX
            and self.byte_count + later.byte_count <= JOINED_CHUNK_BYTES_MAX
        )

    def to_chunk(self) -> ColumnChunk[Key]:
        if len(self.chunks) == 1:
            return self.chunks[0]
        keys = tuple(key for chunk in self.chunks for key in chunk.keys)
        arrays = [array for chunk in self.chunks for array in chunk.arrays]
        joined = (pa.concat_arrays(arrays),) if arrays else ()
        return ColumnChunk(keys, joined, self.row_count, self.byte_count)


def join_neighbours(chunks: Iterable[ColumnChunk[Key]]) -> tuple[ColumnChunk[Key], ...]:
    """The same values in their order, in few chunks."""
    groups: list[_Group[Key]] = []
    for chunk in chunks:
        group = _Group[Key]()
        group.add([chunk])
        groups.append(group)
        while len(groups) > 1 and groups[-2].joins(groups[-1]):
            later = groups.pop()
            groups[-1].add(later.chunks)
    return tuple(group.to_chunk() for group in groups)
