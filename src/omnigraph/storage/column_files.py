"""Column files: values of new columns for the rows of one fragment, in a data file of their own.

A fragment is a list of files with the same number of rows, each with other columns. So a column is
added to a fragment by one more file, and what the fragment has already is neither read nor written.
Deleted rows count: the file has a meaningless value for each, which nothing reads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
from lance import LanceFragment, LanceOperation
from lance.dataset import Transaction
from lance.fragment import DataFile, write_fragments

from omnigraph.errors import InvalidInputError
from omnigraph.limits import ROWS_PER_BATCH_MAX, WIDE_BATCH_BYTES
from omnigraph.storage import truncation
from omnigraph.storage.fields import StoredColumn, read_columns
from omnigraph.storage.places import offsets_of
from omnigraph.storage.streams import Relay
from omnigraph.storage.tables import ROW_ADDRESS, Table
from omnigraph.storage.translate import translate_errors

_BYTES_UNLIMITED: Final = 1 << 62
"""The fragment exists already, and its rows stay together, however large their new values are."""

Compute: TypeAlias = "Callable[[pa.RecordBatch], pa.RecordBatch]"


@dataclass(frozen=True, slots=True)
class TableColumn:
    """One column of the table afterwards.

    Attributes:
        field: Its name, type and nullability, as a table is created with it.
        source: The column of the table whose stored values it keeps, perhaps under another name or
            nullability; None for a new column.
    """

    field: pa.Field
    source: str | None = None

    @property
    def name(self) -> str:
        """The name it will have."""
        name: str = self.field.name
        return name

    def with_nulls(self, *, allowed: bool) -> TableColumn:
        """The same column with another nullability."""
        return TableColumn(self.field.with_nullable(allowed), self.source)


@dataclass(frozen=True, slots=True)
class ColumnFile:
    """The values of new columns in one fragment; small, and can be sent to any process.

    Attributes:
        fields: For each field in the file, its column and its place among the column's fields.
        file: The file, with numbers of fields that only the writer of the file knew.
    """

    fragment_id: int
    fields: tuple[tuple[str, int], ...]
    file: DataFile

    @property
    def columns(self) -> frozenset[str]:
        """The columns that have values in the file."""
        return frozenset(name for name, _ in self.fields)

    def numbered(self, columns: Mapping[str, StoredColumn]) -> DataFile:
        """The file with the numbers that the table will know its columns by."""
        file = self.file
        return DataFile(
            file.path,
            [columns[name].ids[place] for name, place in self.fields],
            file.column_indices,
            file.file_major_version,
            file.file_minor_version,
            file.file_size_bytes,
        )


def write_column_file(
    table: Table,
    fragment_id: int,
    fields: Sequence[pa.Field],
    *,
    reading: Sequence[str],
    compute: Compute,
    copies: Sequence[TableColumn] = (),
) -> ColumnFile:
    """Write the values of new columns for one fragment, as a file that is still unreferenced.

    Rows are read and written in batches. Safe to run in any process and to run twice: only files
    named in a staged write count.

    Args:
        fields: The new columns. One that may be null here may be required of the table later.
        reading: The columns of the table that the values are computed from; may be empty.
        compute: Makes a batch of exactly `fields` from a batch of live rows, row by row. The batch
            has the columns of `reading` and `ROW_ADDRESS`. What it raises is raised here.
        copies: Further columns, with the values of their source, or with nulls if they have none.
    """
    schema = pa.schema([*fields, *(column.field for column in copies)])
    sources = [column.source for column in copies if column.source is not None]
    fragment = table.handle.get_fragment(fragment_id)
    assert fragment is not None, "the fragment was found in this same version"

    def make(batch: pa.RecordBatch) -> pa.RecordBatch:
        computed = compute(batch) if fields else batch
        assert computed.num_rows == batch.num_rows, "each row has its values"
        columns = [computed.column(field.name) for field in fields]
        copied = (_copy(batch, column) for column in copies)
        return pa.RecordBatch.from_arrays([*columns, *copied], schema=schema)

    batches = _scan(table, fragment, [*reading, *sources])
    rows = _spread_batches(batches, make, schema, row_count=fragment.physical_rows)
    reader = pa.RecordBatchReader.from_batches(schema, rows)
    operation = _write(table, reader, row_count=fragment.physical_rows)
    [written] = operation.fragments
    assert written.physical_rows == fragment.physical_rows, "deleted rows have values, too"
    places = _places(read_columns(operation.new_schema))
    [file] = written.files
    return ColumnFile(fragment_id, tuple(places[number] for number in file.fields), file)


def _copy(batch: pa.RecordBatch, column: TableColumn) -> pa.Array:
    if column.source is None:
        return pa.nulls(batch.num_rows, column.field.type)
    return batch.column(column.source).cast(column.field.type)


def describe_columns(table: Table, fields: Sequence[pa.Field]) -> dict[str, StoredColumn]:
    """How the table's storage format stores such columns; the numbers mean nothing. No I/O."""
    operation = _write(table, pa.schema(fields).empty_table().to_reader(), row_count=1)
    assert not operation.fragments, "there are no rows"
    return read_columns(operation.new_schema)


