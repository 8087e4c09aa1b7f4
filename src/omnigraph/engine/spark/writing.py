"""Writing by executors: data files and deletions of a table that no version refers to yet."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from omnigraph.engine.spark.failures import report_errors
from omnigraph.engine.spark.messages import to_message
from omnigraph.engine.spark.pieces import by_place, collect_parts
from omnigraph.engine.spark.relations import pack
from omnigraph.limits import LOAD_HELD_BYTES_MAX
from omnigraph.storage.places import fragment_ids_of
from omnigraph.storage.scans import open_address
from omnigraph.storage.staging import delete_rows, write_files, write_whole
from omnigraph.storage.tables import ROW_ADDRESS, ROW_ID, Fragment, Table, TableAddress


@dataclass(slots=True)
class RowWriter:
    """Writes new rows, and rows that replace others, to separate files.

    Attributes:
        replaces: Whether the files will be the whole table.
    """

    table: Table
    replaces: bool = False
    files: list[Fragment] = field(default_factory=list)
    added: list[pa.Table] = field(default_factory=list)
    replaced: list[pa.Table] = field(default_factory=list)

    def take(self, added: pa.Table | None = None, replaced: pa.Table | None = None) -> None:
        """Write new rows, and rows that replace others, which have the `ROW_ID` that they keep."""
        if added is not None:
            self.added.append(added)
        if replaced is not None:
            self.replaced.append(replaced)
        if sum(rows.nbytes for rows in (*self.added, *self.replaced)) > LOAD_HELD_BYTES_MAX:
            self._write()

    def finish(self) -> tuple[Fragment, ...]:
        """The files of all rows that were taken."""
        self._write()
        return tuple(self.files)

    def _write(self) -> None:
        if any(map(len, self.added)):
            added = pa.concat_tables(self.added)
            write = write_whole if self.replaces else write_files
            self.files += write(self.table, added)
        if any(map(len, self.replaced)):
            # Sorted row ids are small in the file's metadata.
            replaced = pa.concat_tables(self.replaced).sort_by(ROW_ID)
            row_ids = replaced[ROW_ID].to_pylist()
            self.files += write_files(self.table, replaced.drop_columns([ROW_ID]), row_ids=row_ids)
        self.added, self.replaced = [], []


def fragment_groups(table: Table) -> dict[int, int]:
    """The number of the task that deletes rows of each fragment."""
    fragments = table.fragments()
    groups = pack([fragment.num_rows for fragment in fragments], cores=1)
    return {fragments[at].id: number for number, group in enumerate(groups) for at in group}


def numbers_of(values: np.ndarray, numbers: Mapping[int, int]) -> np.ndarray:
    """The number of each value."""
    distinct, inverse = np.unique(values, return_inverse=True)
    return np.array([numbers[value] for value in distinct.tolist()], np.int32)[inverse]


def cut_deletions(addresses: pa.Table, group_of: Mapping[int, int]) -> Iterator[pa.RecordBatch]:
    """Pieces of the column `ROW_ADDRESS`, for the tasks that delete rows of those fragments."""
    fragment_ids = fragment_ids_of(addresses[ROW_ADDRESS].to_numpy())
    return by_place(addresses.select([ROW_ADDRESS]), numbers_of(fragment_ids, group_of), 0)


def delete_groups(
    address: TableAddress, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Write deletions of groups of fragments. Runs in an executor; safe to run twice."""
    with report_errors():
        for parts in collect_parts(batches).values():
            for addresses in parts.values():
                deletions = delete_rows(open_address(address), addresses[ROW_ADDRESS])
                yield to_message(deletions)
