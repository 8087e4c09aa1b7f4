"""The engines that merges run on."""

from typing import Final

import pytest

from omnigraph.backends.local import LocalBackend
from omnigraph.backends.protocol import Backend
from omnigraph.choices import EngineName

ENGINES: Final = (EngineName.LOCAL, EngineName.SPARK)


@pytest.fixture(scope="session", params=ENGINES)
def engine(request: pytest.FixtureRequest) -> Backend:
    """Every engine in turn."""
    return open_backend(request.param, request)


IN_TURN: Final = (EngineName.LOCAL, pytest.param(EngineName.SPARK, marks=pytest.mark.soak))


@pytest.fixture(scope="session", params=IN_TURN)
def engine_in_turn(request: pytest.FixtureRequest) -> Backend:
    """Every engine in turn; Spark only in soak, since its merges of a few rows take seconds."""
    return open_backend(request.param, request)


def open_backend(name: EngineName, request: pytest.FixtureRequest) -> Backend:
    """The engine of a name."""
    if name is EngineName.LOCAL:
        return LocalBackend()
    # Imported here: a run of the local engine must not pay for Spark.
    from omnigraph.backends.spark import SparkBackend
    from omnigraph.engine.spark.execute import SparkEngine

    return SparkBackend(SparkEngine(request.getfixturevalue("spark")))


@pytest.fixture(scope="session")
def local() -> Backend:
    """The engine of this process."""
    return LocalBackend()


@pytest.fixture(scope="session")
def on_spark(request: pytest.FixtureRequest) -> Backend:
    """Spark."""
    return open_backend(EngineName.SPARK, request)
