"""Messages: what tasks tell the driver, small values that pickle, one to a row."""

from __future__ import annotations

import pickle
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import DataFrame

MESSAGE: Final = "message binary"
"""The one column of a frame of messages."""


def to_message(told: object) -> pa.RecordBatch:
    """What a task tells, as the row that it yields."""
    return pa.record_batch({"message": pa.array([pickle.dumps(told)], pa.binary())})


def collect_messages(messages: DataFrame) -> list[Any]:
    """What all tasks told. It names files and counts, and holds no rows."""
    return [pickle.loads(each.message) for each in messages.collect()]
