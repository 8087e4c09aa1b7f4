"""An engine in the session of the run, and a place for tables."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from omnigraph.engine.spark.execute import SparkEngine
from omnigraph.storage.store import Store


@pytest.fixture
def engine(spark: SparkSession) -> SparkEngine:
    return SparkEngine(spark)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """A store with nothing in it, at a path that must be quoted wherever it is passed on."""
    return Store.open(tmp_path / "a graph's place")
