"""Scans of pinned tables by DuckDB: with its filters in Lance where Lance supports them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.dataset as ds

from omnigraph.schema.arrow import BLOB_MARK
from omnigraph.storage.streams import Relay, translate_stream
from omnigraph.storage.tables import Table


def scannable(
    table: Table, columns: tuple[str, ...], relay: Relay, *, uses_indexes: bool = True
) -> pa.Table | ds.Dataset:
    """A source of these columns that DuckDB can read any number of times.

    Args:
        relay: Receives the errors that occur while DuckDB reads.
        uses_indexes: Whether Lance answers DuckDB's filters by its indexes, where it has such.
    """
    if any(_is_blob(table.schema.field(name)) for name in columns):
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
    on unsigned integers and on vectors (tests/contract/engine/test_pushdown.py), so where a table
    has such columns, pyarrow applies the filters to each batch from Lance.
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
        handle = self._table.handle
        if not any(_refuses_filters(field.type) for field in self.schema):
            return handle.scanner(
                columns=columns, filter=filter_, use_scalar_index=self._uses_indexes
            ).to_reader()
        rows = handle.scanner(columns=self._columns).to_reader()
        return ds.Scanner.from_batches(rows, columns=columns, filter=filter_).to_reader()


def _refuses_filters(kind: pa.DataType) -> bool:
    return bool(pa.types.is_unsigned_integer(kind) or pa.types.is_fixed_size_list(kind))


def _is_blob(field: pa.Field) -> bool:
    if pa.types.is_list(field.type):
        return _is_blob(field.type.value_field)
    # A table that was created without rows has only the mark (docs/substrate.md, Other columns).
    if BLOB_MARK.keys() & (field.metadata or {}).keys():
        return True
    return isinstance(field.type, pa.BaseExtensionType) or bool(pa.types.is_struct(field.type))
