"""Failures of a data source: the user reads our message first, without the stack of a worker."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from omnigraph.errors import OmnigraphError


@contextmanager
def hide_frames() -> Iterator[None]:
    """In a worker of Spark: an error of ours is reported without its stack.

    Spark reads the variable, which `spark.sql.execution.pyspark.udf.hideTraceback.enabled` sets
    otherwise, when the error leaves the worker. The worker ends with it.
    """
    try:
        yield
    except OmnigraphError:
        os.environ["SPARK_HIDE_TRACEBACK"] = "1"
        raise
