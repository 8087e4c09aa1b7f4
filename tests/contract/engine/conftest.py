"""The engines that every case of this suite is run on."""

import pytest

from omnigraph.engine.local.execute import LocalEngine
from omnigraph.engine.protocol import Engine


@pytest.fixture(scope="session", params=["local", "spark"])
def engine(request: pytest.FixtureRequest) -> Engine:
    if request.param == "local":
        return LocalEngine()
    from omnigraph.engine.spark.execute import SparkEngine

    return SparkEngine(request.getfixturevalue("spark"))
