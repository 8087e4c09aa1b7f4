"""Parquet files: their row groups, read and shaped a batch at a time."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow.parquet as pq

from omnigraph.errors import InvalidInputError
from omnigraph.limits import LOAD_BATCH_ROWS
from omnigraph.load.readers.batches import SplitBatch, named_columns, shape_record_batches
from omnigraph.load.readers.opening import open_file, translate_errors
from omnigraph.load.shaping.batches import Shaping
from omnigraph.load.sources import FileInput
from omnigraph.load.splits import FileSplit, RowGroupSplit


def read_parquet(
    shaping: Shaping, number: int, split: FileSplit | RowGroupSplit, *, access_hint: str
) -> Iterator[SplitBatch]:
    """Read and shape a file, or some of its row groups."""
    source = split.file
    assert source.type_name is not None, "a file of columns has rows of one type"
    _require_bytes(source)
    with open_file(source, access_hint=access_hint) as (stream, _), translate_errors(source.name):
        file = pq.ParquetFile(stream)
        groups, first, byte_count = list(range(file.num_row_groups)), 1, source.byte_count
        if isinstance(split, RowGroupSplit):
            groups, first, byte_count = list(split.groups), split.first, split.byte_count
        type_ = shaping.catalog.type_named(source.type_name)
        named = named_columns(shaping, type_, file.schema_arrow.names, source)
        if not groups:
            return
        columns = list(named.values())
        batches = (
            batch.select(columns).rename_columns(list(named))
            for batch in file.iter_batches(LOAD_BATCH_ROWS, row_groups=groups, columns=columns)
        )
        total = sum(file.metadata.row_group(group).num_rows for group in groups)
        done = 0
        for row_count, shaped in shape_record_batches(
            shaping, number, type_.name, batches, first=first
        ):
            done += row_count
            yield SplitBatch(shaped, byte_count * done // total)


def row_group_sizes(source: FileInput, *, access_hint: str) -> list[tuple[int, int]]:
    """How many bytes and rows each row group of a file has."""
    _require_bytes(source)
    with open_file(source, access_hint=access_hint) as (stream, _), translate_errors(source.name):
        metadata = pq.read_metadata(stream)
        groups = (metadata.row_group(number) for number in range(metadata.num_row_groups))
        return [(group.total_byte_size, group.num_rows) for group in groups]


def _require_bytes(source: FileInput) -> None:
    """Refuse a file without bytes; a Parquet file without rows has some."""
    if not source.byte_count:
        message = f"{source.name} is empty, so it is not a Parquet file"
        raise InvalidInputError(message, hint="write it again; one without rows has its columns")
