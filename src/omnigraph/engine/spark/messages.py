"""Messages from tasks to the driver: small pickled values, one to a row."""

from __future__ import annotations

import pickle
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import DataFrame

MESSAGE: Final = "message binary"
"""The one column of a frame of messages."""


def to_message(content: object) -> pa.RecordBatch:
    """A message, as the row that a task yields."""
    return pa.record_batch({"message": pa.array([pickle.dumps(content)], pa.binary())})


def collect_messages(messages: DataFrame) -> list[Any]:
    """The messages of all tasks. They hold names of files, counts and models, never rows."""
    return [pickle.loads(row.message) for row in messages.collect()]