def _write(table: Table, rows: pa.RecordBatchReader, *, row_count: int) -> LanceOperation.Overwrite:
    """Write up to `row_count` rows of other columns as one file, where the table keeps its files.

    An append would compare the columns with those of the table; the overwrite is never committed.
    """
    relay = Relay()
    with relay.reraise(), translate_errors("staging columns of", table.address.uri):
        transaction = write_fragments(
            relay.carry(rows),
            table.handle,
            schema=rows.schema,
            mode="overwrite",
            # Not a huge number: Lance uses its last 32 bits (docs/substrate.md, Other columns).
            max_rows_per_file=row_count,
            max_bytes_per_file=_BYTES_UNLIMITED,
            data_storage_version=table.handle.data_storage_version,
            enable_stable_row_ids=True,
            return_transaction=True,
        )
    assert isinstance(transaction, Transaction), "it was requested"
    operation = transaction.operation
    assert isinstance(operation, LanceOperation.Overwrite), "that is what this mode makes"
    truncation.require_data(table.address, operation.fragments)
    return operation


def _places(columns: Mapping[str, StoredColumn]) -> dict[int, tuple[str, int]]:
    """For the number of each field, its column and its place there."""
    return {
        number: (name, place)
        for name, column in columns.items()
        for place, number in enumerate(column.ids)
    }


def _spread_batches(
    batches: Iterable[pa.RecordBatch], make: Compute, schema: pa.Schema, *, row_count: int
) -> Iterator[pa.RecordBatch]:
    """The new values of the live rows, each at its offset, with fillers for the other rows."""
    fillers = [make_filler(field.type) for field in schema]
    first = 0
    for batch in batches:
        if not batch.num_rows:
            # Lance may return a batch of which all rows are deleted.
            continue
        values = make(batch)
        _require_values(values)
        offsets = offsets_of(batch.column(ROW_ADDRESS).to_numpy()).astype(np.int64)
        end = int(offsets[-1]) + 1
        yield from _spread(values, fillers, offsets - first, length=end - first)
        first = end
    none = pa.RecordBatch.from_pylist([], schema=schema)
    rest = row_count - first
    yield from _spread(none, fillers, np.empty(0, np.int64), length=rest)


def _scan(
    table: Table, fragment: LanceFragment, reading: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    """The live rows of a fragment in the order of their offsets."""
    with translate_errors("reading", str(table.address)):
        scanner = table.handle.scanner(
            columns=list(dict.fromkeys([*reading, ROW_ADDRESS])),
            fragments=[fragment],
            # Whichever is less: new values may be much larger than those that are read.
            batch_size=ROWS_PER_BATCH_MAX,
            batch_size_bytes=WIDE_BATCH_BYTES,
            scan_in_order=True,
            blob_handling="all_binary",
        )
        yield from scanner.to_batches()


def _require_values(values: pa.RecordBatch) -> None:
    for field, column in zip(values.schema, values.columns, strict=True):
        if not field.nullable and column.null_count:
            message = f"column {field.name} may not be null, and {column.null_count} values are"
            raise InvalidInputError(message, hint="give every row a value, or let it be nullable")


def _spread(
    values: pa.RecordBatch, fillers: Sequence[pa.Array], places: np.ndarray, *, length: int
) -> Iterator[pa.RecordBatch]:
    """Batches of `length` rows together, with the values at these places and fillers elsewhere."""
    if length == len(places):
        if length:
            yield values
        return
    # Many rows may be deleted in a row, and a filler may be a vector.
    for start in range(0, length, ROWS_PER_BATCH_MAX):
        count = min(ROWS_PER_BATCH_MAX, length - start)
        low, high = np.searchsorted(places, [start, start + count]).tolist()
        # The filler stands behind the values.
        order = np.full(count, high - low)
        order[places[low:high] - start] = np.arange(high - low)
        columns = [
            pa.concat_arrays([column.slice(low, high - low), filler]).take(pa.array(order))
            for column, filler in zip(values.columns, fillers, strict=True)
        ]
        yield pa.RecordBatch.from_arrays(columns, schema=values.schema)


def make_filler(type_: pa.DataType) -> pa.Array:
    """One value that nothing reads; not a null: the column may be one that has none."""
    return pa.array([_zero(type_)], type_)


def _zero(type_: pa.DataType) -> Any:
    """Some value of a type, small where the type allows it."""
    if pa.types.is_fixed_size_list(type_):
        return [_zero(type_.value_type)] * type_.list_size
    if pa.types.is_list(type_):
        # Lance cannot read a page that has empty lists of blobs only (docs/substrate.md, Lists of
        # blobs).
        return [_zero(type_.value_type)]
    if pa.types.is_string(type_):
        return ""
    if pa.types.is_large_binary(type_):
        return b""
    return False if pa.types.is_boolean(type_) else 0
