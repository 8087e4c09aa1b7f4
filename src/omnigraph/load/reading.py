"""Reading a load's inputs: each split is read once, and its rows shaped a batch at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import assert_never

import pyarrow as pa

from omnigraph.load.readers.batches import SplitBatch, shape_record_batches
from omnigraph.load.readers.csv_files import read_csv
from omnigraph.load.readers.line_files import read_lines
from omnigraph.load.readers.memory_rows import read_memory
from omnigraph.load.readers.opening import ACCESS_HINT
from omnigraph.load.routes import Route
from omnigraph.load.shaping.batches import Shaping
from omnigraph.load.sources import Form
from omnigraph.load.splits import (
    FileSplit,
    LineRangeSplit,
    MemorySplit,
    PickledSplit,
    RowGroupSplit,
    Split,
    SpooledSplit,
    StreamSplit,
    StripeSplit,
)


def read_split(
    shaping: Shaping, number: int, split: Split, *, access_hint: str = ACCESS_HINT
) -> Iterator[SplitBatch]:
    """Read and shape one split, from beginning to end. Safe to run twice, unless it is a stream.

    Args:
        number: The split's place among those of the load, which the positions of its rows have.
        access_hint: What to do about a file that cannot be read.
    """
    match split:
        case FileSplit():
            yield from _read_file(shaping, number, split, access_hint)
        case LineRangeSplit() | StreamSplit() | SpooledSplit():
            yield from read_lines(shaping, number, split, access_hint=access_hint)
        case RowGroupSplit():
            yield from _read_parquet(shaping, number, split, access_hint)
        case StripeSplit():
            yield from _read_orc(shaping, number, split, access_hint)
        case MemorySplit() | PickledSplit():
            yield from read_memory(shaping, number, split)
        case _:
            assert_never(split)


def _read_file(
    shaping: Shaping, number: int, split: FileSplit, access_hint: str
) -> Iterator[SplitBatch]:
    match split.file.form:
        case Form.LINES:
            yield from read_lines(shaping, number, split, access_hint=access_hint)
        case Form.CSV:
            yield from read_csv(shaping, number, split, access_hint=access_hint)
        case Form.PARQUET:
            yield from _read_parquet(shaping, number, split, access_hint)
        case Form.ORC:
            yield from _read_orc(shaping, number, split, access_hint)
        case Form.AVRO:
            yield from _read_avro(shaping, number, split, access_hint)
        case _:
            assert_never(split.file.form)


def _read_parquet(
    shaping: Shaping, number: int, split: FileSplit | RowGroupSplit, access_hint: str
) -> Iterator[SplitBatch]:
    # Imported here: most loads do not need it.
    from omnigraph.load.readers.parquet_files import read_parquet

    yield from read_parquet(shaping, number, split, access_hint=access_hint)


def _read_orc(
    shaping: Shaping, number: int, split: FileSplit | StripeSplit, access_hint: str
) -> Iterator[SplitBatch]:
    from omnigraph.load.readers.orc_files import read_orc

    yield from read_orc(shaping, number, split, access_hint=access_hint)


def _read_avro(
    shaping: Shaping, number: int, split: FileSplit, access_hint: str
) -> Iterator[SplitBatch]:
    from omnigraph.load.readers.avro_files import read_avro

    yield from read_avro(shaping, number, split, access_hint=access_hint)


def read_frame(
    shaping: Shaping, number: int, of: str | Route, batches: Iterable[pa.RecordBatch]
) -> Iterator[SplitBatch]:
    """Shape a partition of a DataFrame; like `read_split`."""
    for row_count, shaped in shape_record_batches(shaping, number, of, batches):
        yield SplitBatch(shaped, line_count=row_count)
