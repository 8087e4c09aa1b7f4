"""Files of an export: the formats, their columns, and writing the rows of a type to one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, assert_never

import pyarrow as pa

from omnigraph.choices import ExportFormat
from omnigraph.errors import InvalidInputError, InvalidParameterError
from omnigraph.formats.compression import Compression, compression_of, suffix_of
from omnigraph.formats.lines import csv_header, csv_lines, envelope_lines
from omnigraph.formats.sinks import STANDARD_OUTPUT, Sink, compress
from omnigraph.schema.arrow import table_schema
from omnigraph.schema.catalog import ENDPOINTS, EdgeType, SchemaType

_ENDS: Final = ("from", "to")


_NAMES: Final = {"ndjson": ExportFormat.NDJSON, **{kind.suffix: kind for kind in ExportFormat}}


def choose_format(name: str | None, target: str) -> ExportFormat:
    """The format of that name, or NDJSON."""
    if name is not None and name not in _NAMES:
        message = f"{name!r} is not a valid format"
        raise InvalidParameterError(message, hint=f"use one of {', '.join(_NAMES)}", name="format")
    chosen = _NAMES[name] if name is not None else ExportFormat.NDJSON
    stem = target.removesuffix(suffix_of(compression_of(target)))
    if name is None and stem.endswith((".csv", ".parquet")):
        kind = stem.rpartition(".")[2]
        message = f"{target} names one file, and {kind} has one for each type"
        raise InvalidInputError(message, hint=f"give a directory, and the format {kind}")
    if chosen is not ExportFormat.NDJSON and target == STANDARD_OUTPUT:
        message = f"{chosen.value} has one file for each type, and standard output is one"
        raise InvalidInputError(message, hint="give a directory")
    return chosen


def file_schema(type_: SchemaType) -> pa.Schema:
    """The columns of a type in CSV and Parquet: its id and ends, then its properties.

    The ends of an edge are `from` and `to`, as in an envelope; where a property has one of these
    names, they are `src` and `dst`, which no property may be called.
    """
    stored = table_schema(type_)
    names = dict(zip(ENDPOINTS, _ENDS, strict=True)) if isinstance(type_, EdgeType) else {}
    if set(_ENDS) & {property_.name for property_ in type_.properties}:
        names = {}
    return pa.schema(
        [
            pa.field(names.get(field.name, field.name), field.type, nullable=field.nullable)
            for field in map(_remove_metadata, stored)
        ]
    )


def _remove_metadata(field: pa.Field) -> pa.Field:
    if pa.types.is_list(field.type):
        item = field.type.value_field.remove_metadata()
        return pa.field(field.name, pa.list_(item), nullable=field.nullable)
    return field.remove_metadata()


def write_lines(type_: SchemaType, batches: Iterable[pa.RecordBatch], stream: Sink) -> int:
    """Write the rows as envelopes; returns how many."""
    rows = 0
    for batch in batches:
        stream.write(envelope_lines(type_, batch))
        rows += batch.num_rows
    return rows


def write_file(
    type_: SchemaType,
    batches: Iterable[pa.RecordBatch],
    file: pa.NativeFile,
    *,
    format: ExportFormat,  # noqa: A002  # what everybody calls it
    compression: Compression | None,
) -> int:
    """Write the rows, with the columns of `table_schema`, to a file; return how many."""
    match format:
        case ExportFormat.NDJSON:
            with compress(file, compression) as stream:
                return write_lines(type_, batches, stream)
        case ExportFormat.CSV:
            with compress(file, compression) as stream:
                return _write_csv(type_, batches, stream)
        case ExportFormat.PARQUET:
            return _write_parquet(type_, batches, file)
        case _:
            assert_never(format)


def _write_csv(type_: SchemaType, batches: Iterable[pa.RecordBatch], stream: Sink) -> int:
    rows = 0
    stream.write(csv_header(file_schema(type_)))
    for batch in batches:
        stream.write(csv_lines(type_, batch))
        rows += batch.num_rows
    return rows


def _write_parquet(
    type_: SchemaType, batches: Iterable[pa.RecordBatch], file: pa.NativeFile
) -> int:
    # Imported here: most exports need none of it.
    import pyarrow.parquet as pq

    schema = file_schema(type_)
    rows = 0
    with pq.ParquetWriter(file, schema, compression="zstd") as writer:
        group: list[pa.RecordBatch] = []
        for batch in batches:
            group.append(pa.RecordBatch.from_arrays(batch.columns, schema=schema))
            rows += batch.num_rows
            if sum(part.nbytes for part in group) >= _ROW_GROUP_BYTES:
                writer.write_table(pa.Table.from_batches(group))
                group.clear()
        if group:
            writer.write_table(pa.Table.from_batches(group))
    return rows


_ROW_GROUP_BYTES: Final = 64 << 20
"""Rows that are written together: readers skip whole groups."""
