"""The choice of an engine for a load, by the size of its inputs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from omnigraph.choices import EngineName
from omnigraph.engine.choose import Choice, Constraint, Measure, by_size
from omnigraph.errors import InvalidParameterError
from omnigraph.limits import LOAD_LOCAL_BYTES_MAX, LOAD_LOCAL_ROWS_MAX
from omnigraph.load.sources import (
    FileInput,
    FrameInput,
    Inputs,
    MemoryInput,
    SparkFile,
    StreamInput,
)


def choose_engine(inputs: Inputs, wanted: str | None) -> Choice:
    """The engine that argument or environment name, or the one that fits the inputs."""
    return by_size(wanted, _measures(inputs), _constraint(inputs))


def choose_finder(wanted: str | None) -> Choice:
    """The engine whose file systems are searched for a URL that no object store has."""
    return by_size(wanted, (), Constraint(EngineName.SPARK, "only Spark has other file systems"))


def _constraint(inputs: Inputs) -> Constraint | None:
    frames = [source for source in inputs.items if isinstance(source, FrameInput)]
    if frames:
        why = f"the rows of {frames[0].name} are Spark's"
        message = f"{why}, and only Spark can load them"
        hint = "load with the engine spark"
        refusal = InvalidParameterError(message, hint=hint, name="engine")
        return Constraint(EngineName.SPARK, why, refusal)
    for source in inputs.items:
        if isinstance(source, FileInput) and isinstance(source.path, SparkFile):
            why = f"only Spark can read {source.name}"
            hint = "load with the engine spark"
            refusal = InvalidParameterError(why, hint=hint, name="engine")
            return Constraint(EngineName.SPARK, why, refusal)
    if any(isinstance(source, StreamInput) for source in inputs.items):
        return Constraint(EngineName.LOCAL, "a stream can be read by this process alone")
    return None


def _measures(inputs: Inputs) -> Iterator[Measure]:
    byte_count = sum(map(_byte_count, inputs.items))
    yield Measure.of_bytes(byte_count, LOAD_LOCAL_BYTES_MAX, "{} of input")
    row_count = sum(map(_row_count, inputs.items))
    yield Measure.of_count(row_count, LOAD_LOCAL_ROWS_MAX, "row to load")


def _byte_count(source: Any) -> int:
    if isinstance(source, FileInput):
        return source.unpacked_byte_count
    if isinstance(source, MemoryInput):
        byte_count = getattr(source.rows, "nbytes", None)
        return byte_count if isinstance(byte_count, int) else 0
    return 0


def _row_count(source: Any) -> int:
    rows = source.rows if isinstance(source, MemoryInput) else ()
    return len(rows) if hasattr(rows, "__len__") else 0
