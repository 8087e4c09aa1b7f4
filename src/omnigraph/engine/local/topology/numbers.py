"""Node numbers: the nodes of a table as small integers, which arrays are indexed by.

The number of a node is its row id. Row ids survive updates, upserts and compaction, and two
versions of a table agree in them as far as one was made from the other, so arrays of numbers stay
valid while properties change (docs/substrate.md, Row ids).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.limits import KEYS_PER_LOOKUP_MAX
from omnigraph.storage import lookups
from omnigraph.storage.columns import read_all_fragments
from omnigraph.storage.row_ids import RowIds, read_row_ids
from omnigraph.storage.tables import ROW_ID, Table, TableAddress

NUMBERS_PER_ROW_MAX: Final = 4
"""Numbers per node up to which arrays are indexed by them: deleted nodes leave theirs unused."""

NUMBERED_IN_MEMORY_ROWS_MAX: Final = 1 << 12
"""Nodes of a table whose ids are found by a dictionary; of more, by an index."""


NOTHING: Final = np.uint32(0xFFFF_FFFF)
"""Where there is no node, or no row."""

_SPARSE_NUMBERS_MIN: Final = 1 << 20
"""Numbers from which on it matters how many of them are of no node."""


@dataclass(frozen=True, eq=False)
class NodeNumbers:
    """The nodes of a table at one version, by number.

    - Every node has one number, from 0 to below `size`. Some numbers are of no node.
    - A node keeps its number in all later versions on its ref, and on refs that started later.
    - `of_rows[i]` is the number of the `i`th row that `storage.columns.read_all_fragments` returns;
      `rows[n]` is the position of the row of node `n`, or `NOTHING`.
    """

    address: TableAddress
    row_ids: RowIds
    open_table: Callable[[], Table] = field(repr=False)

    @cached_property
    def table(self) -> Table:
        """The table, which is opened when it is first needed."""
        return self.open_table()

    @property
    def size(self) -> int:
        """A number that is above those of all nodes."""
        return self.row_ids.end

    @cached_property
    def is_dense(self) -> bool:
        """Whether the number of each row is its position."""
        starts, lengths = self.row_ids.starts, self.row_ids.lengths
        return not len(starts) or (len(starts) == 1 and not starts[0] and bool(lengths[0]))

    @property
    def nbytes(self) -> int:
        """The memory that it takes, without the ids."""
        made = (self.__dict__.get(name) for name in ("of_rows", "rows"))
        arrays = [self.row_ids.starts, self.row_ids.lengths, *made]
        return sum(array.nbytes for array in arrays if array is not None)

    @property
    def row_count(self) -> int:
        """How many nodes there are."""
        return self.row_ids.row_count

    @cached_property
    def of_rows(self) -> np.ndarray:
        """The number of each row, in the order of a scan. Reads no data file."""
        return self.row_ids.to_array().astype(np.uint32)

    @cached_property
    def rows(self) -> np.ndarray:
        """The position of the row of each number; `NOTHING` where a number is of no node."""
        if self.is_dense:
            return self.of_rows
        rows = np.full(self.size, NOTHING)
        rows[self.of_rows] = np.arange(self.row_count, dtype=np.uint32)
        return rows

    def find(self, ids: Sequence[str] | pa.Array | pa.ChunkedArray) -> np.ndarray:
        """The number of the node with each id; `NOTHING` for an unknown id.

        Few ids are looked up, by an index or in memory; for many, the ids of the table are read.
        """
        if not len(ids):
            return np.empty(0, np.uint32)
        if self.row_count <= NUMBERED_IN_MEMORY_ROWS_MAX:
            texts = ids.to_pylist() if isinstance(ids, (pa.Array, pa.ChunkedArray)) else ids
            known = self._by_id
            return np.array([known.get(text, NOTHING) for text in texts], np.uint32)
        wanted = ids if isinstance(ids, (pa.Array, pa.ChunkedArray)) else pa.array(ids, pa.string())
        if len(wanted) > KEYS_PER_LOOKUP_MAX:
            every = read_all_fragments(self.table, ["id"])["id"]
            return self._pick(wanted, every, self.of_rows)
        if not lookups.is_found_cheaply(self.table, "id"):
            every = read_all_fragments(self.table, ["id"])["id"]
            is_wanted = pc.is_in(every, value_set=wanted)
            numbers = self.of_rows[is_wanted.to_numpy()]
            return self._pick(wanted, every.filter(is_wanted), numbers)
        texts = wanted.to_pylist()
        found = lookups.find(self.table, "id", texts, columns=["id", ROW_ID])
        return self._pick(wanted, found["id"], found[ROW_ID].to_numpy().astype(np.uint32))

    @cached_property
    def _by_id(self) -> dict[str, int]:
        ids = read_all_fragments(self.table, ["id"])["id"].to_pylist()
        return dict(zip(ids, self.of_rows.tolist(), strict=True))

    @staticmethod
    def _pick(
        wanted: pa.Array | pa.ChunkedArray, ids: pa.ChunkedArray, numbers: np.ndarray
    ) -> np.ndarray:
        """The number of each wanted id, among ids with their numbers."""
        places = pc.index_in(wanted, value_set=ids.combine_chunks())
        if isinstance(places, pa.ChunkedArray):
            places = places.combine_chunks()
        at = places.fill_null(len(numbers)).to_numpy(zero_copy_only=False)
        picked: np.ndarray = np.append(numbers, NOTHING)[at]
        return picked


def number_nodes(table: Table, before: NodeNumbers | None = None) -> NodeNumbers | None:
    """The numbers of the nodes of a version. Reads no data file.

    None where so many rows were deleted that arrays over all numbers would mostly be of no node.

    Args:
        before: Those of another version of this table, which makes it faster.
    """
    row_ids = read_row_ids(table, None if before is None else before.row_ids)
    size_max = max(_SPARSE_NUMBERS_MIN, row_ids.row_count * NUMBERS_PER_ROW_MAX)
    if row_ids.end >= min(size_max, int(NOTHING)) + 1:
        return None
    return NodeNumbers(table.address, row_ids, lambda: table)
