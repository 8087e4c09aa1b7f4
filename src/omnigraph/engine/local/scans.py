"""Pinned tables for DuckDB: in memory where they are small, else scanned with its filters in Lance.

When it orders joins, DuckDB assumes one row for every Lance dataset, and knows the size of an Arrow
table. So the tables of a plan with joins are read into Arrow where they are small; what was read
stays in memory (`storage.columns`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.dataset as ds

from omnigraph.limits import KEPT_TABLE_BYTES_MAX
from omnigraph.storage.columns import Run, is_blob, read_all_fragments, split_runs
from omnigraph.storage.indexes import covered_by_column
from omnigraph.storage.streams import Relay, translate_stream
from omnigraph.storage.tables import Table


def joinable(table: Table, columns: tuple[str, ...]) -> pa.Table | None:
    """The columns in memory, or None if the table is too large for that."""
    if table.count_bytes() > KEPT_TABLE_BYTES_MAX:
        return None
    return read_all_fragments(table, columns)


def scannable(
    table: Table, columns: tuple[str, ...], relay: Relay, *, uses_indexes: bool = True
) -> pa.Table | ds.Dataset:
    """A source of these columns that DuckDB can read any number of times.

    Args:
        relay: Receives the errors that occur while DuckDB reads.
        uses_indexes: Whether Lance answers DuckDB's filters by its indexes, where it has such.
    """
    if any(is_blob(table.schema.field(name)) for name in columns):
        # A plain scan returns descriptors of blobs in the place of their bytes.
        return table.read(columns)
    return ScannedTable(table, columns, relay, uses_indexes=uses_indexes)


@dataclass(frozen=True, slots=True)
class Scan:
    """One pass over rows, with the part of pyarrow's scanner that DuckDB uses."""

    reader: pa.RecordBatchReader

    @property
    def projected_schema(self) -> pa.Schema:
        """The columns of the rows."""
        return self.reader.schema

    def to_reader(self) -> pa.RecordBatchReader:
        """The rows."""
        return self.reader


class ScannedTable(ds.Dataset):  # type: ignore[misc]
    """A pinned table for DuckDB to scan; the relay receives its errors.

    DuckDB passes its filters to the dataset and does not apply them again. Lance refuses filters
    on unsigned integers and on vectors (tests/contract/engine/test_pushdown.py), and any filter on
    a table with a list of unsigned integers, whatever it reads. So where a table has such columns,
    pyarrow applies the filters to each batch from Lance, and so it does to small fragments, which
    are in memory.
    """

    def __init__(
        self, table: Table, columns: Sequence[str], relay: Relay, *, uses_indexes: bool
    ) -> None:
        self._table = table
        self._columns = list(columns)
        self._relay = relay
        self._uses_indexes = uses_indexes

    @property
    def schema(self) -> pa.Schema:
        """The columns that the plan uses."""
        return pa.schema([self._table.schema.field(name) for name in self._columns])

    def scanner(
        self,
        columns: Sequence[str] | None = None,
        filter: ds.Expression | None = None,  # noqa: A002  # what pyarrow calls it
        **_: object,
    ) -> Scan:
        """One pass over the rows; DuckDB calls this for each that its plan needs."""
        names = self._columns if columns is None else list(columns)
        with self._relay.hold(), self._table.translate_errors("reading"):
            rows = self._rows(names, filter)
        # Outermost, so that no thread of pyarrow's own waits for Python.
        stream = translate_stream(rows, "reading", str(self._table.address))
        return Scan(self._relay.carry(stream))

    def _rows(self, columns: list[str], filter_: ds.Expression | None) -> pa.RecordBatchReader:
        scanned = frozenset[int]() if filter_ is None else self._indexed_fragments()
        runs = split_runs(self._table, self._columns, scanned=scanned)
        if runs is None:
            return self._scan(columns, filter_)
        schema = pa.schema([self._table.schema.field(name) for name in columns])
        batches = self._batches(runs, columns, filter_)
        return pa.RecordBatchReader.from_batches(schema, batches)

    def _indexed_fragments(self) -> frozenset[int]:
        """The fragments where an index may find a few rows, without all of them being read."""
        if not self._uses_indexes:
            return frozenset()
        covered = covered_by_column(self._table)
        return frozenset[int]().union(*(covered.get(name, ()) for name in self._columns))

    def _batches(
        self, runs: Sequence[Run], columns: list[str], filter_: ds.Expression | None
    ) -> Iterator[pa.RecordBatch]:
        for run in runs:
            if run.rows is None:
                yield from self._scan(columns, filter_, run.fragment_ids)
            else:
                rows = ds.dataset(run.rows)
                yield from rows.scanner(columns=columns, filter=filter_).to_reader()

    def _scan(
        self,
        columns: list[str],
        filter_: ds.Expression | None,
        fragment_ids: Sequence[int] | None = None,
    ) -> pa.RecordBatchReader:
        handle = self._table.handle
        chosen = None if fragment_ids is None else self._table.open_fragments(fragment_ids)
        if not self._refuses_filters():
            return handle.scanner(
                columns=columns,
                filter=filter_,
                fragments=chosen,
                use_scalar_index=self._uses_indexes and not self._table.ignores_indexes,
            ).to_reader()
        rows = handle.scanner(columns=self._columns, fragments=chosen).to_reader()
        return ds.Scanner.from_batches(rows, columns=columns, filter=filter_).to_reader()

    def _refuses_filters(self) -> bool:
        return any(_cannot_be_filtered(field.type) for field in self.schema) or any(
            _spoils_filters(field.type) for field in self._table.schema
        )


def _cannot_be_filtered(kind: pa.DataType) -> bool:
    return bool(pa.types.is_unsigned_integer(kind) or pa.types.is_fixed_size_list(kind))


def _spoils_filters(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) and pa.types.is_unsigned_integer(kind.value_type))
