"""The engines that the one suite of rules runs on."""

from pathlib import Path
from typing import Final

import pytest

from omnigraph.engine.local.execute import LocalEngine
from omnigraph.engine.protocol import Engine, EngineName
from tests.contract.integrity.builders import World, world

ENGINES: Final = (EngineName.LOCAL, EngineName.SPARK)


@pytest.fixture(scope="session", params=ENGINES)
def engine(request: pytest.FixtureRequest) -> Engine:
    """Every engine there is, one after the other."""
    if request.param is EngineName.LOCAL:
        return LocalEngine()
    # Imported here: a run of the local engine must not pay for Spark.
    from omnigraph.engine.spark.execute import SparkEngine

    return SparkEngine(request.getfixturevalue("spark"))


@pytest.fixture
def place(tmp_path: Path, engine: Engine) -> World:
    """A place for graphs, and each engine in turn."""
    return world(tmp_path / "graph", engine)


@pytest.fixture
def here(tmp_path: Path) -> World:
    """A place for graphs and the local engine, for promises that no engine can change."""
    return world(tmp_path / "graph", LocalEngine())
