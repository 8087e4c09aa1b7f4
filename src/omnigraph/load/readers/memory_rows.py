"""Rows in memory: dictionaries, Arrow and what exports it; also sent by a driver."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from omnigraph.limits import LOAD_BATCH_ROWS
from omnigraph.load.positions import positions
from omnigraph.load.readers.batches import SplitBatch, shape_record_batches
from omnigraph.load.readers.opening import translate_errors
from omnigraph.load.routes import Route
from omnigraph.load.shaping.batches import Shaping
from omnigraph.load.shaping.values import shape_values
from omnigraph.load.splits import MemorySplit, PickledSplit


def read_memory(
    shaping: Shaping, number: int, split: MemorySplit | PickledSplit
) -> Iterator[SplitBatch]:
    """Read and shape rows that this process holds, or that were sent to it."""
    if isinstance(split, PickledSplit):
        rows = pickle.loads(split.rows)
        yield from _read(shaping, number, split.of, rows, split.first, split.byte_count)
    else:
        yield from _read(shaping, number, split.input.of, split.input.rows, 1, 0)


def _read(
    shaping: Shaping, number: int, of: str | Route, rows: Any, first: int, byte_count: int
) -> Iterator[SplitBatch]:
    if isinstance(rows, Sequence) and isinstance(of, str):
        for start in range(0, len(rows), LOAD_BATCH_ROWS):
            part: list[Mapping[str, Any]] = list(rows[start : start + LOAD_BATCH_ROWS])
            places = positions(number, first + start, len(part))
            yield SplitBatch(shape_values(shaping, of, part, places), byte_count)
        return
    name = of if isinstance(of, str) else of.column
    with translate_errors(f"the rows of {name}"):
        batches = record_batches(rows)
        for _, shaped in shape_record_batches(shaping, number, of, batches, first=first):
            yield SplitBatch(shaped, byte_count)


def record_batches(rows: Any) -> Iterator[pa.RecordBatch]:
    """The record batches of Arrow, or of anything else that exports an Arrow stream."""
    if isinstance(rows, pa.RecordBatch):
        rows = pa.Table.from_batches([rows])
    if isinstance(rows, pa.Table):
        # Chunks of columns need not be alike; whole columns are cut in one way.
        yield from rows.combine_chunks().to_batches(max_chunksize=LOAD_BATCH_ROWS)
    else:
        yield from pa.RecordBatchReader.from_stream(rows)
