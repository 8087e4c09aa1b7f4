"""Which engine carries out a load, and why: by how much there is to read."""

from __future__ import annotations

from typing import Any

from omnigraph.choices import EngineName
from omnigraph.engine.choose import Choice, asked_engine, by_size
from omnigraph.errors import InvalidParameterError
from omnigraph.limits import LOAD_COMPRESSED_FACTOR, LOAD_LOCAL_BYTES_MAX, LOAD_LOCAL_ROWS_MAX
from omnigraph.load.sources import (
    FileInput,
    Form,
    FrameInput,
    Inputs,
    MemoryInput,
    StreamInput,
)


def choose_engine(inputs: Inputs, wanted: str | None) -> Choice:
    """The engine that was asked for, by argument or environment, or the one that fits.

    Raises:
        InvalidParameterError: there is no engine of that name, or it cannot read an input.
    """
    frames = [each for each in inputs.each if isinstance(each, FrameInput)]
    here = [each for each in inputs.each if isinstance(each, StreamInput | MemoryInput)]
    asked = asked_engine(wanted)
    if frames and asked is not None and asked.engine is EngineName.LOCAL:
        message = f"the rows of {frames[0].type_name} are Spark's, and only Spark can load them"
        raise InvalidParameterError(message, hint="load with the engine spark", name="engine")
    if asked is not None:
        return asked
    if frames:
        return Choice(EngineName.SPARK, f"the rows of {frames[0].type_name} are Spark's")
    if any(isinstance(each, StreamInput) for each in here):
        return Choice(EngineName.LOCAL, "a stream can be read by this process alone")
    byte_count = sum(map(_byte_count, inputs.each))
    row_count = sum(map(_row_count, inputs.each))
    if byte_count > LOAD_LOCAL_BYTES_MAX:
        why = f"the input has about {byte_count:,} bytes, more than {LOAD_LOCAL_BYTES_MAX:,}"
        return by_size(why, fits=False)
    if row_count > LOAD_LOCAL_ROWS_MAX:
        why = f"the input has {row_count:,} rows, more than {LOAD_LOCAL_ROWS_MAX:,}"
        return by_size(why, fits=False)
    why = f"the input has about {byte_count:,} bytes, at most {LOAD_LOCAL_BYTES_MAX:,}"
    return by_size(why, fits=True)


def _byte_count(each: Any) -> int:
    if isinstance(each, FileInput):
        is_packed = each.compression is not None or each.form is Form.PARQUET
        return each.byte_count * (LOAD_COMPRESSED_FACTOR if is_packed else 1)
    if isinstance(each, MemoryInput):
        found = getattr(each.rows, "nbytes", None)
        return found if isinstance(found, int) else 0
    return 0


def _row_count(each: Any) -> int:
    rows = each.rows if isinstance(each, MemoryInput) else ()
    return len(rows) if hasattr(rows, "__len__") else 0
