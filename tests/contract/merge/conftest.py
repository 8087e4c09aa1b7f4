"""The engines that merges run on."""

from typing import Final

import pytest

from omnigraph.engine.local.execute import LocalEngine
from omnigraph.engine.protocol import Engine, EngineName

ENGINES: Final = (EngineName.LOCAL, EngineName.SPARK)


@pytest.fixture(scope="session", params=ENGINES)
def engine(request: pytest.FixtureRequest) -> Engine:
    """Every engine there is, one after the other."""
    if request.param is EngineName.LOCAL:
        return LocalEngine()
    # Imported here: a run of the local engine must not pay for Spark.
    from omnigraph.engine.spark.execute import SparkEngine

    return SparkEngine(request.getfixturevalue("spark"))
