"""Cores: how many tasks a Spark runs at once, which decides into how many parts work is divided."""

from __future__ import annotations

from typing import Final

from pyspark.sql import SparkSession
from pyspark.sql import functions as sql

from omnigraph.engine.spark.connect import is_connect

_REMOTE: Final[dict[str, int]] = {}
"""By the id of a session of Spark Connect."""


def core_count(session: SparkSession) -> int:
    """How many tasks run at once."""
    if not is_connect(session):
        # Asked each time: executors come and go.
        return session.sparkContext.defaultParallelism
    session_id: str = session.session_id  # type: ignore[attr-defined]
    if session_id not in _REMOTE:
        _REMOTE[session_id] = _count_partitions(session)
    return _REMOTE[session_id]


def _count_partitions(session: SparkSession) -> int:
    """Into how many parts Spark itself divides a range: as many as it runs tasks at once."""
    parts = session.range(0, 1 << 16).select(sql.spark_partition_id().alias("part"))
    [[last]] = parts.agg(sql.max("part")).collect()
    return int(last) + 1
