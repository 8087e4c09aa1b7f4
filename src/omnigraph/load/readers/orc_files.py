"""ORC files: their stripes, read and shaped a batch at a time."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.orc as orc

from omnigraph.limits import LOAD_BATCH_ROWS
from omnigraph.load.readers.batches import SplitBatch, named_columns, shape_record_batches
from omnigraph.load.readers.opening import open_file, translate_errors
from omnigraph.load.shaping.batches import Shaping
from omnigraph.load.sources import FileInput
from omnigraph.load.splits import FileSplit, StripeSplit


def read_orc(
    shaping: Shaping, number: int, split: FileSplit | StripeSplit, *, access_hint: str
) -> Iterator[SplitBatch]:
    """Read and shape a file, or some of its stripes."""
    source = split.file
    assert source.type_name is not None, "a file of columns has rows of one type"
    with open_file(source, access_hint=access_hint) as (stream, _), translate_errors(source.name):
        file = orc.ORCFile(stream)
        stripes, byte_count = tuple(range(file.nstripes)), source.byte_count
        if isinstance(split, StripeSplit):
            stripes, byte_count = split.stripes, split.byte_count
        type_ = shaping.catalog.type_named(source.type_name)
        named = named_columns(shaping, type_, file.schema.names, source)
        first = 1
        for done, stripe in enumerate(stripes, 1):
            batches = _batches(file, stripe, named)
            for row_count, shaped in shape_record_batches(
                shaping, number, type_.name, batches, first=first
            ):
                first += row_count
                # Where a stripe begins is known when those before it are read.
                yield SplitBatch(shaped, byte_count * done // len(stripes), row_count)


def _batches(file: orc.ORCFile, stripe: int, named: dict[str, str]) -> Iterator[pa.RecordBatch]:
    rows = file.read_stripe(stripe, columns=list(named.values()))
    rows = rows.select(list(named.values())).rename_columns(list(named))
    for start in range(0, rows.num_rows, LOAD_BATCH_ROWS):
        yield rows.slice(start, LOAD_BATCH_ROWS)


def stripe_count(source: FileInput, *, access_hint: str) -> int:
    """How many stripes a file has."""
    with open_file(source, access_hint=access_hint) as (stream, _), translate_errors(source.name):
        count: int = orc.ORCFile(stream).nstripes
        return count
