"""Sources: the rows that variables range over, by number, and their columns in memory."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

import numpy as np
import pyarrow as pa

from omnigraph.engine.local.topology.numbers import NodeNumbers
from omnigraph.limits import KEPT_TABLE_BYTES_MAX
from omnigraph.storage.columns import is_blob, read_all_fragments
from omnigraph.storage.tables import Table


class UnmatchableError(Exception):
    """This pattern is not for arrays: it is answered by SQL. The text says why."""


class Source(Protocol):
    """The rows of a table, by number."""

    @property
    def size(self) -> int:
        """A number above those of all rows."""
        ...

    @property
    def row_count(self) -> int:
        """How many rows there are."""
        ...

    @property
    def every(self) -> np.ndarray:
        """The numbers of all rows, ascending."""
        ...

    def column(self, name: str) -> pa.ChunkedArray:
        """A column of all rows, in the order of `places`."""
        ...

    def places(self, numbers: np.ndarray) -> np.ndarray:
        """The positions of rows in columns."""
        ...

    def numbers(self, is_chosen: np.ndarray) -> np.ndarray:
        """The numbers, ascending, of the rows at the positions that are chosen."""
        ...


@dataclass(frozen=True)
class NodeSource:
    """The nodes of a table."""

    table: Table
    known: NodeNumbers
    columns: dict[str, pa.ChunkedArray] = field(default_factory=dict, compare=False)

    @property
    def size(self) -> int:
        """A number above those of all nodes."""
        return self.known.size

    @property
    def row_count(self) -> int:
        """How many nodes there are."""
        return self.known.row_count

    @property
    def every(self) -> np.ndarray:
        """The numbers of all nodes, ascending."""
        return _ascending(self.known.of_rows)

    def column(self, name: str) -> pa.ChunkedArray:
        """A property, or the id, of every node."""
        if name not in self.columns:
            self.columns[name] = read_column(self.table, name)
        return self.columns[name]

    def places(self, numbers: np.ndarray) -> np.ndarray:
        """The positions of nodes in columns."""
        return numbers if self.known.is_dense else self.known.rows[numbers]

    def numbers(self, is_chosen: np.ndarray) -> np.ndarray:
        """The numbers of the nodes at these positions, ascending."""
        if self.known.is_dense:
            return np.flatnonzero(is_chosen).astype(np.uint32)
        return _ascending(self.known.of_rows[is_chosen])


@dataclass(frozen=True)
class EdgeSource:
    """The edges of a table, numbered by position."""

    table: Table
    columns: dict[str, pa.ChunkedArray] = field(default_factory=dict, compare=False)

    @cached_property
    def size(self) -> int:
        """How many edges there are."""
        return self.table.count_rows()

    @property
    def row_count(self) -> int:
        """How many edges there are."""
        return self.size

    @property
    def every(self) -> np.ndarray:
        """The positions of all edges."""
        return np.arange(self.size, dtype=np.uint32)

    def column(self, name: str) -> pa.ChunkedArray:
        """A column of every edge."""
        if name not in self.columns:
            self.columns[name] = read_column(self.table, name)
        return self.columns[name]

    def places(self, numbers: np.ndarray) -> np.ndarray:
        """The same numbers."""
        return numbers

    def numbers(self, is_chosen: np.ndarray) -> np.ndarray:
        """The positions that are chosen."""
        return np.flatnonzero(is_chosen).astype(np.uint32)


def read_column(table: Table, name: str) -> pa.ChunkedArray:
    """A column that stays in memory."""
    if is_blob(table.schema.field(name)):
        message = f"{name} has blobs"
        raise UnmatchableError(message)
    if table.count_bytes() > KEPT_TABLE_BYTES_MAX:
        message = f"{table.address.location} is too large to be kept in memory"
        raise UnmatchableError(message)
    return read_all_fragments(table, [name])[name]


def take(source: Source, name: str, numbers: np.ndarray) -> pa.ChunkedArray:
    """The values of a column for these rows."""
    return source.column(name).take(pa.array(source.places(numbers)))


def _ascending(numbers: np.ndarray) -> np.ndarray:
    is_ascending = bool(np.all(numbers[1:] > numbers[:-1]))
    return numbers if is_ascending else np.sort(numbers)
