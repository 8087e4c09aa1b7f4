"""The engines that merges run on."""

from typing import Final

import pytest

from omnigraph.choices import EngineName
from omnigraph.engine.local.execute import LocalEngine
from omnigraph.engine.protocol import Engine

ENGINES: Final = (EngineName.LOCAL, EngineName.SPARK)


@pytest.fixture(scope="session", params=ENGINES)
def engine(request: pytest.FixtureRequest) -> Engine:
    """Every engine in turn."""
    return open_engine(request.param, request)


IN_TURN: Final = (EngineName.LOCAL, pytest.param(EngineName.SPARK, marks=pytest.mark.soak))


@pytest.fixture(scope="session", params=IN_TURN)
def engine_in_turn(request: pytest.FixtureRequest) -> Engine:
    """Every engine in turn; Spark only in soak, since its merges of a few rows take seconds."""
    return open_engine(request.param, request)


def open_engine(name: EngineName, request: pytest.FixtureRequest) -> Engine:
    """The engine of a name."""
    if name is EngineName.LOCAL:
        return LocalEngine()
    # Imported here: a run of the local engine must not pay for Spark.
    from omnigraph.engine.spark.execute import SparkEngine

    return SparkEngine(request.getfixturevalue("spark"))
