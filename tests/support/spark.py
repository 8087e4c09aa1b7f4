"""How tests start Spark: one small session for a whole test run."""

import os
from pathlib import Path

from omnigraph.engine.spark.settings import SessionSettings, Workload
from tests.support.connect import ADDRESS_VARIABLE


def session_settings(cache_directory: Path) -> SessionSettings:
    """Two cores, one gigabyte, few partitions, quick to start; or a server of Spark Connect."""
    if (address := os.environ.get(ADDRESS_VARIABLE)) is not None:
        return SessionSettings(master=address)
    return SessionSettings(
        master="local[2]",
        work=Workload.SHORT,
        driver_memory="1g",
        cache_directory=cache_directory,
        options={"spark.sql.shuffle.partitions": "3"},
    )
