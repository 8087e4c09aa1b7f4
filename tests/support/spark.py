"""One small Spark session for a whole test run."""

from pathlib import Path

from pyspark.sql import SparkSession

from omnigraph.engine.spark.session import open_session
from omnigraph.engine.spark.settings import SessionSettings, Workload


def small_session(cache_directory: Path) -> SparkSession:
    """The session of this process: two cores, one gigabyte, few partitions, quick to start."""
    settings = SessionSettings(
        master="local[2]",
        work=Workload.SHORT,
        driver_memory="1g",
        cache_directory=cache_directory,
        options={"spark.sql.shuffle.partitions": "3"},
    )
    return open_session(settings)


def connect_session(address: str) -> SparkSession:
    """The session of this process on a server of Spark Connect."""
    return open_session(SessionSettings(master=address))
